"""A mail that was given up: the letter, the honest reply, and its second life."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.embedded import DEAD, DONE, EmbeddedHarness, open_harness
from webordinary.model.jobs import DeadLetter, JobOutcome, JobState
from webordinary.model.names import job_id_of
from webordinary.workflow.start import redrive


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data") as harness:
        yield harness


def the_letter(harness: EmbeddedHarness) -> DeadLetter:
    [letter] = harness.services.dead_letters.all(10)
    return letter


def run_again(harness: EmbeddedHarness, letter: DeadLetter) -> str:
    name = redrive(letter, harness.engine, harness.services.dead_letters)
    harness.engine.run_ready()
    return name


def words(harness: EmbeddedHarness, email_id: str) -> list[tuple[str, bool]]:
    """The kinds of the replies, and whether each says that we gave up."""
    return [(e.reply.kind, b"We could not do this" in e.reply.raw) for e in harness.replies(email_id)]


def test_a_dead_job_ends_as_a_letter_with_its_reason_and_an_honest_reply(harness: EmbeddedHarness) -> None:
    email_id = harness.give_up()
    letter = the_letter(harness)
    assert (letter.email_id, letter.job_id, letter.redrives) == (email_id, job_id_of(email_id), 0)
    assert letter.reason == "JobDied: the kiln exploded"
    assert words(harness, email_id) == [("answer", True)]


def test_a_redriven_mail_gets_a_new_job_and_an_answer_of_its_own(harness: EmbeddedHarness) -> None:
    email_id = harness.give_up()
    assert run_again(harness, the_letter(harness)) == f"{email_id}-r1"
    assert harness.services.dead_letters.all(10) == []
    started = harness.work(DONE)
    assert started.job.job_id == job_id_of(email_id, 1) != job_id_of(email_id)
    assert words(harness, email_id) == [("answer", True), ("answer-r1", False)]
    first, second = harness.replies(email_id)
    assert first.reply.message_id != second.reply.message_id


def test_redriving_the_same_letter_twice_starts_it_once(harness: EmbeddedHarness) -> None:
    email_id = harness.give_up()
    letter = the_letter(harness)
    assert run_again(harness, letter) == run_again(harness, letter)
    harness.work(DONE)
    assert words(harness, email_id) == [("answer", True), ("answer-r1", False)]


def test_killed_before_the_letter_was_taken_away_the_second_redrive_only_takes_it_away(
    harness: EmbeddedHarness,
) -> None:
    email_id = harness.give_up()
    letter = the_letter(harness)
    harness.engine.start(f"{email_id}-r1", {"emailId": email_id, "redrive": 1})  # and here it was killed
    harness.engine.run_ready()
    harness.work(DEAD)
    assert {one.redrives for one in harness.services.dead_letters.all(10)} == {0, 1}
    run_again(harness, letter)
    assert [one.redrives for one in harness.services.dead_letters.all(10)] == [1], "the newer death stays in sight"


def test_a_mail_can_die_and_be_redriven_again_and_again(harness: EmbeddedHarness) -> None:
    email_id = harness.give_up()
    for number in (1, 2, 3):
        assert run_again(harness, the_letter(harness)) == f"{email_id}-r{number}"
        harness.work(DEAD if number < 3 else DONE)
    assert harness.services.dead_letters.all(10) == []
    assert [kind for kind, _ in words(harness, email_id)] == ["answer", "answer-r1", "answer-r2", "answer-r3"]


def test_on_the_page_a_redriven_mail_is_under_way_until_its_second_answer_is_sent(harness: EmbeddedHarness) -> None:
    email_id = harness.give_up()
    services = harness.services
    for entry in harness.replies(email_id):
        services.outbox.mark_sent(entry.reply, services.clock.now())
    before = services.overview.mail(email_id)
    assert before
    assert (before.summary.ended, before.summary.answered_at is not None) == (True, True)
    run_again(harness, the_letter(harness))
    during = services.overview.mail(email_id)
    assert during
    assert (during.summary.ended, during.summary.answered_at, during.summary.dead_reason) == (False, None, None)
    assert during.summary.job
    assert (during.summary.job.job_id, during.summary.job.state) == (job_id_of(email_id, 1), JobState.QUEUED)
    harness.work(DONE)
    services.outbox.mark_sent(harness.replies(email_id)[1].reply, services.clock.now())
    after = services.overview.mail(email_id)
    assert after
    assert after.summary.ended
    assert after.summary.answered_at


def test_when_the_workflow_itself_breaks_the_job_is_settled_and_the_customer_told(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    assert harness.engine.stop(email_id, "Aborted", "by hand")
    harness.engine.run_ready()
    job = harness.services.jobs.get(job_id_of(email_id))
    assert job
    assert (job.state, job.outcome) == (JobState.SETTLED, JobOutcome.DEAD)
    assert the_letter(harness).reason == "workflow ABORTED: Aborted: by hand"
    assert the_letter(harness).job_id == job.job_id
    assert words(harness, email_id) == [("answer", True)]


def test_a_workflow_that_breaks_after_its_job_was_done_says_what_was_done(harness: EmbeddedHarness) -> None:
    email_id = harness.receive()
    pool, now = harness.services.pool, harness.services.clock.now()
    pool.jobs.settle_waiting(job_id_of(email_id), DONE, now)
    harness.engine.stop(email_id, "Aborted", "by hand")
    harness.engine.run_ready()
    assert words(harness, email_id) == [("answer", False)]
    assert b"Spring Sale" in harness.replies(email_id)[0].reply.raw


def test_a_mail_without_a_job_can_be_redriven_too(harness: EmbeddedHarness) -> None:
    services = harness.services
    email_id = harness.receive("status")
    services.dead_letters.add(email_id, None, "workflow FAILED", services.clock.now())
    run_again(harness, the_letter(harness))
    assert [kind for kind, _ in words(harness, email_id)] == ["answer", "answer-r1"]
