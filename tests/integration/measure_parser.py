"""Reads every hostile mail in child processes and prints, as JSON, what became of each and what it took.

Programs of their own: the kernel tells the largest memory of all children that a process ever had, and counts that of
their parent until they run their own program. So `write DIR` makes the mails and `measure DIR` reads them.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from tests.hostile_mails import HOSTILE, mail
from webordinary.adapters.files.parser import ProcessParser
from webordinary.mail.ports import Unparseable

CUSTOMER = "scott@example.com"


def measure(folder: Path) -> None:
    start = cost_of(mail(b"status"))["seconds"]
    measured = {name: cost_of((folder / name).read_bytes()) for name in HOSTILE}
    json.dump({"start": start, "megabytes": children().ru_maxrss / 1024, "mails": measured}, sys.stdout)


def write_mails(folder: Path) -> None:
    for name, build in HOSTILE.items():
        (folder / name).write_bytes(build(CUSTOMER))


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
    {"write": write_mails, "measure": measure}[sys.argv[1]](Path(sys.argv[2]))
