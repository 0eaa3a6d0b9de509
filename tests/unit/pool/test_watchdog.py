from __future__ import annotations

from datetime import UTC, datetime, timedelta

from webordinary.model.jobs import DeadLetter
from webordinary.model.names import ProjectUser
from webordinary.model.overview import QueueSummary
from webordinary.pool.watchdog import MAX_MAILS, Alarm, alarms_of, mails_to_write

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
AMELIA_SCOTT = ProjectUser("amelia", "scott")


def queue(unowned_since: datetime | None) -> QueueSummary:
    return QueueSummary(AMELIA_SCOTT, 2, 0, NOON, unowned_since)


def alarms(count: int) -> list[Alarm]:
    return [Alarm(f"dead-letter-{n}", "given up", "look") for n in range(count)]


def test_work_without_an_owner_is_an_alarm_after_five_minutes() -> None:
    five = NOON + timedelta(minutes=5)
    assert alarms_of([], [queue(NOON), queue(None)], five) == []
    [alarm] = alarms_of([], [queue(NOON), queue(None)], five + timedelta(seconds=1))
    assert alarm.what == "No worker owns the work of amelia#scott, for 5 minutes now (2 open jobs)."


def test_an_alarm_keeps_its_name_as_long_as_it_lasts_and_the_next_one_has_another() -> None:
    def name(since: datetime, now: datetime) -> str:
        return alarms_of([], [queue(since)], now)[0].name

    assert name(NOON, NOON + timedelta(minutes=6)) == name(NOON, NOON + timedelta(days=2))
    later = NOON + timedelta(hours=1)
    assert name(NOON, NOON + timedelta(minutes=6)) != name(later, later + timedelta(minutes=6))


def test_every_dead_letter_is_an_alarm_that_names_its_first_command() -> None:
    [alarm] = alarms_of([DeadLetter(7, "e" * 64, None, "three starts " * 100, NOON)], [], NOON)
    assert alarm.command == "webordinary dlq show 7"
    assert alarm.what.startswith(f"Mail {'e' * 12} was given up: three starts")
    assert len(alarm.what) < 400


def test_a_few_alarms_are_a_mail_each() -> None:
    assert mails_to_write(alarms(2), written=0) == [(one,) for one in alarms(2)]
    assert mails_to_write([], written=0) == []


def test_many_alarms_are_one_mail() -> None:
    assert mails_to_write(alarms(500), written=0) == [tuple(alarms(500))]


def test_the_last_mail_of_the_hour_sums_up_and_then_there_is_silence() -> None:
    assert mails_to_write(alarms(1), written=MAX_MAILS - 1) == [tuple(alarms(1))]
    assert mails_to_write(alarms(3), written=MAX_MAILS - 1) == [tuple(alarms(3))]
    assert mails_to_write(alarms(3), written=MAX_MAILS) == []


def test_however_alarms_come_an_hour_has_at_most_ten_mails() -> None:
    for burst in range(1, 30):
        written, waiting = 0, 0
        for _ in range(40):
            waiting += burst
            mails = mails_to_write(alarms(waiting), written)
            written += len(mails)
            waiting = 0 if mails else waiting
        assert written <= MAX_MAILS
