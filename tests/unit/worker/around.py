"""Everything around a part of the worker, with the pool in memory and no thread but the test's."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence

from webordinary.adapters.memory.pool import MemoryClaims, MemoryHints, MemoryInterrupts, MemoryJobs
from webordinary.adapters.memory.pool_state import MemoryPoolState
from webordinary.capacity.clockwork import VirtualTime
from webordinary.capacity.stepped import SilentBell
from webordinary.model.claims import Started
from webordinary.model.events import Event
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job, JobResult, Outcome, Settlement
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import QUEUED, Hints, Pool
from webordinary.worker.holdings import Holdings
from webordinary.worker.settings import Settings
from webordinary.worker.surroundings import Surroundings

WORKER = "container-1"
DONE = Settlement(Outcome.SUCCEEDED, JobResult("done"))


class Around:
    """Everything around a slot; whenever it is called, it looks how many slots are taken."""

    def __init__(self) -> None:
        self.holdings = Holdings()
        self.taken: dict[str, int] = {}
        self.served: list[str] = []

    def emit(self, event: Event) -> None:
        self.taken[event.kind] = len(self.holdings.running())

    def keys_changed(self) -> None:
        self.taken["keys changed"] = len(self.holdings.running())

    def poke(self) -> None: ...

    def perform(self, started: Started, hold: Hold) -> Settlement:
        self.served.append(str(started.claim.key))
        return DONE

    def found(self, started: Started, hold: Hold) -> Settlement | None: ...

    def save(self, started: Started, hold: Hold) -> None: ...

    def wait(self, seconds: float) -> Sequence[str]:
        return []

    def attend(self, held: Mapping[ProjectUser, Job | None], free: int) -> None: ...

    def ticket(self, job: Job, news: str = QUEUED) -> None: ...

    def unclaimed(self) -> None: ...

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

    def bell(self) -> SilentBell:
        return SilentBell()

    def surroundings(self, state: MemoryPoolState, slots: int = 1, hints: Hints | None = None) -> Surroundings:
        """A worker's ports, over this state."""
        jobs, claims, asked = MemoryJobs(state), MemoryClaims(state), MemoryInterrupts(state)
        pool = Pool(jobs, jobs, claims, hints or MemoryHints(state), self, asked, self, self)
        return Surroundings(
            WORKER, Settings(slots=slots), pool, self, self, VirtualTime(), self, self, random.Random(1)
        )
