"""How many mails does the warm parser read in a second on one core?

Workload: mails as customers send them (plain text with quoted history, HTML alone, both with a photo), and the mails of
the shared corpus where it lies beside this checkout. Each is read from raw bytes to the text of the instruction.
Unit: mails a second of processor time, by the median mail; the bar is on the corpus, else on the made-up mails.
"""

from __future__ import annotations

import base64
import json
import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness import bar, options, progress, report, summary
from webordinary.mail.parsing.headers import with_crlf
from webordinary.mail.parsing.message import parse
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "mail" / "corpus_permissive.jsonl"
AT_LEAST = 500.0
QUOTED = "\n".join(f"> Line {number} of the mail that is answered." for number in range(40))
TEXT = f"Change the title to Spring Sale.\n\nOn 5 Jan 2026, at 10:20, Edit <edit@localhost> wrote:\n{QUOTED}\n"
PHOTO = OutgoingFile("kiln.jpg", "image/jpeg", b"\xff\xd8\xff" + bytes(200_000))
HTML = (
    "From: Scott <scott@example.com>\r\nSubject: Title\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    "<p>Change the title to <s>Winter</s> Spring.</p><div class='gmail_quote'><blockquote>"
    + "<p>Done, <a href='https://x.example/'>see it</a>.</p>" * 40
    + "</blockquote></div>"
)


def main() -> None:
    chosen = options(__doc__ or "", repeats=5)
    written = {"made up": made_up()} | ({"corpus": corpus()} if CORPUS.exists() else {})
    for mails in written.values():
        for raw in mails:
            parse(raw)
    rates = {name: [1 / second for second in medians(mails, chosen.repeats)] for name, mails in written.items()}
    judged = "corpus" if "corpus" in rates else "made up"
    report(
        "mails a second through the warm parser, on one core",
        {name: len(mails) for name, mails in written.items()},
        {name.replace(" ", "_") + "_mails_per_second": summary(values) for name, values in rates.items()}
        | {"median_mail": bar(statistics.median(rates[judged]), at_least=AT_LEAST)},
        chosen,
    )


def made_up() -> list[bytes]:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    letters = (CustomerMail("scott@example.com", "edit@localhost", "Title", TEXT, files) for files in ((), (PHOTO,)))
    return [*(write_mail(letter, now) for letter in letters), HTML.encode()]


def corpus() -> list[bytes]:
    rows = (json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines())
    return [with_crlf(base64.b64decode(row["eml_b64"])) for row in rows]


def medians(mails: Sequence[bytes], repeats: int) -> list[float]:
    """Of each round, the seconds of processor time that the median mail takes."""
    found = []
    for number in range(repeats):
        progress(f"round {number + 1} of {repeats}")
        found.append(statistics.median(seconds(raw) for raw in mails))
    return found


def seconds(raw: bytes) -> float:
    begun = time.process_time()
    parse(raw)
    return time.process_time() - begun


if __name__ == "__main__":
    main()
