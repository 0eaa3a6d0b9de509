"""What a person must see: which of it is an alarm, and how many mails the operator gets about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from webordinary.model.jobs import DeadLetter
from webordinary.model.snapshot import QueueSummary

UNOWNED = timedelta(minutes=5)
PERIOD = timedelta(hours=1)
MACHINE_FAULT_RECENT = timedelta(minutes=10)
MAX_MAILS = 10
"""To the operator, in a PERIOD; the last of them sums up."""
_REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition that only a person can mend. `name` is the same as long as it lasts."""

    name: str
    what: str
    command: str
    """What to run first."""


def unowned_too_long(queues: Iterable[QueueSummary], now: datetime) -> list[QueueSummary]:
    """The keys whose work has had no live owner for too long."""
    return [queue for queue in queues if queue.unowned_since and now - queue.unowned_since > UNOWNED]


def alerts_for(dead_letters: Iterable[DeadLetter], queues: Iterable[QueueSummary], now: datetime) -> list[Alert]:
    """The alerts of the present state."""
    return [*map(_of_letter, dead_letters), *(_of_queue(queue, now) for queue in unowned_too_long(queues, now))]


def alarm_of_machine(waiting: Iterable[tuple[datetime, str]], now: datetime) -> list[Alert]:
    """One alarm a day while jobs wait for the machine; `waiting` says when and why, the oldest first."""
    recent = [(at, reason) for at, reason in waiting if now - at < MACHINE_FAULT_RECENT]
    if not recent:
        return []
    at, reason = recent[-1]
    what = f"Jobs wait, as a fault of the machine keeps them from being done: {reason[:_REASON_CHARACTERS]}"
    return [Alert(f"machine-{at:%Y-%m-%d}", what, "webordinary doctor")]


def alarms_of_sources(failing: Iterable[tuple[datetime, str, str]], now: datetime) -> list[Alert]:
    """One alarm a day for each place that mails cannot be read from; `failing` says when, where and why."""
    recent = {source: (at, reason) for at, source, reason in failing if now - at < MACHINE_FAULT_RECENT}
    return [
        Alert(
            f"unread-{source}-{at:%Y-%m-%d}",
            f"No mail is taken from {source}; customers wait: {reason[:_REASON_CHARACTERS]}",
            "webordinary doctor",
        )
        for source, (at, reason) in recent.items()
    ]


def alarms_of_sites(broken: Iterable[tuple[datetime, str, str]]) -> list[Alert]:
    """One alarm a day for each site whose own source cannot be built; `broken` says when, which and why."""
    newest = {project_id: (at, reason) for at, project_id, reason in broken}
    return [
        Alert(
            f"not-built-{project_id}-{at:%Y-%m-%d}",
            f"The site {project_id} cannot be built: {reason[:_REASON_CHARACTERS]}",
            f"webordinary release rebuild {project_id}",
        )
        for project_id, (at, reason) in newest.items()
    ]


def alarms_of_bounces(bounced: Iterable[tuple[str, str, str]]) -> list[Alert]:
    """One alarm for each reply that came back: its mail, its kind and the reason."""
    return [
        Alert(
            f"bounced-{email_id}-{kind}",
            f"The reply to mail {email_id[:12]} came back: {reason[:_REASON_CHARACTERS]}",
            f"webordinary mails show {email_id[:12]}",
        )
        for email_id, kind, reason in bounced
    ]


def alert_mails(untold: Sequence[Alert], written: int) -> list[tuple[Alert, ...]]:
    """One mail per alarm, or one for all when they are many; none when `written` in this period are enough."""
    room = MAX_MAILS - written
    if room <= 0 or not untold:
        return []
    return [(alarm,) for alarm in untold] if len(untold) < room else [tuple(untold)]


def _of_letter(dead_letter: DeadLetter) -> Alert:
    reason = dead_letter.reason[:_REASON_CHARACTERS]
    return Alert(
        alert_name_of_dead_letter(dead_letter.letter_id),
        f"Mail {dead_letter.email_id[:12]} was given up: {reason}",
        f"webordinary dlq show {dead_letter.letter_id}",
    )


def _of_queue(queue: QueueSummary, now: datetime) -> Alert:
    since = queue.unowned_since or now
    minutes = int((now - since).total_seconds() // 60)
    jobs = f"{queue.open} open job{'' if queue.open == 1 else 's'}"
    return Alert(
        f"unowned-{queue.key}-{int(since.timestamp())}",
        f"No worker owns the work of {queue.key}, for {minutes} minutes now ({jobs}).",
        "webordinary worker health",
    )


def alert_name_of_dead_letter(letter_id: int | str) -> str:
    """The alarm that a dead letter raises."""
    return f"dead-letter-{letter_id}"
