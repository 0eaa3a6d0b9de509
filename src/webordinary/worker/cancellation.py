"""Cancellation of a running job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from webordinary.model.claims import StartedJob
from webordinary.model.errors import ClaimLost, JobTimedOut, WebOrdinaryError
from webordinary.worker.ports import Clock


class JobCancelToken:
    """The cancel token of one job. The lease renewer, an interrupt, a deadline or a person ends it; the first wins."""

    def __init__(self, started: StartedJob, clock: Clock, deadline: float, lease_until: Callable[[], float]) -> None:
        self.started = started
        self.worker, self.fence = started.claim.worker, started.claim.fence
        self.job_id = started.job.job_id
        self.deadline = deadline
        self._clock = clock
        self._lease_until = lease_until
        self._reason: WebOrdinaryError | None = None
        self._stops: list[Callable[[], None]] = []
        self._guard = threading.Lock()

    @property
    def reason(self) -> WebOrdinaryError | None:
        """Why the job must end; None while it may run."""
        return self._reason

    def check(self) -> None:
        """Raise the reason if the job must end."""
        now = self._clock.monotonic()
        if now > self._lease_until():
            claim = self.started.claim
            self.end(ClaimLost(claim.key, claim.worker, claim.fence, "its lease was not renewed in time"))
        elif now > self.deadline:
            self.end(JobTimedOut("the job used up its time"))
        if self._reason:
            raise self._reason

    def end(self, reason: WebOrdinaryError) -> None:
        """End the job for this reason; a lost claim replaces an earlier reason."""
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


class SavingToken:
    """The cancel token for saving the work of an ended job: only a lost claim ends it."""

    def __init__(self, token: JobCancelToken) -> None:
        self._token = token
        self.worker, self.fence, self.job_id = token.worker, token.fence, token.job_id

    def check(self) -> None:
        """Raise ClaimLost if the claim is lost; ignore other reasons."""
        try:
            self._token.check()
        except ClaimLost:
            raise
        except WebOrdinaryError:
            return

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Never calls `stop`."""
        yield
