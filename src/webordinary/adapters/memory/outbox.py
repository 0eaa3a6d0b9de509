"""Written replies in memory, for tests and simulation."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime

from webordinary.mail.ports import OutboxEntry
from webordinary.model.mail import Reply


class MemoryOutbox:
    """See Outbox."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], OutboxEntry] = {}
        self._lock = threading.Lock()

    def put(self, reply: Reply, now: datetime) -> bool:
        entry = OutboxEntry(reply, created_at=now, next_try_at=now)
        with self._lock:
            return self._entries.setdefault((reply.email_id, reply.kind), entry) is entry

    def due(self, now: datetime, limit: int) -> tuple[OutboxEntry, ...]:
        with self._lock:
            entries = list(self._entries.values())
        unsent = [e for e in entries if e.sent_at is None and not e.given_up and e.next_try_at <= now]
        return tuple(sorted(unsent, key=lambda entry: entry.next_try_at)[:limit])

    def mark_sent(self, reply: Reply, now: datetime, sent_as: str | None = None) -> None:
        with self._lock:
            if entry := self._unsent(reply):
                attempts = entry.attempts + 1
                sent = replace(entry, sent_at=now, sent_as=sent_as, attempts=attempts, last_error=None)
                self._entries[reply.email_id, reply.kind] = sent

    def mark_failed(self, reply: Reply, error: str, next_try_at: datetime | None) -> None:
        with self._lock:
            if entry := self._unsent(reply):
                self._entries[reply.email_id, reply.kind] = replace(
                    entry,
                    attempts=entry.attempts + 1,
                    last_error=error,
                    next_try_at=next_try_at or entry.next_try_at,
                    given_up=next_try_at is None,
                )

    def mark_bounced(self, reply: Reply, reason: str) -> None:
        with self._lock:
            if entry := self._entries.get((reply.email_id, reply.kind)):
                self._entries[reply.email_id, reply.kind] = replace(entry, bounced=reason)

    def of(self, email_id: str) -> tuple[OutboxEntry, ...]:
        with self._lock:
            return tuple(entry for (mail, _), entry in self._entries.items() if mail == email_id)

    def _unsent(self, reply: Reply) -> OutboxEntry | None:
        entry = self._entries.get((reply.email_id, reply.kind))
        return entry if entry and entry.sent_at is None else None
