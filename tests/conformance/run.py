"""Runs corpora of other people: `make conformance KIND=mail DIR=path`, or KIND=asl.

Reads every `*.jsonl` of the folder, prints a table by source and field, and ends with the count of cases.
"""

from __future__ import annotations

# ruff: noqa: T201  it prints a report
import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conformance.asl_corpus import comparison, differences, replay
from tests.conformance.mail_corpus import judged

from webordinary.asl.errors import InvalidDefinition

Row = dict[str, Any]
OUTCOME = ("status", "output", "error", "cause", "states_entered", "event_types")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["mail", "asl"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--failed", action="store_true", help="name each case that fails, with its fields")
    given = parser.parse_args()
    files = sorted(given.folder.glob("*.jsonl"))
    if not files:
        print(f"no *.jsonl in {given.folder}: give the folder that holds the corpus", file=sys.stderr)
        return 2
    return show(list(results(files, {"mail": judged, "asl": asl_judged}[given.kind])), names=given.failed)


def results(files: list[Path], judge: Callable[[Row], dict[str, bool]]) -> Iterator[tuple[Row, dict[str, bool]]]:
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            row.setdefault("source", row.get("category", file.stem))
            yield row, judge(row)


def asl_judged(case: Row) -> dict[str, bool]:
    try:
        wrong = differences(case, replay(case), comparison())
    except InvalidDefinition:
        return {"supported": False}
    return {"supported": True} | {name: name not in wrong for name in OUTCOME if name in case["expected"]}


def show(rows: list[tuple[Row, dict[str, bool]]], *, names: bool) -> int:
    """The table; the exit code is 1 where a case failed."""
    total, right = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for row, fields in rows:
        for field, same in fields.items():
            total[row["source"], field] += 1
            right[row["source"], field] += same
        if names and not all(fields.values()):
            print(row["id"], *(field for field, same in fields.items() if not same))
    print(f"{'source':<24} {'field':<20} {'passed':>7} {'of':>7}")
    for source, field in sorted(total):
        print(f"{source[:24]:<24} {field:<20} {right[source, field]:>7} {total[source, field]:>7}")
    failed = sum(not all(fields.values()) for _, fields in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
