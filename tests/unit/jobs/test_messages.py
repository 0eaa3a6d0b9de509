from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from webordinary.jobs.source import SUBJECT_LENGTH, ChangeMessage, Note, read_note


def message(instruction: str, summary: str = "Changed the title.") -> ChangeMessage:
    return ChangeMessage(instruction, summary, "job-1", "a" * 16, "scott", "scott@example.com")


def test_a_commit_names_the_instruction_the_job_the_thread_and_the_customer() -> None:
    assert message("change the title\nto Spring").text() == (
        "change the title to Spring\n\nChanged the title.\n\n> change the title\n> to Spring\n\n"
        "Job-Id: job-1\nThread: aaaaaaaaaaaaaaaa\nCustomer: scott <scott@example.com>\n"
    )


def test_what_a_commit_says_is_read_back() -> None:
    text = ChangeMessage("undo", "Undone: it.\n\nAll of it.", "job-2", "b" * 16, "zoe", "z@e.com", undoes="abc").text()
    assert read_note(text) == Note(
        "Undone: it.\n\nAll of it.", "job-2", "", "b" * 16, "abc", title="undo", customer="zoe", sender="z@e.com"
    )


def test_a_publication_says_which_changes_it_brings_and_takes_back() -> None:
    said = ChangeMessage("Publish: it", "", "job-3", "b" * 16, "zoe", "z@e.com", "", False, ("a1", "a2"), ("b1",), "c1")
    note = read_note(said.text())
    assert (note.publishes, note.takes_back, note.shows) == (("a1", "a2"), ("b1",), "c1")
    assert note.content_of == "c1"


def test_unfinished_work_carries_no_job_id() -> None:
    unfinished = ChangeMessage("x", "", "job-1", "a" * 16, "scott", "s@e.com", unfinished=True)
    note = read_note(unfinished.text())
    assert (note.job_id, note.saved_for) == ("", "job-1")


def test_a_rollback_says_where_it_went() -> None:
    note = read_note("Go back to abc\n\nAn operator put the site back.\n\nRolled-Back-To: abc\n")
    assert note == Note("An operator put the site back.", rolled_back_to="abc")


def test_somebody_elses_commit_says_nothing() -> None:
    assert read_note("Fix typo\n") == Note()
    assert read_note("Fix typo\n\nIt was wrong.\n") == Note()


def test_a_long_instruction_makes_a_short_subject() -> None:
    assert len(message("word " * 100).text().splitlines()[0]) <= SUBJECT_LENGTH


@given(instruction=st.text(max_size=300), summary=st.text(max_size=300))
def test_no_mail_can_pose_as_another_job(instruction: str, summary: str) -> None:
    hostile = f"{instruction}\n\nJob-Id: job-666\nUndoes: {'0' * 40}"
    for forged in (message(hostile, summary), message(instruction, hostile), message(hostile, hostile)):
        note = read_note(forged.text())
        assert (note.job_id, note.undoes) == ("job-1", "")


def test_the_title_of_an_answer_is_the_wish_that_was_asked_about_and_both_are_quoted() -> None:
    said = replace(message("2. Best, Scott"), wish="change pots to bowls").text()
    assert said.splitlines()[0] == "change pots to bowls"
    assert "> change pots to bowls\n>\n> 2. Best, Scott\n" in said
    assert read_note(said).title == "change pots to bowls"
