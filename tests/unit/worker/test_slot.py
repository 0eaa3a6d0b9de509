"""A slot serves one key after another, and is taken all the time."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.worker.around import WORKER, Around
from webordinary.adapters.memory.pool_state import MemoryPoolState
from webordinary.capacity.clockwork import MIDNIGHT
from webordinary.capacity.stepped import SilentBell
from webordinary.model.claims import ClaimRequest, Started
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.worker.keeper import LeaseKeeper
from webordinary.worker.slot import Slot

SCOTT, ANN = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")


def test_a_slot_that_changes_keys_is_taken_all_the_while() -> None:
    around, state, earlier = Around(), MemoryPoolState(), MIDNIGHT - timedelta(seconds=10)
    surroundings = around.surroundings(state)
    pool = surroundings.pool
    for key in (SCOTT, ANN):
        pool.jobs.record(NewJob(f"job-{key}", key, "thread", f"mail-{key}", Command.EDIT), earlier, ready=True)
    pool.hints.send(ClaimRequest(ANN, earlier), earlier)
    started = pool.claims.claim_and_start(SCOTT, WORKER, earlier)
    assert isinstance(started, Started)
    keeper = LeaseKeeper(surroundings, around.holdings)
    keeper.trust(SCOTT, started.claim.fence, 0.0)
    slot = Slot(surroundings, around.holdings, keeper, SilentBell())

    slot.serve(slot.begin(started))

    assert around.served == [str(SCOTT), str(ANN)]
    assert around.taken == {"JobStarted": 1, "JobSettled": 1, "ClaimYielded": 1, "ClaimTaken": 1, "keys changed": 1}
    assert around.holdings.running() == []
    assert [claim.key for claim in around.holdings.claims()] == [ANN]
