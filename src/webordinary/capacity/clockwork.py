"""Virtual time: what is due happens in the order of its moment, and nothing takes time but waiting."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count

MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


class Alarm:
    """Something that will be done at a moment, unless it is called off."""

    __slots__ = ("_do",)

    def __init__(self, do: Callable[[], None]) -> None:
        self._do: Callable[[], None] | None = do

    def call_off(self) -> None:
        """Let the moment pass."""
        self._do = None

    def go_off(self) -> None:
        """The moment has come."""
        if self._do:
            self._do()


class VirtualTime:
    """The Clock of everything in a simulated day, which begins at midnight. One seed, one course of events."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._now = MIDNIGHT
        self._due: list[tuple[float, int, Alarm]] = []
        self._numbers = count()

    def now(self) -> datetime:
        """The time of day."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since midnight."""
        return self._seconds

    def after(self, seconds: float, do: Callable[[], None]) -> Alarm:
        """Do it so many seconds from now; what is due at the same moment keeps its order."""
        alarm = Alarm(do)
        heapq.heappush(self._due, (self._seconds + max(0.0, seconds), next(self._numbers), alarm))
        return alarm

    def run(self, until: float, done: Callable[[], bool]) -> None:
        """Let time pass until it is over or everything is `done`."""
        while self._due and self._due[0][0] <= until and not done():
            at, _, alarm = heapq.heappop(self._due)
            if at > self._seconds:
                self._seconds, self._now = at, MIDNIGHT + timedelta(seconds=at)
            alarm.go_off()
