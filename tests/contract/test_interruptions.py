"""One suite for every backend of the audit of interruptions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.jobs import SqliteInterruptions
from webordinary.model.jobs import Job, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Interruption
from webordinary.pool.ports import InterruptionAudit, Interruptions

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
JOB = Job(
    "job-a", ProjectUser("amelia", "scott"), 1, 1, "thread", "mail-a", Command.EDIT, JobState.QUEUED, NOON,
    interruptions=1, worker="first",
)  # fmt: skip
Kept = Callable[[], list[str]]
"""The interrupted workers, in the order of their job's interruptions."""


@pytest.fixture(params=["sqlite", "aws"])
def audit(request: pytest.FixtureRequest, database: Database) -> tuple[Interruptions, Kept]:
    if request.param == "sqlite":
        return SqliteInterruptions(database), lambda: _workers_in(database)
    emulator = request.getfixturevalue("ministack")
    from tests.aws.pool_tables import PoolTables
    from tests.aws.test_pool_items import items

    from webordinary.adapters.aws import names

    world = PoolTables(emulator.endpoint, (names.INTERRUPTIONS,))

    def kept() -> list[str]:
        found = {str(item["recordId"]): str(item["interruptedContainer"]) for item in items(world, names.INTERRUPTIONS)}
        return [found[name] for name in sorted(found)]

    return world.interruptions(), kept


def _workers_in(database: Database) -> list[str]:
    with database.read() as conn:
        return [row["worker"] for row in conn.execute("SELECT worker FROM interruptions ORDER BY times")]


def test_an_interruption_is_kept_as_it_was_first_written_down(audit: tuple[Interruptions, Kept]) -> None:
    interruptions, kept = audit
    interruptions.record(JOB, "another thread", NOON)
    interruptions.record(JOB._replace(worker="second"), "another thread", NOON + timedelta(seconds=1))
    assert kept() == ["first"]
    interruptions.record(JOB._replace(worker="second", interruptions=2), "another thread", NOON)
    assert kept() == ["first", "second"]


@pytest.mark.parametrize("audit", ["sqlite", "aws"], indirect=True)
def test_an_operator_reads_which_thread_a_job_made_way_for(audit: tuple[Interruptions, Kept]) -> None:
    interruptions = cast(InterruptionAudit, audit[0])
    interruptions.record(JOB, "another thread", NOON, "thread-b")
    later = NOON + timedelta(hours=1)
    interruptions.record(JOB._replace(interruptions=2), "JobTimedOut: ran longer than 3600 seconds", later)
    interruptions.record(JOB._replace(job_id="job-b", email_id="mail-b"), "another thread", later)
    first, second = interruptions.listing(10, "mail-a")
    assert first == Interruption("mail-a", "job-a", "first", "JobTimedOut: ran longer than 3600 seconds", "", later)
    assert second == Interruption("mail-a", "job-a", "first", "another thread", "thread-b", NOON)
    assert interruptions.listing(1, "mail-a") == [first]
