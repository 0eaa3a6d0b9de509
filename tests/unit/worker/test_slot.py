"""A slot serves one key after another, and is taken all the time."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

from webordinary.adapters.memory.pool import MemoryClaims, MemoryHints, MemoryInterrupts, MemoryJobs
from webordinary.adapters.memory.pool_state import MemoryPoolState
from webordinary.capacity.clockwork import MIDNIGHT, VirtualTime
from webordinary.capacity.stepped import SilentBell
from webordinary.model.claims import ClaimRequest, Started
from webordinary.model.events import Event
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job, JobResult, NewJob, Outcome, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import QUEUED, Pool
from webordinary.worker.holdings import Holdings
from webordinary.worker.keeper import LeaseKeeper
from webordinary.worker.settings import Settings
from webordinary.worker.slot import Slot
from webordinary.worker.surroundings import Surroundings

SCOTT, ANN = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")
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

    def poke(self) -> None:
        self.taken["poke"] = len(self.holdings.running())

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


def test_a_slot_that_changes_keys_is_taken_all_the_while() -> None:
    around, state, earlier = Around(), MemoryPoolState(), MIDNIGHT - timedelta(seconds=10)
    jobs = MemoryJobs(state)
    pool = Pool(jobs, jobs, MemoryClaims(state), MemoryHints(state), around, MemoryInterrupts(state), around, around)
    for key in (SCOTT, ANN):
        pool.jobs.record(NewJob(f"job-{key}", key, "thread", f"mail-{key}", Command.EDIT), earlier, ready=True)
    pool.hints.send(ClaimRequest(ANN, earlier), earlier)
    started = pool.claims.claim_and_start(SCOTT, WORKER, earlier)
    assert isinstance(started, Started)
    surroundings = Surroundings(
        WORKER, Settings(slots=1), pool, around, around, VirtualTime(), around, around, random.Random(1)
    )
    keeper = LeaseKeeper(surroundings, around.holdings)
    keeper.trust(SCOTT, started.claim.fence, 0.0)
    slot = Slot(surroundings, around.holdings, keeper, SilentBell())

    slot.serve(slot.begin(started))

    assert around.served == [str(SCOTT), str(ANN)]
    assert around.taken == {"JobStarted": 1, "JobSettled": 1, "ClaimYielded": 1, "ClaimTaken": 1, "poke": 1}
    assert around.holdings.running() == []
    assert [claim.key for claim in around.holdings.claims()] == [ANN]
