"""Faults for long: `make soak KINDS=kills,disk MINUTES=30`. Exit code 0 when every kind held its promises.

The kinds take turns, each on a system of its own. The table at the end is judged by git, release folders and Maildir.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.chaos import Chaos, Promise
from tests.acceptance.chaos_verdict import GAVE_UP, MOST_STARTS, Faults, faults, lost_workers_of, problems
from tests.acceptance.soak_kinds import KINDS, MeansMissing, prepared

MOST_SHOWN = 50
HEAD = ("kind", "accepted", "answered", "lost", "twice", "given up without fault", "")


@dataclass(frozen=True)
class Row:
    """One kind's line of the table."""

    kind: str
    accepted: int = 0
    answered: int = 0
    found: Faults = field(default_factory=Faults)
    words: str = ""
    ran: bool = True

    @property
    def failed(self) -> bool:
        return self.ran and bool(self.words)

    def cells(self) -> tuple[str, ...]:
        if not self.ran:
            return self.kind, "-", "-", "-", "-", "-", self.words
        figures = (self.accepted, self.answered, self.found.lost, self.found.twice, self.found.given_up)
        return self.kind, *map(str, figures), self.words


def main() -> int:
    """Run, judge, tell."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--kinds", type=_kinds, default=KINDS, help=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    args = parser.parse_args()
    folder, began = Path(tempfile.mkdtemp(prefix="webordinary-soak-")), time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.0f} s  {line}\n")
        sys.stdout.flush()

    say(f"{args.minutes:g} minutes of {', '.join(args.kinds)} with seed {args.seed} in {folder}")
    seconds, rows = args.minutes * 60 / len(args.kinds), list[Row]()
    for kind in args.kinds:
        rows.append(soak(kind, folder / kind, args.seed, seconds, say))
        say(f"{kind}: {' '.join(rows[-1].cells()[1:])}")
    sys.stdout.write(table([row.cells() for row in rows]) + "\n")
    failed = [row.kind for row in rows if row.failed]
    say(f"soak {'failed: ' + ', '.join(failed) if failed else 'passed'}; seed {args.seed}, {args.minutes:g} minutes")
    if not failed:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if failed else 0


def soak(kind: str, folder: Path, seed: int, seconds: float, say: Callable[[str], None]) -> Row:
    """One kind's turn; what is wrong is said, and stays in the folder."""
    try:
        with prepared(kind, folder) as means:
            chaos = Chaos(folder / "house", seed, lambda line: say(f"{kind}: {line}"), means.furnish, means.trouble_of)
            chaos.customers.impatient = means.impatient
            try:
                return _judged(kind, chaos, seconds, say)
            finally:
                chaos.harness.raze()
    except MeansMissing as missing:
        return Row(kind, words=f"not run: {missing}", ran=False)


def _judged(kind: str, chaos: Chaos, seconds: float, say: Callable[[str], None]) -> Row:
    wrong: list[str] = []
    try:
        chaos.run(seconds)
    except (AssertionError, OSError, KeyboardInterrupt) as problem:
        wrong = [str(problem) or type(problem).__name__]
    promises, answers = chaos.customers.promises, chaos.postbox.read()
    wrong += problems(chaos.harness, promises, answers) if not wrong else []
    found = faults(chaos.harness, promises, answers, _excused(chaos, promises))
    wrong += [f"{found.given_up} mails were given up without fault"] if found.given_up else []
    for line in wrong[:MOST_SHOWN]:
        say(f"{kind}: WRONG: {line}")
    answered = sum(promise.message_id in answers for promise in promises)
    return Row(kind, len(promises), answered, found, wrong[0][:100] if wrong else "")


def _excused(chaos: Chaos, promises: Sequence[Promise]) -> set[str]:
    """Mails that lost three workers to our kills: that looks as if they were the mail's own doing."""
    given_up = [p for p in promises if GAVE_UP in "".join(chaos.postbox.answers.get(p.message_id, ()))]
    lost = lost_workers_of(chaos.harness) if chaos.trouble.ends_workers and given_up else {}
    return {promise.mark for promise in given_up if lost.get(promise.email_id, 0) >= MOST_STARTS}


def table(rows: Sequence[Sequence[str]]) -> str:
    """The rows below their heads, in columns."""
    lines = [HEAD, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                     for line in lines)  # fmt: skip


def _kinds(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - set(KINDS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
