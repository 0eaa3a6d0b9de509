"""Reads every hostile mail in child processes and prints, as JSON, what became of each and what it took.

A program of its own: the kernel tells the largest memory of all children that a process ever had.
"""

from __future__ import annotations

import json
import resource
import sys

from tests.hostile_mails import HOSTILE, mail
from webordinary.adapters.files.parser import ProcessParser
from webordinary.mail.ports import Unparseable

CUSTOMER = "scott@example.com"


def main() -> None:
    start = cost_of(mail(b"status"))["seconds"]
    measured = {name: cost_of(build(CUSTOMER)) for name, build in HOSTILE.items()}
    json.dump({"start": start, "megabytes": children().ru_maxrss / 1024, "mails": measured}, sys.stdout)


def cost_of(raw: bytes) -> dict[str, float | str]:
    before, parser = children(), ProcessParser()
    try:
        parser.parse(raw)
        said = ""
        for _ in parser.files(raw):
            pass
    except Unparseable as problem:
        said = str(problem)
    finally:
        parser.close()
    after = children()
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"said": said, "seconds": seconds}


def children() -> resource.struct_rusage:
    return resource.getrusage(resource.RUSAGE_CHILDREN)


if __name__ == "__main__":
    main()
