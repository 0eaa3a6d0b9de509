"""What the pool asks of AWS is paid by the call: how many each step takes when nothing goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from tests.aws.emulator import RunningEmulator
from tests.aws.faulty_proxy import FaultyProxy, faulty_proxy
from tests.aws.pool_tables import PoolTables
from webordinary.model.claims import FinishResult, StartedJob
from webordinary.model.jobs import JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

AMELIA, BAKERY = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))
Count = Callable[[Callable[[], object]], dict[str, int]]


@pytest.fixture
def proxy(ministack: RunningEmulator) -> Iterator[FaultyProxy]:
    with faulty_proxy(ministack.endpoint) as proxy:
        yield proxy


@pytest.fixture
def world(ministack: RunningEmulator, proxy: FaultyProxy) -> PoolTables:
    """Each of its adapters is a process of its own, that remembers nothing of the others."""
    return PoolTables(ministack.endpoint).through(proxy.endpoint)


@pytest.fixture
def calls(proxy: FaultyProxy) -> Count:
    def count(step: Callable[[], object]) -> dict[str, int]:
        proxy.forget_calls()
        step()
        return {operation.removeprefix("dynamodb:"): times for operation, times in proxy.calls.items()}

    return count


def new(name: str, key: ProjectUser = AMELIA) -> NewJob:
    return NewJob(name, key, f"thread-{name}", f"mail-{name}", Command.EDIT)


def claim(world: PoolTables, key: ProjectUser = AMELIA) -> StartedJob:
    started = world.claims().claim_and_start(key, "container-1", NOON)
    assert isinstance(started, StartedJob)
    return started


def test_the_workflow_records_queues_and_binds_with_two_calls_each(world: PoolTables, calls: Count) -> None:
    assert calls(lambda: world.jobs().record(new("a"), NOON)) == {"GetItem": 1, "TransactWriteItems": 1}
    assert calls(lambda: world.jobs().enqueue("a", NOON)) == {"GetItem": 1, "UpdateItem": 1}
    assert calls(lambda: world.jobs().bind_token("a", "token")) == {"GetItem": 1, "UpdateItem": 1}
    assert calls(lambda: world.jobs().get("a")) == {"GetItem": 2}
    assert calls(lambda: world.jobs().open_jobs(AMELIA)) == {"Query": 1}


def test_a_process_that_knows_where_a_job_lies_does_not_ask_again(world: PoolTables, calls: Count) -> None:
    jobs = world.jobs()
    jobs.record(new("a"), NOON)
    assert calls(lambda: jobs.enqueue("a", NOON)) == {"UpdateItem": 1}
    assert calls(lambda: jobs.get("a")) == {"GetItem": 1}


def test_a_key_is_claimed_with_its_first_job_begun_in_two_calls(world: PoolTables, calls: Count) -> None:
    world.jobs().record(new("a"), NOON, ready=True)
    assert calls(lambda: claim(world)) == {"Query": 1, "TransactWriteItems": 1}


def test_a_key_without_work_costs_one_call_and_a_held_one_two(world: PoolTables, calls: Count) -> None:
    other = world.claims()
    assert calls(lambda: other.claim_and_start(AMELIA, "container-2", NOON)) == {"Query": 1}
    world.jobs().record(new("a"), NOON, ready=True)
    claim(world)
    shown = calls(lambda: other.claim_and_start(AMELIA, "container-2", NOON))
    assert shown == {"Query": 1, "TransactWriteItems": 1}


def test_a_dead_owners_key_is_taken_over_in_two_calls(world: PoolTables, calls: Count) -> None:
    world.jobs().record(new("a"), NOON, ready=True)
    held = claim(world).claim
    taken = calls(lambda: world.claims().claim_and_start(AMELIA, "container-2", NOON, over=held))
    assert taken == {"Query": 1, "TransactWriteItems": 1}


def test_a_job_is_settled_and_the_next_one_started_in_two_calls(world: PoolTables, calls: Count) -> None:
    for name in "ab":
        world.jobs().record(new(name), NOON, ready=True)
    started = claim(world)
    ended = calls(lambda: world.claims().end_and_take_next(started, DONE, NOON, more=True))
    assert ended == {"Query": 1, "TransactWriteItems": 1}


def test_the_last_job_of_a_key_is_settled_in_two_calls_which_also_tell_that_it_was_the_last(
    world: PoolTables, calls: Count
) -> None:
    world.jobs().record(new("a"), NOON, ready=True)
    started, turns = claim(world), list[FinishResult]()
    claims = world.claims()
    ended = calls(lambda: turns.append(claims.end_and_take_next(started, DONE, NOON, more=True)))
    assert ended == {"Query": 1, "TransactWriteItems": 1}
    assert [(turn.kept, turn.empty) for turn in turns] == [(started.claim, True)]


def test_a_workflow_that_binds_its_token_to_a_settled_job_finds_it_at_the_second_try(
    world: PoolTables, calls: Count
) -> None:
    job = world.jobs().record(new("a"), NOON, ready=True)
    world.claims().end_and_take_next(claim(world), DONE, NOON, more=False)
    step = world.one_process()
    step.job_table.expect("a", str(job.key), job.order)
    assert calls(lambda: step.jobs.bind_token("a", "token")) == {"UpdateItem": 2}
    assert [owing.job_id for owing in world.pending_callbacks().pending(10)] == ["a"]


def test_all_claims_of_a_worker_are_renewed_in_one_call(world: PoolTables, calls: Count) -> None:
    for name, key in (("a", AMELIA), ("b", BAKERY)):
        world.jobs().record(new(name, key), NOON, ready=True)
    held = [claim(world, key).claim for key in (AMELIA, BAKERY)]
    assert calls(lambda: world.claims().renew(held, NOON)) == {"TransactWriteItems": 1}


def test_looking_costs_one_call_and_so_does_releasing(world: PoolTables, calls: Count) -> None:
    world.jobs().record(new("a"), NOON, ready=True)
    held = claim(world).claim
    assert calls(lambda: world.claims().look(AMELIA)) == {"GetItem": 1}
    assert calls(lambda: world.claims().begin_release(held)) == {"UpdateItem": 1}
    assert calls(lambda: world.claims().end_release(held)) == {}


def test_a_reconcilers_look_costs_one_call_for_all_keys_and_one_for_all_callbacks(
    world: PoolTables, calls: Count
) -> None:
    for name, key in (("a", AMELIA), ("b", BAKERY)):
        world.jobs().record(new(name, key), NOON, ready=True)
    assert calls(lambda: world.jobs().keys_to_look_at(None, 500)) == {"Query": 1}
    assert calls(lambda: world.pending_callbacks().pending(100)) == {"Query": 1}


def test_the_owners_of_a_hundred_keys_are_looked_at_in_one_call(world: PoolTables, calls: Count) -> None:
    keys = [ProjectUser(f"p{number}", "scott") for number in range(101)]
    assert calls(lambda: world.claims().look_all(keys[:100])) == {"BatchGetItem": 1}
    assert calls(lambda: world.claims().look_all(keys)) == {"BatchGetItem": 2}


def test_a_callback_that_was_made_is_noted_with_one_call_by_who_settled_its_job(
    world: PoolTables, calls: Count
) -> None:
    world.jobs().record(new("a"), NOON, ready=True)
    world.jobs().bind_token("a", "token")
    worker = world.one_process()
    started = worker.claims.claim_and_start(AMELIA, "container-1", NOON)
    assert isinstance(started, StartedJob)
    worker.claims.end_and_take_next(started, DONE, NOON, more=False)
    assert calls(lambda: worker.pending_callbacks.mark_delivered("a", "token")) == {"UpdateItem": 1}
