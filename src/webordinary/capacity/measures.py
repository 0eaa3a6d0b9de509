"""What is measured in a simulated day."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from webordinary.capacity.day import BIN_SECONDS, BINS, DAY_SECONDS, bin_of
from webordinary.model.events import Event
from webordinary.model.names import ProjectUser
from webordinary.worker.ports import Clock


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by `share` of them; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else 0.0


class Measures:
    """Listens to the events that the rooms emit; the driver adds what slots do."""

    def __init__(self, clock: Clock, has_work: Callable[[ProjectUser], bool], late_after: float = math.inf) -> None:
        self.kinds: Counter[str] = Counter()
        self.claim_waits: list[float] = []
        """From when work had no owner until a worker claimed it."""
        self.start_waits: list[float] = []
        """From when a mail was queued until its job first began, behind its writer's own earlier mails too."""
        self.unstarted = 0
        self.arrivals = [0] * BINS
        self.busy_seconds = [0.0] * BINS
        self.busiest = [0] * BINS
        """The most jobs at a time, by quarters of an hour."""
        self._clock, self._has_work, self._late_after = clock, has_work, late_after
        self._claimed_late = 0
        self._ownerless: dict[ProjectUser, float] = {}
        self._queued: dict[str, float] = {}
        self._begun: set[str] = set()
        self._busy, self._since = 0, 0.0

    def emit(self, event: Event) -> None:
        """See Events."""
        self.kinds[event.kind] += 1
        now = self._clock.monotonic()
        match event.kind:
            case "JobQueued" if event.job_id and event.job_id not in self._begun:
                self._queued.setdefault(event.job_id, now)
            case "JobStarted" if event.job_id and event.job_id in self._queued:
                self._begun.add(event.job_id)
                self.start_waits.append(now - self._queued.pop(event.job_id))
            case "ClaimRequested" if event.key:
                self._ownerless.setdefault(event.key, now)
            case "ClaimYielded" | "ClaimReleased" if event.key and self._has_work(event.key):
                self._ownerless.setdefault(event.key, now)
            case "ClaimTaken" if event.key:
                self._claimed(now - self._ownerless.pop(event.key, now))

    def arrived(self) -> None:
        """A mail is there."""
        self.arrivals[bin_of(self._clock.monotonic())] += 1

    def busy(self, change: int) -> None:
        """So many slots more, or fewer, are busy from now on."""
        now = self._clock.monotonic()
        self._fill(min(now, DAY_SECONDS))
        self._busy += change
        if now < DAY_SECONDS:
            quarter = bin_of(now)
            self.busiest[quarter] = max(self.busiest[quarter], self._busy)

    def late(self) -> int:
        """How many claims came late, and how much work without an owner is late already."""
        now = self._clock.monotonic()
        return self._claimed_late + sum(1 for since in self._ownerless.values() if now - since > self._late_after)

    def close(self) -> None:
        """The day is over; what still waits has waited so long at least."""
        now = self._clock.monotonic()
        for since in self._ownerless.values():
            self._claimed(now - since)
        self.start_waits += [now - since for since in self._queued.values()]
        self.unstarted = len(self._queued)
        self._ownerless.clear()
        self._queued.clear()

    def utilisation(self, slots: int) -> float:
        """How much of all slots' day was work."""
        return sum(self.busy_seconds) / (slots * DAY_SECONDS)

    def _claimed(self, waited: float) -> None:
        self.claim_waits.append(waited)
        self._claimed_late += waited > self._late_after

    def _fill(self, until: float) -> None:
        while self._since < until:
            quarter = bin_of(self._since)
            end = min(until, (quarter + 1) * BIN_SECONDS)
            self.busy_seconds[quarter] += self._busy * (end - self._since)
            self.busiest[quarter] = max(self.busiest[quarter], self._busy)
            self._since = end
