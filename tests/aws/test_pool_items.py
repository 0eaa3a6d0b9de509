"""How the pool lies in its tables: what is indexed, what expires, and what happens to many at once."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.aws.accounts import clients_of
from tests.aws.emulator import REGION, RunningEmulator
from tests.aws.faulty_proxy import DROP_RESPONSE, faulty_proxy
from tests.aws.pool_tables import SESSION, PoolTables
from tests.contract.test_project_leases import JobHold
from tests.unit.lambdas.harness import LambdaHarness
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import MAX_TRIES, connect
from webordinary.adapters.aws.dynamo import epoch, from_item, to_item
from webordinary.adapters.aws.pool.claims import OPERATOR_SECONDS
from webordinary.adapters.aws.provision.shapes import TABLES, create_tables
from webordinary.compose.aws import LoggedEvents
from webordinary.model.claims import StartedJob
from webordinary.model.errors import Transient
from webordinary.model.jobs import JobOutcome, JobResult, NewJob, Requeue, RequeueReason, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.workflow.queueing import Queueing

KEY = ProjectUser("amelia", "scott")
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MONTH = 30 * 24 * 3600
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))


@pytest.fixture
def world(ministack: RunningEmulator) -> PoolTables:
    return PoolTables(ministack.endpoint, (names.JOBS, names.OWNERSHIP, names.INTERRUPTIONS))


def record(world: PoolTables, name: str) -> None:
    world.jobs().record(NewJob(name, KEY, f"thread-{name}", f"mail-{name}", Command.EDIT), NOON, ready=True)


def claim(world: PoolTables) -> StartedJob:
    started = world.claims().claim_and_start(KEY, "container-1", NOON)
    assert isinstance(started, StartedJob)
    return started


def items(world: PoolTables, table: str) -> list[dict[str, object]]:
    found = world.clients.dynamodb.scan(TableName=table + world.suffix, ConsistentRead=True)["Items"]
    return [from_item(item) for item in found]


def test_every_table_that_is_named_can_be_made() -> None:
    assert set(TABLES) == set(names.TABLES)


def test_a_table_of_whose_making_nothing_was_heard_lets_its_items_expire_too(ministack: RunningEmulator) -> None:
    suffix = f"-{secrets.token_hex(4)}"
    with faulty_proxy(ministack.endpoint) as proxy:
        proxy.inject(DROP_RESPONSE, "CreateTable")
        create_tables(connect(REGION, proxy.endpoint, SESSION), (names.COSTS,), suffix)
        assert list(proxy.done) == [("dynamodb:CreateTable", DROP_RESPONSE.name)]
    lifetime = clients_of(ministack.endpoint).dynamodb.describe_time_to_live(TableName=names.COSTS + suffix)
    assert lifetime["TimeToLiveDescription"]["AttributeName"] == TABLES[names.COSTS].ttl


def test_a_settled_job_and_what_leads_to_it_expire_and_an_open_one_does_not(world: PoolTables) -> None:
    record(world, "a")
    assert not any("expiresAt" in item for item in items(world, names.JOBS))
    world.claims().end_and_take_next(claim(world), DONE, NOON, more=False)
    expiring = [item for item in items(world, names.JOBS) if item.get("expiresAt") == epoch(NOON, MONTH)]
    assert sorted(str(item["projectUserId"]) for item in expiring) == ["amelia#scott", "job:a"]


def test_a_claim_that_is_renewed_does_not_expire_and_a_free_one_is_garbage_after_a_week(world: PoolTables) -> None:
    record(world, "a")
    held = claim(world).claim
    world.claims().renew([held], NOON + timedelta(days=30))
    [row] = items(world, names.OWNERSHIP)
    assert row["ttl"] == epoch(NOON + timedelta(days=37, seconds=60))


def test_the_indexes_hold_only_open_jobs_and_held_keys(world: PoolTables) -> None:
    record(world, "a")
    started = claim(world)
    assert world.claims().busy("container-1") == 1
    world.claims().end_and_take_next(started, DONE, NOON, more=False)
    world.claims().begin_release(started.claim)
    world.claims().end_release(started.claim)
    assert world.jobs().keys_to_look_at(None, 10) == []
    assert not any("containerId" in row for row in items(world, names.OWNERSHIP))


def test_many_mails_of_a_key_recorded_at_once_get_orders_without_gaps(world: PoolTables) -> None:
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda number: record(world, f"job-{number}"), range(24)))
    assert [job.order for job in world.jobs().open_jobs(KEY)] == list(range(1, 25))


def test_a_project_that_is_let_go_has_its_jobs_started(world: PoolTables) -> None:
    record(world, "a")
    started = claim(world)
    later = NOON + timedelta(days=1)
    world.claims().end_and_take_next(started, Requeue(RequeueReason.HELD, later), NOON, more=True)
    assert world.claims().start_next(started.claim, NOON) is None
    assert world.jobs().let_go("bakery") == []
    assert world.jobs().let_go("amelia") == [KEY]
    assert world.claims().start_next(started.claim, NOON)


def test_all_keys_of_a_project_are_found_however_many_jobs_they_have(
    world: PoolTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webordinary.adapters.aws.pool.jobs._PAGE", 2)
    keys = [ProjectUser("amelia", f"user{number}") for number in range(4)]
    for key, jobs in zip(keys, (1, 3, 2, 1), strict=True):
        for number in range(jobs):
            world.jobs().record(NewJob(f"{key.user_id}-{number}", key, "thread", "mail", Command.EDIT), NOON)
    world.jobs().record(NewJob("other", ProjectUser("bakery", "ann"), "thread", "mail", Command.EDIT), NOON)
    assert world.jobs().keys_of("amelia") == keys


def test_an_interruption_is_kept_for_a_month(world: PoolTables) -> None:
    record(world, "a")
    turn = world.claims().end_and_take_next(claim(world), Requeue(RequeueReason.INTERRUPTED), NOON, more=True)
    assert turn.started
    world.interruptions().record(turn.started.job, "another thread", NOON)
    [kept] = items(world, names.INTERRUPTIONS)
    assert (kept["messageId"], kept["recordId"], kept["interruptedContainer"]) == ("mail-a", "a#1", "container-1")
    assert kept["expiresAt"] == epoch(NOON, MONTH)


def test_an_operators_lease_that_nobody_ends_is_over_after_a_while_on_the_own_clock(world: PoolTables) -> None:
    record(world, "a")
    begun, time = claim(world), [0.0]
    token = JobHold("container-1", begun.claim.fence, "a")
    leases = world.project_leases(lambda _: False, lambda: time[0])
    operators = leases.take("amelia", JobHold("operator"), NOON)
    assert operators
    assert leases.take("amelia", token, NOON) is None
    time[0] = OPERATOR_SECONDS - 1
    assert leases.take("amelia", token, NOON + timedelta(days=1)) is None
    time[0] = OPERATOR_SECONDS
    taken = leases.take("amelia", token, NOON)
    assert taken
    assert taken.fence > operators.fence


def test_a_lease_that_was_taken_unheard_is_taken_again_by_its_job(
    ministack: RunningEmulator, world: PoolTables
) -> None:
    record(world, "a")
    token = JobHold("container-1", claim(world).claim.fence, "a")
    with faulty_proxy(ministack.endpoint) as proxy:
        leases = world.through(proxy.endpoint).project_leases(lambda _: False)
        proxy.inject(DROP_RESPONSE, "PutItem")
        first = leases.take("amelia", token, NOON)
        assert first
        leases.confirm(first)
        leases.release(first)
        proxy.inject(DROP_RESPONSE, "PutItem", MAX_TRIES)
        with pytest.raises(Transient):
            leases.take("amelia", token, NOON + SECOND)
        again = leases.take("amelia", token, NOON + SECOND)
        assert again
        assert again.fence == first.fence + 2


def test_a_project_called_project_does_not_meet_the_lease_of_another(world: PoolTables) -> None:
    key = ProjectUser("project", "amelia")
    world.jobs().record(NewJob("b", key, "thread", "mail", Command.EDIT), NOON, ready=True)
    assert world.project_leases(lambda _: False).take("amelia", JobHold("operator"), NOON)
    assert isinstance(world.claims().claim_and_start(key, "container-1", NOON), StartedJob)


def test_an_ownership_row_that_expired_never_restarts_the_fence(world: PoolTables) -> None:
    record(world, "a")
    old = claim(world).claim
    place = to_item({"projectKey": str(KEY)})
    world.clients.dynamodb.delete_item(TableName=names.OWNERSHIP + world.suffix, Key=place)
    taken = world.claims().claim_and_start(KEY, "container-2", NOON + SECOND)
    assert isinstance(taken, StartedJob)
    assert taken.claim.fence > old.fence


def test_the_workflow_looks_closer_only_where_the_owner_runs_another_job(world: PoolTables) -> None:
    cloud = LambdaHarness()
    pool = replace(cloud.pool, jobs=world.jobs(), claims=world.claims())
    queueing = Queueing(pool, cloud.interruptions, LoggedEvents(), lambda: NOON, lambda _: None)

    def asked(job_id: str) -> dict[str, object]:
        return queueing.check_ownership({"jobId": job_id, "place": {"key": str(KEY), "order": 1}})

    record(world, "a")
    assert asked("a") == {"owned": False, "idle": False}
    begun = claim(world)
    record(world, "b")
    assert (asked("a"), asked("b")) == ({"owned": True, "idle": True}, {"owned": True, "idle": False})
    world.claims().end_and_take_next(begun, DONE, NOON, more=False)
    assert asked("b") == {"owned": True, "idle": True}
