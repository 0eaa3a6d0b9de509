"""Workers that say that they are there, beside the claims of all keys whatever their projects are called."""
# ruff: noqa: E402

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.emulator import RunningEmulator
from tests.aws.pool_tables import PoolTables
from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import from_item
from webordinary.adapters.aws.pool.claim_requests import ReconcilerProgress
from webordinary.adapters.aws.pool.claim_table import BELIEVED, Presence, worker_in
from webordinary.adapters.aws.provision.shapes import create_tables
from webordinary.model.claims import StartedJob
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import WorkerSummary

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ME = WorkerSummary("container-1", "w1", 7, 2, NOON)
KEYS = [ProjectUser("worker", "ann"), ProjectUser("co-worker", "ann")]


@pytest.fixture
def world(ministack: RunningEmulator) -> PoolTables:
    return PoolTables(ministack.endpoint)


def present(world: PoolTables, now: datetime) -> list[WorkerSummary]:
    found = world.clients.dynamodb.scan(TableName=names.OWNERSHIP + world.suffix, ConsistentRead=True)["Items"]
    return [worker for worker in (worker_in(from_item(item), now) for item in found) if worker]


def test_a_worker_is_there_until_it_leaves_or_was_not_heard_of_for_long(world: PoolTables) -> None:
    presence = Presence(world.dynamo, names.OWNERSHIP + world.suffix)
    presence.renew(ME, NOON)
    assert present(world, NOON + BELIEVED) == [ME]
    assert present(world, NOON + BELIEVED + timedelta(seconds=1)) == []
    presence.leave(ME, NOON)
    assert present(world, NOON) == []
    assert presence.names([ME.worker, "container-2"]) == {ME.worker: ME.name}, "mails it worked on still tell its name"


def test_it_tells_while_it_is_alive_whatever_goes_wrong_and_leaves_at_the_end(world: PoolTables) -> None:
    presence, waits, seen = Presence(world.dynamo, names.OWNERSHIP + world.suffix), iter([False, False, True]), []
    deaf = Presence(world.dynamo, "nowhere")

    def ended(seconds: float) -> bool:
        seen.append(bool(present(world, NOON)))
        return next(waits)

    deaf.keep(ME, lambda: True, lambda: NOON, lambda seconds: True, lambda: None)
    presence.keep(ME, lambda: len(seen) > 0, lambda: NOON, ended, lambda: None)
    assert seen == [False, True, True]
    assert present(world, NOON) == []


def test_a_worker_that_is_asked_to_end_hears_so_each_time_it_tells_that_it_is_there(world: PoolTables) -> None:
    presence = Presence(world.dynamo, names.OWNERSHIP + world.suffix)
    assert not presence.ask_to_end(ME.worker), "nobody is there"
    assert not presence.renew(ME, NOON)
    assert presence.ask_to_end(ME.worker)
    assert presence.renew(ME, NOON), "its own sign of life does not undo it"
    assert [worker.drains for worker in present(world, NOON)] == [True]
    heard: list[str] = []
    presence.keep(ME, lambda: True, lambda: NOON, lambda seconds: bool(heard), lambda: heard.append("drain"))
    assert heard == ["drain"]
    assert not presence.ask_to_end(ME.worker), "it is gone"


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_the_claim_of_a_project_that_is_called_worker_is_no_worker(world: PoolTables, key: ProjectUser) -> None:
    world.jobs().record(NewJob("a", key, "thread", "mail", Command.EDIT), NOON, ready=True)
    assert isinstance(world.claims().claim_and_start(key, ME.worker, NOON), StartedJob)
    Presence(world.dynamo, names.OWNERSHIP + world.suffix).renew(ME, NOON)
    assert present(world, NOON) == [ME]


def test_the_reconciler_goes_on_elsewhere_and_workers_see_that_it_runs(world: PoolTables) -> None:
    table = names.CLAIM_REQUESTS + world.suffix
    create_tables(world.clients, (names.CLAIM_REQUESTS,), world.suffix, expiring=False)
    first, other = ReconcilerProgress(world.dynamo, table), ReconcilerProgress(world.dynamo, table)
    assert (first.after(), first.is_fresh(NOON)) == (None, False)
    first.passed(KEYS[0], NOON)
    assert other.after() == KEYS[0]
    assert other.is_fresh(NOON + timedelta(minutes=2))
    assert not other.is_fresh(NOON + timedelta(minutes=4)), "then workers reconcile themselves"
    assert first.named("acknowledgements").after() is None, "another pass has its own place"
    first.named("acknowledgements").passed(KEYS[1], NOON)
    assert other.after() == KEYS[0]
    first.passed(None, NOON)
    assert other.after() is None
