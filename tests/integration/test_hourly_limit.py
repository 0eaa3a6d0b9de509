"""A person who sends very many mails within an hour is told once, and the surplus costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from tests.harness.embedded import EmbeddedHarness, open_harness
from webordinary.compose import background
from webordinary.entrypoints.cli import main
from webordinary.entrypoints.dashboard.views import attention_view
from webordinary.model.jobs import JobOutcome, JobResult, Settlement
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.model.projects import Sender
from webordinary.operations.console import Console

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass
class SettableClock:
    time: datetime = NOON

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def harness(tmp_path: Path, clock: SettableClock) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data", hourly_mails=2) as harness:
        harness.services.clock = clock  # type: ignore[assignment]
        yield EmbeddedHarness(harness.services, background.engine(harness.services, lambda: None))


def told(harness: EmbeddedHarness) -> list[str]:
    with harness.services.db.read() as conn:
        return [row["recipient"] for row in conn.execute("SELECT recipient FROM outbox WHERE kind = 'limited'")]


def refused(harness: EmbeddedHarness) -> set[str]:
    with harness.services.db.read() as conn:
        return {row["email_id"] for row in conn.execute("SELECT email_id FROM raw_mails WHERE stopped = 'refused'")}


def jobs(harness: EmbeddedHarness) -> int:
    with harness.services.db.read() as conn:
        count: int = conn.execute("SELECT count(*) FROM jobs").fetchone()[0]
        return count


def test_mails_beyond_the_hourly_limit_are_not_done_and_their_sender_is_told_once(harness: EmbeddedHarness) -> None:
    for _ in range(2):
        harness.receive()
    assert told(harness) == []
    surplus = [harness.receive() for _ in range(3)]
    assert jobs(harness) == 2
    assert told(harness) == ["scott@example.com"]
    assert refused(harness) == set(surplus)
    assert not any(harness.replies(email_id) for email_id in surplus)


def test_the_next_hour_begins_anew(harness: EmbeddedHarness, clock: SettableClock) -> None:
    for _ in range(4):
        harness.receive()
    clock.time += timedelta(hours=1)
    for _ in range(3):
        harness.receive()
    assert jobs(harness) == 4
    assert len(told(harness)) == 2


def test_status_and_stop_are_answered_beyond_the_limit(harness: EmbeddedHarness) -> None:
    for _ in range(3):
        harness.receive()
    for command in ("status", "stop"):
        email_id = harness.receive(command)
        assert len(harness.replies(email_id)) == 1


def test_publish_and_undo_are_done_beyond_the_limit_and_a_flood_of_them_ends(harness: EmbeddedHarness) -> None:
    for _ in range(2):
        harness.receive()
    for command in ("publish", "undo"):
        harness.receive(command)
    assert (jobs(harness), told(harness)) == (4, [])
    for _ in range(20):
        harness.receive("publish")
    assert jobs(harness) == 20
    assert told(harness) == ["scott@example.com"]


def test_an_answer_to_our_question_is_taken_beyond_the_limit_and_an_answer_to_another_mail_is_not(
    harness: EmbeddedHarness,
) -> None:
    asked, done = harness.receive(message_id="<asked@example.com>"), harness.receive(message_id="<done@example.com>")
    which = "Which of the two places do you mean?"
    harness.work(Settlement(JobOutcome.SUCCEEDED, JobResult(which, question=which)))
    harness.work()
    answers = {}
    for email_id in (asked, done):
        [entry] = harness.replies(email_id)
        answers[email_id] = harness.receive("The second one", answers=entry.reply.message_id)
    assert refused(harness) == {answers[done]}
    assert harness.services.jobs.get(job_id_of(answers[asked]))


def test_the_notice_says_what_to_do(harness: EmbeddedHarness) -> None:
    for _ in range(3):
        harness.receive()
    with harness.services.db.read() as conn:
        [email_id] = {row["email_id"] for row in conn.execute("SELECT email_id FROM outbox WHERE kind = 'limited'")}
    [raw] = [one.reply.raw.decode() for one in harness.services.outbox.of(email_id) if one.reply.kind == "limited"]
    assert "next full hour" in " ".join(raw.replace("=\r\n", "").split())


@pytest.mark.parametrize("setting", ["hourly_project_mails", "hourly_domain_mails"])
def test_a_site_and_a_domain_have_their_limits_for_all_persons_together(tmp_path: Path, setting: str) -> None:
    with open_harness(tmp_path, **{setting: 2}) as harness:
        now = harness.services.clock.now()
        harness.services.directory.add_sender(Sender("ann@example.com", ProjectUser("amelia", "ann")), now)
        mails = [
            harness.receive(),
            harness.receive(sender="ann@example.com"),
            harness.receive(sender="ann@example.com"),
        ]
        jobs = [harness.services.jobs.get(job_id_of(email_id)) for email_id in mails]
        assert [job is not None for job in jobs] == [True, True, False]
        assert harness.services.jobs.get(job_id_of(mails[0])) is not None


def test_a_mail_over_the_limit_is_no_strangers_and_is_done_when_the_operator_says_so(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    surplus = [harness.receive() for _ in range(3)][2]
    harness.services.events.close()
    console = Console(harness.services)
    groups = attention_view(console.needs_person(), ("amelia#scott", "bakery#anna"), (), NOON)
    [group] = [one for one in groups if one.name in ("limited", "refused")]
    assert (group.name, group.count) == ("limited", 1)
    [need] = group.items
    assert "over the limit of 2 mails an hour (setting hourly_mails)" in need.reason
    assert [action.href for action in need.actions] == [f"/mails/{surplus}/retries", f"/mails/{surplus}/closings"]
    assert main(["mails", "retry", surplus, "--data", str(harness.services.config.data)]) == 0, capsys.readouterr().err
    harness.engine.run_ready()
    assert refused(harness) == set()
    job = harness.services.jobs.get(job_id_of(surplus, 1))
    assert job
    assert job.open


def text_of(harness: EmbeddedHarness, name: str, kind: str = "answer") -> str:
    [entry] = [one for one in harness.services.outbox.of(name) if one.reply.kind == kind]
    body = message_from_bytes(entry.reply.raw, policy=default).get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def listed(harness: EmbeddedHarness) -> list[str]:
    with harness.services.db.read() as conn:
        names = [row["email_id"] for row in conn.execute("SELECT email_id FROM outbox WHERE kind = 'limited-list'")]
    return [text_of(harness, name, "limited-list") for name in names]


def test_when_the_hour_is_over_one_mail_names_all_that_were_not_done(
    harness: EmbeddedHarness, clock: SettableClock
) -> None:
    for _ in range(5):
        harness.receive()
    clock.time += timedelta(minutes=59)
    harness.engine.run_ready()
    assert listed(harness) == []
    clock.time += timedelta(minutes=1)
    harness.engine.run_ready()
    [text] = listed(harness)
    assert [f"Mail {n}" in text for n in range(1, 6)] == [False, False, True, True, True]


def test_of_one_mail_beyond_the_limit_its_sender_is_told_once(harness: EmbeddedHarness, clock: SettableClock) -> None:
    for _ in range(3):
        harness.receive()
    clock.time += timedelta(hours=1)
    harness.engine.run_ready()
    assert (len(told(harness)), listed(harness)) == (1, [])


def test_status_names_the_mails_that_were_not_done(harness: EmbeddedHarness, clock: SettableClock) -> None:
    for _ in range(4):
        harness.receive()
    clock.time += timedelta(hours=2)
    text = text_of(harness, harness.receive("status")).partition("Not done")[2]
    assert [f"- Mail {n}" in text for n in range(1, 5)] == [False, False, True, True]
    assert "all your mails are answered" not in text
    clock.time += timedelta(days=2)
    assert "Mail 3" not in text_of(harness, harness.receive("status"))


def test_the_operators_status_counts_no_mail_beyond_the_limit_as_under_way(
    harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        harness.receive()
        harness.work()
    before = _under_way(harness, capsys)
    harness.receive()
    assert _under_way(harness, capsys) == before
    assert before.startswith("mails under way: 0;")


def _under_way(harness: EmbeddedHarness, capsys: pytest.CaptureFixture[str]) -> str:
    while harness.services.outbox.due(harness.services.clock.now(), 10):
        for entry in harness.services.outbox.due(harness.services.clock.now(), 10):
            harness.services.outbox.mark_sent(entry.reply, harness.services.clock.now())
    capsys.readouterr()
    assert main(["status", "--data", str(harness.services.config.data)]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if "under way" in line)


def test_no_open_question_leaves_the_status_in_silence(harness: EmbeddedHarness, clock: SettableClock) -> None:
    question = Settlement(JobOutcome.SUCCEEDED, JobResult("Which?", question="Which?"))
    for number in range(30):
        harness.receive()
        harness.work(question)
        clock.time += timedelta(hours=1)
        if number % 2:
            harness.receive("publish")
            harness.work()
    text = text_of(harness, harness.receive("status"))
    assert text.count("- Mail ") == 20
    assert "and 10 more" in text
