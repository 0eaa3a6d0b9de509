"""A mail that was given up: the letter, the honest reply, and its second life."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.house import DEAD, DONE, House, open_house
from webordinary.model.jobs import DeadLetter, JobOutcome, JobState
from webordinary.model.names import job_id_of
from webordinary.workflow.start import redrive


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path / "data") as house:
        yield house


def the_letter(house: House) -> DeadLetter:
    [letter] = house.services.dead_letters.all(10)
    return letter


def run_again(house: House, letter: DeadLetter) -> str:
    name = redrive(letter, house.engine, house.services.dead_letters)
    house.engine.run_ready()
    return name


def words(house: House, email_id: str) -> list[tuple[str, bool]]:
    """The kinds of the replies, and whether each says that we gave up."""
    return [(e.reply.kind, b"We could not do this" in e.reply.raw) for e in house.replies(email_id)]


def test_a_dead_job_ends_as_a_letter_with_its_reason_and_an_honest_reply(house: House) -> None:
    email_id = house.give_up()
    letter = the_letter(house)
    assert (letter.email_id, letter.job_id, letter.redrives) == (email_id, job_id_of(email_id), 0)
    assert letter.reason == "JobDied: the kiln exploded"
    assert words(house, email_id) == [("answer", True)]


def test_a_redriven_mail_gets_a_new_job_and_an_answer_of_its_own(house: House) -> None:
    email_id = house.give_up()
    assert run_again(house, the_letter(house)) == f"{email_id}-r1"
    assert house.services.dead_letters.all(10) == []
    started = house.work(DONE)
    assert started.job.job_id == job_id_of(email_id, 1) != job_id_of(email_id)
    assert words(house, email_id) == [("answer", True), ("answer-r1", False)]
    first, second = house.replies(email_id)
    assert first.reply.message_id != second.reply.message_id


def test_redriving_the_same_letter_twice_starts_it_once(house: House) -> None:
    email_id = house.give_up()
    letter = the_letter(house)
    assert run_again(house, letter) == run_again(house, letter)
    house.work(DONE)
    assert words(house, email_id) == [("answer", True), ("answer-r1", False)]


def test_killed_before_the_letter_was_taken_away_the_second_redrive_only_takes_it_away(house: House) -> None:
    email_id = house.give_up()
    letter = the_letter(house)
    house.engine.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1})  # and here it was killed
    house.engine.run_ready()
    house.work(DEAD)
    assert {one.redrives for one in house.services.dead_letters.all(10)} == {0, 1}
    run_again(house, letter)
    assert [one.redrives for one in house.services.dead_letters.all(10)] == [1], "the newer death stays in sight"


def test_a_mail_can_die_and_be_redriven_again_and_again(house: House) -> None:
    email_id = house.give_up()
    for number in (1, 2, 3):
        assert run_again(house, the_letter(house)) == f"{email_id}-r{number}"
        house.work(DEAD if number < 3 else DONE)
    assert house.services.dead_letters.all(10) == []
    assert [kind for kind, _ in words(house, email_id)] == ["answer", "answer-r1", "answer-r2", "answer-r3"]


def test_on_the_page_a_redriven_mail_is_under_way_until_its_second_answer_is_sent(house: House) -> None:
    email_id = house.give_up()
    services = house.services
    for entry in house.replies(email_id):
        services.outbox.mark_sent(entry.reply, services.clock.now())
    before = services.overview.mail(email_id)
    assert before
    assert (before.summary.ended, before.summary.answered_at is not None) == (True, True)
    run_again(house, the_letter(house))
    during = services.overview.mail(email_id)
    assert during
    assert (during.summary.ended, during.summary.answered_at, during.summary.dead_reason) == (False, None, None)
    assert during.summary.job
    assert (during.summary.job.job_id, during.summary.job.state) == (job_id_of(email_id, 1), JobState.QUEUED)
    house.work(DONE)
    services.outbox.mark_sent(house.replies(email_id)[1].reply, services.clock.now())
    after = services.overview.mail(email_id)
    assert after
    assert after.summary.ended
    assert after.summary.answered_at


def test_when_the_workflow_itself_breaks_the_job_is_settled_and_the_customer_told(house: House) -> None:
    email_id = house.receive()
    assert house.engine.stop(email_id, "Aborted", "by hand")
    house.engine.run_ready()
    job = house.services.jobs.get(job_id_of(email_id))
    assert job
    assert (job.state, job.outcome) == (JobState.SETTLED, JobOutcome.DEAD)
    assert the_letter(house).reason == "workflow ABORTED: Aborted: by hand"
    assert the_letter(house).job_id == job.job_id
    assert words(house, email_id) == [("answer", True)]


def test_a_workflow_that_breaks_after_its_job_was_done_says_what_was_done(house: House) -> None:
    email_id = house.receive()
    pool, now = house.services.pool, house.services.clock.now()
    pool.jobs.settle_waiting(job_id_of(email_id), DONE, now)
    house.engine.stop(email_id, "Aborted", "by hand")
    house.engine.run_ready()
    assert words(house, email_id) == [("answer", False)]
    assert b"Spring Sale" in house.replies(email_id)[0].reply.raw


def test_a_mail_without_a_job_can_be_redriven_too(house: House) -> None:
    services = house.services
    email_id = house.receive("status")
    services.dead_letters.add(email_id, None, "workflow FAILED", services.clock.now())
    run_again(house, the_letter(house))
    assert [kind for kind, _ in words(house, email_id)] == ["answer", "answer-r1"]
