"""`stop` by mail ends what its conversation has in the queue, at once, whatever that waits for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.harness.embedded import AMELIA_SCOTT, WORKER, EmbeddedHarness, open_harness
from webordinary.compose.steps import answering_of
from webordinary.model.claims import StartedJob
from webordinary.model.jobs import DeferReason, Job, JobOutcome, JobState, NewJob, Requeue, RequeueReason
from webordinary.model.mail import Command
from webordinary.model.names import job_id_of
from webordinary.pool.reconciler import deliver_pending_callbacks


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


def put_back(harness: EmbeddedHarness, why: RequeueReason) -> None:
    """A worker starts the next job and puts it back."""
    pool, now = harness.services.pool, harness.services.clock.now()
    started = pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, now)
    assert isinstance(started, StartedJob)
    held = DeferReason.PAUSE if why is RequeueReason.HELD else None
    pool.claims.end_and_take_next(started, Requeue(why, now + timedelta(hours=1), held), now, more=False)
    assert pool.claims.begin_release(started.claim)
    pool.claims.end_release(started.claim)
    deliver_pending_callbacks(pool)
    harness.engine.run_ready()


def job_of(harness: EmbeddedHarness, email_id: str) -> Job:
    job = harness.services.jobs.get(job_id_of(email_id))
    assert job
    return job


@pytest.mark.parametrize("why", RequeueReason)
def test_of_a_job_that_was_put_back_its_next_worker_only_looks_what_it_has_published(
    harness: EmbeddedHarness, why: RequeueReason
) -> None:
    asked = harness.receive(message_id="<asked@example.com>")
    put_back(harness, why)
    harness.receive("stop", answers="<asked@example.com>")
    job = job_of(harness, asked)
    assert (job.state, job.cancel_requested) == (JobState.QUEUED, True)
    started = harness.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, harness.services.clock.now())
    assert isinstance(started, StartedJob), "that is done before its time"


def begun(harness: EmbeddedHarness, *, hours: int) -> str:
    email_id, services = harness.receive(), harness.services
    began = services.clock.now() - timedelta(hours=hours)
    assert isinstance(services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, began), StartedJob)
    return email_id


def test_a_running_job_is_awaited_on(harness: EmbeddedHarness) -> None:
    email_id = begun(harness, hours=1)
    assert answering_of(harness.services).handle_timeout({"jobId": job_id_of(email_id)}) == {"awaitOn": True}
    assert not job_of(harness, email_id).cancel_requested


def test_of_a_job_whose_worker_was_lost_long_ago_a_worker_looks_what_it_has_published_before_it_is_given_up(
    harness: EmbeddedHarness,
) -> None:
    email_id = begun(harness, hours=30)
    answering = answering_of(harness.services)
    assert answering.handle_timeout({"jobId": job_id_of(email_id)}) == {"awaitOn": True}
    assert job_of(harness, email_id).cancel_requested
    assert answering.handle_timeout({"jobId": job_id_of(email_id)}) == {"awaitOn": False}


def test_nothing_is_given_up_for_its_waiting_before_the_system_has_been_up_for_a_day(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    just_started = answering_of(harness.services, uptime=lambda: timedelta(hours=1))
    assert just_started.handle_timeout({"jobId": job_id_of(email_id)}) == {"awaitOn": True}
    assert answering_of(harness.services).handle_timeout({"jobId": job_id_of(email_id)}) == {"awaitOn": False}


def test_a_conversation_is_stopped_however_long_the_queue_before_it_is(harness: EmbeddedHarness) -> None:
    jobs, now = harness.services.jobs, harness.services.clock.now()
    for number in range(1001):
        jobs.record(NewJob(f"job-{number}", AMELIA_SCOTT, "another", f"mail-{number}", Command.EDIT), now, ready=True)
    asked = harness.receive(message_id="<asked@example.com>")
    harness.receive("stop", answers="<asked@example.com>")
    assert job_of(harness, asked).outcome is JobOutcome.CANCELLED


@pytest.mark.parametrize("why", [RequeueReason.HELD, RequeueReason.INTERRUPTED])
def test_only_an_interruption_is_kept_as_one(harness: EmbeddedHarness, why: RequeueReason) -> None:
    asked = harness.receive()
    put_back(harness, why)
    with harness.services.db.read() as conn:
        reasons = [row["reason"] for row in conn.execute("SELECT reason FROM interruptions")]
    assert reasons == (["a mail on another thread"] if why is RequeueReason.INTERRUPTED else [])
    assert [entry.reply.kind for entry in harness.replies(asked)] == (["held"] if why is RequeueReason.HELD else [])
