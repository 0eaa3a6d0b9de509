"""Everything around a part of the worker, with the pool in memory and no thread but the test's."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence

from tests.harness.pool_records import PoolRecords
from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterrupts, SqliteJobs
from webordinary.model.claims import CancelToken, StartedJob
from webordinary.model.events import Event
from webordinary.model.jobs import Job, JobOutcome, JobResult, Settlement
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.simulation import NeverStops, VirtualClock
from webordinary.pool.ports import QUEUED, ClaimRequestQueue, Pool
from webordinary.worker.claims import ClaimSet
from webordinary.worker.ports import WorkerDeps, WorkerSettings

WORKER = "container-1"
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))


class WorkerPorts:
    """Everything around a slot; whenever it is called, it looks how many slots are taken."""

    def __init__(self) -> None:
        self.claim_set = ClaimSet()
        self.taken: dict[str, int] = {}
        self.served: list[str] = []

    def emit(self, event: Event) -> None:
        self.taken[event.kind] = len(self.claim_set.running())

    def keys_changed(self) -> None:
        self.taken["keys changed"] = len(self.claim_set.running())

    def poke(self) -> None: ...

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        self.served.append(str(started.claim.key))
        return DONE

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None: ...

    def save(self, started: StartedJob, token: CancelToken) -> None: ...

    def wait(self, seconds: float, held: Mapping[ProjectUser, Job | None], free: int) -> Sequence[str]:
        return []

    def notify_owner(self, job: Job, news: str = QUEUED) -> None: ...

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None: ...

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        return True

    def fail(self, token: str, error: str, cause: str) -> bool:
        return True

    def heartbeat(self, token: str) -> bool:
        return True

    def is_dead(self, worker: str) -> bool:
        return False

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None: ...

    def spawn(self, name: str, run: Callable[[], None]) -> None: ...

    def stop_event(self) -> NeverStops:
        return NeverStops()

    def worker_deps(self, state: PoolRecords, slots: int = 1, hints: ClaimRequestQueue | None = None) -> WorkerDeps:
        """A worker's ports, over this state."""
        jobs, claims, asked = SqliteJobs(state.db), SqliteClaims(state.db), SqliteInterrupts(state.db)
        pool = Pool(jobs, jobs, claims, hints or SqliteClaimRequests(state.db), self, asked, self, self)
        return WorkerDeps(
            WORKER, WorkerSettings(slots=slots), pool, self, self, VirtualClock(), self, self, random.Random(1)
        )
