"""Everything a worker touches, in one place."""

from __future__ import annotations

import random
from dataclasses import dataclass

from webordinary.model.events import Event, Events
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Pool
from webordinary.worker.ports import Clock, Threads, Wakeups, Work
from webordinary.worker.settings import Settings


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The ports of one worker. `worker_id` is new at every start of the process."""

    worker_id: str
    settings: Settings
    pool: Pool
    work: Work
    events: Events
    clock: Clock
    threads: Threads
    wakeups: Wakeups
    dice: random.Random

    def ms_since_queued(self, job: Job) -> float:
        """How long ago a job was queued, for the counters; clocks of two machines may differ by more."""
        since = job.queued_at or job.recorded_at
        return round(max(0.0, (self.clock.now() - since).total_seconds()) * 1000, 1)

    def tell(self, kind: str, *, key: ProjectUser | None = None, job: Job | None = None, **data: object) -> None:
        """Emit an event of this worker."""
        email_id, job_id = (job.email_id, job.job_id) if job else (None, None)
        self.events.emit(Event(kind, email_id, job_id, key or (job.key if job else None), self.worker_id, data))
