"""The network loses requests and answers: a worker never takes a claim for lost that it has, nor the reverse."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.aws.emulator import RunningEmulator
from tests.aws.faulty_proxy import (
    BROKEN,
    CONFLICT,
    DROP_REQUEST,
    DROP_RESPONSE,
    THROTTLED,
    Fault,
    FaultyProxy,
)
from tests.aws.pool_tables import KEY, NOON, W1, W2, PoolTables, claim, queue
from webordinary.adapters.aws.clients import MAX_TRIES
from webordinary.adapters.aws.dynamo import CONFLICT_TRIES
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests
from webordinary.model.claims import ClaimRequest, StartedJob
from webordinary.model.errors import ClaimLost, Transient
from webordinary.model.jobs import Job, JobOutcome, JobResult, JobState, NewJob, Requeue, RequeueReason, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

BAKERY = ProjectUser("bakery", "ann")
SECOND = timedelta(seconds=1)
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))
WRITE, READ, UPDATE = "dynamodb:TransactWriteItems", "dynamodb:GetItem", "dynamodb:UpdateItem"


@pytest.fixture
def world(ministack: RunningEmulator, proxy: FaultyProxy) -> Iterator[PoolTables]:
    """Reached by a way that loses things; `calm` goes around it."""
    yield PoolTables(ministack.endpoint).through(proxy.endpoint)
    proxy.calm()


@pytest.fixture
def calm(world: PoolTables, ministack: RunningEmulator) -> PoolTables:
    return world.through(ministack.endpoint)


def job(world: PoolTables, name: str) -> Job:
    found = world.jobs().get(name)
    assert found
    return found


# --- claiming


@pytest.mark.parametrize("times", [1, MAX_TRIES], ids=["once", "every time"])
def test_a_claim_whose_answer_is_lost_is_ours_and_its_job_has_started_once(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy, times: int
) -> None:
    queue(calm, "a")
    proxy.inject(DROP_RESPONSE, WRITE, times)
    started = claim(world)
    assert calm.claims().look(KEY) == started.claim
    assert (started.job, started.job.attempts) == (job(calm, "a"), 1)


def test_a_claim_that_never_arrived_was_not_made(world: PoolTables, calm: PoolTables, proxy: FaultyProxy) -> None:
    queue(calm, "a")
    proxy.inject(DROP_REQUEST, WRITE, MAX_TRIES)
    with pytest.raises(Transient):
        world.claims().claim_and_start(KEY, W1, NOON)
    assert calm.claims().look(KEY) is None
    assert job(calm, "a").state is JobState.QUEUED


def test_who_lost_the_race_while_his_own_answers_were_lost_does_not_take_it_for_won(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    winner = claim(calm, W2)
    proxy.inject(DROP_RESPONSE, WRITE, MAX_TRIES)
    with pytest.raises(Transient):
        world.claims().claim_and_start(KEY, W1, NOON)
    assert world.claims().claim_and_start(KEY, W1, NOON) == winner.claim


def test_a_claim_of_which_nothing_was_heard_stands_in_the_way_as_a_foreign_one_does(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    proxy.inject(DROP_RESPONSE, WRITE, MAX_TRIES)
    proxy.inject(DROP_REQUEST, READ, MAX_TRIES)
    with pytest.raises(Transient):
        world.claims().claim_and_start(KEY, W1, NOON)
    unheard = world.claims().claim_and_start(KEY, W1, NOON + SECOND)
    assert unheard == calm.claims().look(KEY)
    again = world.claims().claim_and_start(KEY, W1, NOON + SECOND, over=calm.claims().look(KEY))
    assert isinstance(again, StartedJob)
    assert again.job.attempts == 2


# --- ending


@pytest.mark.parametrize("times", [1, MAX_TRIES], ids=["once", "every time"])
def test_an_ending_whose_answer_is_lost_is_saved_once_and_the_next_job_is_in_our_hands(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy, times: int
) -> None:
    queue(calm, "a", "b")
    started = claim(calm)
    proxy.inject(DROP_RESPONSE, WRITE, times)
    turn = world.claims().end_and_take_next(started, DONE, NOON, more=True)
    assert turn.kept == started.claim
    assert turn.started
    assert (turn.started.job, turn.started.job.attempts) == (job(calm, "b"), 1)
    assert job(calm, "a").outcome is JobOutcome.SUCCEEDED


def unheard(world: PoolTables, proxy: FaultyProxy, started: StartedJob, ending: Settlement | Requeue) -> None:
    """The ending got through, but nothing of it was heard."""
    proxy.inject(DROP_RESPONSE, WRITE, MAX_TRIES)
    proxy.inject(DROP_REQUEST, READ, MAX_TRIES)
    with pytest.raises(Transient):
        world.claims().end_and_take_next(started, ending, NOON, more=True)


def test_who_tries_again_after_hearing_nothing_goes_on_with_the_job_that_was_started_for_him(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a", "b")
    calm.jobs().bind_token("a", "token")
    started = claim(calm)
    unheard(world, proxy, started, DONE)
    turn = world.claims().end_and_take_next(started, DONE, NOON + SECOND, more=True)
    assert turn.kept == started.claim
    assert turn.started
    assert turn.started.job == job(calm, "b")
    assert (turn.pending_callback, job(calm, "a").settled_at) == (job(calm, "a"), NOON)


def test_a_job_that_was_interrupted_and_started_again_unheard_is_not_interrupted_twice(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    calm.jobs().bind_token("a", "token")
    started = claim(calm)
    unheard(world, proxy, started, Requeue(RequeueReason.INTERRUPTED))
    turn = world.claims().end_and_take_next(started, Requeue(RequeueReason.INTERRUPTED), NOON + SECOND, more=True)
    assert turn.started
    assert (turn.started.job, turn.started.job.interruptions) == (job(calm, "a"), 1)
    assert turn.pending_callback
    assert turn.pending_callback.preempted_token == "token"


def test_a_worker_that_stops_meanwhile_gives_back_the_job_that_was_started_for_it_unheard(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a", "b")
    started = claim(calm)
    unheard(world, proxy, started, DONE)
    turn = world.claims().end_and_take_next(started, DONE, NOON + SECOND, more=False)
    assert (turn.kept, turn.started) == (started.claim, None)
    assert (job(calm, "b").state, job(calm, "b").attempts) == (JobState.QUEUED, 0)


def test_who_lost_the_key_after_an_unheard_ending_stands_down_and_the_ending_stays(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a", "b")
    started = claim(calm)
    unheard(world, proxy, started, DONE)
    taken = calm.claims().claim_and_start(KEY, W2, NOON, over=calm.claims().look(KEY))
    assert isinstance(taken, StartedJob)
    with pytest.raises(ClaimLost):
        world.claims().end_and_take_next(started, DONE, NOON + SECOND, more=True)
    assert job(calm, "a").outcome is JobOutcome.SUCCEEDED
    assert job(calm, "b") == taken.job


def test_an_ending_that_never_arrived_is_saved_by_the_next_try(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    started = claim(calm)
    proxy.inject(DROP_REQUEST, WRITE, MAX_TRIES)
    with pytest.raises(Transient):
        world.claims().end_and_take_next(started, DONE, NOON, more=True)
    assert job(calm, "a") == started.job
    world.claims().end_and_take_next(started, DONE, NOON + SECOND, more=True)
    assert job(calm, "a").settled_at == NOON + SECOND


def another_key_waits(world: PoolTables, calm: PoolTables) -> None:
    hints = SqliteClaimRequests(MemoryDatabase())
    hints.send(ClaimRequest(BAKERY, NOON), NOON)
    world.hints = calm.hints = hints
    calm.jobs().record(NewJob("small", BAKERY, "thread", "mail", Command.EDIT), NOON, ready=True)


def test_a_key_that_was_handed_over_although_the_answers_are_lost_is_in_our_hands(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    started = claim(calm)
    another_key_waits(world, calm)
    proxy.inject(DROP_RESPONSE, WRITE, MAX_TRIES)
    turn = world.claims().end_and_take_next(started, DONE, NOON + SECOND, more=True)
    assert turn.kept is None
    assert turn.started
    assert (turn.started.claim, turn.started.job) == (calm.claims().look(BAKERY), job(calm, "small"))


def test_who_heard_nothing_of_a_handover_knows_at_least_that_his_own_key_is_given_up(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    started = claim(calm)
    another_key_waits(world, calm)
    proxy.inject(DROP_RESPONSE, WRITE, MAX_TRIES)
    proxy.inject(DROP_REQUEST, READ, MAX_TRIES)
    with pytest.raises(Transient):
        world.claims().end_and_take_next(started, DONE, NOON + SECOND, more=True)
    turn = world.claims().end_and_take_next(started, DONE, NOON + 2 * SECOND, more=True)
    assert (turn.kept, turn.started) == (None, None)
    assert job(calm, "a").outcome is JobOutcome.SUCCEEDED


# --- starting, renewing, releasing, recording


def test_a_start_whose_answers_are_lost_is_known(world: PoolTables, calm: PoolTables, proxy: FaultyProxy) -> None:
    queue(calm, "a")
    started = claim(calm)
    calm.claims().end_and_take_next(started, DONE, NOON, more=True)
    queue(calm, "b")
    proxy.inject(DROP_RESPONSE, WRITE, MAX_TRIES)
    assert world.claims().start_next(started.claim, NOON) == StartedJob(started.claim, job(calm, "b"), is_first=True)


def test_a_renewal_whose_answer_is_lost_moves_the_beat_once(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    held = claim(calm).claim
    proxy.inject(DROP_RESPONSE, WRITE)
    assert world.claims().renew([held], NOON + SECOND) == {KEY}
    now = calm.claims().look(KEY)
    assert now
    assert now.beat == held.beat + 1


def test_a_release_whose_answer_is_lost_is_known(world: PoolTables, calm: PoolTables, proxy: FaultyProxy) -> None:
    queue(calm, "a")
    started = claim(calm)
    calm.claims().end_and_take_next(started, DONE, NOON, more=False)
    proxy.inject(DROP_RESPONSE, UPDATE)
    assert world.claims().begin_release(started.claim)
    assert calm.claims().look(KEY) is None


def test_a_job_recorded_unheard_has_one_order(world: PoolTables, calm: PoolTables, proxy: FaultyProxy) -> None:
    proxy.inject(DROP_RESPONSE, WRITE, MAX_TRIES)
    queue(world, "a")
    proxy.inject(DROP_RESPONSE, WRITE)
    queue(world, "b", "a", "c")
    assert [(one.job_id, one.order) for one in calm.jobs().open_jobs(KEY)] == [("a", 1), ("b", 2), ("c", 3)]


# --- others write at the same moment, or DynamoDB is too busy


@pytest.mark.parametrize("fault", [CONFLICT, BROKEN, THROTTLED], ids=lambda fault: str(fault.name))
def test_a_write_that_is_refused_for_a_moment_is_done(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy, fault: Fault
) -> None:
    queue(calm, "a")
    proxy.inject(fault, WRITE)
    assert claim(world).claim == calm.claims().look(KEY)


def test_a_write_that_others_keep_from_being_done_is_given_up_after_bounded_tries(
    world: PoolTables, calm: PoolTables, proxy: FaultyProxy
) -> None:
    queue(calm, "a")
    proxy.inject(CONFLICT, WRITE, CONFLICT_TRIES)
    with pytest.raises(Transient, match="others kept writing"):
        world.claims().claim_and_start(KEY, W1, NOON)
    assert calm.claims().look(KEY) is None
