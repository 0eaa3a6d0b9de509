from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.dashboard.tables import AMELIA_SCOTT, MAILBOX, NOON, SCOTT
from webordinary.entrypoints.dashboard.views import Progress, finished, status_of, steps_of
from webordinary.model.jobs import NOT_UNDERSTOOD, JobOutcome, JobResult, JobState
from webordinary.model.mail import Command
from webordinary.model.snapshot import JobSummary, MailSummary


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def mail(job: JobSummary | None = None, **values: object) -> MailSummary:
    return MailSummary("e" * 64, NOON, SCOTT, MAILBOX, "New title", job, **values)  # type: ignore[arg-type]


def job(state: JobState, command: Command = Command.EDIT, **values: object) -> JobSummary:
    return JobSummary("job-1", AMELIA_SCOTT, "t" * 16, command, state, **values)  # type: ignore[arg-type]


def way(of: MailSummary) -> str:
    """`received+ queued* claimed.`: done, active, waiting; `-` left out, `!` stopped."""
    marks = dict(zip(Progress, "+*.-!", strict=True))
    return " ".join(step.label + marks[step.progress] for step in steps_of(of))


def test_a_mail_just_received_has_the_whole_way_before_it() -> None:
    assert way(mail()) == "received+ queued* claimed. edited. on the edit site. answered."


def test_a_job_being_prepared_is_not_queued_yet() -> None:
    assert way(mail(job(JobState.PREPARING))).startswith("received+ queued* claimed.")


def test_a_queued_job_waits_for_a_worker() -> None:
    queued = mail(job(JobState.QUEUED, queued_at=later(1)))
    assert way(queued) == "received+ queued+ claimed* edited. on the edit site. answered."
    assert status_of(queued, steps_of(queued)).label == "queued"


def test_a_running_job_names_its_worker() -> None:
    running = job(JobState.RUNNING, queued_at=later(1), started_at=later(2), worker="worker 2")
    assert way(mail(running)) == "received+ queued+ claimed by worker 2+ edited* on the edit site. answered."


def test_an_interrupted_job_is_back_in_the_queue_and_not_edited() -> None:
    again = job(JobState.QUEUED, queued_at=later(1), started_at=later(2), interruptions=1)
    seen = mail(again, milestones={"ChangeCommitted": later(3)})
    assert way(seen) == "received+ queued+ claimed* edited. on the edit site. answered."


@pytest.mark.parametrize("before", [{"attempts": 2}, {"attempts": 1, "interruptions": 1}], ids=str)
def test_a_job_that_runs_again_says_so_beside_the_time_of_its_last_start(before: dict[str, Any]) -> None:
    again = job(JobState.RUNNING, queued_at=later(1), started_at=later(13), worker="worker 2", **before)
    assert way(mail(again)) == "received+ queued+ claimed again by worker 2+ edited* on the edit site. answered."


def test_a_commit_of_an_earlier_start_does_not_count_for_the_present_one() -> None:
    again = job(JobState.RUNNING, queued_at=later(1), started_at=later(9), worker="worker 1")
    seen = mail(again, milestones={"ChangeCommitted": later(3)})
    assert way(seen) == "received+ queued+ claimed by worker 1+ edited* on the edit site. answered."


def settled(outcome: JobOutcome, commit: str | None, command: Command = Command.EDIT) -> JobSummary:
    result = JobResult("Done.", commit=commit)
    times = {"queued_at": later(1), "started_at": later(2), "settled_at": later(3)}
    return job(JobState.SETTLED, command, outcome=outcome, result=result, worker="worker 2", **times)


def test_a_settled_change_counts_as_shown_even_before_its_events_are_stored() -> None:
    seen = mail(settled(JobOutcome.SUCCEEDED, "c" * 40))
    assert way(seen) == "received+ queued+ claimed by worker 2+ edited+ on the edit site+ answered*"
    assert not finished(seen)


def test_an_answered_change_is_on_the_edit_site() -> None:
    seen = mail(settled(JobOutcome.SUCCEEDED, "c" * 40), answered_at=later(4))
    assert finished(seen)
    status = status_of(seen, steps_of(seen))
    assert (status.label, status.tone) == ("on the edit site", "good")
    assert [step.took for step in steps_of(seen)] == ["", "1 s", "1 s", "1 s", "0 ms", "1 s"]


def test_a_mail_that_was_not_understood_leaves_editing_and_publishing_out() -> None:
    unclear = replace(settled(JobOutcome.FAILED, None), result=JobResult("", error=NOT_UNDERSTOOD))
    seen = mail(unclear, answered_at=later(4))
    assert way(seen) == "received+ queued+ claimed by worker 2+ edited- on the edit site- answered+"
    assert status_of(seen, steps_of(seen)).label == "not understood"


def test_a_question_back_is_no_success() -> None:
    asked = settled(JobOutcome.SUCCEEDED, None)
    seen = mail(replace(asked, result=JobResult("Which page?", question="Which page?")), answered_at=later(4))
    assert status_of(seen, steps_of(seen)).label == "asked back"


def test_an_answer_without_a_change_is_no_half_done_change() -> None:
    seen = mail(settled(JobOutcome.SUCCEEDED, None), answered_at=later(4))
    status = status_of(seen, steps_of(seen))
    assert (status.label, status.tone) == ("answered, nothing changed", "good")


def test_only_a_publication_reaches_the_public_site() -> None:
    seen = mail(settled(JobOutcome.SUCCEEDED, "c" * 12, Command.PUBLISH), answered_at=later(4))
    assert way(seen) == "received+ queued+ claimed by worker 2+ on the public site+ answered+"
    assert status_of(seen, steps_of(seen)).label == "on the public site"


def test_undo_says_taken_back() -> None:
    seen = mail(settled(JobOutcome.SUCCEEDED, "c" * 40, Command.UNDO), answered_at=later(4))
    assert "taken back+" in way(seen)
    assert status_of(seen, steps_of(seen)).label == "taken back on the edit site"


@pytest.mark.parametrize(
    ("command", "label"), [(Command.UNDO, "taken back on both sites"), (Command.EDIT, "on the public site")]
)
def test_what_reached_the_public_site_too_says_so(command: Command, label: str) -> None:
    done = settled(JobOutcome.SUCCEEDED, "c" * 40, command)
    both = replace(done, result=JobResult("Done.", commit="c" * 40, is_public=True))
    seen = mail(both, answered_at=later(4))
    assert status_of(seen, steps_of(seen)).label == label


def test_an_undo_that_found_nothing_did_not_take_anything_back() -> None:
    seen = mail(settled(JobOutcome.SUCCEEDED, None, Command.UNDO), answered_at=later(4))
    assert status_of(seen, steps_of(seen)).label == "nothing to undo"


def test_status_never_queues() -> None:
    assert way(mail(job(JobState.SETTLED, Command.STATUS), answered_at=later(1))) == "received+ answered+"


def test_a_refused_mail_stops_there() -> None:
    seen = mail(milestones={"MailRefused": later(1)})
    assert way(seen) == "received+ refused!"
    assert finished(seen)


def test_a_mail_given_up_shows_where_it_stopped() -> None:
    dead = job(JobState.SETTLED, outcome=JobOutcome.DEAD, queued_at=later(1), started_at=later(2), worker="worker 1")
    seen = mail(dead, dead_reason="three starts that never ended", answered_at=later(9))
    assert way(seen) == "received+ queued+ claimed by worker 1+ given up! on the edit site- answered+"
    assert status_of(seen, steps_of(seen)).tone == "bad"


def test_a_workflow_that_ended_without_a_reply_is_not_shown_as_under_way() -> None:
    seen = mail(ended=True)
    assert finished(seen)
    assert status_of(seen, steps_of(seen)).label == "ended without an answer"
