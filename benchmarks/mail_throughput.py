"""How many mails a second does the whole system finish, and what does one cost?

Workload: the real `webordinary up` with 2 workers of 4 slots and without pictures; 50 customers with a site of their
own write 2,000 mails as fast as they are taken, each an exact wish and a conversation of its own. Once the built-in
agent does them, once a command agent (`sh`) in the sandbox, where there is one. Measured from the first mail to
the last reply in the Maildir.
Units: mails per second, and milliseconds of processor time a mail, which a busy machine disturbs less.
"""

from __future__ import annotations

import os
import shutil
import smtplib
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from edit_customers import SLOTS, WORKERS, BenchmarkSites, running
from harness import options, progress, report, working_folder
from mail_to_reply import MAILBOX, StartedSystem, family
from webordinary.mail.write import CustomerMail, write_mail

COMMAND = "sh -c 'date +%N > note.txt; echo Noted the time.'"
DONE = "SELECT count(*) FROM jobs WHERE outcome = 'succeeded' AND result LIKE '%\"commit\"%'"
WRITERS = 8
PATIENCE_SECONDS = 1800.0


def main() -> None:
    chosen = options(__doc__ or "", repeats=1)
    customers, mails, files = chosen.pick(50, 2), chosen.pick(2000, 4), chosen.pick(50, 3)
    agents: dict[str, tuple[str, ...]] = {"builtin": ()}
    if shutil.which("bwrap"):
        agents["command"] = ("--agent-command", COMMAND)
    found: dict[str, list[dict[str, float]]] = {agent: [] for agent in agents}
    with working_folder(chosen) as folder:
        for number in range(chosen.repeats):
            for agent, flags in agents.items():
                crowd = BenchmarkSites(folder / f"{agent}-{number}", customers, files, agent)
                settings = ("--pictures", "off", "--agent", agent, *flags)
                with running(crowd.data, *settings, workers=WORKERS, slots=SLOTS) as system:
                    found[agent].append(finish(system, crowd, mails))
                progress(f"{agent}: {found[agent][-1]}")
    report(
        "mails that the whole system finishes in a second, and the processor time of one",
        {"customers": customers, "mails": mails, "files_each": files, "workers": WORKERS, "slots": SLOTS},
        found,
        chosen,
    )


def finish(system: StartedSystem, crowd: BenchmarkSites, mails: int) -> dict[str, float]:
    """Write all mails and wait for all answers."""
    outbox, before, began = crowd.data / "outbox" / "new", used_cpu_seconds(system), time.monotonic()
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(lambda number: write(system, crowd.names[number % len(crowd.names)], number), range(mails)))
    taken = time.monotonic() - began
    while (answered := len(list(outbox.glob("*")))) < mails:
        assert time.monotonic() - began < PATIENCE_SECONDS, f"{answered} of {mails} mails are answered"
        time.sleep(0.1)
    seconds = time.monotonic() - began
    with closing(sqlite3.connect(crowd.data / "webordinary.db")) as conn:
        [(done,)] = conn.execute(DONE)
    assert done == mails, f"{mails - done} mails are answered without a change"
    cpu = {name: 1000 * (after - before[name]) / mails for name, after in used_cpu_seconds(system).items()}
    return {
        "mails_per_second": round(mails / seconds, 2),
        "seconds_until_all_were_taken": round(taken, 1),
        **{f"cpu_ms_a_mail_{name}": round(used, 1) for name, used in cpu.items()},
    }


def write(system: StartedSystem, name: str, number: int) -> None:
    text = f"Change the homepage title to Sale {number}"
    letter = CustomerMail(f"{name}@example.com", MAILBOX, f"title {number}", text, message_id=f"<{number}@{name}>")
    with smtplib.SMTP(*system.smtp, local_hostname="localhost", timeout=60) as smtp:
        smtp.sendmail(letter.sender, [MAILBOX], write_mail(letter, datetime.now(UTC)))


def used_cpu_seconds(system: StartedSystem) -> dict[str, float]:
    """What `up` and its workers used so far, and the programs that they have run and that have ended."""
    ours = ended = 0.0
    ticks = os.sysconf("SC_CLK_TCK")
    for pid in family(system.pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ours += (int(fields[11]) + int(fields[12])) / ticks
        ended += (int(fields[13]) + int(fields[14])) / ticks
    return {"python": ours, "programs": ended}


if __name__ == "__main__":
    main()
