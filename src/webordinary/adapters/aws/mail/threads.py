"""Mail conversations: an item per Message-ID that names its thread, and an item per thread."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo, Refused
from webordinary.adapters.aws.items import moment
from webordinary.adapters.aws.writes import check, update
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser, branch_of, thread_id_of
from webordinary.model.projects import Thread

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

_IDS_AT_ONCE = 50  # two keys each, and a batch reads 100
_LONGEST_ID = 500
_THERE = "attribute_exists(#id)"

BEGIN = """
SET #projectUserId = if_not_exists(#projectUserId, :owner), #subject = if_not_exists(#subject, :subject),
    #agentSession = if_not_exists(#agentSession, :session), #branch = if_not_exists(#branch, :branch),
    #createdAt = if_not_exists(#createdAt, :now)"""

AS_GIVEN = """
attribute_not_exists(#id) OR (#projectUserId = :owner AND #subject = :subject AND #agentSession = :session)"""

FILE = "SET #threadId = if_not_exists(#threadId, :thread), #emailId = if_not_exists(#emailId, :mail)"
# The first thread keeps a Message-ID, so that a forged copy of an id cannot move a conversation.


class AwsThreads:
    """See Threads."""

    def __init__(self, dynamo: Dynamo, table: str = names.THREADS) -> None:
        self._dynamo, self._table = dynamo, table

    def find(self, message_ids: Sequence[str]) -> Thread | None:
        """See Threads. A thread is named after its root, which is mostly among the ids: it is read along with them."""
        ids = list(dict.fromkeys(message_ids))
        for start in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[start : start + _IDS_AT_ONCE]
            keys = [_message(one) for one in some] + [_thread(thread_id_of(one)) for one in some]
            found = self._dynamo.get_all("finding a mail's thread", self._table, keys)
            items = {item["id"]: item for item in found}
            if filed := next(filter(None, (items.get(_message(one)["id"]) for one in some)), None):
                thread = items.get(_thread(filed["threadId"])["id"])
                return _read(thread) if thread else self.get(filed["threadId"])
        return None

    def get(self, thread_id: str) -> Thread | None:
        """See Threads."""
        item = self._dynamo.get(f"reading thread {thread_id}", (self._table, _thread(thread_id)))
        return _read(item) if item else None

    def record(self, thread: Thread, message_id: str, now: datetime, email_id: str = "") -> Thread:
        """See Threads. One transaction where the thread is new, or as the caller has found it."""
        what = f"recording thread {thread.thread_id}"
        values: dict[str, Any] = {
            "owner": str(thread.key),
            "subject": thread.subject,
            "session": thread.agent_session,
            "branch": branch_of(thread.thread_id),
            "now": moment(now),
        }
        key, filed = _thread(thread.thread_id), self._filed(thread.thread_id, message_id, email_id)
        as_given = update(self._table, key, BEGIN, AS_GIVEN, **values)
        if self._dynamo.transact(what, [as_given, filed], secrets.token_hex(16)) is None:
            return thread
        stored = self._dynamo.write(what, update(self._table, key, BEGIN, **values))
        self._dynamo.write(what, filed)
        assert not isinstance(stored, Refused), "a write without a condition is not refused"
        return _read(stored)

    def add_message(self, thread_id: str, message_id: str, email_id: str = "") -> None:
        """See Threads."""
        writes = [self._filed(thread_id, message_id, email_id), check(self._table, _thread(thread_id), _THERE)]
        if self._dynamo.transact(f"filing a message under thread {thread_id}", writes, secrets.token_hex(16)):
            raise Permanent(f"thread {thread_id} is not recorded: {message_id} cannot join it")

    def mail_of(self, message_ids: Sequence[str]) -> str:
        """See Threads."""
        for message_id in message_ids:
            if item := self._dynamo.get("finding the mail that is answered", (self._table, _message(message_id))):
                return str(item.get("emailId", ""))
        return ""

    def save_session(self, thread_id: str, agent_session: str) -> None:
        """See Threads."""
        keep = update(self._table, _thread(thread_id), "SET #agentSession = :session", _THERE, session=agent_session)
        self._dynamo.write(f"keeping the agent's session of thread {thread_id}", keep)

    def _filed(self, thread_id: str, message_id: str, email_id: str) -> Write:
        return update(self._table, _message(message_id), FILE, thread=thread_id, mail=email_id)


def _message(message_id: str) -> dict[str, str]:
    """DynamoDB's keys have 2,048 bytes; what is longer than any Message-ID that we read is known by its digest."""
    if len(message_id) > _LONGEST_ID:
        message_id = hashlib.sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()
    return {"id": f"message#{message_id}"}


def _thread(thread_id: str) -> dict[str, str]:
    return {"id": f"thread#{thread_id}"}


def _read(item: dict[str, Any]) -> Thread:
    key = ProjectUser.parse(item["projectUserId"])
    return Thread(item["id"].removeprefix("thread#"), key, item["subject"], item["agentSession"])
