"""What a look at the system found: good, doubtful or broken, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How it stands."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was looked at; `todo` is empty where nothing is to be done."""

    verdict: Verdict
    what: str
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A look at one thing. It may take its time and fail: who runs it bounds both."""

    name: str
    look: Callable[[], CheckResult]


def good(what: str) -> CheckResult:
    """All is well."""
    return CheckResult(Verdict.OK, what)


def doubtful(what: str, todo: str) -> CheckResult:
    """It works, but not for everybody or not for long."""
    return CheckResult(Verdict.WARN, what, todo)


def broken(what: str, todo: str) -> CheckResult:
    """It does not work."""
    return CheckResult(Verdict.FAIL, what, todo)
