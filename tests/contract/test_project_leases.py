"""One suite for every backend of the right to publish."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from webordinary.adapters.sqlite.claims import SqliteClaims, SqliteProjectLeases
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.jobs import SqliteJobs
from webordinary.jobs.ports import ProjectLeases
from webordinary.model.claims import StartedJob
from webordinary.model.errors import ClaimLost
from webordinary.model.jobs import JobOutcome, JobResult, NewJob, Requeue, RequeueReason, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Claims, Jobs

SCOTT, ANN = ProjectUser("amelia", "scott"), ProjectUser("amelia", "ann")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))


@dataclass(frozen=True)
class JobHold:
    worker: str
    fence: int = 0
    job_id: str = ""

    def check(self) -> None:
        pass

    def on_stop(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class LeaseBackend:
    jobs: Jobs
    claims: Claims
    leases: ProjectLeases
    dead: set[str]

    def run(self, key: ProjectUser, worker: str) -> StartedJob:
        self.jobs.record(NewJob(f"job-{key.user_id}", key, "thread", "mail", Command.EDIT), NOON, ready=True)
        started = self.claims.claim_and_start(key, worker, NOON)
        assert isinstance(started, StartedJob)
        return started


@pytest.fixture(params=["sqlite", "aws"])
def pool(request: pytest.FixtureRequest) -> Iterator[LeaseBackend]:
    dead: set[str] = set()
    if request.param == "sqlite":
        db: Database = request.getfixturevalue("database")
        yield LeaseBackend(SqliteJobs(db), SqliteClaims(db), SqliteProjectLeases(db, dead.__contains__), dead)
    else:
        emulator = request.getfixturevalue("ministack")
        from tests.aws.pool_tables import PoolTables

        world = PoolTables(emulator.endpoint)
        yield LeaseBackend(world.jobs(), world.claims(), world.project_leases(dead.__contains__), dead)


def hold_of(started: StartedJob) -> JobHold:
    return JobHold(started.claim.worker, started.claim.fence, started.job.job_id)


def test_a_project_is_published_by_one_job_at_a_time(pool: LeaseBackend) -> None:
    scott, ann = hold_of(pool.run(SCOTT, "w1")), hold_of(pool.run(ANN, "w2"))
    lease = pool.leases.take("amelia", scott, NOON)
    assert lease
    assert pool.leases.take("amelia", ann, NOON) is None
    pool.leases.release(lease)
    assert pool.leases.take("amelia", ann, NOON)


def test_two_projects_do_not_wait_for_each_other(pool: LeaseBackend) -> None:
    scott = hold_of(pool.run(SCOTT, "w1"))
    assert pool.leases.take("amelia", scott, NOON)
    assert pool.leases.take("bakery", scott, NOON)


def test_the_fence_grows_although_the_clock_stands_still(pool: LeaseBackend) -> None:
    scott, fences = hold_of(pool.run(SCOTT, "w1")), []
    for _ in range(3):
        lease = pool.leases.take("amelia", scott, NOON)
        assert lease
        fences.append(lease.fence)
        pool.leases.release(lease)
    first = int(NOON.timestamp())
    assert fences == [first, first + 1, first + 2]


def test_a_lease_whose_job_has_ended_is_over(pool: LeaseBackend) -> None:
    begun, ann = pool.run(SCOTT, "w1"), hold_of(pool.run(ANN, "w2"))
    old = pool.leases.take("amelia", hold_of(begun), NOON)
    assert old
    pool.claims.end_and_take_next(begun, DONE, NOON, more=False)
    new = pool.leases.take("amelia", ann, NOON)
    assert new
    assert new.fence > old.fence
    with pytest.raises(ClaimLost):
        pool.leases.confirm(old)
    pool.leases.release(old)
    pool.leases.confirm(new)


def test_a_lease_whose_job_was_taken_over_is_over(pool: LeaseBackend) -> None:
    begun, ann = pool.run(SCOTT, "w1"), hold_of(pool.run(ANN, "w2"))
    assert pool.leases.take("amelia", hold_of(begun), NOON)
    pool.claims.claim_and_start(SCOTT, "w3", NOON, over=begun.claim)
    assert pool.leases.take("amelia", ann, NOON)


def test_a_lease_is_over_when_its_key_was_taken_over_and_another_job_of_it_comes_first(pool: LeaseBackend) -> None:
    ann, begun = hold_of(pool.run(ANN, "w2")), pool.run(SCOTT, "w1")
    pool.jobs.record(NewJob("job-later", SCOTT, "thread2", "mail2", Command.EDIT), NOON, ready=True)
    retry = Requeue(RequeueReason.RETRY, NOON + timedelta(seconds=1))
    later = pool.claims.end_and_take_next(begun, retry, NOON, more=True).started
    assert later
    assert later.job.job_id == "job-later"
    assert pool.leases.take("amelia", hold_of(later), NOON)
    over = pool.claims.claim_and_start(SCOTT, "w3", NOON + timedelta(minutes=1), over=later.claim)
    assert isinstance(over, StartedJob)
    assert over.job.job_id == begun.job.job_id, "the one that came first waits no more"
    assert pool.leases.take("amelia", hold_of(over), NOON)
    pool.claims.end_and_take_next(over, DONE, NOON, more=False)
    assert pool.leases.take("amelia", ann, NOON)


def test_a_job_that_is_tried_again_does_not_wait_for_the_lease_that_it_could_not_give_back(pool: LeaseBackend) -> None:
    scott = hold_of(pool.run(SCOTT, "w1"))
    first = pool.leases.take("amelia", scott, NOON)
    assert first
    pool.leases.confirm(first)
    again = pool.leases.take("amelia", scott, NOON)
    assert again
    assert again.fence > first.fence


def test_a_lease_of_a_dead_worker_is_over(pool: LeaseBackend) -> None:
    scott, ann = hold_of(pool.run(SCOTT, "w1")), hold_of(pool.run(ANN, "w2"))
    assert pool.leases.take("amelia", scott, NOON)
    pool.dead.add("w1")
    assert pool.leases.take("amelia", ann, NOON)


def test_an_operators_lease_lasts_as_long_as_its_process(pool: LeaseBackend) -> None:
    ann = hold_of(pool.run(ANN, "w2"))
    assert pool.leases.take("amelia", JobHold("operator"), NOON)
    assert pool.leases.take("amelia", ann, NOON) is None
    pool.dead.add("operator")
    assert pool.leases.take("amelia", ann, NOON)


def test_a_lease_that_was_given_back_is_not_current(pool: LeaseBackend) -> None:
    lease = pool.leases.take("amelia", hold_of(pool.run(SCOTT, "w1")), NOON)
    assert lease
    pool.leases.confirm(lease)
    pool.leases.release(lease)
    with pytest.raises(ClaimLost):
        pool.leases.confirm(lease)


def test_an_operator_overtakes_a_job_that_builds(pool: LeaseBackend) -> None:
    building = pool.leases.take("amelia", hold_of(pool.run(SCOTT, "w1")), NOON)
    assert building
    operators = pool.leases.overtake("amelia", JobHold("operator"), NOON)
    assert operators
    assert operators.fence > building.fence
    pool.leases.release(building)
    pool.leases.confirm(operators)
    with pytest.raises(ClaimLost):
        pool.leases.confirm(building)


def test_nobody_overtakes_who_has_confirmed(pool: LeaseBackend) -> None:
    lease = pool.leases.take("amelia", hold_of(pool.run(SCOTT, "w1")), NOON)
    assert lease
    pool.leases.confirm(lease)
    pool.leases.confirm(lease)
    assert pool.leases.overtake("amelia", JobHold("operator"), NOON) is None
    pool.dead.add("w1")
    assert pool.leases.overtake("amelia", JobHold("operator"), NOON)


def test_an_operator_takes_what_nobody_has(pool: LeaseBackend) -> None:
    first = pool.leases.overtake("amelia", JobHold("operator"), NOON)
    assert first
    pool.leases.confirm(first)
    pool.leases.release(first)
    assert pool.leases.overtake("amelia", JobHold("operator"), NOON)
