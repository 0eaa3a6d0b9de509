"""Ports and settings of a worker. A simulation implements all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from webordinary.model import claims
from webordinary.model.claims import CancelToken, StartedJob
from webordinary.model.errors import MachineFaultRetries
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.jobs import Job, Settlement
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Pool


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Seconds unless named otherwise. The lease margin covers a renewal that is under way."""

    slots: int = 4
    lease: float = claims.LEASE_SECONDS
    renew: float = claims.RENEW_SECONDS
    idle_release: float = claims.IDLE_RELEASE_SECONDS
    job_limit: float = claims.JOB_LIMIT_SECONDS
    stop_grace: float = 100.0
    reconcile: float = 20.0
    heartbeat: float = 60.0
    retry_base: float = 10.0

    @property
    def lease_margin(self) -> float:
        """A worker stops acting this long before its lease ends."""
        return min(5.0, self.lease / 6)


class JobRunner(Protocol):
    """Runs the jobs of customers."""

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        """Run the job; check `token` before each effect. Idempotent: a second run after a crash has the same result."""

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None:
        """The settlement if an earlier attempt brought its change to main; None if not. Fences out that attempt."""

    def save(self, started: StartedJob, token: CancelToken) -> None:
        """Save the work of an interrupted job, so that any worker can resume it."""


class Clock(Protocol):
    """The time of day, for records, and a monotonic clock, for durations."""

    def now(self) -> datetime:
        """The time of day, aware UTC; never compared with the clock of another machine."""

    def monotonic(self) -> float:
        """Seconds that only grow, also while the process was stopped."""


class Wakeups(Protocol):
    """Waits for messages to a worker."""

    def wait(self, seconds: float, held: Mapping[ProjectUser, Job | None], free: int) -> Sequence[str]:
        """Wait for messages, at most so long; returns them: `ticket KEY`, `died WORKER`, or others.

        For messages to the held keys, each with its running job, and for claim requests for `free` slots.
        """

    def poke(self) -> None:
        """Wake this worker's loop from one of its own threads."""

    def keys_changed(self) -> None:
        """A slot serves another key now. An implementation with a queue per key wakes the loop to update its queues."""


class StopEvent(Protocol):
    """An event that is set once; see threading.Event."""

    def set(self) -> None:
        """Set the event."""

    def wait(self, seconds: float, /) -> bool:
        """True once it is set; False if the time is over first."""


class ThreadSpawner(Protocol):
    """Starts threads."""

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        """Run in another thread."""

    def stop_event(self) -> StopEvent:
        """A new StopEvent."""


def never(now: datetime) -> bool:
    """A worker reconciles for itself."""
    return False


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """The ports of one worker. `worker_id` is new at every start of the process."""

    worker_id: str
    settings: WorkerSettings
    pool: Pool
    work: JobRunner
    events: Events
    clock: Clock
    threads: ThreadSpawner
    wakeups: Wakeups
    rng: random.Random
    reconciled_elsewhere: Callable[[datetime], bool] = never
    """Whether another process has reconciled a moment ago: then this worker need not."""
    machine_faults: MachineFaultRetries = field(init=False, repr=False, compare=False)
    """By job; all slots of a worker share it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "machine_faults", MachineFaultRetries(self.clock.monotonic))

    def ms_since_queued(self, job: Job) -> float:
        """Milliseconds since a job was queued, for metrics; clocks of two machines may differ by more."""
        since = job.queued_at or job.recorded_at
        return round(max(0.0, (self.clock.now() - since).total_seconds()) * 1000, 1)

    def emit(self, kind: EventKind, *, key: ProjectUser | None = None, job: Job | None = None, **data: object) -> None:
        """Emit an event of this worker."""
        email_id, job_id = (job.email_id, job.job_id) if job else (None, None)
        self.events.emit(Event(kind, email_id, job_id, key or (job.key if job else None), self.worker_id, data))
