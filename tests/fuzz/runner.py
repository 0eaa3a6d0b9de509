"""Runs fuzz targets: fixed seeds in the tests, fresh ones for some minutes in `make fuzz`, one to replay a finding."""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Protocol

from tests.fuzz.mails import MailParserTarget, SesHeaderTarget
from tests.fuzz.mutator import Mutator
from tests.fuzz.servers import ProxyTarget, SmtpTarget

TARGETS = {target.name: target for target in (MailParserTarget, SmtpTarget, ProxyTarget, SesHeaderTarget)}
HANG_SECONDS = 20.0
"""Of processor time for one input."""
_BATCH = 50
_MOST_FINDINGS = 10
_PROGRESS_SECONDS = 5.0
_SHOWN = 1000


class FuzzTarget(Protocol):
    """Code that reads bytes from outside, and what must be true of it."""

    name: str
    mutator: Mutator

    def check(self, data: bytes) -> None:
        """Give it an input; raises where a promise is broken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that breaks a promise."""

    target: str
    seed: int
    problem: str

    def __str__(self) -> str:
        data = TARGETS[self.target].mutator.input_of(self.seed)
        return (
            f"FINDING: {self.problem}\ntarget {self.target}, seed {self.seed}, {len(data)} bytes: {data[:_SHOWN]!r}\n"
            f"replay: python -m tests.fuzz --target {self.target} --seed {self.seed}\n"
        )


def run(target: FuzzTarget, seeds: range) -> list[Finding]:
    """Check the inputs of some seeds."""
    findings = []
    for seed in seeds:
        try:
            with _limited():
                target.check(target.mutator.input_of(seed))
        except Exception as problem:
            findings.append(Finding(target.name, seed, f"{type(problem).__name__}: {problem}"[:_SHOWN]))
    return findings


@contextmanager
def _limited() -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {HANG_SECONDS:.0f} processor seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@cache
def _target(name: str) -> FuzzTarget:
    """Once a process: two of the targets are servers."""
    logging.disable(logging.WARNING)
    return TARGETS[name]()


def _batch(name: str, first: int) -> list[Finding]:
    return run(_target(name), range(first, first + _BATCH))


class _Report:
    """Counts and tells."""

    def __init__(self, seconds: float) -> None:
        self.inputs, self.findings, self._seconds = 0, list[Finding](), seconds
        self._began = self._told_at = time.monotonic()

    def add(self, findings: Sequence[Finding]) -> None:
        self.inputs += _BATCH
        self.findings += findings
        for finding in findings:
            _say(str(finding))
        now = time.monotonic()
        if now - self._told_at > _PROGRESS_SECONDS:
            self._told_at = now
            _say(f"{now - self._began:4.0f} of {self._seconds:.0f} s: {self.summary}")

    @property
    def summary(self) -> str:
        return f"{self.inputs} inputs, {len(self.findings)} findings"


def _run_for(seconds: float, first: int, names: Sequence[str], jobs: int) -> int:
    report, ends_at, waiting = _Report(seconds), time.monotonic() + seconds, set[Future[list[Finding]]]()
    batches = ((name, at) for at in range(first, sys.maxsize, _BATCH) for name in names)
    with ProcessPoolExecutor(jobs) as pool:
        while (in_time := time.monotonic() < ends_at and len(report.findings) < _MOST_FINDINGS) or waiting:
            while in_time and len(waiting) < 2 * jobs:
                waiting.add(pool.submit(_batch, *next(batches)))
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for batch in done:
                report.add(batch.result())
    _say(f"seeds from {first}: {report.summary}")
    return 1 if report.findings else 0


def _replay(name: str, seed: int) -> int:
    target = _target(name)
    _say(repr(target.mutator.input_of(seed)))
    target.check(target.mutator.input_of(seed))
    _say(f"target {name}, seed {seed}: no finding")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, help="the first seed; a random one unless told")
    parser.add_argument("--target", choices=TARGETS, help="only this one")
    parser.add_argument("--seed", type=int, help="with --target: replay one input and show the traceback")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    chosen = parser.parse_args(argv)
    if chosen.seed is not None:
        if not chosen.target:
            parser.error("name the target of the seed: --target")
        return _replay(chosen.target, chosen.seed)
    first = random.SystemRandom().randrange(10**9) if chosen.first is None else chosen.first
    names = [chosen.target] if chosen.target else list(TARGETS)
    return _run_for(chosen.minutes * 60, first, names, chosen.jobs)
