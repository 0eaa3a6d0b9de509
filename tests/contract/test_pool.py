"""One suite for every backend of the pool: an adapter exists once it passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.aws.pool_tables import PoolTables

from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterrupts, SqliteJobs, SqliteOutages
from webordinary.model.claims import Claim, ClaimRequest, ClaimStatus, Interrupt, StartedJob
from webordinary.model.errors import ClaimLost, HourlyLimitReached, Permanent
from webordinary.model.jobs import (
    ChangeLine,
    DeferReason,
    Job,
    JobOutcome,
    JobResult,
    JobState,
    NewJob,
    Requeue,
    RequeueReason,
    Settlement,
)
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations.ports import WaitingJobs
from webordinary.pool.ports import ClaimRequestQueue, Claims, Interrupts, PendingCallbacks

AMELIA_SCOTT = ProjectUser("amelia", "scott")
BAKERY_ANN = ProjectUser("bakery", "ann")
CHESS_BO = ProjectUser("chess", "bo")
W1, W2 = "container-1", "container-2"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LEASE = timedelta(seconds=60)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done", commit="abc", changed_files=("index.html",)))
UNDONE = Settlement(JobOutcome.SUCCEEDED, JobResult(
    "taken back", "abd", undone=ChangeLine("a title", "scott", "abc"), is_public=True,
    published=(ChangeLine("a photo", "ann", "abe"), ChangeLine("and 2 more")), waiting=(ChangeLine("a line", ""),),
))  # fmt: skip


@dataclass(frozen=True)
class PoolBackend:
    jobs: WaitingJobs
    pending_callbacks: PendingCallbacks
    claims: Claims
    hints: ClaimRequestQueue
    interrupts: Interrupts
    in_one_step: bool = True
    """Whether a waiting key can be found and taken at once."""
    released_start_counts: bool = False
    """Whether a job that runs while its claim is released has used up an attempt."""
    excuse: Callable[[Callable[[str], bool]], int] = lambda is_dead: 0
    """Gives the starts of dead workers back after an outage."""


@pytest.fixture(params=["sqlite in memory", "sqlite", "aws", "aws, every first answer lost"])
def pool(request: pytest.FixtureRequest) -> Iterator[PoolBackend]:
    if request.param == "aws":
        yield on_aws(request.getfixturevalue("aws_pool"))
        return
    if request.param == "aws, every first answer lost":
        yield on_aws(request.getfixturevalue("aws_pool_whose_answers_are_lost"))
        return
    db: Database = request.getfixturevalue("database" if request.param == "sqlite in memory" else "file_database")
    jobs = SqliteJobs(db)
    yield PoolBackend(
        jobs, jobs, SqliteClaims(db, 60), SqliteClaimRequests(db), SqliteInterrupts(db), excuse=SqliteOutages(db).excuse
    )


def on_aws(world: PoolTables) -> PoolBackend:
    hints = world.with_hints([AMELIA_SCOTT, BAKERY_ANN, CHESS_BO])
    pool = PoolBackend(world.jobs(), world.pending_callbacks(), world.claims(), hints, world.interrupts())
    return replace(pool, in_one_step=False, released_start_counts=True)


def queue(
    pool: PoolBackend,
    name: str,
    *,
    key: ProjectUser = AMELIA_SCOTT,
    thread: str | None = None,
    at: datetime = NOON,
) -> Job:
    record(pool, name, key=key, thread=thread, at=at)
    return pool.jobs.enqueue(name, at)


def record(
    pool: PoolBackend,
    name: str,
    *,
    key: ProjectUser = AMELIA_SCOTT,
    thread: str | None = None,
    at: datetime = NOON,
) -> Job:
    return pool.jobs.record(NewJob(name, key, thread or name, f"mail-{name}", Command.EDIT), at)


def claim(pool: PoolBackend, key: ProjectUser = AMELIA_SCOTT, worker: str = W1, at: datetime = NOON) -> StartedJob:
    started = pool.claims.claim_and_start(key, worker, at)
    assert isinstance(started, StartedJob)
    return started


def test_a_worker_finds_the_claims_that_the_store_says_it_holds(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b", key=BAKERY_ANN)
    mine, theirs = claim(pool), claim(pool, BAKERY_ANN, W2)
    assert [(held.key, held.fence) for held in pool.claims.held_by(W1)] == [(AMELIA_SCOTT, mine.claim.fence)]
    pool.claims.begin_release(theirs.claim)
    assert pool.claims.held_by(W2) == []


def test_who_holds_keys_is_asked_for_all_of_them_at_once(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b", key=BAKERY_ANN)
    held, freed = claim(pool).claim, claim(pool, BAKERY_ANN)
    pool.claims.end_and_take_next(freed, DONE, NOON, more=False)
    pool.claims.begin_release(freed.claim)
    pool.claims.end_release(freed.claim)
    unknown = [ProjectUser(f"p{number}", "scott") for number in range(120)]  # a call of DynamoDB takes 100
    assert pool.claims.look_all([BAKERY_ANN, *unknown, AMELIA_SCOTT]) == {AMELIA_SCOTT: held}


# --- jobs


def test_a_recorded_job_is_preparing_and_has_the_next_order(pool: PoolBackend) -> None:
    first, second = record(pool, "a"), record(pool, "b")
    assert (first.state, first.order, second.order) == (JobState.PREPARING, 1, 2)
    assert second.recorded_at == NOON


def test_an_order_is_never_used_twice(pool: PoolBackend) -> None:
    first = claim_of_new(pool, "a")
    interrupted = pool.claims.end_and_take_next(first, Requeue(RequeueReason.INTERRUPTED), NOON, more=True).started
    assert interrupted
    assert interrupted.job.order > first.job.order
    turn = pool.claims.end_and_take_next(interrupted, DONE, NOON, more=True)
    assert (turn.started, turn.empty) == (None, True)
    assert record(pool, "b").order > interrupted.job.order


def claim_of_new(pool: PoolBackend, name: str) -> StartedJob:
    queue(pool, name)
    return claim(pool)


def test_recording_the_same_job_again_changes_nothing(pool: PoolBackend) -> None:
    first = record(pool, "a")
    assert record(pool, "a", at=NOON + SECOND) == first


def test_so_many_jobs_of_a_key_are_recorded_within_an_hour_and_no_more(pool: PoolBackend) -> None:
    def record_limited(name: str, key: ProjectUser = AMELIA_SCOTT, at: datetime = NOON) -> Job:
        return pool.jobs.record(NewJob(name, key, name, f"mail-{name}", Command.EDIT), at, hourly_limit=2)

    for name in ("a", "b"):
        record_limited(name)
    with pytest.raises(HourlyLimitReached, match="amelia#scott is over the limit of 2 mails an hour"):
        record_limited("c", at=NOON + timedelta(minutes=59))
    assert pool.jobs.get("c") is None
    assert record_limited("b").job_id == "b"
    assert record_limited("d", BAKERY_ANN).job_id == "d"
    assert record_limited("e", at=NOON + timedelta(minutes=60)).job_id == "e"
    assert record(pool, "f").job_id == "f"


def test_a_job_with_nothing_to_wait_for_is_queued_as_it_is_recorded(pool: PoolBackend) -> None:
    new = NewJob("a", AMELIA_SCOTT, "t", "mail-a", Command.EDIT)
    job = pool.jobs.record(new, NOON, ready=True)
    assert (job.state, job.order, job.queued_at) == (JobState.QUEUED, 1, NOON)
    assert pool.jobs.enqueue("a", NOON + SECOND) == job


def test_enqueueing_twice_keeps_the_first_time(pool: PoolBackend) -> None:
    queue(pool, "a")
    assert pool.jobs.enqueue("a", NOON + SECOND).queued_at == NOON


def test_enqueueing_what_was_never_recorded_says_so(pool: PoolBackend) -> None:
    with pytest.raises(Permanent, match="not recorded"):
        pool.jobs.enqueue("ghost", NOON)


def test_open_jobs_come_in_order_and_without_settled_ones(pool: PoolBackend) -> None:
    for name in "abc":
        queue(pool, name)
    pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=False)
    assert [job.job_id for job in pool.jobs.open_jobs(AMELIA_SCOTT)] == ["b", "c"]


def test_settled_jobs_are_listed_the_newest_first_and_without_open_ones(pool: PoolBackend) -> None:
    for at, name in enumerate("abcd"):
        queue(pool, name, at=NOON + timedelta(minutes=at))
    queue(pool, "e", key=BAKERY_ANN)
    for name in "acb":
        pool.jobs.settle_waiting(name, DONE, NOON + HOUR)
    assert [job.job_id for job in pool.jobs.settled_jobs(AMELIA_SCOTT, 2)] == ["c", "b"]
    assert [job.job_id for job in pool.jobs.settled_jobs(AMELIA_SCOTT, 9)] == ["c", "b", "a"]
    assert pool.jobs.settled_jobs(BAKERY_ANN, 9) == []


def test_open_jobs_are_listed_page_by_page(pool: PoolBackend) -> None:
    for name in "abc":
        queue(pool, name)
    [first] = pool.jobs.open_jobs(AMELIA_SCOTT, limit=1)
    assert first.job_id == "a"
    assert [job.job_id for job in pool.jobs.open_jobs(AMELIA_SCOTT, after=first.order)] == ["b", "c"]


def test_keys_to_look_at_are_listed_page_by_page(pool: PoolBackend) -> None:
    record(pool, "a")
    record(pool, "b", key=BAKERY_ANN)
    assert pool.jobs.keys_to_look_at(None, 1) == [AMELIA_SCOTT]
    assert pool.jobs.keys_to_look_at(AMELIA_SCOTT, 10) == [BAKERY_ANN]


def test_a_key_that_somebody_holds_is_looked_at_also_when_it_has_a_hint(pool: PoolBackend) -> None:
    queue(pool, "a")
    claim(pool)
    pool.hints.send(ClaimRequest(AMELIA_SCOTT, NOON), NOON)
    assert pool.jobs.keys_to_look_at(None, 10) == [AMELIA_SCOTT]


def test_a_key_whose_hint_was_used_up_is_looked_at(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.hints.acknowledge(AMELIA_SCOTT)
    assert pool.jobs.keys_to_look_at(None, 10) == [AMELIA_SCOTT]


def test_every_key_of_a_project_with_open_jobs_is_found_hinted_or_not(pool: PoolBackend) -> None:
    ann, bob = ProjectUser("amelia", "ann"), ProjectUser("amelia-2", "bob")
    for name, key in {"a": AMELIA_SCOTT, "b": ann, "c": bob, "d": BAKERY_ANN}.items():
        queue(pool, name, key=key)
    pool.hints.send(ClaimRequest(ann, NOON), NOON)
    assert pool.jobs.keys_of("amelia") == [ann, AMELIA_SCOTT]
    pool.jobs.settle_waiting("b", DONE, NOON)
    assert pool.jobs.keys_of("amelia") == [AMELIA_SCOTT]
    assert pool.jobs.keys_of("a") == []


def test_a_job_that_never_started_can_be_settled_from_outside(pool: PoolBackend) -> None:
    queue(pool, "a")
    job = pool.jobs.settle_waiting("a", Settlement(JobOutcome.CANCELLED, JobResult("stopped")), NOON)
    assert (job.state, job.outcome, job.settled_at) == (JobState.SETTLED, JobOutcome.CANCELLED, NOON)


def test_what_a_job_took_back_and_who_asked_for_what_is_kept(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.claims.end_and_take_next(claim(pool), UNDONE, NOON, more=False)
    job = pool.jobs.get("a")
    assert job
    assert job.result == UNDONE.result


def test_a_running_job_is_only_asked_to_end(pool: PoolBackend) -> None:
    queue(pool, "a")
    claim(pool)
    job = pool.jobs.settle_waiting("a", Settlement(JobOutcome.CANCELLED, JobResult("stopped")), NOON)
    assert (job.state, job.cancel_requested) == (JobState.RUNNING, True)


@pytest.mark.parametrize("worker_lives", [True, False])
def test_a_start_whose_worker_lives_and_could_not_renew_its_lease_is_given_back(
    database: Database, worker_lives: bool
) -> None:
    jobs, claims = SqliteJobs(database), SqliteClaims(database, 60, is_dead=lambda worker: not worker_lives)
    jobs.record(NewJob("a", AMELIA_SCOTT, "a", "mail-a", Command.EDIT), NOON, ready=True)
    begun = claims.claim_and_start(AMELIA_SCOTT, W1, NOON)
    assert isinstance(begun, StartedJob)
    again = claims.claim_and_start(AMELIA_SCOTT, W2, NOON + HOUR, over=claims.look(AMELIA_SCOTT))
    assert isinstance(again, StartedJob)
    assert (again.job.attempts, again.job.outages) == ((1, 1) if worker_lives else (2, 0))
    assert jobs.get("a") == again.job


@pytest.mark.parametrize("pool", ["sqlite in memory", "sqlite"], indirect=True)  # a machine that holds all of it
def test_a_job_that_an_outage_cut_off_is_only_asked_to_end(pool: PoolBackend) -> None:
    queue(pool, "a")
    claim(pool)
    assert pool.excuse(lambda worker: worker == W1) == 1
    over = pool.claims.look(AMELIA_SCOTT)
    again = pool.claims.claim_and_start(AMELIA_SCOTT, W2, NOON, over)
    assert isinstance(again, StartedJob)
    assert (again.job.attempts, again.job.outages) == (1, 1)
    pool.claims.end_and_take_next(again, Requeue(RequeueReason.STOPPED), NOON, more=False)
    job = pool.jobs.settle_waiting("a", Settlement(JobOutcome.CANCELLED, JobResult("stopped")), NOON)
    assert (job.state, job.attempts, job.cancel_requested) == (JobState.QUEUED, 0, True)


@pytest.mark.parametrize(
    "ending",
    [
        Requeue(RequeueReason.INTERRUPTED),
        Requeue(RequeueReason.STOPPED),
        Requeue(RequeueReason.WAITING, NOON + HOUR),
        Requeue(RequeueReason.HELD, NOON + HOUR, DeferReason.PAUSE),
        Requeue(RequeueReason.RETRY, NOON + HOUR),
    ],
    ids=lambda ending: str(ending.why),
)
def test_of_a_job_that_was_put_back_a_worker_looks_at_once_what_it_has_published(
    pool: PoolBackend, ending: Requeue
) -> None:
    queue(pool, "a")
    begun = claim(pool)
    pool.claims.end_and_take_next(begun, ending, NOON, more=False)
    job = pool.jobs.settle_waiting("a", Settlement(JobOutcome.CANCELLED, JobResult("stopped")), NOON)
    assert (job.state, job.cancel_requested) == (JobState.QUEUED, True)
    looked = pool.claims.start_next(begun.claim, NOON)
    assert looked
    assert looked.job.cancel_requested
    pool.claims.end_and_take_next(looked, Requeue(RequeueReason.RETRY, NOON + HOUR), NOON, more=False)
    assert pool.claims.start_next(begun.claim, NOON) is None, "a look that failed waits like any other start"


def test_a_settled_job_stays_as_it_ended(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=False)
    job = pool.jobs.settle_waiting("a", Settlement(JobOutcome.DEAD, JobResult("no")), NOON + SECOND)
    assert (job.outcome, job.result) == (JobOutcome.SUCCEEDED, DONE.result)


# --- claims


def test_a_free_key_is_claimed_with_its_first_job_begun(pool: PoolBackend) -> None:
    queue(pool, "a")
    started = claim(pool)
    assert started.claim.fence == int(NOON.timestamp())
    assert (started.job.job_id, started.job.state, started.job.attempts) == ("a", JobState.RUNNING, 1)
    assert (started.job.worker, started.job.fence) == (W1, started.claim.fence)
    assert pool.claims.look(AMELIA_SCOTT) == started.claim


def test_a_held_key_shows_its_claim_to_others(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b")
    held = claim(pool).claim
    assert pool.claims.claim_and_start(AMELIA_SCOTT, W2, NOON + 10 * LEASE) == held


def test_a_key_without_work_is_not_claimed_and_its_hint_is_used_up(pool: PoolBackend) -> None:
    pool.hints.send(ClaimRequest(AMELIA_SCOTT, NOON), NOON)
    assert len(pool.hints.receive(NOON, (), 10)) == 1
    assert pool.claims.claim_and_start(AMELIA_SCOTT, W1, NOON) is None
    assert pool.claims.look(AMELIA_SCOTT) is None
    assert pool.hints.receive(NOON, (), 10) == []


def test_claiming_uses_up_the_hint(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.hints.send(ClaimRequest(AMELIA_SCOTT, NOON), NOON)
    assert len(pool.hints.receive(NOON, (), 10)) == 1
    claim(pool)
    assert pool.hints.receive(NOON, (), 10) == []


def test_a_claim_that_is_over_is_taken_under_a_higher_fence(pool: PoolBackend) -> None:
    queue(pool, "a")
    old = claim(pool).claim
    taken = pool.claims.claim_and_start(AMELIA_SCOTT, W2, NOON, over=old)
    assert isinstance(taken, StartedJob)
    assert (taken.claim.worker, taken.claim.fence) == (W2, old.fence + 1)
    assert (taken.job.job_id, taken.job.attempts) == ("a", 2)


def test_a_claim_whose_beat_has_moved_is_not_over(pool: PoolBackend) -> None:
    queue(pool, "a")
    seen = claim(pool).claim
    pool.claims.renew([seen], NOON + SECOND)
    assert isinstance(pool.claims.claim_and_start(AMELIA_SCOTT, W2, NOON + LEASE, over=seen), Claim)


def test_a_worker_that_slept_past_its_lease_cannot_renew(pool: PoolBackend) -> None:
    queue(pool, "a")
    old = claim(pool).claim
    pool.claims.claim_and_start(AMELIA_SCOTT, W2, NOON + LEASE, over=old)
    assert pool.claims.renew([old], NOON + LEASE) == set()


def test_renewing_moves_the_beat_and_the_lease(pool: PoolBackend) -> None:
    queue(pool, "a")
    held = claim(pool).claim
    assert pool.claims.renew([held], NOON + SECOND) == {AMELIA_SCOTT}
    now = pool.claims.look(AMELIA_SCOTT)
    assert now
    assert (now.beat, now.lease_expires_at) == (held.beat + 1, NOON + SECOND + LEASE)


def test_nothing_is_settled_or_started_under_an_old_fence(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b")
    old = claim(pool)
    new = pool.claims.claim_and_start(AMELIA_SCOTT, W2, NOON, over=old.claim)
    assert isinstance(new, StartedJob)
    with pytest.raises(ClaimLost):
        pool.claims.end_and_take_next(old, DONE, NOON, more=True)
    with pytest.raises(ClaimLost):
        pool.claims.start_next(old.claim, NOON)
    job = pool.jobs.get("a")
    assert job
    assert (job.state, job.worker) == (JobState.RUNNING, W2)


def test_the_fence_grows_although_the_clock_stands_still(pool: PoolBackend) -> None:
    fences = []
    for name in "abc":
        queue(pool, name)
        started = claim(pool)
        pool.claims.end_and_take_next(started, DONE, NOON, more=False)
        pool.claims.begin_release(started.claim)
        pool.claims.end_release(started.claim)
        fences.append(started.claim.fence)
    assert fences == [fences[0], fences[0] + 1, fences[0] + 2]


def test_a_releasing_key_can_be_claimed_by_anybody(pool: PoolBackend) -> None:
    queue(pool, "a")
    started = claim(pool)
    pool.claims.end_and_take_next(started, DONE, NOON, more=False)
    assert pool.claims.begin_release(started.claim)
    queue(pool, "b")
    taken = claim(pool, worker=W2)
    pool.claims.end_release(started.claim)
    held = pool.claims.look(AMELIA_SCOTT)
    assert held
    assert (held.worker, held.status, held.fence) == (W2, ClaimStatus.HELD, taken.claim.fence)


def started_twice(pool: PoolBackend) -> Claim:
    """The claim under which a job has its second start."""
    queue(pool, "a")
    again = pool.claims.claim_and_start(AMELIA_SCOTT, W1, NOON, over=claim(pool, worker=W2).claim)
    assert isinstance(again, StartedJob)
    return again.claim


def attempts(pool: PoolBackend, name: str = "a") -> int:
    job = pool.jobs.get(name)
    assert job
    return job.attempts


def test_a_start_is_given_back_once_with_the_release_of_its_claim(pool: PoolBackend) -> None:
    held = started_twice(pool)
    assert pool.claims.begin_release(held)
    pool.claims.begin_release(held)
    assert attempts(pool) == (2 if pool.released_start_counts else 1)


def test_a_release_that_fails_gives_no_start_back(pool: PoolBackend) -> None:
    held = started_twice(pool)
    assert not pool.claims.begin_release(replace(held, worker=W2))
    assert attempts(pool) == 2


def test_a_lost_claim_cannot_be_released(pool: PoolBackend) -> None:
    queue(pool, "a")
    old = claim(pool).claim
    pool.claims.claim_and_start(AMELIA_SCOTT, W2, NOON, over=old)
    assert not pool.claims.begin_release(old)
    pool.claims.end_release(old)
    held = pool.claims.look(AMELIA_SCOTT)
    assert held
    assert held.worker == W2


def test_busy_counts_the_jobs_a_worker_runs(pool: PoolBackend) -> None:
    queue(pool, "a")
    started = claim(pool)
    assert (pool.claims.busy(W1), pool.claims.busy(W2)) == (1, 0)
    pool.claims.end_and_take_next(started, DONE, NOON, more=False)
    assert pool.claims.busy(W1) == 0


# --- order


def test_settling_starts_the_next_job_of_the_key(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b")
    turn = pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=True)
    assert turn.kept
    assert turn.started
    assert turn.started.job.job_id == "b"
    settled = pool.jobs.get("a")
    assert settled
    assert (settled.outcome, settled.result, settled.settled_at) == (JobOutcome.SUCCEEDED, DONE.result, NOON)


def test_a_stopping_worker_keeps_the_claim_and_starts_nothing(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b")
    turn = pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=False)
    assert (turn.kept is not None, turn.started) == (True, None)


def test_who_ends_the_last_job_of_a_key_is_told_that_nothing_is_left(pool: PoolBackend) -> None:
    queue(pool, "a")
    assert pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=True).empty


def test_a_key_is_never_called_empty_while_it_has_an_open_job(pool: PoolBackend) -> None:
    record(pool, "prepares")
    queue(pool, "first")
    turn = pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=True)
    assert (turn.started, turn.empty) == (None, False)
    pool.jobs.enqueue("prepares", NOON)
    begun = pool.claims.start_next(turn.kept or claim(pool).claim, NOON)
    assert begun
    turn = pool.claims.end_and_take_next(begun, Requeue(RequeueReason.RETRY, NOON + SECOND), NOON, more=True)
    assert (turn.started, turn.empty) == (None, False)


def test_an_idle_owner_starts_what_came_in_later(pool: PoolBackend) -> None:
    queue(pool, "a")
    started = claim(pool)
    pool.claims.end_and_take_next(started, DONE, NOON, more=True)
    assert pool.claims.start_next(started.claim, NOON) is None
    queue(pool, "b")
    following = pool.claims.start_next(started.claim, NOON)
    assert following
    assert (following.claim, following.job.job_id) == (started.claim, "b")


def test_a_later_mail_of_a_thread_waits_for_the_earlier_one_that_still_prepares(pool: PoolBackend) -> None:
    record(pool, "with-photos", thread="t")
    queue(pool, "correction", thread="t")
    assert pool.claims.claim_and_start(AMELIA_SCOTT, W1, NOON) is None


def test_a_mail_that_never_gets_ready_holds_its_thread_up_for_a_while_only(pool: PoolBackend) -> None:
    record(pool, "with-photos", thread="t")
    queue(pool, "correction", thread="t")
    assert claim(pool, at=NOON + timedelta(minutes=10)).job.job_id == "correction"


def test_another_thread_overtakes_one_that_prepares(pool: PoolBackend) -> None:
    record(pool, "with-photos", thread="t")
    queue(pool, "other", thread="u")
    assert claim(pool).job.job_id == "other"


def test_a_job_that_waits_for_something_else_gets_its_start_back_and_its_workflow_waits_on(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.jobs.bind_token("a", "token")
    started = claim(pool)
    turn = pool.claims.end_and_take_next(
        started, Requeue(RequeueReason.WAITING, NOON + SECOND, words="a build"), NOON, more=True
    )
    assert turn.pending_callback is None
    assert pool.claims.start_next(started.claim, NOON) is None
    again = pool.claims.start_next(started.claim, NOON + SECOND)
    assert again
    assert (again.job.attempts, again.job.task_token) == (1, "token")


def test_a_job_that_backs_off_starts_when_its_time_has_come(pool: PoolBackend) -> None:
    queue(pool, "a")
    started = claim(pool)
    pool.claims.end_and_take_next(started, Requeue(RequeueReason.RETRY, NOON + SECOND), NOON, more=True)
    assert pool.claims.start_next(started.claim, NOON) is None
    again = pool.claims.start_next(started.claim, NOON + SECOND)
    assert again
    assert again.job.attempts == 2


def test_a_later_mail_of_a_thread_waits_for_one_that_backs_off(pool: PoolBackend) -> None:
    queue(pool, "a", thread="t")
    queue(pool, "b", thread="t")
    turn = pool.claims.end_and_take_next(claim(pool), Requeue(RequeueReason.RETRY, NOON + SECOND), NOON, more=True)
    assert turn.started is None


def test_a_stopped_job_keeps_its_place_and_its_attempts(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b")
    pool.claims.end_and_take_next(claim(pool), Requeue(RequeueReason.STOPPED), NOON, more=False)
    job = pool.jobs.get("a")
    assert job
    assert (job.state, job.attempts, job.order, job.started_at) == (JobState.QUEUED, 0, 1, None)


def test_an_interrupted_job_goes_to_the_tail_and_gets_its_start_back(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b")
    turn = pool.claims.end_and_take_next(claim(pool), Requeue(RequeueReason.INTERRUPTED), NOON, more=True)
    assert turn.started
    assert turn.started.job.job_id == "b"
    job = pool.jobs.get("a")
    assert job
    assert (job.state, job.attempts, job.interruptions, job.order) == (JobState.QUEUED, 0, 1, 3)


def test_later_mails_of_an_interrupted_thread_stay_behind_it(pool: PoolBackend) -> None:
    queue(pool, "a1", thread="a")
    queue(pool, "a2", thread="a")
    queue(pool, "b1", thread="b")
    started, served = claim(pool), []
    turn = pool.claims.end_and_take_next(started, Requeue(RequeueReason.INTERRUPTED), NOON, more=True)
    while turn.started:
        served.append(turn.started.job.job_id)
        turn = pool.claims.end_and_take_next(turn.started, DONE, NOON, more=True)
    assert served == ["b1", "a1", "a2"]


# --- callbacks


def test_a_settled_job_owes_its_callback_until_paid(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.jobs.bind_token("a", "token")
    assert pool.pending_callbacks.pending(10) == []
    pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=False)
    assert [job.job_id for job in pool.pending_callbacks.pending(10)] == ["a"]
    pool.pending_callbacks.mark_delivered("a", "token")
    assert pool.pending_callbacks.pending(10) == []


def test_who_ends_a_job_is_told_if_a_workflow_waits_for_it(pool: PoolBackend) -> None:
    queue(pool, "a")
    queue(pool, "b")
    pool.jobs.bind_token("a", "token")
    turn = pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=True)
    assert turn.pending_callback == pool.jobs.get("a")
    assert turn.started
    assert pool.claims.end_and_take_next(turn.started, DONE, NOON, more=False).pending_callback is None


def test_whoever_binds_a_token_after_the_end_sees_that_it_ended(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=False)
    assert pool.pending_callbacks.pending(10) == []
    assert not pool.jobs.bind_token("a", "token").open
    assert [job.task_token for job in pool.pending_callbacks.pending(10)] == ["token"]


def test_an_interrupted_job_owes_word_to_its_old_token_only(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.jobs.bind_token("a", "old")
    pool.claims.end_and_take_next(claim(pool), Requeue(RequeueReason.INTERRUPTED), NOON, more=False)
    pool.jobs.bind_token("a", "new")
    assert [(job.preempted_token, job.task_token) for job in pool.pending_callbacks.pending(10)] == [("old", "new")]
    pool.pending_callbacks.mark_delivered("a", "old")
    assert pool.pending_callbacks.pending(10) == []


def test_a_job_interrupted_again_before_its_workflow_was_told_still_owes_that_word(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.jobs.bind_token("a", "old")
    turn = pool.claims.end_and_take_next(claim(pool), Requeue(RequeueReason.INTERRUPTED), NOON, more=True)
    assert turn.started
    pool.claims.end_and_take_next(turn.started, Requeue(RequeueReason.INTERRUPTED), NOON, more=False)
    assert [(job.preempted_token, job.task_token) for job in pool.pending_callbacks.pending(10)] == [("old", None)]


HOLD = Requeue(RequeueReason.HELD, NOON + HOUR, DeferReason.PAUSE)


def test_a_held_job_waits_knows_why_and_its_workflow_is_told(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.jobs.bind_token("a", "token")
    begun = claim(pool)
    turn = pool.claims.end_and_take_next(begun, HOLD, NOON, more=True)
    assert turn.started is None
    assert turn.pending_callback
    [job] = pool.jobs.open_jobs(AMELIA_SCOTT)
    assert job == turn.pending_callback
    assert (job.held, job.not_before, job.attempts) == (DeferReason.PAUSE, NOON + HOUR, 0)
    assert (job.preempted_token, job.task_token) == ("token", None)


def test_a_held_job_that_must_wait_on_is_not_told_again(pool: PoolBackend) -> None:
    queue(pool, "a")
    begun = claim(pool)
    pool.claims.end_and_take_next(begun, HOLD, NOON, more=False)
    pool.jobs.bind_token("a", "token")
    later = NOON + HOUR
    looked = pool.claims.start_next(begun.claim, later)
    assert looked
    assert looked.job.held is DeferReason.PAUSE, "nobody has worked on it yet"
    again = Requeue(RequeueReason.HELD, later + HOUR, DeferReason.BUDGET)
    turn = pool.claims.end_and_take_next(looked, again, later, more=False)
    assert turn.pending_callback is None
    [job] = pool.jobs.open_jobs(AMELIA_SCOTT)
    assert (job.held, job.not_before, job.attempts) == (DeferReason.BUDGET, later + HOUR, 0)
    assert (job.preempted_token, job.task_token) == (None, "token")


def dated(days: int) -> Requeue:
    at = NOON + timedelta(days=days)
    result = JobResult("The sign is up.", "c" * 40, due_at=at.isoformat())
    return Requeue(RequeueReason.HELD, at, DeferReason.LATER, result)


def test_a_job_that_waits_for_its_date_keeps_it_and_is_told_of_a_new_one(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.jobs.bind_token("a", "one")
    begun, ending = claim(pool), dated(3)
    assert pool.claims.end_and_take_next(begun, ending, NOON, more=False).pending_callback
    pool.pending_callbacks.mark_delivered("a", "one")
    [job] = pool.jobs.open_jobs(AMELIA_SCOTT)
    assert (job.held, job.result, job.due_at) == (DeferReason.LATER, ending.result, NOON + timedelta(days=3))
    pool.jobs.bind_token("a", "two")
    later = NOON + timedelta(days=2)
    looked = pool.claims.start_next(begun.claim, later)
    assert looked, "a worker looks at it every two days: a clock may have been wrong"
    same = Requeue(RequeueReason.HELD, NOON + timedelta(days=3), DeferReason.LATER)
    assert pool.claims.end_and_take_next(looked, same, later, more=False).pending_callback is None
    [job] = pool.jobs.open_jobs(AMELIA_SCOTT)
    assert job.due_at == NOON + timedelta(days=3)
    due = pool.claims.start_next(begun.claim, NOON + timedelta(days=3))
    assert due
    turn = pool.claims.end_and_take_next(due, dated(9), later, more=False)
    assert turn.pending_callback
    assert turn.pending_callback.due_at == NOON + timedelta(days=9)


def test_a_job_that_waits_for_its_date_lets_later_jobs_of_its_thread_pass(pool: PoolBackend) -> None:
    queue(pool, "a", thread="t")
    queue(pool, "b", thread="t")
    begun = claim(pool)
    turn = pool.claims.end_and_take_next(begun, dated(1), NOON, more=True)
    assert turn.started
    assert turn.started.job.job_id == "b"


@pytest.mark.parametrize("why", [RequeueReason.STOPPED, RequeueReason.WAITING, RequeueReason.RETRY])
def test_a_start_that_was_given_back_is_known_at_the_next_one(pool: PoolBackend, why: RequeueReason) -> None:
    queue(pool, "a")
    begun = claim(pool)
    pool.claims.end_and_take_next(begun, Requeue(why, NOON), NOON, more=False)
    again = pool.claims.start_next(begun.claim, NOON)
    assert again
    assert (begun.is_first, again.is_first) == (True, False)


@pytest.mark.parametrize(
    "ending", [Requeue(RequeueReason.INTERRUPTED), Requeue(RequeueReason.RETRY, NOON)], ids=lambda one: str(one.why)
)
def test_a_job_that_was_worked_on_is_not_held_any_more(pool: PoolBackend, ending: Requeue) -> None:
    queue(pool, "a")
    begun = claim(pool)
    pool.claims.end_and_take_next(begun, HOLD, NOON, more=False)
    started = pool.claims.start_next(begun.claim, NOON + HOUR)
    assert started
    pool.claims.end_and_take_next(started, ending, NOON + HOUR, more=False)
    assert [job.held for job in pool.jobs.open_jobs(AMELIA_SCOTT)] == [None]


def test_paying_an_old_token_does_not_pay_the_new_one(pool: PoolBackend) -> None:
    queue(pool, "a")
    pool.jobs.bind_token("a", "old")
    pool.jobs.bind_token("a", "new")
    pool.claims.end_and_take_next(claim(pool), DONE, NOON, more=False)
    pool.pending_callbacks.mark_delivered("a", "old")
    assert [job.task_token for job in pool.pending_callbacks.pending(10)] == ["new"]


# --- hints, fairness, interrupts


def test_hints_come_longest_waiting_first_and_once_a_key(pool: PoolBackend) -> None:
    assert pool.hints.send(ClaimRequest(BAKERY_ANN, NOON + SECOND), NOON)
    assert pool.hints.send(ClaimRequest(AMELIA_SCOTT, NOON), NOON)
    assert not pool.hints.send(ClaimRequest(AMELIA_SCOTT, NOON), NOON)
    assert [hint.key for hint in pool.hints.receive(NOON, (), 10)] == [AMELIA_SCOTT, BAKERY_ANN]
    assert [hint.key for hint in pool.hints.receive(NOON, {AMELIA_SCOTT}, 10)] == [BAKERY_ANN]
    pool.hints.acknowledge(AMELIA_SCOTT)
    assert [hint.key for hint in pool.hints.receive(NOON, (), 10)] == [BAKERY_ANN]


def test_a_busy_owner_yields_to_a_key_that_has_waited_longer(pool: PoolBackend) -> None:
    queue(pool, "first")
    started = claim(pool)
    queue(pool, "small", key=BAKERY_ANN, at=NOON + SECOND)
    pool.hints.send(ClaimRequest(BAKERY_ANN, NOON + SECOND), NOON + SECOND)
    queue(pool, "second", at=NOON + 2 * SECOND)
    turn = pool.claims.end_and_take_next(started, DONE, NOON + 5 * SECOND, more=True)
    assert turn.kept is None
    assert turn.started
    assert turn.started.claim.key == BAKERY_ANN
    assert [hint.key for hint in pool.hints.receive(NOON, (), 10)] == [AMELIA_SCOTT]
    assert pool.claims.look(AMELIA_SCOTT) is None


def test_a_worker_whose_key_is_done_goes_on_with_the_key_that_waits(pool: PoolBackend) -> None:
    queue(pool, "only")
    started = claim(pool)
    queue(pool, "small", key=BAKERY_ANN, at=NOON + SECOND)
    pool.hints.send(ClaimRequest(BAKERY_ANN, NOON + SECOND), NOON + SECOND)
    turn = pool.claims.end_and_take_next(started, DONE, NOON + 5 * SECOND, more=True)
    assert turn.kept is None
    assert turn.started
    assert turn.started.claim.key == BAKERY_ANN
    assert pool.claims.look(AMELIA_SCOTT) is None
    assert pool.hints.receive(NOON, (), 10) == []


def test_a_key_that_came_just_now_is_left_to_a_worker_without_work(pool: PoolBackend) -> None:
    queue(pool, "only")
    started = claim(pool)
    queue(pool, "small", key=BAKERY_ANN)
    pool.hints.send(ClaimRequest(BAKERY_ANN, NOON), NOON)
    turn = pool.claims.end_and_take_next(started, DONE, NOON, more=True)
    assert (turn.kept, turn.started) == (started.claim, None)


def test_a_key_whose_job_backs_off_is_kept(pool: PoolBackend) -> None:
    queue(pool, "only")
    started = claim(pool)
    queue(pool, "small", key=BAKERY_ANN)
    pool.hints.send(ClaimRequest(BAKERY_ANN, NOON), NOON)
    later = NOON + 5 * SECOND
    turn = pool.claims.end_and_take_next(started, Requeue(RequeueReason.RETRY, later + SECOND), later, more=True)
    assert (turn.kept, turn.started) == (started.claim, None)


def test_a_key_is_served_for_a_moment_before_it_is_given_up(pool: PoolBackend) -> None:
    queue(pool, "waits", key=BAKERY_ANN)
    pool.hints.send(ClaimRequest(BAKERY_ANN, NOON), NOON)
    for name in "abc":
        queue(pool, name, at=NOON + SECOND)
    began = NOON + 5 * SECOND
    started = claim(pool, at=began)
    turn = pool.claims.end_and_take_next(started, DONE, began + timedelta(milliseconds=5), more=True)
    assert turn.started
    assert turn.started.job.job_id == "b"
    turn = pool.claims.end_and_take_next(turn.started, DONE, began + SECOND, more=True)
    assert turn.started
    assert turn.started.job.job_id == "waits"


def test_keys_take_turns_however_old_the_jobs_of_one_are(pool: PoolBackend) -> None:
    for name in ("first", "second", "third"):
        queue(pool, name)
    started = claim(pool)
    served = [started.job.job_id]
    for key, at in ((BAKERY_ANN, NOON + SECOND), (CHESS_BO, NOON + 2 * SECOND)):
        queue(pool, str(key), key=key, at=at)
        pool.hints.send(ClaimRequest(key, at), at)
    for turn_at in (NOON + 5 * SECOND, NOON + 10 * SECOND, NOON + 15 * SECOND):
        turn = pool.claims.end_and_take_next(started, DONE, turn_at, more=True)
        assert turn.started
        started = turn.started
        served.append(started.job.job_id)
    assert served == ["first", "bakery#ann", "chess#bo", "second"]


def test_a_yield_does_not_take_a_key_from_its_owner(pool: PoolBackend) -> None:
    queue(pool, "theirs", key=BAKERY_ANN)
    claim(pool, key=BAKERY_ANN, worker=W2)
    queue(pool, "more", key=BAKERY_ANN)
    pool.hints.send(ClaimRequest(BAKERY_ANN, NOON), NOON)
    queue(pool, "first", at=NOON + SECOND)
    started = claim(pool, at=NOON + SECOND)
    queue(pool, "second", at=NOON + 2 * SECOND)
    turn = pool.claims.end_and_take_next(started, DONE, NOON + 5 * SECOND, more=True)
    assert turn.started
    assert turn.started.job.job_id == "second"


def test_the_key_that_has_waited_longest_is_found_and_taken_in_one_step(pool: PoolBackend) -> None:
    queue(pool, "later", at=NOON + SECOND)
    queue(pool, "first", key=BAKERY_ANN)
    pool.hints.send(ClaimRequest(AMELIA_SCOTT, NOON + SECOND), NOON + SECOND)
    pool.hints.send(ClaimRequest(BAKERY_ANN, NOON), NOON + SECOND)
    taken = pool.claims.take_longest_waiting(W1, NOON + 5 * SECOND)
    assert bool(taken) == pool.in_one_step
    if taken:
        assert (taken.claim.key, taken.claim.worker, taken.job.job_id) == (BAKERY_ANN, W1, "first")
        assert pool.claims.look(BAKERY_ANN) == taken.claim
        assert [hint.key for hint in pool.hints.receive(NOON, (), 10)] == [AMELIA_SCOTT]


def test_what_somebody_holds_does_not_wait_to_be_taken(pool: PoolBackend) -> None:
    queue(pool, "theirs")
    claim(pool, worker=W2)
    queue(pool, "more")
    pool.hints.send(ClaimRequest(AMELIA_SCOTT, NOON), NOON)
    assert pool.claims.take_longest_waiting(W1, NOON + 5 * SECOND) is None


def test_an_interrupt_is_taken_once(pool: PoolBackend) -> None:
    asked = Interrupt(AMELIA_SCOTT, "a", "thread", "another thread")
    pool.interrupts.send(asked, NOON)
    pool.interrupts.send(asked, NOON)
    assert pool.interrupts.take(BAKERY_ANN) == []
    assert pool.interrupts.take(AMELIA_SCOTT) == [asked]
    assert pool.interrupts.take(AMELIA_SCOTT) == []
