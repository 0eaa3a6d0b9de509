"""Replies leave the house: at least once each, tried again with patience, given up where a person sees it.

A reply is sent, then marked as sent. Whoever dies in between leaves it due, and it is sent a second time: a customer
who reads an answer twice is better off than one who never gets it. A relay's receivers know the second copy by its
Message-ID, a Maildir by its file; SES gives every copy a new Message-ID and remembers none, so there the window is
kept small: one deliverer at a time has a reply, and a doubtful send waits for word from SES (see `mail.bounces`)
before it is tried again, twice at most.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from webordinary.mail.errors import PerhapsSent
from webordinary.mail.ports import Outbox, OutboxEntry, Threads, Transport
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, Events
from webordinary.model.mail import Reply

BATCH = 50
MAX_TRIES = 12
MAX_DOUBTFUL_TRIES = 2
FIRST_WAIT_SECONDS = 2.0
LONGEST_WAIT_SECONDS = 3600.0
DOUBT_SECONDS = 600.0
MAX_ERROR = 500


def deliver_due(outbox: Outbox, transport: Transport, threads: Threads, now: datetime, events: Events) -> int:
    """Try every reply that is due, once; returns how many were sent. Call it again to go on."""
    return sum(deliver(entry, outbox, transport, threads, now, events) for entry in outbox.due(now, BATCH))


def deliver(
    entry: OutboxEntry, outbox: Outbox, transport: Transport, threads: Threads, now: datetime, events: Events
) -> bool:
    """Try one reply, once; False if it did not leave."""
    reply = entry.reply
    told = {"kind": reply.kind, "recipient": reply.recipient}
    try:
        sent_as = transport.send(reply)
    except (Transient, Permanent) as problem:
        error, next_try_at = str(problem)[:MAX_ERROR], _next_try(problem, entry.attempts + 1, now)
        outbox.mark_failed(reply, error, next_try_at)
        if next_try_at is None:
            data = {**told, "reason": f"reply not delivered: {error}"}
            events.emit(Event("DeadLettered", email_id=reply.email_id, data=data))
        return False
    outbox.mark_sent(reply, now, sent_as)
    if sent_as:
        file_under_thread(reply, sent_as, threads)
    events.emit(Event("ReplySent", email_id=reply.email_id, data=told))
    return True


def file_under_thread(reply: Reply, sent_as: str, threads: Threads) -> None:
    """An answer names the Message-ID that our reply left under: let it be recognised by that."""
    if reply.thread_id:
        with suppress(Transient, Permanent):  # it has left; its references and Reply-To find the thread as well
            threads.add_message(reply.thread_id, sent_as, reply.email_id)


def _next_try(problem: Transient | Permanent, attempts: int, now: datetime) -> datetime | None:
    match problem:
        case Permanent():
            return None
        case PerhapsSent():
            return None if attempts >= MAX_DOUBTFUL_TRIES else now + timedelta(seconds=DOUBT_SECONDS)
    return next_try(attempts, now)


def next_try(attempts: int, now: datetime) -> datetime | None:
    """When to try again after so many failures: twice as long each time; None = it was the last."""
    if attempts >= MAX_TRIES:
        return None
    return now + timedelta(seconds=min(FIRST_WAIT_SECONDS * 2 ** (attempts - 1), LONGEST_WAIT_SECONDS))
