"""The chaos for long: `make soak MINUTES=30`. Tells how it goes each ten seconds; exit code 0 when all held."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.acceptance.chaos import Chaos
from tests.acceptance.chaos_verdict import given_up, problems

MOST_SHOWN = 50


def main() -> int:
    """Run, judge, tell."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    args = parser.parse_args()
    folder, began = Path(tempfile.mkdtemp(prefix="webordinary-soak-")), time.monotonic()

    def say(line: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.0f} s  {line}\n")
        sys.stdout.flush()

    chaos = Chaos(folder / "house", args.seed, say)
    say(f"{args.minutes:g} minutes with seed {args.seed} in {folder}")
    try:
        chaos.run(args.minutes * 60)
        wrong = problems(chaos.house, chaos.customers.promises, chaos.postbox.read())
    except (AssertionError, KeyboardInterrupt) as problem:
        wrong = [str(problem) or type(problem).__name__]
    finally:
        chaos.house.raze()
    for line in wrong[:MOST_SHOWN]:
        say(f"WRONG: {line}")
    promises = chaos.customers.promises
    say(f"{chaos.progress()}; {given_up(promises, chaos.postbox.read())} given up after three lost workers")
    say(f"soak {'failed' if wrong else 'passed'}: {len(wrong)} problems, seed {args.seed}, {args.minutes:g} minutes")
    if not wrong:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
