"""The index of mails: what it finds, counts and forgets, on SQLite in memory."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.dashboard.tables import NOON, DashboardTables
from webordinary.adapters.sqlite import mail_index
from webordinary.adapters.sqlite.mail_index import SqliteMailIndex
from webordinary.adapters.sqlite.mails import FORGET
from webordinary.model.jobs import NOT_UNDERSTOOD, JobOutcome, JobResult, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import JobSummary, MailFilter, MailState, MailSummary, state_of


@pytest.fixture
def world(tmp_path: Path) -> DashboardTables:
    return DashboardTables(tmp_path)


@pytest.fixture
def index(world: DashboardTables) -> SqliteMailIndex:
    return SqliteMailIndex(world.database)


def subjects(index: SqliteMailIndex, **wanted: object) -> list[str | None]:
    return [mail.subject for mail in index.find(MailFilter(**wanted), 10).mails]  # type: ignore[arg-type]


def test_mails_are_found_by_words_of_subject_text_and_sender(world: DashboardTables, index: SqliteMailIndex) -> None:
    world.mail("Öffnungszeiten ändern", text="Please change the hours on Saturday")
    world.mail("A vase", text="A blue one")
    assert subjects(index, text="offnungs") == ["Öffnungszeiten ändern"]
    assert subjects(index, text="saturday hours") == ["Öffnungszeiten ändern"]
    assert subjects(index, text='blue" OR "hours') == []
    assert subjects(index, text='"*') == ["A vase", "Öffnungszeiten ändern"]
    assert subjects(index, sender="scott@example") == ["A vase", "Öffnungszeiten ändern"]
    assert subjects(index, text="scott", sender="eve") == []


def test_pages_and_counts_agree(world: DashboardTables, index: SqliteMailIndex) -> None:
    for number in range(7):
        world.mail(f"Mail {number}")
    pages = [index.find(MailFilter(), 3, offset) for offset in (0, 3, 6)]
    assert [mail.subject for page in pages for mail in page.mails] == [f"Mail {number}" for number in range(6, -1, -1)]
    assert {page.total for page in pages} == {7}
    after = index.find(MailFilter(), 3, before=pages[0].mails[-1].email_id)
    assert after.mails == pages[1].mails
    assert sum(index.counts().values()) == 7
    project_ids = ["amelia", "nobody"]
    assert index.counts_by_site(project_ids) == {one: index.counts(one) for one in project_ids}
    assert sum(index.counts_by_site(project_ids)["amelia"].values()) == 7


def test_a_mail_that_changes_its_state_is_counted_once(world: DashboardTables, index: SqliteMailIndex) -> None:
    email_id = world.mail("Hello")
    assert index.counts() == {MailState.OPEN: 1}
    world.put("dead_letters", email_id=email_id, reason="broken", died_at=world.at(0))
    world.event("DeadLettered", email_id, 0)
    assert {state: count for state, count in index.counts().items() if count} == {MailState.DEAD: 1}
    assert index.find(MailFilter(state="dead"), 5).total == 1


def test_a_mail_whose_last_event_was_lost_is_found_by_the_service(
    world: DashboardTables, index: SqliteMailIndex
) -> None:
    email_id = world.mail("Hello")
    index.catch_up()
    world.put("dead_letters", email_id=email_id, reason="broken", died_at=world.at(0))
    assert index.find(MailFilter(state="dead"), 5).total == 0
    assert index.run_once(NOON) == 1
    assert index.find(MailFilter(state="dead"), 5).total == 1


def test_a_forgotten_mail_is_in_no_search_and_no_count(world: DashboardTables, index: SqliteMailIndex) -> None:
    email_id = world.mail("Hello", text="unmistakable")
    assert subjects(index, text="unmistakable") == ["Hello"]
    with world.database.write() as conn:
        for statement in FORGET:
            conn.execute(statement, {"email_id": email_id})
    assert subjects(index, text="unmistakable") == []
    assert sum(index.counts().values()) == 0
    with world.database.read() as conn:
        assert conn.execute("SELECT count(*) FROM mail_search").fetchone()[0] == 0


SETTLED = NOON + timedelta(minutes=1)


def ended(outcome: JobOutcome, result: JobResult, **milestones: int) -> MailSummary:
    key = ProjectUser("amelia", "scott")
    job = JobSummary(
        "job-1", key, "t", Command.EDIT, JobState.SETTLED, outcome=outcome, result=result, settled_at=SETTLED
    )
    at = {kind: SETTLED + timedelta(minutes=minutes) for kind, minutes in milestones.items()}
    return MailSummary("1", NOON, "s", "r", "Hi", job, at, answered_at=SETTLED, ended=True)


@pytest.mark.parametrize(
    ("mail", "state"),
    [
        (ended(JobOutcome.SUCCEEDED, JobResult("", commit="c")), MailState.DONE),
        (ended(JobOutcome.SUCCEEDED, JobResult("", question="Which one?")), MailState.ASKED),
        (ended(JobOutcome.FAILED, JobResult("", error="npm failed")), MailState.FAILED),
        (ended(JobOutcome.CANCELLED, JobResult("")), MailState.CANCELLED),
        (ended(JobOutcome.FAILED, JobResult("", error=NOT_UNDERSTOOD)), MailState.NOT_UNDERSTOOD),
        (ended(JobOutcome.FAILED, JobResult("", error=NOT_UNDERSTOOD), OperatorAnswered=1), MailState.CLOSED),
        (ended(JobOutcome.FAILED, JobResult("", error="npm failed"), MailClosed=1), MailState.CLOSED),
        (ended(JobOutcome.FAILED, JobResult("", error="npm failed"), MailClosed=-5), MailState.FAILED),
    ],
)
def test_the_state_of_a_mail_tells_success_from_the_rest(mail: MailSummary, state: MailState) -> None:
    assert state_of(mail) is state


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("a b a A b", '"A" AND "b"'),
        ("ve Vase", '"ve"* AND "Vase"*'),
        ("\u82b1", '"\u82b1"*'),
        ('x" OR body:y NEAR( * ^{', '"x" AND "OR"* AND "body"* AND "y" AND "NEAR"*'),
        ("\0-+", ""),
    ],
)
def test_a_search_is_words_only_and_each_costs_once(text: str, query: str) -> None:
    assert mail_index._match(MailFilter(text=text)) == query
    assert mail_index._match(MailFilter(text=" ".join(map(str, range(10, 99))))).count('"') == 2 * mail_index.MAX_WORDS
