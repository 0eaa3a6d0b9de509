"""The operator is told once of what a person must see."""

from __future__ import annotations

import email
import email.policy
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.harness.embedded import AMELIA_SCOTT, WORKER, EmbeddedHarness, open_harness
from webordinary.compose.background import alert_mailer
from webordinary.compose.checks import shown_checks
from webordinary.compose.embedded import EmbeddedContainer
from webordinary.mail.replies.compose import OPERATOR
from webordinary.model.checks import Verdict
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations import onboarding
from webordinary.pool.alerts import MAX_MAILS


def mail_alerts(services: EmbeddedContainer) -> int:
    return alert_mailer(services).run_once(services.clock.now())


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[EmbeddedHarness]:
    with open_harness(tmp_path / "data", operator="ops+web@example.com") as harness:
        yield harness


def told(harness: EmbeddedHarness) -> list[str]:
    """What the operator's mails say."""
    raws = [entry.reply.raw for entry in harness.services.outbox.of(OPERATOR)]
    return [str(email.message_from_bytes(raw, policy=email.policy.default).get_content()) for raw in raws]


def queue_long_ago(harness: EmbeddedHarness, name: str, minutes: float) -> None:
    services = harness.services
    at = services.clock.now() - timedelta(minutes=minutes)
    services.jobs.record(NewJob(name, ProjectUser("amelia", name), "t", "e" * 64, Command.EDIT), at)
    services.jobs.enqueue(name, at)


def test_a_dead_letter_is_mailed_once_with_its_reason_and_first_command(harness: EmbeddedHarness) -> None:
    email_id = harness.give_up()
    assert mail_alerts(harness.services) == 1
    assert mail_alerts(harness.services) == 0
    [text] = told(harness)
    assert f"Mail {email_id[:12]} was given up: JobDied: the kiln exploded" in text
    assert "webordinary dlq show 1" in text
    [entry] = harness.services.outbox.of(OPERATOR)
    raw = email.message_from_bytes(entry.reply.raw, policy=email.policy.default)
    assert (raw["To"], raw["Auto-Submitted"]) == ("ops+web@example.com", "auto-generated")


def test_a_job_that_waits_for_the_machine_is_mailed_once_a_day(harness: EmbeddedHarness) -> None:
    harness.services.events.emit(Event(EventKind.JOB_WAITS, data={"reason": "a colleague publishes"}))
    harness.services.events.close()
    assert mail_alerts(harness.services) == 0
    for _ in range(2):
        waits = Event(EventKind.JOB_WAITS, data={"reason": "OSError: No space left on device", "machine_fault": True})
        harness.services.events.emit(waits)
    harness.services.events.close()
    assert mail_alerts(harness.services) == 1
    assert mail_alerts(harness.services) == 0
    [text] = told(harness)
    assert "No space left on device" in text


def test_work_without_an_owner_is_mailed_after_five_minutes_once(harness: EmbeddedHarness) -> None:
    queue_long_ago(harness, "early", 4)
    assert mail_alerts(harness.services) == 0
    queue_long_ago(harness, "late", 6)
    assert [mail_alerts(harness.services) for _ in range(3)] == [1, 0, 0]
    assert "No worker owns the work of amelia#late, for 6 minutes now (1 open job)." in told(harness)[0]


def test_work_that_a_worker_owns_is_no_alarm(harness: EmbeddedHarness) -> None:
    queue_long_ago(harness, "scott", 60)
    assert harness.services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, harness.services.clock.now())
    assert mail_alerts(harness.services) == 0


def test_without_an_operator_nobody_is_told_and_once_there_is_one_he_is(tmp_path: Path) -> None:
    with open_harness(tmp_path / "data") as silent:
        silent.give_up()
        assert mail_alerts(silent.services) == 0
    with open_harness(tmp_path / "data", operator="ops@example.com") as harness:
        assert mail_alerts(harness.services) == 1


def test_a_flood_is_summed_up_and_an_hour_has_at_most_ten_mails(harness: EmbeddedHarness) -> None:
    services = harness.services
    for number in range(300):
        services.dead_letters.add(f"{number:064x}", None, "flood", services.clock.now())
    assert mail_alerts(services) == 1
    assert "and 180 more" in told(harness)[0]
    for _ in range(5):
        mail_alerts(services)
    assert len(told(harness)) == 2, "the other hundred of them"
    for number in range(300, 330):
        services.dead_letters.add(f"{number:064x}", None, "drop by drop", services.clock.now())
        mail_alerts(services)
    assert len(told(harness)) == MAX_MAILS


def test_what_cannot_be_written_whole_is_not_written_at_all(harness: EmbeddedHarness) -> None:
    """The mail and the memory of it are one transaction: killed in between, neither is there."""
    harness.give_up()
    services = harness.services
    with services.db.write() as conn:
        conn.execute("CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT raise(ABORT, 'disk full'); END")
    with pytest.raises(sqlite3.IntegrityError):
        mail_alerts(services)
    with services.db.write() as conn:
        conn.execute("DROP TRIGGER full")
    assert [mail_alerts(services) for _ in range(2)] == [1, 0]


def test_what_is_told_is_forgotten_only_when_the_letter_is_gone(harness: EmbeddedHarness) -> None:
    services = harness.services
    harness.give_up()
    mail_alerts(services)
    later = services.clock.now() + timedelta(days=40)
    assert services.alerts.forget(later) == 0
    services.dead_letters.remove(1)
    assert services.alerts.forget(later) == 1


def test_a_site_whose_first_build_fails_is_mailed_once_and_found_by_doctor(
    harness: EmbeddedHarness, tmp_path: Path
) -> None:
    services, folder = harness.services, tmp_path / "site"
    folder.mkdir()
    (folder / "notes.txt").write_text("no page yet")
    onboarding.onboard(services, "kiln", str(folder), "ann", "ann@example.com", lambda _: None)
    services.events.close()
    assert mail_alerts(services) == 1
    assert mail_alerts(services) == 0
    [text] = told(harness)
    assert "kiln" in text
    assert "index.html" in text, "the mail says why"
    [found] = [check.look() for check in shown_checks(services) if check.name.endswith(" kiln")]
    assert found.verdict is Verdict.FAIL
    assert "its first build failed" in found.what
    assert "webordinary release rebuild kiln" in found.todo


def test_the_operators_mail_is_no_reply_to_any_customer(harness: EmbeddedHarness) -> None:
    email_id = harness.give_up()
    mail_alerts(harness.services)
    detail = harness.services.overview.mail(email_id)
    assert detail
    assert [reply.kind for reply in detail.replies] == ["answer"]
    assert {mail.email_id for mail in harness.services.overview.mails_in_flight(10)} == {email_id}
