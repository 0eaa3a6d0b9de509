"""A mail that is given up leaves no job behind, and is answered by what is true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.harness.embedded import AMELIA_SCOTT, WORKER, EmbeddedHarness, open_harness
from webordinary.adapters.files.wake import listener_name
from webordinary.compose.steps import answering_of
from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import Job, JobOutcome, JobResult, Settlement
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.pool.ports import QUEUED
from webordinary.services.mail_duties import BrokenWorkflows, CallbackDelivery
from webordinary.workflow.answering import Answering
from webordinary.workflow.start import BrokenExecution, redrive

ERROR = {"Error": "Transient", "Cause": '{"errorMessage": "the disk is full"}'}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


@pytest.fixture
def answering(harness: EmbeddedHarness) -> Answering:
    return answering_of(harness.services, lambda: None)


def test_a_job_that_no_step_could_tell_of_is_ended_with_its_mail(
    harness: EmbeddedHarness, answering: Answering
) -> None:
    email_id = harness.receive()
    answer = answering.give_up({"emailId": email_id, "error": ERROR})
    job = harness.services.jobs.get(job_id_of(email_id))
    assert job
    assert (job.outcome, answer) == (JobOutcome.DEAD, {"gaveUp": True})
    [letter] = harness.services.dead_letters.all(10)
    assert letter.job_id == job.job_id


def test_a_mail_whose_job_was_done_before_its_workflow_gave_up_is_answered_so(
    harness: EmbeddedHarness, answering: Answering
) -> None:
    email_id = harness.receive()
    harness.settle()
    answer = answering.give_up({"emailId": email_id, "error": ERROR})
    assert answer == {"gaveUp": False}
    assert harness.services.dead_letters.all(10) == [], "nobody is sent to look at what was done"
    answering.reply({"emailId": email_id, "error": ERROR, "redrive": 0, "answer": answer})
    [reply] = harness.replies(email_id)
    assert b"The title is now Spring Sale." in reply.reply.raw


def test_a_mail_that_never_became_a_job_is_given_up(harness: EmbeddedHarness, answering: Answering) -> None:
    email_id = harness.receive("status")
    assert answering.give_up({"emailId": email_id, "error": ERROR}) == {"gaveUp": True}
    [letter] = harness.services.dead_letters.all(10)
    assert letter.job_id is None


def test_a_worker_hears_at_once_that_its_job_is_given_up(harness: EmbeddedHarness, answering: Answering) -> None:
    email_id = harness.receive()
    services = harness.services
    services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, services.clock.now())
    with closing(services.bus.listen(listener_name(WORKER))) as ear:
        answering.give_up({"emailId": email_id, "error": ERROR})
        assert ear.wait(5)[0] == [f"ticket {AMELIA_SCOTT}"]
    job = services.jobs.get(job_id_of(email_id))
    assert job
    assert job.cancel_requested


def test_a_job_over_its_limit_leaves_a_dead_letter_that_can_be_redriven_and_an_answer_that_says_so(
    harness: EmbeddedHarness,
) -> None:
    email_id = harness.receive()
    limit = "ran longer than 3600 seconds"
    harness.work(Settlement(JobOutcome.TIMED_OUT, JobResult("It took too long.", error=limit)))
    [letter] = harness.services.dead_letters.all(10)
    assert (letter.email_id, letter.reason) == (email_id, f"JobTimedOut: {limit}")
    [reply] = harness.replies(email_id)
    assert b"It took too long." in reply.reply.raw
    [audited] = harness.services.interruptions.listing(10)
    assert (audited.email_id, audited.reason, audited.new_thread_id) == (email_id, letter.reason, "")
    redrive(letter, harness.engine, harness.services.dead_letters)
    harness.engine.run_ready()
    harness.work()
    assert len(harness.replies(email_id)) == 2


def test_an_execution_that_broke_after_its_job_was_done_leaves_no_dead_letter(
    harness: EmbeddedHarness, answering: Answering
) -> None:
    email_id = harness.receive()
    harness.settle()
    assert answering.owes_answer({"emailId": email_id})
    answering.abandon({"emailId": email_id}, BrokenExecution(email_id, "FAILED", "States.Runtime"))
    assert harness.services.dead_letters.all(10) == []
    [reply] = harness.replies(email_id)
    assert b"The title is now Spring Sale." in reply.reply.raw
    assert not answering.owes_answer({"emailId": email_id})


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (BrokenExecution("x", "ABORTED"), "workflow ABORTED: an operator stopped it"),
        (BrokenExecution("x", "ABORTED", "Operator", "by hand"), "workflow ABORTED: Operator: by hand"),
        (BrokenExecution("x", "TIMED_OUT"), "workflow TIMED_OUT: it was not done in the time that it may wait"),
        (BrokenExecution("x", "FAILED", "States.Runtime"), "workflow FAILED: States.Runtime: no cause is given"),
    ],
)
def test_a_dead_letter_tells_how_its_execution_ended(
    harness: EmbeddedHarness, answering: Answering, ended: BrokenExecution, reason: str
) -> None:
    answering.abandon({"emailId": harness.receive()}, ended)
    [letter] = harness.services.dead_letters.all(10)
    assert letter.reason == reason


class Endings:
    """Step Functions' list of executions that ended badly."""

    def __init__(self, *ended: BrokenExecution) -> None:
        self.ended = {one.name: one for one in ended}

    def ended_badly(self, since: datetime) -> Sequence[str]:
        return list(self.ended)

    def describe(self, name: str) -> BrokenExecution:
        return self.ended[name]


def test_a_mail_whose_execution_the_engine_lost_is_answered_when_its_job_is_done(
    harness: EmbeddedHarness, answering: Answering
) -> None:
    email_id, now = harness.receive(), harness.services.clock.now()
    lost = BrokenExecution(email_id, "FAILED", "States.ServiceRestart", lost_by_engine=True)
    duty = BrokenWorkflows(Endings(lost), answering)
    assert duty.run_once(now) == 0, "its job has not ended"
    harness.settle()
    assert duty.run_once(now) == 1
    assert len(harness.replies(email_id)) == 1
    assert duty.run_once(now + timedelta(minutes=6)) == 0


def test_a_dead_letter_that_was_dropped_does_not_come_back(harness: EmbeddedHarness, answering: Answering) -> None:
    email_id, now = harness.receive(), harness.services.clock.now()
    endings = Endings(BrokenExecution(email_id, "FAILED", "States.Runtime"))
    BrokenWorkflows(endings, answering).run_once(now)
    [letter] = harness.services.dead_letters.all(10)
    harness.services.dead_letters.remove(letter.letter_id)
    BrokenWorkflows(endings, answering).run_once(now)
    assert harness.services.dead_letters.all(10) == []


def test_an_answered_mail_is_not_under_way_although_no_worker_runs(
    harness: EmbeddedHarness, answering: Answering
) -> None:
    email_id = harness.receive()
    answering.abandon({"emailId": email_id}, BrokenExecution(email_id, "TIMED_OUT"))
    CallbackDelivery(harness.services.pool).run_once(harness.services.clock.now())
    harness.engine.run_ready()
    [reply] = harness.replies(email_id)
    harness.services.outbox.mark_sent(reply.reply, harness.services.clock.now())
    assert harness.services.overview.mails_in_flight(10) == []


class Deaf:
    """Tickets that nobody takes."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def notify_owner(self, job: Job, news: str = QUEUED) -> None:
        raise self.problem

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None: ...


@pytest.mark.parametrize(
    "problem", [Transient("SQS is silent"), Permanent("the queue is gone")], ids=lambda problem: type(problem).__name__
)
def test_a_mail_is_given_up_and_answered_although_its_worker_cannot_be_told(
    harness: EmbeddedHarness, answering: Answering, problem: Exception
) -> None:
    email_id = harness.receive()
    services = harness.services
    services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, services.clock.now())
    deaf = replace(answering, pool=replace(services.pool, tickets=Deaf(problem)))
    deaf.abandon({"emailId": email_id}, BrokenExecution(email_id, "FAILED", "States.Runtime", "no such path"))
    [letter] = services.dead_letters.all(10)
    assert letter.email_id == email_id
    assert len(harness.replies(email_id)) == 1
    job = services.jobs.get(job_id_of(email_id))
    assert job
    assert job.cancel_requested, "its worker finds it when it looks"
