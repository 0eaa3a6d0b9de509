"""Checks of an installation: what each found, what to do about it, and how they run, bounded in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from webordinary.model.errors import WebOrdinaryError


class Verdict(StrEnum):
    """The verdict of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found; `todo` is empty where nothing is to be done."""

    verdict: Verdict
    what: str
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A check by its name. It may be slow and may fail; `run_checks` bounds both."""

    name: str
    look: Callable[[], CheckResult]


def good(what: str) -> CheckResult:
    """A passed check."""
    return CheckResult(Verdict.OK, what)


def doubtful(what: str, todo: str) -> CheckResult:
    """A check that passed with a warning."""
    return CheckResult(Verdict.WARN, what, todo)


def broken(what: str, todo: str) -> CheckResult:
    """A failed check."""
    return CheckResult(Verdict.FAIL, what, todo)


LOOK_SECONDS = 30.0
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check and what it found."""

    name: str
    finding: CheckResult


def run_checks(checks: Sequence[Check], seconds: float = LOOK_SECONDS) -> Iterator[CheckRun]:
    """Run them, some at once; in their own order as they are done."""
    for start in range(0, len(checks), AT_ONCE):
        looks = [_CheckInThread(check) for check in checks[start : start + AT_ONCE]]
        deadline = time.monotonic() + seconds
        for look in looks:
            yield CheckRun(look.check.name, look.result(deadline, seconds))


class _CheckInThread:
    """One check in a thread of its own; its result is awaited until the deadline only."""

    def __init__(self, check: Check) -> None:
        self.check, self._found = check, list[CheckResult]()
        self._thread = threading.Thread(target=self._run, name=f"check {check.name}", daemon=True)
        self._thread.start()

    def result(self, deadline: float, seconds: float) -> CheckResult:
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._found:
            return self._found[0]
        return broken(f"{self.check.name}: no answer within {seconds:.0f} s", "is the network in order? Try again")

    def _run(self) -> None:
        try:
            self._found.append(self.check.look())
        except WebOrdinaryError as problem:
            self._found.append(broken(str(problem), "mend that, then look again"))
        except Exception as problem:  # one broken check must not end the others
            self._found.append(broken(f"{type(problem).__name__}: {problem}", "mend that, then look again"))
