"""Delivery of replies: at least once each, with retries, given up where a person sees it.

A reply is sent, then marked as sent. A crash in between leaves it due, and it is sent a second time: a customer
who reads an answer twice is better off than one who never gets it. A relay's receivers know the second copy by its
Message-ID, a Maildir by its file; SES gives every copy a new Message-ID and remembers none, so there the window is
kept small: one deliverer at a time has a reply, and a doubtful send waits for word from SES (see `read_notification`)
before it is tried again, twice at most.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from webordinary.mail.confirm import without_token
from webordinary.mail.ports import Outbox, OutboxEntry, PerhapsSent, Transport
from webordinary.mail.replies.compose import CONFIRM
from webordinary.model.errors import Backoff, Permanent, Transient
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.mail import Reply

BATCH = 50
KEPT_TRYING = timedelta(days=3)
LEAST_TRIES = 12  # also for an old reply that the operator sends again
MAX_DOUBTFUL_TRIES = 2
RETRIES = Backoff(2.0, cap=3600.0)
DOUBT_SECONDS = 600.0
MAX_ERROR = 500


def deliver_due(outbox: Outbox, transport: Transport, now: datetime, events: Events) -> int:
    """Try every reply that is due, once; returns how many were sent."""
    sent, batch_sent, may_be_more = 0, 1, True
    while may_be_more and batch_sent:
        due = outbox.due(now, BATCH)
        batch_sent = sum(deliver(entry, outbox, transport, now, events) for entry in due)
        sent, may_be_more = sent + batch_sent, len(due) > BATCH // 2  # others may have reserved a part of a full batch
    return sent


@dataclass(frozen=True, slots=True)
class OutboxSender:
    """Sends due replies, and retries replies whose delivery failed."""

    outbox: Outbox
    transport: Transport
    events: Events
    name: str = "outbox"

    def run_once(self, now: datetime) -> int:
        return deliver_due(self.outbox, self.transport, now, self.events)


def deliver(entry: OutboxEntry, outbox: Outbox, transport: Transport, now: datetime, events: Events) -> bool:
    """Try one reply, once; False if it did not leave."""
    reply = entry.reply
    sent = {"kind": reply.kind, "recipient": reply.recipient}
    try:
        sent_as = transport.send(reply)
    except (Transient, Permanent) as problem:
        error, next_try_at = str(problem)[:MAX_ERROR], _next_try(problem, entry, now)
        outbox.mark_failed(reply, error, next_try_at)
        if next_try_at is None:
            data = {**sent, "reason": f"reply not delivered: {error}"}
            events.emit(Event(EventKind.DEAD_LETTERED, email_id=reply.email_id, data=data))
        return False
    _mark_sent(reply, outbox, now, sent_as)
    events.emit(Event(EventKind.REPLY_SENT, email_id=reply.email_id, data=sent))
    return True


def _mark_sent(reply: Reply, outbox: Outbox, now: datetime, sent_as: str | None) -> None:
    outbox.mark_sent(reply, now, sent_as, without_token(reply.raw) if reply.kind == CONFIRM else None)


def _next_try(problem: Transient | Permanent, entry: OutboxEntry, now: datetime) -> datetime | None:
    attempts = entry.attempts + 1
    match problem:
        case Permanent():
            return None
        case PerhapsSent():
            return None if attempts >= MAX_DOUBTFUL_TRIES else now + timedelta(seconds=DOUBT_SECONDS)
    return next_try(attempts, entry.created_at, now)


def next_try(attempts: int, created_at: datetime, now: datetime) -> datetime | None:
    """When to try again: after twice as long each time, then hourly, for three days; None = it was the last try."""
    if attempts >= LEAST_TRIES and now >= created_at + KEPT_TRYING:
        return None
    return now + timedelta(seconds=RETRIES.delay(attempts - 1))


class PromptOutbox:
    """An outbox that keeps the replies of this process until `deliver_written` is called, so that the store is not read
    for them again. `due` finds the replies that other processes left behind.

    One thread at a time, as a lambda has it.
    """

    def __init__(self, outbox: Outbox, transport: Transport, events: Events, now: Callable[[], datetime]) -> None:
        self._outbox, self._transport, self._events, self._now = outbox, transport, events, now
        self._written: list[OutboxEntry] = []

    def deliver_written(self) -> None:
        """Deliver what `put` kept since the last call."""
        written, self._written = self._written, []
        for entry in written:
            deliver(entry, self._outbox, self._transport, self._now(), self._events)

    def put(self, reply: Reply, now: datetime) -> bool:
        is_new = self._outbox.put(reply, now)
        if is_new:
            self._written.append(OutboxEntry(reply, created_at=now, next_try_at=now))
        return is_new

    def due(self, now: datetime, limit: int) -> tuple[OutboxEntry, ...]:
        return self._outbox.due(now, limit)

    def mark_sent(self, reply: Reply, now: datetime, sent_as: str | None = None, kept: bytes | None = None) -> None:
        self._outbox.mark_sent(reply, now, sent_as, kept)

    def mark_failed(self, reply: Reply, error: str, next_try_at: datetime | None) -> None:
        self._outbox.mark_failed(reply, error, next_try_at)

    def mark_bounced(self, reply: Reply, reason: str) -> None:
        self._outbox.mark_bounced(reply, reason)

    def of(self, email_id: str) -> tuple[OutboxEntry, ...]:
        return self._outbox.of(email_id)


EMAIL_TAG, KIND_TAG = "email", "kind"
"""The names of the tags that a reply is sent with."""
MAX_REASON = 500
MAX_NOTIFICATION = 512 * 1024


class ReplyFate(StrEnum):
    """What became of a reply."""

    LEFT = "left"
    BOUNCED = "bounced"


@dataclass(frozen=True, slots=True)
class DeliveryNotification:
    """Word of one reply. Without an `email_id` it is none that we tagged."""

    fate: ReplyFate
    email_id: str
    kind: str
    ses_id: str
    recipient: str
    reason: str = ""


def ses_message_id(ses_id: str, region: str) -> str:
    """The Message-ID that SES gives to a mail which it calls so."""
    if "@" in ses_id:
        return f"<{ses_id}>"
    return f"<{ses_id}@{'email' if region == 'us-east-1' else region}.amazonses.com>"


def read_notification(text: str) -> DeliveryNotification | None:
    """Read what SES published; None for what we have no use for. Raises Permanent where it is nothing of SES's.

    Feedback of an identity says `notificationType`, events of a configuration set say `eventType`, and those alone
    carry tags.
    """
    try:
        notification = json.loads(text[:MAX_NOTIFICATION])
        mail = notification["mail"]
        what = notification.get("eventType") or notification["notificationType"]
        tags: Mapping[str, Any] = mail.get("tags") or {}
        email_id, kind = (str((tags.get(tag) or [""])[0]) for tag in (EMAIL_TAG, KIND_TAG))
        ses_id, recipient = str(mail["messageId"]), ", ".join(map(str, mail["destination"][:5]))
        fate, reason = _news(str(what), notification)
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise Permanent(f"this is no notification of SES ({problem!r}): {text[:200]!r}") from problem
    return DeliveryNotification(fate, email_id, kind, ses_id, recipient, reason[:MAX_REASON]) if fate else None


def _news(what: str, notification: Mapping[str, Any]) -> tuple[ReplyFate | None, str]:
    match what:
        case "Send" | "Delivery":
            return ReplyFate.LEFT, ""
        case "Bounce":
            return ReplyFate.BOUNCED, _bounce(notification["bounce"])
        case "Complaint":
            feedback = notification["complaint"].get("complaintFeedbackType") or "no reason given"
            return ReplyFate.BOUNCED, f"complaint: its receiver does not want it ({feedback})"
        case "Reject":
            return ReplyFate.BOUNCED, f"rejected by SES: {notification['reject'].get('reason') or 'no reason given'}"
    return None, ""


def _bounce(bounce: Mapping[str, Any]) -> str:
    hard = "for good" if bounce.get("bounceType") == "Permanent" else "for now"
    reasons = [one.get("diagnosticCode") or one.get("status") or "" for one in bounce.get("bouncedRecipients", [])[:5]]
    words = "; ".join(filter(None, map(str, reasons))) or "no reason given"
    return f"bounced {hard} ({bounce.get('bounceSubType') or 'General'}): {words}"


def take_notice(notice: DeliveryNotification, region: str, outbox: Outbox, events: Events, now: datetime) -> None:
    """Note what became of a reply; again is harmless."""
    entry = _entry(notice, outbox)
    if entry and entry.sent_at is None:
        _mark_sent(entry.reply, outbox, now, ses_message_id(notice.ses_id, region))
    if notice.fate is not ReplyFate.BOUNCED or (entry and entry.bounced == notice.reason):
        return
    if entry:
        outbox.mark_bounced(entry.reply, notice.reason)
    data = {"kind": notice.kind, "recipient": notice.recipient, "reason": notice.reason, "ses_id": notice.ses_id}
    events.emit(Event(EventKind.REPLY_BOUNCED, email_id=notice.email_id or None, data=data))


def _entry(notice: DeliveryNotification, outbox: Outbox) -> OutboxEntry | None:
    if not notice.email_id:
        return None
    return next((entry for entry in outbox.of(notice.email_id) if entry.reply.kind == notice.kind), None)
