"""Work that waits finds a free slot, however busy the others are."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.harness.pool_records import PoolRecords
from tests.unit.worker.worker_ports import DONE, WORKER, WorkerPorts
from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteJobs
from webordinary.model.claims import Claim, ClaimRequest, StartedJob
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.simulation import MIDNIGHT, VirtualClock
from webordinary.worker.claims import Claiming, JobCancelToken
from webordinary.worker.slot import Slot
from webordinary.worker.worker import Worker

SCOTT, ANN = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")
EARLIER = MIDNIGHT - timedelta(seconds=10)


class SlowHints(SqliteClaimRequests):
    """Whatever is offered, a faster worker has served before it can be claimed; what waits behind it stays."""

    def __init__(self, state: PoolRecords) -> None:
        super().__init__(state.db)
        self._claims = SqliteClaims(state.db)

    def receive(self, now: datetime, skip: Collection[ProjectUser], limit: int) -> Sequence[ClaimRequest]:
        offers = super().receive(now, skip, limit)
        for offer in offers:
            started = self._claims.claim_and_start(offer.key, "container-2", now)
            assert isinstance(started, StartedJob)
            self._claims.end_and_take_next(started, DONE, now, more=False)
        return offers


def test_who_is_too_late_for_every_offer_takes_what_waits_behind_them() -> None:
    state, begun = PoolRecords(), list[StartedJob]()
    worker_deps = WorkerPorts().worker_deps(state, hints=SlowHints(state))
    for number in range(40):
        key = ProjectUser(f"site-{number:02}", "owner")
        SqliteJobs(state.db).record(
            NewJob(f"job-{number}", key, "t", f"mail-{number}", Command.EDIT), EARLIER, ready=True
        )
        worker_deps.pool.hints.send(ClaimRequest(key, EARLIER + timedelta(seconds=number / 10)), EARLIER)

    def begin(started: StartedJob, claimed_at: float) -> None:
        begun.append(started)

    def not_mine(claim: Claim) -> bool:
        return False

    Claiming(worker_deps, lambda: not begun, begin, not_mine).serve_waiting_keys()

    assert [str(started.claim.key) for started in begun] == ["site-16#owner"]


class WithADeadWorker(WorkerPorts):
    """All workers but this one are dead."""

    def is_dead(self, worker: str) -> bool:
        return worker != WORKER


def test_a_key_whose_owner_is_dead_gets_the_next_slot_although_that_one_has_more_to_do() -> None:
    deps, state = WithADeadWorker(), PoolRecords()
    worker_deps, jobs = deps.worker_deps(state), SqliteJobs(state.db)
    for name in ("flood-1", "flood-2", "flood-3"):
        jobs.record(NewJob(name, ANN, "t", f"mail-{name}", Command.EDIT), EARLIER, ready=True)
    worker_deps.pool.hints.send(ClaimRequest(ANN, EARLIER), EARLIER)
    jobs.record(NewJob("single", SCOTT, "t", "mail-single", Command.EDIT), EARLIER, ready=True)
    worker_deps.pool.claims.claim_and_start(SCOTT, "container-2", EARLIER)
    begun: list[tuple[Slot, JobCancelToken]] = []
    worker = Worker(worker_deps, carry=lambda slot, token: begun.append((slot, token)))
    worker.react([])
    for _ in range(2):
        slot, token = begun.pop()
        slot.serve(token)
        worker.react([])
    assert deps.served[:2] == [str(ANN), str(SCOTT)]


class Unwritable(SqliteClaims):
    """Nobody can write until there is room again."""

    has_room = False

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> StartedJob | Claim | None:
        if over and not self.has_room:
            raise sqlite3.OperationalError("database or disk is full")
        return super().claim_and_start(key, worker, now, over)


def test_time_in_which_nobody_could_write_does_not_end_a_lease() -> None:
    state, begun = PoolRecords(), list[StartedJob]()
    claims, deps = Unwritable(state.db), WorkerPorts().worker_deps(state)
    deps = replace(deps, pool=replace(deps.pool, claims=claims))
    SqliteJobs(state.db).record(NewJob("single", SCOTT, "t", "mail-single", Command.EDIT), EARLIER, ready=True)
    started = claims.claim_and_start(SCOTT, "container-2", EARLIER)
    assert isinstance(started, StartedJob)

    def begin(taken: StartedJob, claimed_at: float) -> None:
        begun.append(taken)

    claiming = Claiming(deps, lambda: not begun, begin, lambda claim: False)

    def pass_time(seconds: float) -> None:
        assert isinstance(deps.clock, VirtualClock)
        until = deps.clock.monotonic() + seconds
        deps.clock.after(seconds, lambda: None)
        deps.clock.run(until, lambda: False)

    lease = deps.settings.lease
    assert not claiming.is_over(started.claim)
    pass_time(lease + 1)
    assert claiming.is_over(started.claim)
    with pytest.raises(sqlite3.OperationalError):
        claiming.serve_waiting_keys()
    claims.has_room = True
    claiming.serve_waiting_keys()
    assert not begun, "its worker could not renew, and may do so now"
    pass_time(lease + 1)
    claiming.serve_waiting_keys()
    assert [taken.claim.key for taken in begun] == [SCOTT]
