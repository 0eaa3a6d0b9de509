"""One suite for every backend of what agents cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

import pytest

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.ledger import SqliteLedger
from webordinary.jobs.ports import Ledger as Spending
from webordinary.model.jobs import Job, NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Spent

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


class ListedLedger(Spending, Protocol):
    """As operators read it too."""

    def listing(self, project_id: str | None, since: date, limit: int = 1000) -> Sequence[Spent]: ...


@pytest.fixture(params=["sqlite", "aws"])
def ledger(request: pytest.FixtureRequest, database: Database) -> ListedLedger:
    if request.param == "sqlite":
        return SqliteLedger(database)
    emulator = request.getfixturevalue("ministack")
    from tests.aws.pool_tables import PoolTables

    from webordinary.adapters.aws import names

    return PoolTables(emulator.endpoint, (names.COSTS,)).ledger((NOON + DAY).date)


def job(name: str, project: str = "amelia", thread: str = "t1") -> Job:
    new = NewJob(name, ProjectUser(project, "scott"), thread, f"mail-{name}", Command.EDIT)
    return new.recorded(1, NOON, ready=True)


def test_nothing_is_spent_at_first(ledger: ListedLedger) -> None:
    assert (ledger.on_day("amelia", NOON.date()), ledger.of_job("a")) == (0.0, 0.0)
    assert list(ledger.listing(None, NOON.date())) == []


def test_every_run_of_a_job_counts_for_its_job_and_its_day(ledger: ListedLedger) -> None:
    ledger.spend(job("a"), 0.25, NOON)
    ledger.spend(job("a"), 0.5, NOON + DAY)
    ledger.spend(job("b"), 1.0, NOON)
    assert (ledger.of_job("a"), ledger.of_job("b")) == (0.75, 1.0)
    assert (ledger.on_day("amelia", NOON.date()), ledger.on_day("amelia", (NOON + DAY).date())) == (1.25, 0.5)


def test_projects_pay_for_themselves(ledger: ListedLedger) -> None:
    ledger.spend(job("a"), 0.25, NOON)
    ledger.spend(job("b", project="amelia-2"), 1.0, NOON)
    assert ledger.on_day("amelia", NOON.date()) == 0.25


def test_the_listing_adds_up_by_day_project_and_thread_the_newest_first(ledger: ListedLedger) -> None:
    ledger.spend(job("a"), 0.25, NOON)
    ledger.spend(job("a"), 0.25, NOON)
    ledger.spend(job("b"), 1.0, NOON)
    ledger.spend(job("c", thread="t2"), 2.0, NOON)
    ledger.spend(job("d", project="bakery"), 3.0, NOON)
    ledger.spend(job("e"), 4.0, NOON + DAY)
    first, second = NOON.date().isoformat(), (NOON + DAY).date().isoformat()
    assert list(ledger.listing(None, NOON.date())) == [
        Spent("amelia", second, "t1", 1, 4.0),
        Spent("amelia", first, "t2", 1, 2.0),
        Spent("amelia", first, "t1", 2, 1.5),
        Spent("bakery", first, "t1", 1, 3.0),
    ]
    assert list(ledger.listing("bakery", NOON.date())) == [Spent("bakery", first, "t1", 1, 3.0)]
    assert len(ledger.listing("amelia", (NOON + DAY).date())) == 1
    assert len(ledger.listing(None, NOON.date(), limit=2)) == 2
