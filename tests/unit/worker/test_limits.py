"""When a worker looks at its running jobs."""

from __future__ import annotations

import random
from typing import cast

import pytest

from tests.harness.pool_records import PoolRecords
from tests.unit.worker.worker_ports import WORKER, WorkerPorts
from webordinary.model.claims import Claim, ClaimStatus, Interrupt, StartedJob
from webordinary.model.errors import Cancelled, ClaimLost, Interrupted, JobTimedOut
from webordinary.model.jobs import Job, JobState, NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.simulation import MIDNIGHT, VirtualClock
from webordinary.pool.transitions import asked_by_operator
from webordinary.worker.claims import ClaimSet, JobCancelToken
from webordinary.worker.ports import WorkerDeps, WorkerSettings
from webordinary.worker.worker import CancellationPolicy

SCOTT = ProjectUser("amelia", "scott")
LIMIT, HEARTBEAT = 30.0, 60.0


def test_a_job_that_was_told_to_end_is_not_looked_at_again_until_the_next_heartbeat() -> None:
    time, claim_set = VirtualClock(), ClaimSet()
    limits = CancellationPolicy(worker_deps(time), claim_set)
    claim = Claim(SCOTT, "w1", 1, 0, ClaimStatus.HELD, MIDNIGHT, MIDNIGHT, MIDNIGHT)
    job = Job("job-1", SCOTT, 1, 1, "thread", "mail", Command.EDIT, JobState.RUNNING, MIDNIGHT)
    token = JobCancelToken(StartedJob(claim, job), time, deadline=LIMIT, lease_until=lambda: 1e9)
    claim_set.mark_busy(token, 0.0)
    assert limits.next_check_at() == LIMIT
    time.after(LIMIT, lambda: None)
    time.run(LIMIT, lambda: False)
    limits.enforce()
    assert isinstance(token.reason, JobTimedOut)
    assert limits.next_check_at() == HEARTBEAT


def test_a_job_whose_lease_was_not_renewed_in_time_is_told_so_and_of_no_newer_claim() -> None:
    claim = Claim(SCOTT, "w1", 1, 0, ClaimStatus.HELD, MIDNIGHT, MIDNIGHT, MIDNIGHT)
    job = Job("job-1", SCOTT, 1, 1, "thread", "mail", Command.EDIT, JobState.RUNNING, MIDNIGHT)
    token = JobCancelToken(StartedJob(claim, job), VirtualClock(), deadline=LIMIT, lease_until=lambda: -1.0)
    with pytest.raises(ClaimLost) as lost:
        token.check()
    assert "its lease was not renewed in time" in str(lost.value)
    assert "newer claim" not in str(lost.value)


class LimitedWorker(WorkerPorts):
    """A worker with one running job; who waits for it is up to the test, and what it was asked for is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting, self.asked = {"token"}, list[str]()
        self.deps = self.worker_deps(PoolRecords())
        assert isinstance(self.deps.clock, VirtualClock)
        self.pool, self.time = self.deps.pool, self.deps.clock
        self.pool.jobs.record(NewJob("a", SCOTT, "thread", "mail", Command.EDIT), MIDNIGHT, ready=True)
        self.pool.jobs.bind_token("a", "token")
        started = self.pool.claims.claim_and_start(SCOTT, WORKER, MIDNIGHT)
        assert isinstance(started, StartedJob)
        self.token = JobCancelToken(started, self.time, deadline=1e9, lease_until=lambda: 1e9)
        self.claim_set.mark_busy(self.token, 0.0)
        self.limits = CancellationPolicy(self.deps, self.claim_set)

    def heartbeat(self, token: str) -> bool:
        self.asked.append(token)
        return token in self.waiting

    def minutes(self, count: int) -> None:
        """So many heartbeats."""
        for _ in range(count):
            self.time.after(HEARTBEAT, lambda: None)
            self.time.run(self.time.monotonic() + HEARTBEAT, lambda: False)
            self.limits.enforce()


def test_a_token_that_somebody_waits_for_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world, read = LimitedWorker(), list[str]()
    get = world.pool.jobs.get
    monkeypatch.setattr(world.pool.jobs, "get", lambda job_id: read.append(job_id) or get(job_id))
    world.minutes(3)
    assert (world.asked, read) == (["token"] * 3, ["a"])


def test_a_job_whose_workflow_waits_under_a_new_token_goes_on() -> None:
    world = LimitedWorker()
    world.minutes(1)
    world.waiting = {"next"}
    world.pool.jobs.bind_token("a", "next")
    world.minutes(3)
    assert (world.asked[-1], world.token.reason) == ("next", None)


def test_a_job_whose_token_is_lost_ends_at_the_second_heartbeat_that_finds_it_so() -> None:
    world = LimitedWorker()
    world.minutes(1)
    world.waiting.clear()
    world.minutes(1)
    assert world.token.reason is None
    world.minutes(1)
    assert isinstance(world.token.reason, Cancelled)


def test_a_token_that_is_bound_between_two_heartbeats_saves_the_job() -> None:
    world = LimitedWorker()
    world.waiting.clear()
    world.minutes(1)
    world.pool.jobs.bind_token("a", "next")
    world.waiting = {"next"}
    world.minutes(2)
    assert world.token.reason is None


def test_a_job_that_makes_way_uses_up_what_was_asked_of_its_key() -> None:
    world = LimitedWorker()
    world.pool.jobs.record(NewJob("b", SCOTT, "other", "mail-b", Command.EDIT), MIDNIGHT, ready=True)
    world.pool.interrupts.send(Interrupt(SCOTT, "a", "other", "a mail on another thread"), MIDNIGHT)
    world.claim_set.notify([SCOTT])
    world.claim_set.notify_all()
    world.limits.enforce()
    assert isinstance(world.token.reason, Interrupted)
    assert world.pool.interrupts.take(SCOTT) == []


def test_a_job_makes_way_although_nobody_was_heard() -> None:
    world = LimitedWorker()
    world.pool.jobs.record(NewJob("b", SCOTT, "other", "mail-b", Command.EDIT), MIDNIGHT, ready=True)
    world.limits.enforce()
    assert world.token.reason is None
    world.claim_set.notify_all()
    world.limits.enforce()
    assert isinstance(world.token.reason, Interrupted)


def worker_deps(time: VirtualClock) -> WorkerDeps:
    """Only what limits touch."""
    settings = WorkerSettings(job_limit=LIMIT, heartbeat=HEARTBEAT)
    nothing = cast("object", None)
    return WorkerDeps("w1", settings, nothing, nothing, nothing, time, nothing, nothing, random.Random(1))  # type: ignore[arg-type]


def test_the_operator_interrupts_one_start_of_a_job_and_no_later_one() -> None:
    world = LimitedWorker()
    stale = asked_by_operator(world.token.started.job._replace(attempts=7))
    for reason, ends in ((stale, False), (asked_by_operator(world.token.started.job), True)):
        world.pool.interrupts.send(Interrupt(SCOTT, "a", "thread", reason), MIDNIGHT)
        world.claim_set.notify([SCOTT])
        world.limits.enforce()
        assert isinstance(world.token.reason, Interrupted) is ends
