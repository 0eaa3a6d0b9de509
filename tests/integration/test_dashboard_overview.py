"""The look at the system in SQLite: bounded, by index, at one instant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.dashboard.tables import AMELIA_SCOTT, COMMIT, SCOTT, DashboardTables, lively
from webordinary.adapters.sqlite import overview as queries
from webordinary.model.jobs import JobOutcome, JobState


@pytest.fixture
def world(tmp_path: Path) -> Iterator[DashboardTables]:
    world = DashboardTables(tmp_path)
    yield world
    world.database.close()


def test_a_mail_is_found_with_all_that_belongs_to_it(world: DashboardTables) -> None:
    worker = world.worker("worker 2")
    email_id = world.published("New title", worker=worker)
    detail = world.overview.mail(email_id)
    assert detail is not None
    job = detail.summary.job
    assert job is not None
    assert (job.state, job.outcome, job.worker) == (JobState.SETTLED, JobOutcome.SUCCEEDED, "worker 2")
    assert job.result is not None
    assert job.result.commit == COMMIT
    assert detail.text is not None
    assert detail.text.elided == "-- \nScott"
    assert [reply.recipient for reply in detail.replies] == [SCOTT]
    assert [entry.kind for entry in detail.timeline][:3] == ["MailReceived", "MailParsed", "JobQueued"]
    assert detail.timeline[3].worker == "worker 2"
    assert detail.summary.answered_at is not None


def test_a_mail_that_was_never_accepted_is_not_found(world: DashboardTables) -> None:
    assert world.overview.mail("a" * 64) is None


def test_unfinished_mails_are_in_flight_however_old_they_are(world: DashboardTables) -> None:
    old = world.mail("Forgotten?", received=-90_000)
    world.job(old, "queued", queued_at=world.at(-90_000))
    unsent = world.mail("Written, not sent")
    world.job(unsent, "settled", outcome="succeeded")
    world.reply(unsent, "Done.", sent=None)
    owed = world.mail("Settled, not called back")
    world.job(owed, "settled", outcome="succeeded", called_back=0, task_token="t")
    world.published("Done")
    assert {mail.email_id for mail in world.overview.mails_in_flight(10)} == {old, unsent, owed}


def test_the_pool_is_seen_as_it_is(world: DashboardTables) -> None:
    pool = lively(world).overview.pool(world.now)
    assert [worker.name for worker in pool.workers] == ["worker 1", "worker 2"]
    assert [(claim.key, claim.worker) for claim in pool.claims] == [(AMELIA_SCOTT, "worker 2")]
    [queue] = pool.queues
    assert (queue.open, queue.running, queue.unowned_since) == (2, 1, None)
    assert [job.subject for job in pool.running] == ["Photos of the new glaze"]


def test_a_worker_that_ended_is_not_shown(world: DashboardTables) -> None:
    world.worker("worker 1", ended=True)
    assert world.overview.pool(world.now).workers == ()


def test_events_are_read_from_where_the_reader_left_off(world: DashboardTables) -> None:
    world.mail("One")
    seen = world.overview.last_seq()
    world.event("WorkerStarted", None, 0)
    assert [entry.kind for entry in world.overview.events_after(seen, 10)] == ["WorkerStarted"]
    assert world.overview.events_after(world.overview.last_seq(), 10) == []


BOUND = {
    "before": "x",
    "limit": 10,
    "now": 0.0,
    "ids": '["x"]',
    "id": "x",
    "seq": 0,
}
# Few rows by nature, read whole: workers that live, claims that are held, keys with work, customers.
WHOLE = {"WORKERS", "CLAIMS", "QUEUES", "RUNNING", "SENDERS"}


@pytest.mark.parametrize("name", [n for n in vars(queries) if n.isupper() and isinstance(getattr(queries, n), str)])
def test_every_look_walks_an_index(world: DashboardTables, name: str) -> None:
    with world.database.read() as conn:
        plan = [row["detail"] for row in conn.execute(f"EXPLAIN QUERY PLAN {getattr(queries, name)}", BOUND)]
    big = ("raw_mails", "parsed_mails", "events", "jobs", "outbox", "executions", " r", " j", " e", " p", " x")
    scans = [step for step in plan if step.startswith("SCAN") and "INDEX" not in step and step.endswith(big)]
    ordered = {"NEWEST": "raw_mails_by_time", "LAST_SEQ": "SEARCH events"}
    assert scans == [] or name in WHOLE, plan
    assert ordered.get(name, "") in " ".join(plan)
