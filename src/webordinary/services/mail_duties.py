"""Duties about mails: send due replies, start workflows that a crash left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from webordinary.mail.outbox import deliver_due
from webordinary.mail.ports import Outbox, RawMails, Threads, Transport
from webordinary.model.events import Events
from webordinary.workflow.start import Workflows, start_missing


@dataclass(frozen=True, slots=True)
class OutboxSender:
    """Sends due replies, and retries replies whose delivery failed."""

    outbox: Outbox
    transport: Transport
    threads: Threads
    events: Events
    name: str = "outbox"

    def run_once(self, now: datetime) -> int:
        sent = 0
        while batch := deliver_due(self.outbox, self.transport, self.threads, now, self.events):
            sent += batch
        return sent


@dataclass(frozen=True, slots=True)
class MissingWorkflows:
    """Starts the workflows of accepted mails that have none."""

    workflows: Workflows
    raw_mails: RawMails
    name: str = "workflows"

    def run_once(self, now: datetime) -> int:
        return start_missing(self.workflows, self.raw_mails)


@dataclass(frozen=True, slots=True)
class PageWaker:
    """Tells open pages to look for new events."""

    wake_page: Callable[[], None]
    name: str = "page-waker"

    def run_once(self, now: datetime) -> int:
        self.wake_page()
        return 1
