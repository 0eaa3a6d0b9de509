"""Replies leave the house: at least once each, tried again with patience, given up where a person sees it."""

from __future__ import annotations

from datetime import datetime, timedelta

from webordinary.mail.ports import Outbox, OutboxEntry, Transport
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, Events

BATCH = 50
MAX_TRIES = 12
FIRST_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 3600.0
MAX_ERROR = 500


def deliver_due(outbox: Outbox, transport: Transport, now: datetime, events: Events) -> int:
    """Try every reply that is due, once; returns how many were sent. Call it again to go on."""
    return sum(_deliver(entry, outbox, transport, now, events) for entry in outbox.due(now, BATCH))


def _deliver(entry: OutboxEntry, outbox: Outbox, transport: Transport, now: datetime, events: Events) -> bool:
    reply = entry.reply
    told = {"kind": reply.kind, "recipient": reply.recipient}
    try:
        transport.send(reply)
    except (Transient, Permanent) as problem:
        error = str(problem)[:MAX_ERROR]
        next_try_at = None if isinstance(problem, Permanent) else next_try(entry.attempts + 1, now)
        outbox.mark_failed(reply, error, next_try_at)
        if next_try_at is None:
            data = {**told, "reason": f"reply not delivered: {error}"}
            events.emit(Event("DeadLettered", email_id=reply.email_id, data=data))
        return False
    outbox.mark_sent(reply, now)
    events.emit(Event("ReplySent", email_id=reply.email_id, data=told))
    return True


def next_try(attempts: int, now: datetime) -> datetime | None:
    """When to try again after so many failures: twice as long each time; None = it was the last."""
    if attempts >= MAX_TRIES:
        return None
    return now + timedelta(seconds=min(FIRST_WAIT_SECONDS * 2 ** (attempts - 1), LONGEST_WAIT_SECONDS))
