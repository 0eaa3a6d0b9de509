"""How fast is the whole system for its users, and what does it cost when nothing happens?

Starts the real `webordinary up` on a fresh data folder, writes real mails by SMTP, and measures from the
server's 250 until the reply lies in the Maildir; then leaves it alone and reads its processor time and memory.
"""

from __future__ import annotations

import os
import re
import signal
import smtplib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness import bar, options, report, summary, working_folder
from webordinary.adapters.files.screenshots import find_browser
from webordinary.adapters.files.wake import WakeBus
from webordinary.mail.write import CustomerMail, write_mail

READY = re.compile(r"ready (\S+) smtp (\S+):(\d+) ")
CUSTOMER, MAILBOX = "scott@example.com", "edit@localhost"


@dataclass(frozen=True)
class StartedSystem:
    pid: int
    data: Path
    smtp: tuple[str, int]
    ready_seconds: float


def main() -> None:
    chosen = options(__doc__ or "", repeats=30)
    with working_folder(chosen) as folder:
        with running(folder / "data") as first:
            first_ready = first.ready_seconds
        with running(folder / "data") as system:
            mails = [mail_to_reply(system, number) for number in range(chosen.repeats + 1)]
            idle = idle_cost(system, chosen.pick(20.0, 0.5))
            pss = sum(pss_megabytes(pid) for pid in family(system.pid))
        with_pictures = []
        if find_browser() is not None:
            with running(folder / "data", "--pictures", "auto") as system:
                with_pictures = [mail_to_reply(system, 1_000 + number) for number in range(chosen.pick(11, 2))]
    pictures = (
        {
            "mail_to_reply_with_pictures_seconds": summary(with_pictures),
            "mail_to_reply_with_pictures_bar": bar(max(with_pictures), at_most=3.0),
        }
        if with_pictures
        else {}
    )
    report(
        "from an accepted mail to its published answer, start-up, and the cost of idling",
        {"mails": chosen.repeats, "agent": "builtin", "workers": 2},
        {
            "mail_to_reply_seconds": summary(mails[1:]) | {"first": round(mails[0], 3)},
            "mail_to_reply_bar": bar(summary(mails[1:])["p99"], at_most=1.0),
            **pictures,
            "first_start_seconds": bar(first_ready, at_most=60.0),
            "start_seconds": bar(system.ready_seconds, at_most=5.0),
            "idle_percent_of_a_core": bar(idle, at_most=3.0),
            "idle_pss_megabytes": bar(pss, at_most=350.0),
        },
        chosen,
    )


@contextmanager
def running(data: Path, *settings: str) -> Iterator[StartedSystem]:
    """The real thing, from `up` to a clean end."""
    ports = ("--port", "0", "--smtp-port", "0", "--preview-port", "0", "--hourly-mails", "0")
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "webordinary", "up", "--data", str(data), *ports, *(settings or ("--pictures", "off"))],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        found = next(found for line in process.stdout if (found := READY.match(line)))
        yield StartedSystem(process.pid, data, (found[2], int(found[3])), time.monotonic() - began)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def mail_to_reply(system: StartedSystem, number: int) -> float:
    """Seconds from the 250 until the reply is in the Maildir."""
    letter = CustomerMail(
        CUSTOMER,
        MAILBOX,
        f"title {number}",
        f"Change the homepage title to Sale {number}",
        message_id=f"<{number}@b.example>",
    )
    raw = write_mail(letter, datetime.now(UTC))
    bus = WakeBus(system.data / "run" / "wake")
    ear = bus.listen("page-benchmark")
    outbox = system.data / "outbox" / "new"
    before = len(list(outbox.glob("*")))
    try:
        with smtplib.SMTP(*system.smtp, local_hostname="localhost") as smtp:
            smtp.sendmail(CUSTOMER, [MAILBOX], raw)
            accepted = time.monotonic()
        while len(list(outbox.glob("*"))) == before:
            assert time.monotonic() - accepted < 60, "no reply within a minute"
            ear.wait(0.05)
        return time.monotonic() - accepted
    finally:
        ear.close()
        bus.close()


def idle_cost(system: StartedSystem, seconds: float) -> float:
    """Percent of one core that all processes use together when nothing happens."""
    time.sleep(min(2.0, seconds))  # let the last events be written
    before, began = cpu_seconds(system.pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(system.pid) - before) / (time.monotonic() - began)


def cpu_seconds(root: int) -> float:
    ticks = 0
    for pid in family(root):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def pss_megabytes(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
    assert found
    return int(found[1]) / 1024


def family(root: int) -> list[int]:
    """A process and all its descendants."""
    found, pending = [root], [root]
    while pending:
        pid = pending.pop()
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
        found += children
        pending += children
    return found


if __name__ == "__main__":
    main()
