"""A mail that is given up leaves no job behind, and is answered by what is true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.house import House, open_house
from webordinary.app.workflow_engine import answering_of
from webordinary.model.jobs import Outcome
from webordinary.model.names import job_id_of
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
    assert (job.outcome, answer) == (Outcome.DEAD, {"gaveUp": True})
    [letter] = house.services.dead_letters.all(10)
    assert letter.job_id == job.job_id


def test_a_mail_whose_job_was_done_before_its_workflow_gave_up_is_answered_so(
    house: House, answering: Answering
) -> None:
    email_id = house.receive()
    house.settle()
    answer = answering.give_up({"emailId": email_id, "error": ERROR})
    assert answer == {"gaveUp": False}
    answering.reply({"emailId": email_id, "error": ERROR, "redrive": 0, "answer": answer})
    [reply] = house.replies(email_id)
    assert b"The title is now Spring Sale." in reply.reply.raw


def test_a_mail_that_never_became_a_job_is_given_up(house: House, answering: Answering) -> None:
    email_id = house.receive("status")
    assert answering.give_up({"emailId": email_id, "error": ERROR}) == {"gaveUp": True}
    [letter] = house.services.dead_letters.all(10)
    assert letter.job_id is None
