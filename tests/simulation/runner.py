"""Runs seeds: one with its trace, or many over all cores."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.harness import SimulationHarness, run_seed

BATCH = 50
TAIL = 120
_PROGRESS_SECONDS = 5.0


def failure_of(seed: int) -> str | None:
    """The report of a seed that fails."""
    broken, world = run_seed(seed)
    return report(world, broken) if broken else None


def report(world: SimulationHarness, broken: BaseException, lines: int = TAIL) -> str:
    """What broke, the scenario, and the end of the trace."""
    trace = world.journal.lines()[-lines:]
    what = world.journal.short(str(broken))
    replay = f"python -m tests.simulation --seed {world.scenario.seed}"
    return "\n".join([str(world.scenario), *trace, "", f"BROKEN: {what}", f"replay: {replay}"])


def _batch(seeds: range) -> tuple[int, str | None]:
    logging.disable(logging.CRITICAL)
    for seed in seeds:
        if failure := failure_of(seed):
            return seed, failure
    return len(seeds), None


def _run_many(first: int, count: int, jobs: int) -> int:
    batches = [range(at, min(at + BATCH, first + count)) for at in range(first, first + count, BATCH)]
    began, passed, told_at = time.monotonic(), 0, 0.0
    with ProcessPoolExecutor(jobs) as pool:
        for outcome, failure in pool.map(_batch, batches):
            if failure:
                pool.shutdown(cancel_futures=True, wait=False)
                _say(failure, f"seed {outcome} failed")
                return 1
            passed += outcome
            if time.monotonic() - told_at > _PROGRESS_SECONDS:
                told_at = time.monotonic()
                rate = passed / (told_at - began)
                sys.stderr.write(f"{passed} of {count} seeds, {rate:.0f} a second\n")
    _say(f"{passed} seeds passed")
    return 0


def _replay(seed: int, *, everything: bool) -> int:
    broken, world = run_seed(seed)
    _say(str(world.scenario), *world.journal.lines(everything=everything))
    _say(f"\nBROKEN: {world.journal.short(str(broken))}" if broken else f"\nseed {seed} passed")
    return int(broken is not None)


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, help="replay this seed and print its whole trace")
    parser.add_argument("--everything", action="store_true", help="with the engine's own bookkeeping")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    chosen = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)
    if chosen.seed is not None:
        return _replay(chosen.seed, everything=chosen.everything)
    return _run_many(chosen.first, chosen.seeds, chosen.jobs)
