from __future__ import annotations

from datetime import UTC, datetime, timedelta

from webordinary.model.jobs import DeadLetter
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import QueueSummary
from webordinary.pool.alerts import MAX_MAILS, Alert, alert_mails, alerts_for

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
AMELIA_SCOTT = ProjectUser("amelia", "scott")


def queue(unowned_since: datetime | None) -> QueueSummary:
    return QueueSummary(AMELIA_SCOTT, 2, 0, NOON, unowned_since)


def alarms(count: int) -> list[Alert]:
    return [Alert(f"dead-letter-{n}", "given up", "look") for n in range(count)]


def test_work_without_an_owner_is_an_alarm_after_five_minutes() -> None:
    five = NOON + timedelta(minutes=5)
    assert alerts_for([], [queue(NOON), queue(None)], five) == []
    [alarm] = alerts_for([], [queue(NOON), queue(None)], five + timedelta(seconds=1))
    assert alarm.what == "No worker owns the work of amelia#scott, for 5 minutes now (2 open jobs)."


def test_an_alarm_keeps_its_name_as_long_as_it_lasts_and_the_next_one_has_another() -> None:
    def name(since: datetime, now: datetime) -> str:
        return alerts_for([], [queue(since)], now)[0].name

    assert name(NOON, NOON + timedelta(minutes=6)) == name(NOON, NOON + timedelta(days=2))
    later = NOON + timedelta(hours=1)
    assert name(NOON, NOON + timedelta(minutes=6)) != name(later, later + timedelta(minutes=6))


def test_every_dead_letter_is_an_alarm_that_names_its_first_command() -> None:
    [alarm] = alerts_for([DeadLetter(7, "e" * 64, None, "three starts " * 100, NOON)], [], NOON)
    assert alarm.command == "webordinary dlq show 7"
    assert alarm.what.startswith(f"Mail {'e' * 12} was given up: three starts")
    assert len(alarm.what) < 400


def test_a_few_alarms_are_a_mail_each() -> None:
    assert alert_mails(alarms(2), written=0) == [(one,) for one in alarms(2)]
    assert alert_mails([], written=0) == []


def test_many_alarms_are_one_mail() -> None:
    assert alert_mails(alarms(500), written=0) == [tuple(alarms(500))]


def test_the_last_mail_of_the_hour_sums_up_and_then_there_is_silence() -> None:
    assert alert_mails(alarms(1), written=MAX_MAILS - 1) == [tuple(alarms(1))]
    assert alert_mails(alarms(3), written=MAX_MAILS - 1) == [tuple(alarms(3))]
    assert alert_mails(alarms(3), written=MAX_MAILS) == []


def test_however_alarms_come_an_hour_has_at_most_ten_mails() -> None:
    for burst in range(1, 30):
        written, waiting = 0, 0
        for _ in range(40):
            waiting += burst
            mails = alert_mails(alarms(waiting), written)
            written += len(mails)
            waiting = 0 if mails else waiting
        assert written <= MAX_MAILS
