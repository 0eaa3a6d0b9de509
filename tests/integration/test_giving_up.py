"""A mail that is given up leaves no job behind, and is answered by what is true."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.house import AMELIA_SCOTT, WORKER, House, open_house
from webordinary.adapters.files.wake import listener_name
from webordinary.compose.steps import answering_of
from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import Job, JobOutcome
from webordinary.model.names import job_id_of
from webordinary.pool.ports import QUEUED
from webordinary.workflow.answering import Answering

ERROR = {"Error": "Transient", "Cause": '{"errorMessage": "the disk is full"}'}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path / "data") as house:
        yield house


@pytest.fixture
def answering(house: House) -> Answering:
    return answering_of(house.services, lambda: None)


def test_a_job_that_no_step_could_tell_of_is_ended_with_its_mail(house: House, answering: Answering) -> None:
    email_id = house.receive()
    answer = answering.give_up({"emailId": email_id, "error": ERROR})
    job = house.services.jobs.get(job_id_of(email_id))
    assert job
    assert (job.outcome, answer) == (JobOutcome.DEAD, {"gaveUp": True})
    [letter] = house.services.dead_letters.all(10)
    assert letter.job_id == job.job_id


def test_a_mail_whose_job_was_done_before_its_workflow_gave_up_is_answered_so(
    house: House, answering: Answering
) -> None:
    email_id = house.receive()
    house.settle()
    answer = answering.give_up({"emailId": email_id, "error": ERROR})
    assert answer == {"gaveUp": False}
    assert house.services.dead_letters.all(10) == [], "nobody is sent to look at what was done"
    answering.reply({"emailId": email_id, "error": ERROR, "redrive": 0, "answer": answer})
    [reply] = house.replies(email_id)
    assert b"The title is now Spring Sale." in reply.reply.raw


def test_a_mail_that_never_became_a_job_is_given_up(house: House, answering: Answering) -> None:
    email_id = house.receive("status")
    assert answering.give_up({"emailId": email_id, "error": ERROR}) == {"gaveUp": True}
    [letter] = house.services.dead_letters.all(10)
    assert letter.job_id is None


def test_a_worker_hears_at_once_that_its_job_is_given_up(house: House, answering: Answering) -> None:
    email_id = house.receive()
    services = house.services
    services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, services.clock.now())
    with closing(services.bus.listen(listener_name(WORKER))) as ear:
        answering.give_up({"emailId": email_id, "error": ERROR})
        assert ear.wait(5)[0] == [f"ticket {AMELIA_SCOTT}"]
    job = services.jobs.get(job_id_of(email_id))
    assert job
    assert job.cancel_requested


class Deaf:
    """Tickets that nobody takes."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def notify_owner(self, job: Job, news: str = QUEUED) -> None:
        raise self.problem

    def notify_unclaimed(self) -> None: ...


@pytest.mark.parametrize(
    "problem", [Transient("SQS is silent"), Permanent("the queue is gone")], ids=lambda problem: type(problem).__name__
)
def test_a_mail_is_given_up_and_answered_although_its_worker_cannot_be_told(
    house: House, answering: Answering, problem: Exception
) -> None:
    email_id = house.receive()
    services = house.services
    services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, services.clock.now())
    deaf = replace(answering, pool=replace(services.pool, tickets=Deaf(problem)))
    deaf.abandon({"emailId": email_id}, "States.Runtime", "no such path")
    [letter] = services.dead_letters.all(10)
    assert letter.email_id == email_id
    assert len(house.replies(email_id)) == 1
    job = services.jobs.get(job_id_of(email_id))
    assert job
    assert job.cancel_requested, "its worker finds it when it looks"
