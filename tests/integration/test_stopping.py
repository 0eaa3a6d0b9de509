"""`stop` by mail ends what its conversation has in the queue, at once, whatever that waits for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.integration.house import AMELIA_SCOTT, WORKER, House, open_house
from webordinary.app import workflow_engine
from webordinary.model.claims import Started
from webordinary.model.jobs import HeldBy, Job, JobState, NewJob, Outcome, Requeue, Why
from webordinary.model.mail import Command
from webordinary.model.names import job_id_of
from webordinary.pool.effects import pay_all


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path / "data") as house:
        yield house


def put_back(house: House, why: Why) -> None:
    """A worker starts the next job and puts it back."""
    pool, now = house.services.pool, house.services.clock.now()
    started = pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, now)
    assert isinstance(started, Started)
    held = HeldBy.PAUSE if why is Why.HELD else None
    pool.claims.end_and_take_next(started, Requeue(why, now + timedelta(hours=1), held), now, more=False)
    assert pool.claims.begin_release(started.claim)
    pool.claims.end_release(started.claim)
    pay_all(pool)
    house.engine.run_ready()


def job_of(house: House, email_id: str) -> Job:
    job = house.services.jobs.get(job_id_of(email_id))
    assert job
    return job


@pytest.mark.parametrize("why", [Why.HELD, Why.INTERRUPTED, Why.STOPPED])
def test_a_job_that_was_put_back_is_stopped_and_answered_at_once(house: House, why: Why) -> None:
    asked = house.receive(message_id="<asked@example.com>")
    put_back(house, why)
    stop = house.receive("stop", answers="<asked@example.com>")
    house.engine.run_ready()
    assert job_of(house, asked).outcome is Outcome.CANCELLED
    assert house.services.jobs.open_jobs(AMELIA_SCOTT) == [], "nobody waits behind it"
    answer = house.replies(asked)[-1].reply
    assert (answer.kind, b"This was stopped. Nothing was changed." in answer.raw) == ("answer", True)
    assert len(house.replies(stop)) == 1


def test_of_a_job_that_failed_its_next_worker_only_looks_what_it_has_published(house: House) -> None:
    asked = house.receive(message_id="<asked@example.com>")
    put_back(house, Why.RETRY)
    house.receive("stop", answers="<asked@example.com>")
    job = job_of(house, asked)
    assert (job.state, job.cancel_requested) == (JobState.QUEUED, True)
    started = house.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, house.services.clock.now())
    assert isinstance(started, Started), "that is done before its time"


@pytest.mark.parametrize(("hours", "awaited"), [(1, True), (30, False)])
def test_a_running_job_is_awaited_on_unless_its_worker_was_lost_long_ago(
    house: House, hours: int, *, awaited: bool
) -> None:
    email_id, services = house.receive(), house.services
    began = services.clock.now() - timedelta(hours=hours)
    assert isinstance(services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, began), Started)
    answering = workflow_engine.answering_of(services, lambda: None)
    assert answering.handle_timeout({"jobId": job_id_of(email_id)}) == {"awaitOn": awaited}


def test_a_conversation_is_stopped_however_long_the_queue_before_it_is(house: House) -> None:
    jobs, now = house.services.jobs, house.services.clock.now()
    for number in range(1001):
        jobs.record(NewJob(f"job-{number}", AMELIA_SCOTT, "another", f"mail-{number}", Command.EDIT), now, ready=True)
    asked = house.receive(message_id="<asked@example.com>")
    house.receive("stop", answers="<asked@example.com>")
    assert job_of(house, asked).outcome is Outcome.CANCELLED


@pytest.mark.parametrize("why", [Why.HELD, Why.INTERRUPTED])
def test_only_an_interruption_is_kept_as_one(house: House, why: Why) -> None:
    asked = house.receive()
    put_back(house, why)
    with house.services.db.read() as conn:
        reasons = [row["reason"] for row in conn.execute("SELECT reason FROM interruptions")]
    assert reasons == (["a mail on another thread"] if why is Why.INTERRUPTED else [])
    assert [entry.reply.kind for entry in house.replies(asked)] == (["held"] if why is Why.HELD else [])
