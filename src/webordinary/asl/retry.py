"""Retry and Catch: which errors they name, and how long an attempt waits for the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any

from webordinary.asl.errors import ALL, HEARTBEAT_TIMEOUT, TASK_FAILED, TIMEOUT, Failure, InvalidDefinition
from webordinary.asl.intrinsics import QueryLanguage
from webordinary.asl.values import JSON, Data, Expression

_LONGEST_DELAY_SECONDS = 31_622_400.0  # the year that an execution may last


def matches(names: tuple[str, ...], failure: Failure) -> bool:
    """Whether `ErrorEquals` names this failure."""
    if failure.fatal:
        return False
    error = failure.error
    if error in names or ALL in names:
        return True
    if error in (TIMEOUT, HEARTBEAT_TIMEOUT):
        return TIMEOUT in names
    return TASK_FAILED in names


@dataclass(frozen=True, slots=True)
class Retrier:
    """One entry of Retry."""

    errors: tuple[str, ...]
    max_attempts: float
    interval_seconds: float
    backoff_rate: float
    max_delay_seconds: float
    full_jitter: bool

    def delay(self, tries: int, chance: Callable[[], Random]) -> float:
        """Seconds to wait after the `tries`-th retry of this entry failed (0 = none made yet)."""
        try:
            delay = self.interval_seconds * self.backoff_rate**tries
        except OverflowError:
            delay = _LONGEST_DELAY_SECONDS
        delay = min(delay, self.max_delay_seconds, _LONGEST_DELAY_SECONDS)
        return chance().uniform(0, delay) if self.full_jitter else delay


@dataclass(frozen=True, slots=True)
class Catcher:
    """One entry of Catch."""

    errors: tuple[str, ...]
    next: str
    place: Callable[[Data, JSON], JSON]
    assign: Expression | None


def compile_retry(raw: Mapping[str, Any], where: str) -> tuple[Retrier, ...]:
    """A state's Retry field."""
    return tuple(_retrier(entry, where) for entry in raw.get("Retry", ()))


def _retrier(entry: Mapping[str, Any], where: str) -> Retrier:
    jitter = entry.get("JitterStrategy", "NONE")
    if jitter not in ("NONE", "FULL"):
        raise InvalidDefinition(where, "Retry.JitterStrategy", f"must be NONE or FULL, not {jitter!r}")
    return Retrier(
        errors=_error_names(entry, "Retry", where),
        max_attempts=_number(entry, "MaxAttempts", 3, 0, where),
        interval_seconds=_number(entry, "IntervalSeconds", 1, 1, where),
        backoff_rate=_number(entry, "BackoffRate", 2.0, 1, where),
        max_delay_seconds=_number(entry, "MaxDelaySeconds", inf, 1, where),
        full_jitter=jitter == "FULL",
    )


def _number(entry: Mapping[str, Any], name: str, default: float, least: int, where: str) -> float:
    value = entry.get(name, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or value < least:
        raise InvalidDefinition(where, f"Retry.{name}", f"must be a number of at least {least}, not {value!r}")
    return value


def compile_catch(raw: Mapping[str, Any], language: QueryLanguage, where: str) -> tuple[Catcher, ...]:
    """A state's Catch field."""
    return tuple(
        Catcher(
            errors=_error_names(entry, "Catch", where),
            next=entry.get("Next", ""),
            place=language.placement(entry, where),
            assign=language.template(entry["Assign"], "Assign", where) if "Assign" in entry else None,
        )
        for entry in raw.get("Catch", ())
    )


def _error_names(entry: Mapping[str, Any], field: str, where: str) -> tuple[str, ...]:
    names = entry.get("ErrorEquals")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidDefinition(where, f"{field}.ErrorEquals", "must be a list of error names")
    if ALL in names and len(names) > 1:
        raise InvalidDefinition(where, f"{field}.ErrorEquals", f"{ALL} must stand alone")
    return tuple(names)
