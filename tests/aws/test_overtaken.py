"""Somebody else writes between a worker's look and its write: the write sees that and decides anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aws.emulator import RunningEmulator
from tests.aws.faulty_proxy import FaultyProxy, overtaken
from tests.aws.pool_tables import KEY, NOON, W1, W2, PoolTables, claim, queue
from webordinary.model.errors import ClaimLost
from webordinary.model.jobs import JobOutcome, JobResult, Requeue, RequeueReason, Settlement

DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))
CANCELLED = Settlement(JobOutcome.CANCELLED, JobResult("stopped"))
WRITE, UPDATE = "dynamodb:TransactWriteItems", "dynamodb:UpdateItem"


@pytest.fixture
def others(ministack: RunningEmulator) -> PoolTables:
    return PoolTables(ministack.endpoint)


@pytest.fixture
def world(others: PoolTables, proxy: FaultyProxy) -> Iterator[PoolTables]:
    yield others.through(proxy.endpoint)
    proxy.calm()


def test_who_is_overtaken_while_claiming_is_shown_the_claim(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a")
    proxy.inject(overtaken(lambda: claim(others, W2)), WRITE)
    assert world.claims().claim_and_start(KEY, W1, NOON) == others.claims().look(KEY)


def test_a_job_that_is_cancelled_while_its_key_is_claimed_does_not_start(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a", "b")
    proxy.inject(overtaken(lambda: others.jobs().settle_waiting("a", CANCELLED, NOON)), WRITE)
    assert claim(world).job.job_id == "b"


def test_an_owner_that_is_taken_over_while_it_settles_stands_down(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a")
    started = claim(others)
    over = overtaken(lambda: others.claims().claim_and_start(KEY, W2, NOON, over=started.claim))
    proxy.inject(over, WRITE)
    with pytest.raises(ClaimLost):
        world.claims().end_and_take_next(started, DONE, NOON, more=True)
    [job] = others.jobs().open_jobs(KEY)
    assert (job.worker, job.outcome) == (W2, None)


def test_an_owner_that_is_taken_over_while_it_starts_its_next_job_stands_down(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a")
    started = claim(others)
    others.claims().end_and_take_next(started, DONE, NOON, more=True)
    queue(others, "b")
    over = overtaken(lambda: others.claims().claim_and_start(KEY, W2, NOON, over=started.claim))
    proxy.inject(over, WRITE)
    with pytest.raises(ClaimLost):
        world.claims().start_next(started.claim, NOON)


def test_a_token_that_is_bound_while_its_job_settles_is_owed_a_callback(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a")
    started = claim(others)
    proxy.inject(overtaken(lambda: others.jobs().bind_token("a", "token")), WRITE)
    turn = world.claims().end_and_take_next(started, DONE, NOON, more=False)
    assert turn.pending_callback
    assert turn.pending_callback.task_token == "token"
    assert others.pending_callbacks().pending(10) == [turn.pending_callback]


def test_a_token_that_is_bound_while_its_job_moves_follows_it(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a")
    started = claim(others)
    settle = overtaken(lambda: others.claims().end_and_take_next(started, DONE, NOON, more=False))
    proxy.inject(settle, UPDATE)
    job = world.jobs().bind_token("a", "token")
    assert (job.open, job.task_token) == (False, "token")
    assert others.pending_callbacks().pending(10) == [job]


def test_the_next_job_that_is_cancelled_while_another_settles_is_passed_over(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a", "b", "c")
    started = claim(others)
    proxy.inject(overtaken(lambda: others.jobs().settle_waiting("b", CANCELLED, NOON)), WRITE)
    turn = world.claims().end_and_take_next(started, DONE, NOON, more=True)
    assert turn.started
    assert turn.started.job.job_id == "c"


def test_a_mail_that_comes_while_a_job_goes_to_the_tail_gets_an_order_of_its_own(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a")
    started = claim(others)
    proxy.inject(overtaken(lambda: queue(others, "b")), WRITE)
    turn = world.claims().end_and_take_next(started, Requeue(RequeueReason.INTERRUPTED), NOON, more=True)
    assert turn.started
    assert turn.started.job.job_id == "b"
    assert [(job.job_id, job.order) for job in others.jobs().open_jobs(KEY)] == [("b", 2), ("a", 3)]


def test_two_mails_recorded_at_the_same_moment_get_different_orders(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    proxy.inject(overtaken(lambda: queue(others, "b")), WRITE)
    queue(world, "a")
    assert [(job.job_id, job.order) for job in others.jobs().open_jobs(KEY)] == [("b", 1), ("a", 2)]


def test_a_job_that_starts_while_it_is_cancelled_is_asked_to_end(
    world: PoolTables, others: PoolTables, proxy: FaultyProxy
) -> None:
    queue(others, "a")
    proxy.inject(overtaken(lambda: claim(others)), WRITE)
    job = world.jobs().settle_waiting("a", CANCELLED, NOON)
    assert (job.open, job.cancel_requested) == (True, True)
