"""A running job's right to go on, and the ways it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from webordinary.model.claims import Started
from webordinary.model.errors import ClaimLost, JobTimedOut, WebOrdinaryError
from webordinary.worker.ports import Clock


class RunningHold:
    """Given to the job; ended by the lease keeper, an interrupt, the clock or a person; the first wins."""

    def __init__(self, started: Started, clock: Clock, deadline: float, lease_until: Callable[[], float]) -> None:
        self.started = started
        self.deadline = deadline
        self._clock = clock
        self._lease_until = lease_until
        self._reason: WebOrdinaryError | None = None
        self._stops: list[Callable[[], None]] = []
        self._guard = threading.Lock()

    @property
    def worker(self) -> str:
        """The worker that acts."""
        return self.started.claim.worker

    @property
    def fence(self) -> int:
        """The claim's fence."""
        return self.started.claim.fence

    @property
    def job_id(self) -> str:
        """The job that runs."""
        return self.started.job.job_id

    @property
    def reason(self) -> WebOrdinaryError | None:
        """Why the job must end, once it must."""
        return self._reason

    def check(self) -> None:
        """Raise the reason to end, if there is one."""
        now = self._clock.monotonic()
        if now > self._lease_until():
            claim = self.started.claim
            self.end(ClaimLost(claim.key, claim.worker, claim.fence))
        elif now > self.deadline:
            self.end(JobTimedOut("the job used up its time"))
        if self._reason:
            raise self._reason

    def end(self, reason: WebOrdinaryError) -> None:
        """Tell the job to end; losing the claim outweighs any earlier reason."""
        with self._guard:
            first = self._reason is None
            if first or isinstance(reason, ClaimLost):
                self._reason = reason
            stops = list(self._stops) if first else []
        for stop in stops:
            stop()

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` as soon as the job must end."""
        with self._guard:
            ended = self._reason is not None
            self._stops.append(stop)
        if ended:
            stop()
        try:
            yield
        finally:
            with self._guard:
                self._stops.remove(stop)


class SavingHold:
    """The last minutes of an ended job: only a lost claim stops it from saving its work."""

    def __init__(self, hold: RunningHold) -> None:
        self._hold = hold

    @property
    def worker(self) -> str:
        """The worker that acts."""
        return self._hold.worker

    @property
    def fence(self) -> int:
        """The claim's fence."""
        return self._hold.fence

    @property
    def job_id(self) -> str:
        """The job that is saved."""
        return self._hold.job_id

    def check(self) -> None:
        """Raise ClaimLost if the claim is lost; no other reason counts any more."""
        try:
            self._hold.check()
        except ClaimLost:
            raise
        except WebOrdinaryError:
            return

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Nothing more is coming."""
        yield
