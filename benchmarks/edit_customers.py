"""Are many customers served at once by few workers, and what does a slot cost that nobody uses?

Workload: the real `webordinary up` with 2 workers of 4 slots each; 20 customers with a site of their own write one mail
at the same moment; seconds from the first mail to each reply in the Maildir. Then one worker with 1 slot and one with 8
serve the same 8 customers, rest, and are weighed: megabytes (PSS) that a further slot adds to an idle worker, before
and after it was used.
"""

from __future__ import annotations

import os
import signal
import smtplib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness import bar, options, report, summary, working_folder
from mail_to_reply import MAILBOX, READY, StartedSystem, family, pss_megabytes
from parts.edits import site_of
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.operations import onboarding
from webordinary.operations.sample import make_origin

WORKERS, SLOTS = 2, 4
FEW, MANY = 1, 8
PATIENCE_SECONDS = 300.0


def main() -> None:
    chosen = options(__doc__ or "", repeats=3)
    customers, files = chosen.pick(20, 3), chosen.pick(50, 3)
    with working_folder(chosen) as folder:
        crowd = BenchmarkSites(folder / "crowd", customers, files)
        with running(crowd.data, workers=WORKERS, slots=SLOTS) as system:
            crowd.write(system, "Warm")
            rounds = [crowd.write(system, f"Round {number}") for number in range(chosen.repeats)]
        few, many = BenchmarkSites(folder / "few", MANY, files), BenchmarkSites(folder / "many", MANY, files)
        weights = [weigh(few, FEW, many, MANY) for _ in range(chosen.repeats)]
    answered = [len(seconds) for seconds in rounds]
    fresh, used = zip(*weights, strict=True)
    report(
        "20 customers at once on 2 workers of 4 slots, and the memory of an idle slot",
        {"customers": customers, "files_each": files, "workers": WORKERS, "slots": SLOTS, "agent": "builtin"},
        {
            "answered": bar(min(answered), at_least=customers),
            "seconds_to_reply": summary([second for seconds in rounds for second in seconds]),
            "seconds_to_the_last_reply": summary([max(seconds) for seconds in rounds]),
            "megabytes_of_a_fresh_slot": summary(fresh),
            "megabytes_of_a_used_slot": summary(used),
            "slot_bar": bar(max(summary(fresh)["median"], summary(used)["median"]), at_most=10.0),
        },
        chosen,
    )


class BenchmarkSites:
    """Customers with a site each, below one data folder."""

    def __init__(self, data: Path, count: int, files: int, agent: str = "auto") -> None:
        self.data, self.names = data, [f"site-{number}" for number in range(count)]
        with open_embedded(Config(data=data, agent=agent, agent_command=("true",))) as services:
            for name in self.names:
                origin = data / "origins" / f"{name}.git"
                origin.parent.mkdir(exist_ok=True)
                make_origin(origin, site_of(files))
                onboarding.onboard(services, name, str(origin), "owner", f"{name}@example.com", lambda _: None)

    def write(self, system: StartedSystem, word: str) -> list[float]:
        """All write at once; seconds from then until each reply lies in the Maildir."""
        outbox = self.data / "outbox" / "new"
        before = set(outbox.glob("*"))
        gate = threading.Barrier(len(self.names) + 1)
        writers = [threading.Thread(target=_write, args=(system, name, word, gate)) for name in self.names]
        for writer in writers:
            writer.start()
        gate.wait()
        began = time.time()
        for writer in writers:
            writer.join()
        deadline = began + PATIENCE_SECONDS
        while len(arrived := set(outbox.glob("*")) - before) < len(self.names) and time.time() < deadline:
            time.sleep(0.02)
        return [path.stat().st_mtime - began for path in arrived]


def _write(system: StartedSystem, name: str, word: str, gate: threading.Barrier) -> None:
    sender, subject = f"{name}@example.com", f"{word} {name}"
    letter = CustomerMail(
        sender, MAILBOX, subject, f"Change the homepage title to {subject}", message_id=f"<{time.time_ns()}@{name}>"
    )
    raw = write_mail(letter, datetime.now(UTC))
    with smtplib.SMTP(*system.smtp, local_hostname="localhost", timeout=60) as smtp:
        gate.wait()
        smtp.sendmail(sender, [MAILBOX], raw)


def weigh(few: BenchmarkSites, few_slots: int, many: BenchmarkSites, many_slots: int) -> tuple[float, float]:
    """Megabytes a slot, before and after use."""
    (light, light_used), (heavy, heavy_used) = _weights(few, few_slots), _weights(many, many_slots)
    more = many_slots - few_slots
    return (heavy - light) / more, (heavy_used - light_used) / more


def _weights(crowd: BenchmarkSites, slots: int) -> tuple[float, float]:
    with running(crowd.data, workers=1, slots=slots) as system:
        fresh = _workers_weight(system)
        crowd.write(system, f"Weight {time.time_ns()}")
        return fresh, _workers_weight(system)


def _workers_weight(system: StartedSystem) -> float:
    """The workers alone: `up` is another program."""
    time.sleep(1.0)  # let what runs come to rest
    return sum(pss_megabytes(pid) for pid in _alive(family(system.pid)) if pid != system.pid)


def _alive(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}/smaps_rollup").exists()]


@contextmanager
def running(data: Path, *settings: str, workers: int, slots: int) -> Iterator[StartedSystem]:
    """The real thing, from `up` to a clean end."""
    ports = ("--port", "0", "--smtp-port", "0", "--preview-port", "0")
    flags = ("--workers", str(workers), "--slots", str(slots), "--hourly-mails", "0", *ports)
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "webordinary", "up", "--data", str(data), *flags, *settings],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"WEBORDINARY_TRUSTED_PEERS": "127.0.0.1"},
    )
    try:
        assert process.stdout
        found = next(found for line in process.stdout if (found := READY.match(line)))
        yield StartedSystem(process.pid, data, (found[2], int(found[3])), time.monotonic() - began)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


if __name__ == "__main__":
    main()
