"""An outbox for processes that do not stay: what one has written, it delivers itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from webordinary.mail.delivery import deliver
from webordinary.mail.ports import Outbox, OutboxEntry, Threads, Transport
from webordinary.model.events import Events
from webordinary.model.mail import Reply


class PromptOutbox:
    """See Outbox. Replies that this process has written wait here until `deliver_written` is called, and nobody asks
    the store for them again; those that other processes left behind are found by `due` as ever.

    One thread at a time, as a lambda has it.
    """

    def __init__(
        self, outbox: Outbox, transport: Transport, threads: Threads, events: Events, now: Callable[[], datetime]
    ) -> None:
        self._outbox, self._transport, self._threads = outbox, transport, threads
        self._events, self._now = events, now
        self._written: list[OutboxEntry] = []

    def deliver_written(self) -> None:
        """Deliver what `put` kept since the last call."""
        written, self._written = self._written, []
        for entry in written:
            deliver(entry, self._outbox, self._transport, self._threads, self._now(), self._events)

    def put(self, reply: Reply, now: datetime) -> bool:
        """See Outbox."""
        is_new = self._outbox.put(reply, now)
        if is_new:
            self._written.append(OutboxEntry(reply, created_at=now, next_try_at=now))
        return is_new

    def due(self, now: datetime, limit: int) -> tuple[OutboxEntry, ...]:
        """See Outbox."""
        return self._outbox.due(now, limit)

    def mark_sent(self, reply: Reply, now: datetime, sent_as: str | None = None) -> None:
        """See Outbox."""
        self._outbox.mark_sent(reply, now, sent_as)

    def mark_failed(self, reply: Reply, error: str, next_try_at: datetime | None) -> None:
        """See Outbox."""
        self._outbox.mark_failed(reply, error, next_try_at)

    def mark_bounced(self, reply: Reply, reason: str) -> None:
        """See Outbox."""
        self._outbox.mark_bounced(reply, reason)

    def of(self, email_id: str) -> tuple[OutboxEntry, ...]:
        """See Outbox."""
        return self._outbox.of(email_id)
