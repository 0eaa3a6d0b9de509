"""Mails the operator about problems that need a person: dead letters, unserved queues, faults of the machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webordinary.mail.replies.compose import compose_notice
from webordinary.model.events import EventKind
from webordinary.model.jobs import DeadLetter
from webordinary.model.mail import Reply
from webordinary.model.snapshot import LoggedEvent
from webordinary.operations.ports import EventLog, Overview
from webordinary.pool.alerts import (
    PERIOD,
    Alert,
    alarm_of_machine,
    alarms_of_bounces,
    alarms_of_sites,
    alarms_of_sources,
    alert_mails,
    alerts_for,
)

MAX_LETTERS = 200
RECENT_EVENTS = 500


class Alerts(Protocol):
    """Alerts that were mailed: each is mailed once."""

    def told(self, names: Collection[str]) -> Collection[str]:
        """Those of these alerts that were mailed."""

    def untold_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Dead letters that were not mailed about."""

    def mails_since(self, at: datetime) -> int:
        """How many mails were written since then."""

    def tell(self, names: Collection[str], mail: Reply, now: datetime) -> bool:
        """Put the mail into the outbox and record its alerts, in one transaction; False if one was mailed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertMailer:
    """Mails each alert once; does nothing without an operator's address."""

    alerts: Alerts
    overview: Overview
    event_log: EventLog
    operator: str
    mailbox: str
    page: str
    wake_outbox: Callable[[], None]
    name: str = "alerts"

    def run_once(self, now: datetime) -> int:
        """Mail the alerts that are new; returns how many mails that took."""
        if not self.operator:
            return 0
        current = alerts_for(self.alerts.untold_letters(MAX_LETTERS), self.overview.pool(now).queues, now)
        recent = self.event_log.after(self.event_log.start_of_last(RECENT_EVENTS), RECENT_EVENTS)
        current += alarm_of_machine(_machine_faults(recent), now)
        current += alarms_of_bounces(_bounces(recent))
        current += alarms_of_sites(_broken_sites(recent))
        current += alarms_of_sources(_unread_sources(recent), now)
        told = self.alerts.told([alert.name for alert in current])
        untold = [alert for alert in current if alert.name not in told]
        mails = alert_mails(untold, self.alerts.mails_since(now - PERIOD))
        written = sum(self._write(alerts, now) for alerts in mails)
        if written:
            self.wake_outbox()
        return written

    def _write(self, alerts: tuple[Alert, ...], now: datetime) -> bool:
        kind = alerts[0].name if len(alerts) == 1 else f"summary-{alerts[0].name}"
        mail = compose_notice(
            kind,
            [(alert.what, alert.command) for alert in alerts],
            recipient=self.operator,
            mailbox=self.mailbox,
            page=self.page,
            sent_at=now,
        )
        return self.alerts.tell([alert.name for alert in alerts], mail, now)


def _machine_faults(recent: Sequence[LoggedEvent]) -> list[tuple[datetime, str]]:
    """When and why jobs began to wait for the machine."""
    return [(one.at, str(one.event.data.get("reason"))) for one in recent if one.event.data.get("machine_fault")]


def _unread_sources(recent: Sequence[LoggedEvent]) -> list[tuple[datetime, str, str]]:
    """When, where and why mails could not be read."""
    failed = [one for one in recent if one.event.kind == EventKind.MAILS_NOT_READ]
    return [(one.at, str(one.event.data.get("source")), str(one.event.data.get("reason"))) for one in failed]


def _broken_sites(recent: Sequence[LoggedEvent]) -> list[tuple[datetime, str, str]]:
    """When, which and why sites could not be built, without a change of a mail."""
    failed = [one for one in recent if one.event.kind == EventKind.SITE_NOT_BUILT and not one.event.email_id]
    return [(one.at, str(one.event.data.get("project")), str(one.event.data.get("reason"))) for one in failed]


def _bounces(recent: Sequence[LoggedEvent]) -> list[tuple[str, str, str]]:
    """The replies that came back: mail, kind, reason."""
    bounced = (one.event for one in recent if one.event.kind == EventKind.REPLY_BOUNCED)
    return [(one.email_id or "", str(one.data.get("kind")), str(one.data.get("reason"))) for one in bounced]
