"""How much disk space does a mail cost for good?

Starts the real `webordinary up`, writes mails of 4 kB by SMTP, each a conversation of its own that quotes other prose,
and measures the parts of the data folder after the first quarter and after the last mail.
Sites are bounded by `releases_kept`.
"""

from __future__ import annotations

import smtplib
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path

from harness import bar, options, progress, report, working_folder
from mail_to_reply import CUSTOMER, MAILBOX, StartedSystem, running
from webordinary.adapters.git.mirrors import tend_origins
from webordinary.adapters.git.workspaces import size_of
from webordinary.mail.write import CustomerMail, write_mail

PARTS = ("webordinary.db", "workspaces", "origins", "mirrors", "mail", "outbox", "sites", "sessions")
AT_ONCE = 5
PROSE = (Path(__file__).parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
QUOTED = 3600


def main() -> None:
    chosen = options(__doc__ or "", repeats=400)
    with working_folder(chosen) as folder, running(folder / "data") as system:
        first = max(AT_ONCE, chosen.repeats // 4)
        write(system, 0, first)
        before = sizes(system.data)
        write(system, first, first + chosen.repeats)
        after = sizes(system.data)
        tables = table_bytes(system.data / "webordinary.db", first + chosen.repeats)
    grown = {part: (after[part] - before[part]) / 1000 / chosen.repeats for part in PARTS}
    report(
        "disk space that a mail of 4 kB leaves behind, in kB",
        {"mails": chosen.repeats, "agent": "builtin", "workers": 2},
        {
            "kb_a_mail": {part: round(value, 2) for part, value in grown.items()},
            "database_bar": bar(grown["webordinary.db"], at_most=15.0),
            "database_kb_a_mail_by_table": tables,
        },
        chosen,
    )


def write(system: StartedSystem, first: int, beyond: int) -> None:
    """Post mails, a few at a time, and wait for the answers."""
    outbox = system.data / "outbox" / "new"
    for start in range(first, beyond, AT_ONCE):
        some = range(start, min(start + AT_ONCE, beyond))
        for number in some:
            text = f"Change the homepage title to Sale {number}\n\nRegards\nScott\n\n{quoted(number)}"
            name = f"<growth-{number}@b.example>"
            letter = CustomerMail(CUSTOMER, MAILBOX, f"title {number}", text, message_id=name)
            with smtplib.SMTP(*system.smtp, local_hostname="localhost") as smtp:
                smtp.sendmail(CUSTOMER, [MAILBOX], write_mail(letter, datetime.now(UTC)))
        deadline = time.monotonic() + 120
        while len(list(outbox.glob("*"))) < some[-1] + 1:
            assert time.monotonic() < deadline, "no reply within two minutes"
            time.sleep(0.05)
        if some[-1] % 50 == 49:
            progress(f"{some[-1] + 1} mails: {sizes(system.data)}")


def quoted(number: int) -> str:
    """What a customer left under the answer; other words in each mail, so that it is as hard to compress as mails."""
    start = number * 1009 % (len(PROSE) - QUOTED)
    return "".join(f"> {line}\n" for line in PROSE[start : start + QUOTED].splitlines())


def sizes(data: Path) -> dict[str, int]:
    """Bytes on disk of each part, after the upkeep that `up` does each minute."""
    tend_origins(data / "origins")
    return {part: size_of(data / part) if (data / part).is_dir() else _bytes(data / part) for part in PARTS}


def _bytes(file: Path) -> int:
    return file.stat().st_blocks * 512 if file.exists() else 0


def table_bytes(database: Path, mails: int) -> dict[str, float]:
    """The database's tables and indexes, where SQLite was built to tell; kB for each mail."""
    conn = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        rows = conn.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC LIMIT 15").fetchall()
    except sqlite3.OperationalError:
        return {}
    finally:
        conn.close()
    return {name: round(size / 1000 / mails, 2) for name, size in rows}


if __name__ == "__main__":
    main()
