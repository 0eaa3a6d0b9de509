"""What a worker needs of its surroundings, so that a simulation can provide all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from webordinary.model.claims import Started
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job, Settlement
from webordinary.model.names import ProjectUser


class Work(Protocol):
    """What is done for a customer: from the instruction to the published site."""

    def perform(self, started: Started, hold: Hold) -> Settlement:
        """Do the job; ask `hold` before each effect. Doing it again after a crash has the same end."""

    def found(self, started: Started, hold: Hold) -> Settlement | None:
        """What an earlier attempt has published already; from now on none of them can publish any more."""

    def save(self, started: Started, hold: Hold) -> None:
        """Keep what an interrupted job has done so far where any worker can go on from it."""


class Clock(Protocol):
    """Two clocks: one to write down, one to measure with."""

    def now(self) -> datetime:
        """The time of day, aware UTC; never compared with another machine's."""

    def monotonic(self) -> float:
        """Seconds that only grow, also while the process was stopped."""


class Wakeups(Protocol):
    """How a worker sleeps."""

    def wait(self, seconds: float) -> Sequence[str]:
        """Sleep until woken or the time is over; what was heard: `ticket KEY`, `died WORKER`, or anything."""

    def poke(self) -> None:
        """Wake this worker's loop from one of its own threads."""

    def keys_changed(self) -> None:
        """A slot serves another key now: who listens key by key wakes the loop, so that it attends to that."""

    def attend(self, held: Mapping[ProjectUser, Job | None], free: int) -> None:
        """What matters from now on: news of the keys held, each with the job that runs, and of keys that wait
        for so many free slots."""


class Bell(Protocol):
    """Something that rings once."""

    def ring(self) -> None:
        """From now on it has rung."""

    def wait(self, seconds: float) -> bool:
        """True as soon as it has rung; False when the time is over first."""


class Threads(Protocol):
    """Where concurrency comes from."""

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        """Run beside the caller."""

    def bell(self) -> Bell:
        """A new bell."""
