"""Replies that SES did not take, for an operator who has mended the reason."""

from __future__ import annotations

from datetime import datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Fields, Refused
from webordinary.adapters.aws.items import at, moment
from webordinary.adapters.aws.mail.mail_items import MailItems
from webordinary.adapters.aws.mail.outbox import GIVEN_UP_REPLY, PREFIX, REPLY, UNSENT
from webordinary.adapters.aws.writes import update
from webordinary.mail.ports import Undelivered

SEND_AGAIN = "SET #due = :reply, #dueAt = :now, #attempts = :none, #givenUp = :no"


class AwsUndelivered:
    """See UndeliveredReplies."""

    def __init__(self, items: MailItems) -> None:
        self._items = items

    def all(self, limit: int) -> list[Undelivered]:
        """See UndeliveredReplies."""
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
        """See UndeliveredReplies."""
        key = self._items.key(reply.email_id, PREFIX + reply.kind)
        change = update(self._items.table, key, SEND_AGAIN, UNSENT, reply=REPLY, now=moment(now), none=0, no=False)
        done = self._items.dynamo.write(f"sending the reply to mail {reply.email_id} again", change)
        return not isinstance(done, Refused)


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
