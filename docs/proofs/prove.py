"""Runs the models beside this file through Spin: what must hold, and the mutants that must fail.

`python docs/proofs/prove.py` checks everything (`make prove`); `--small` the configuration that the tests run.
Everything is built in a temporary folder. Needs Python, `spin` and `gcc`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENDLESS = "no endless run: every run comes to rest"
DEPTH = 5000
SECONDS = 900

_PROPERTY = re.compile(r"property: (.+?) ?\*/")
_FAILED_AT = re.compile(r"\.pml:(\d+), Error: assertion violated")
_FIGURES = {
    "states": re.compile(r"([\d.e+]+) states, stored"),
    "transitions": re.compile(r"([\d.e+]+) transitions"),
    "depth": re.compile(r"depth reached (\d+)"),
    "megabytes": re.compile(r"([\d.]+)\ttotal actual memory usage"),
    "seconds": re.compile(r"elapsed time ([\d.e+]+)"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One run of one model. A mutant must break one of the properties it names; without them all must hold."""

    model: str
    name: str
    defines: tuple[str, ...]
    endless: bool = False
    """Look for a run that never comes to rest, instead of for broken assertions."""
    breaks: tuple[str, ...] = ()
    """The beginnings of their words."""
    optimise: str = "-O0"
    """For the compiler: small searches end sooner than a good compilation."""

    @property
    def title(self) -> str:
        """As printed."""
        return f"{self.model}: {self.name}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What Spin found: the property that broke, or none; and how much it looked at."""

    check: Check
    broken: str
    figures: dict[str, float]

    @property
    def good(self) -> bool:
        """All holds, or the mutant broke just what it should."""
        if self.check.breaks:
            return self.broken.startswith(self.check.breaks)
        return not self.broken

    def line(self) -> str:
        """One line for a person."""
        f = self.figures
        size = (
            f"{f['states']:>11,.0f} states {f['transitions']:>11,.0f} transitions depth {f['depth']:>4.0f} "
            f"{f['megabytes']:>6.0f} MB {f['seconds']:>6.1f} s"
        )
        word = "ok    " if self.good else "WRONG "
        outcome = f"broken: {self.broken}" if self.broken else "holds"
        return f"{word}{self.check.title:<62} {size}  {outcome}"


def _holds(model: str, name: str, *defines: str, endless: bool = False) -> Check:
    return Check(model, name, defines, endless)


def _mutant(model: str, name: str, breaks: str | tuple[str, ...], *defines: str, endless: bool = False) -> Check:
    return Check(model, name, (name, *defines), endless, (breaks,) if isinstance(breaks, str) else breaks)


ONE_EACH = "MAILS_ON_KEY_0=1"
NO_HELP = ("FAULTS=0", "NO_RECONCILER")

SMALL_HOLDS = (
    _holds("claims", "two mails, one fault", ONE_EACH, "FAULTS=1"),
    _holds("claims", "two mails, no fault, no reconciler needed", ONE_EACH, *NO_HELP),
    _holds("claims", "two mails, no fault, comes to rest", ONE_EACH, "FAULTS=0", endless=True),
    _holds("interrupts", "threads A A B, no fault", "FAULTS=0"),
    _holds("interrupts", "threads A A B, no fault, no reconciler needed", *NO_HELP),
    _holds("publish", "two faults", "FAULTS=2"),
    _holds("publish", "one fault, comes to rest", "FAULTS=1", endless=True),
)
FULL_HOLDS = (
    _holds("claims", "three mails, one fault", "FAULTS=1"),
    _holds("claims", "two mails, two faults", ONE_EACH, "FAULTS=2"),
    _holds("claims", "three mails, no fault, no reconciler needed", *NO_HELP),
    _holds("claims", "two mails, one fault, comes to rest", ONE_EACH, "FAULTS=1", endless=True),
    _holds("claims", "three mails, no fault, comes to rest", "FAULTS=0", endless=True),
    _holds("interrupts", "threads A A B, two faults", "FAULTS=2"),
    _holds("interrupts", "threads A B C, one fault", "THREE_THREADS", "FAULTS=1"),
    _holds("interrupts", "threads A B C, no fault, no reconciler needed", "THREE_THREADS", *NO_HELP),
    _holds("interrupts", "threads A A B, one fault, comes to rest", "FAULTS=1", endless=True),
    _holds("publish", "four faults", "FAULTS=4"),
    _holds("publish", "two faults, comes to rest", "FAULTS=2", endless=True),
)
LOST, STALE = "no lost wake-up", "no settle under an old fence"
MUTANTS = (
    _mutant("claims", "NO_FENCE_AT_SETTLE", STALE, ONE_EACH),
    _mutant("claims", "NO_RECONCILER", LOST, ONE_EACH),
    _mutant("claims", "NO_SECOND_LOOK", LOST, *NO_HELP),
    _mutant("claims", "LOOK_BEFORE_ENQUEUE", LOST, *NO_HELP),
    _mutant("claims", "WORKFLOW_CLAIMS", LOST, "FAULTS=0"),
    _mutant("claims", "OWN_CLAIM_IGNORED", ENDLESS, ONE_EACH, endless=True),
    _mutant("interrupts", "NO_FENCE_AT_SETTLE", STALE),
    _mutant("interrupts", "NO_RECONCILER", "nothing is dropped"),
    _mutant("interrupts", "BIND_DOES_NOT_PAY", "nothing is dropped", *NO_HELP),
    _mutant("interrupts", "OWED_TOKEN_OVERWRITTEN", "nothing is dropped", "THREE_THREADS"),
    _mutant("interrupts", "PREEMPTED_ENDS", "one reply per mail"),
    _mutant("interrupts", "NO_THREAD_ORDER", "order within a thread"),
    _mutant("interrupts", "NO_LIMIT", "interrupted a bounded number"),
    _mutant("publish", "NO_FENCE_AT_SETTLE", STALE),
    _mutant("publish", "NO_FENCE_AT_PUSH", "no effect under an old fence"),
    _mutant("publish", "NO_PUSH_OF_WHAT_IS_ON_MAIN", ("what visitors see never", "in the end visitors")),
    _mutant("publish", "NO_FENCE_AT_POINTER", "what visitors see never"),
    _mutant("publish", "REFUSAL_IS_SILENT", ("the record says", "nothing is published for a job")),
)
# Not changes of the protocol but faults that it does not withstand yet; README.md says how likely each is.
WEAKNESSES = (_mutant("interrupts", "BOUND_AGAIN", "a heartbeat never"),)


def run(check: Check, folder: Path) -> Verdict:
    """Build and run one check in a folder of its own."""
    shutil.copy(HERE / f"{check.model}.pml", folder)
    defines = [f"-D{define}" for define in check.defines]
    _call(folder, "spin", "-a", *defines, f"{check.model}.pml")
    kind = "-DNP" if check.endless else "-DSAFETY"
    _call(folder, "gcc", check.optimise, "-w", kind, "-DCOLLAPSE", "-DMEMLIM=6000", "-o", "pan", "pan.c")
    found = _call(folder, "./pan", *(["-l"] if check.endless else []), f"-m{DEPTH}", "-w24")
    if "max search depth too small" in found or "out of memory" in found or "errors:" not in found:
        raise RuntimeError(f"{check.title}: the search was not complete:\n{found}")
    return Verdict(check, _broken(check, folder, defines, found), _figures(found))


def properties(holds: Sequence[Check]) -> set[str]:
    """What is proven when all these hold."""
    models = {check.model for check in holds}
    stated = {f"{model}: {text}" for model in models for _, text in _stated(model)}
    rests = {f"{check.model}: {ENDLESS}" for check in holds if check.endless}
    alone = {f"{check.model}: no reconciler needed" for check in holds if "NO_RECONCILER" in check.defines}
    return stated | rests | alone


def _broken(check: Check, folder: Path, defines: Sequence[str], found: str) -> str:
    if "errors: 0" in found:
        return ""
    if "non-progress cycle" in found.partition("(Spin Version")[0]:
        return ENDLESS
    trail = _call(folder, "spin", "-t", *defines, f"{check.model}.pml")
    at = _FAILED_AT.search(trail)
    if at is None:
        raise RuntimeError(f"{check.title}: Spin stopped at something else:\n{found}\n{trail}")
    return next(text for line, text in _stated(check.model) if line >= int(at[1]))


def _stated(model: str) -> Iterator[tuple[int, str]]:
    """The properties of a model; each stands on its assertion's line or right below."""
    lines = (HERE / f"{model}.pml").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if stated := _PROPERTY.search(line):
            yield number, stated[1]


def _figures(found: str) -> dict[str, float]:
    matches = {name: pattern.search(found) for name, pattern in _FIGURES.items()}
    return {name: float(match[1]) if match else 0.0 for name, match in matches.items()}


def _call(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, check=False, timeout=SECONDS, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode not in (0, 1) or (command[0] == "gcc" and done.returncode):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.stdout


def _run_all(checks: Sequence[Check]) -> list[Verdict]:
    """All checks, as many at once as there are processors, each told as it ends."""
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="prove-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        places = [Path(folder, str(number)) for number in range(len(checks))]
        for place in places:
            place.mkdir()
        waiting = [pool.submit(run, check, place) for check, place in zip(checks, places, strict=True)]
        for number, done in enumerate(as_completed(waiting), start=1):
            verdicts.append(done.result())
            _say(f"[{number:>2}/{len(checks)}] {verdicts[-1].line()}")
    return verdicts


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove it all; 0 if every property holds and every mutant fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="the smaller configuration, as in the tests")
    small = parser.parse_args(arguments).small
    missing = [program for program in ("spin", "gcc") if shutil.which(program) is None]
    if missing:
        _say(f"{' and '.join(missing)} not installed (Debian, Ubuntu: apt install spin gcc)")
        return 2
    holds = SMALL_HOLDS if small else tuple(replace(check, optimise="-O1") for check in FULL_HOLDS)
    verdicts = _run_all([*holds, *MUTANTS, *WEAKNESSES])
    wrong = [verdict.check.title for verdict in verdicts if not verdict.good]
    if wrong:
        _say(f"NOT PROVEN: {', '.join(wrong)}")
        return 1
    _say(f"known weaknesses, still there: {', '.join(check.name for check in WEAKNESSES)}")
    _say(f"{len(properties(holds))} properties hold, {len(MUTANTS)} mutants fail as they must")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
