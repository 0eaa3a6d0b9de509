"""Written replies beside their mails, until they are delivered: `reply#answer`.

A reply that is not sent yet is in the index of what is due. The process that writes one, or gets one from `due`, has it
for a while. No other deliverer sees it meanwhile: SES would send a reply as often as asked.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.blobs import Bodies
from webordinary.adapters.aws.dynamo import ConditionFailed, Fields, at, at_or_none, moment, update
from webordinary.adapters.aws.mail.directory import AwsThreads
from webordinary.adapters.aws.mail.mails import MailItems
from webordinary.mail.ports import OutboxEntry, Undelivered
from webordinary.model.mail import Reply

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

REPLY = "reply"
"""What an item is due for until its reply was sent or given up."""
GIVEN_UP_REPLY = "given-up"
"""What it stands under in that index afterwards, if it was given up: an operator looks for it there."""
PREFIX = "reply#"

RESERVE = "SET #dueAt = :until"
AS_SEEN = "#due = :reply AND #dueAt = :seen"

UNSENT = "attribute_exists(#emailId) AND attribute_not_exists(#sentAt)"
SENT = "SET #sentAt = :now, #attempts = #attempts + :one{more} REMOVE #due, #dueAt, #lastError{less}"
FAILED = "SET #attempts = #attempts + :one, #lastError = :error, #dueAt = :next"
GIVEN_UP = "SET #attempts = #attempts + :one, #lastError = :error, #givenUp = :yes, #due = :given_up"
UNLESS_COUNTED = " AND #dueAt <> :next"
UNLESS_GIVEN_UP = " AND (attribute_not_exists(#givenUp) OR #givenUp = :no)"
"""A write that is repeated because its answer was lost counts one try."""
BOUNCED = "SET #bounced = :reason"


class AwsOutbox:
    """The outbox in DynamoDB. For `delivery_timeout` only the process that wrote or found a reply may send it."""

    def __init__(
        self, items: MailItems, bodies: Bodies, threads: AwsThreads, delivery_timeout: timedelta = timedelta(0)
    ) -> None:
        self._items, self._bodies, self._threads, self._delivery_timeout = items, bodies, threads, delivery_timeout

    def put(self, reply: Reply, now: datetime) -> bool:
        fields = {
            "recipient": reply.recipient,
            "messageId": reply.message_id,
            "threadId": reply.thread_id,
            "createdAt": moment(now),
            "attempts": 0,
            "due": REPLY,
            "dueAt": moment(now + self._delivery_timeout),
            **self._bodies.keep(reply.raw),
        }
        part = PREFIX + reply.kind
        return self._items.add(f"keeping the reply to mail {reply.email_id}", reply.email_id, part, fields)

    def due(self, now: datetime, limit: int) -> tuple[OutboxEntry, ...]:
        found = self._items.dynamo.query(
            "looking for replies to deliver",
            self._items.table,
            "#due = :reply AND #dueAt <= :now",
            {"reply": REPLY, "now": moment(now)},
            limit,
            index=names.DUE_INDEX,
        )
        mine = (self._reserved(item, now) for item in found)
        return tuple(self._entry(item) for item in mine if item)

    def mark_sent(self, reply: Reply, now: datetime, sent_as: str | None = None, kept: bytes | None = None) -> None:
        more = ({"sentAs": sent_as} if sent_as else {}) | (self._bodies.keep(kept) if kept is not None else {})
        less = ", #bodyKey" if "body" in more else ""
        change = SENT.format(more="".join(f", #{name} = :{name}" for name in more), less=less)
        filed = [self._threads.filed(reply.thread_id, sent_as, reply.email_id)] if sent_as and reply.thread_id else []
        self._change(reply, change, UNSENT, *filed, now=moment(now), one=1, **more)

    def mark_failed(self, reply: Reply, error: str, next_try_at: datetime | None) -> None:
        if next_try_at:
            self._change(reply, FAILED, UNSENT + UNLESS_COUNTED, one=1, error=error, next=moment(next_try_at))
        else:
            first = UNSENT + UNLESS_GIVEN_UP
            self._change(reply, GIVEN_UP, first, one=1, error=error, yes=True, no=False, given_up=GIVEN_UP_REPLY)

    def mark_bounced(self, reply: Reply, reason: str) -> None:
        self._change(reply, BOUNCED, "attribute_exists(#emailId)", reason=reason)

    def of(self, email_id: str) -> tuple[OutboxEntry, ...]:
        found = self._items.beginning(f"reading the replies to mail {email_id}", email_id, PREFIX)
        return tuple(self._entry(item) for item in sorted(found, key=lambda item: str(item["createdAt"])))

    def _reserved(self, seen: Fields, now: datetime) -> Fields | None:
        """The whole item, if it is as the index said; it is ours until then."""
        until = moment(now + self._delivery_timeout) if self._delivery_timeout else seen["dueAt"]
        key = self._items.key(seen["emailId"], seen["part"])
        change = update(self._items.table, key, RESERVE, AS_SEEN, until=until, reply=REPLY, seen=seen["dueAt"])
        item = self._items.dynamo.write(f"taking the reply to mail {seen['emailId']}", change)
        return None if isinstance(item, ConditionFailed) else {**item, "dueAt": seen["dueAt"]}

    def _change(self, reply: Reply, change: str, when: str, *besides: Write, **values: object) -> None:
        """A reply that is sent already, or expired, stays as it is, and what were written besides too."""
        items, what = self._items, f"noting what became of the reply to mail {reply.email_id}"
        write = update(items.table, items.key(reply.email_id, PREFIX + reply.kind), change, when, **values)
        if besides:
            items.dynamo.transact(what, [write, *besides], secrets.token_hex(16))
        else:
            items.dynamo.write(what, write)

    def _entry(self, item: dict[str, Any]) -> OutboxEntry:
        return OutboxEntry(
            reply=Reply(
                item["emailId"],
                item["part"].removeprefix(PREFIX),
                item["recipient"],
                item["messageId"],
                self._bodies.read(item),
                item["threadId"],
            ),
            created_at=at(item["createdAt"]),
            next_try_at=at(item.get("dueAt") or item["createdAt"]),
            attempts=item["attempts"],
            sent_at=at_or_none(item.get("sentAt")),
            last_error=item.get("lastError"),
            given_up=item.get("givenUp", False),
            sent_as=item.get("sentAs"),
            bounced=item.get("bounced"),
        )


SEND_AGAIN = "SET #due = :reply, #dueAt = :now, #attempts = :none, #givenUp = :no"


class AwsUndelivered:
    """See UndeliveredReplies."""

    def __init__(self, items: MailItems) -> None:
        self._items = items

    def all(self, limit: int) -> list[Undelivered]:
        what, dynamo, table = "looking for undelivered replies", self._items.dynamo, self._items.table
        keys = [
            self._items.key(found["emailId"], found["part"])
            for due in (GIVEN_UP_REPLY, REPLY)
            for found in dynamo.query(
                what, table, "#due = :due", {"due": due}, limit, index=names.DUE_INDEX, newest=True
            )
        ]
        failed = [_undelivered(item) for item in dynamo.get_all(what, table, keys) if _has_failed(item)]
        return sorted(failed, key=lambda reply: reply.written_at, reverse=True)[:limit]

    def send_again(self, reply: Undelivered, now: datetime) -> bool:
        key = self._items.key(reply.email_id, PREFIX + reply.kind)
        change = update(self._items.table, key, SEND_AGAIN, UNSENT, reply=REPLY, now=moment(now), none=0, no=False)
        done = self._items.dynamo.write(f"sending the reply to mail {reply.email_id} again", change)
        return not isinstance(done, ConditionFailed)


def _has_failed(item: Fields) -> bool:
    """One that was sent, or begun anew, since the index was read is none."""
    return "sentAt" not in item and (item["attempts"] > 0 or bool(item.get("givenUp")))


def _undelivered(item: Fields) -> Undelivered:
    return Undelivered(
        email_id=item["emailId"],
        kind=str(item["part"]).removeprefix(PREFIX),
        recipient=item["recipient"],
        written_at=at(item["createdAt"]),
        next_try_at=None if item.get("givenUp") else at(item["dueAt"]),
        attempts=item["attempts"],
        error=item.get("lastError", ""),
    )
