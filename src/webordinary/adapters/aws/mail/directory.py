"""Projects and entitled senders: an item per address and project, and one per project with its settings."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.dynamo import (
    ConditionFailed,
    Dynamo,
    Fields,
    check,
    delete,
    epoch,
    expressed,
    from_item,
    moment,
    update,
)
from webordinary.adapters.aws.mail.mails import KEEP_DAYS
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser, branch_of, thread_id_of
from webordinary.model.projects import Project, Sender, SenderRole, Thread

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

SETTINGS = "-"
"""The sort key of a project's settings; no project is called so, and no address is `project#…`."""
MOST_ENTRIES = 1000
MOST_PAGES = 200
FRESH_SECONDS = 60.0
"""A job asks for its project as it begins, and a quick one needs not ask again as it ends."""
_REMEMBERED = 1000

SET = "SET #settings = :settings, #createdAt = if_not_exists(#createdAt, :now)"


class AwsDirectory:
    """See Directory."""

    def __init__(
        self,
        client: DynamoDBClient,
        dynamo: Dynamo,
        table: str = names.PROJECTS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._dynamo, self._table, self._monotonic = client, dynamo, table, monotonic
        self._outputs: dict[str, tuple[float, bool]] = {}

    def entries(self, address: str) -> tuple[Sender, ...]:
        if "@" not in address:
            return ()
        where, values = "#email = :address", {"address": address.lower()}
        found = self._dynamo.query(f"looking up {address}", self._table, where, values, MOST_ENTRIES)
        return tuple(_sender(item) for item in found)

    def project(self, project_id: str) -> Project | None:
        item = self._dynamo.get(f"looking up project {project_id}", (self._table, _place(project_id)))
        project = Project(**item["settings"]) if item else None
        if len(self._outputs) >= _REMEMBERED:
            self._outputs.clear()
        self._outputs[project_id] = (self._monotonic(), project is not None and project.output)
        return project

    def wants_output(self, project_id: str) -> bool:
        """Whether results of this project go to its output queue; cached for a minute."""
        asked_at, is_set = self._outputs.get(project_id, (-FRESH_SECONDS, False))
        if self._monotonic() - asked_at < FRESH_SECONDS:
            return is_set
        project = self.project(project_id)
        return project is not None and project.output

    def projects(self) -> tuple[Project, ...]:
        """See Directory. Reads the whole table: for lists that people look at."""
        found = self._scan("begins_with(#email, :project) AND #projectId = :none", project="project#", none=SETTINGS)
        projects = (Project(**item["settings"]) for item in found)
        return tuple(sorted(projects, key=lambda project: project.project_id))

    def senders(self) -> tuple[Sender, ...]:
        """See Directory. Reads the whole table: for lists that people look at."""
        senders = (_sender(item) for item in self._scan("#projectId <> :none", none=SETTINGS))
        return tuple(sorted(senders, key=lambda sender: (sender.key.project_id, sender.address)))

    def add_project(self, project: Project, now: datetime) -> None:
        change = update(self._table, _place(project.project_id), SET, settings=asdict(project), now=moment(now))
        self._dynamo.write(f"keeping the settings of project {project.project_id}", change)

    def change_project(self, before: Project, after: Project) -> bool:
        place, what = _place(before.project_id), f"changing the settings of project {before.project_id}"
        item = self._dynamo.get(what, (self._table, place))
        if item is None or Project(**item["settings"]) != before:
            return False
        same = "#settings = :stored OR #settings = :settings"  # the second: our own write, unheard
        # As they are stored: an earlier version wrote fewer.
        stored, settings = item["settings"], asdict(after)
        change = update(self._table, place, "SET #settings = :settings", same, stored=stored, settings=settings)
        return not isinstance(self._dynamo.write(what, change), ConditionFailed)

    def add_sender(self, sender: Sender, now: datetime) -> None:
        project_id, address = sender.key.project_id, sender.address.lower()
        if "@" not in address:
            raise Permanent(f"{address!r} is no mail address: write it like scott@example.com")
        place = {"email": address, "projectId": project_id}
        change = "SET #userId = :user, #createdAt = if_not_exists(#createdAt, :now)"
        writes = [
            update(self._table, place, change, user=sender.key.user_id, now=moment(now)),
            check(self._table, _place(project_id), "attribute_exists(#email)"),
        ]
        if self._dynamo.transact(f"entitling {address}", writes, secrets.token_hex(16)):
            raise Permanent(f"there is no project {project_id}: add it first")

    def set_role(self, address: str, project_id: str, role: SenderRole) -> bool:
        place = {"email": address.lower(), "projectId": project_id}
        change = update(self._table, place, "SET #role = :role", "attribute_exists(#email)", role=role.value)
        return not isinstance(self._dynamo.write(f"changing the role of {address}", change), ConditionFailed)

    def remove_sender(self, address: str, project_id: str) -> None:
        place = {"email": address.lower(), "projectId": project_id}
        self._dynamo.write(f"taking {project_id} from {address}", delete(self._table, place))

    def remove_project(self, project_id: str) -> None:
        """See Directory. The settings go last: who is killed on the way finds it still there, and goes on."""
        for sender in self.senders():
            if sender.key.project_id == project_id:
                self.remove_sender(sender.address, project_id)
        self._dynamo.write(f"forgetting project {project_id}", delete(self._table, _place(project_id)))

    def _scan(self, where: str, **values: object) -> Iterator[Fields]:
        asked: Any = {"TableName": self._table, "FilterExpression": where, "ConsistentRead": True}
        asked |= expressed(where, values)
        for _ in range(MOST_PAGES):
            with translated("listing projects and senders"):
                page = self._client.scan(**asked)
            yield from map(from_item, page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        raise Permanent(f"{self._table} holds more than {MOST_PAGES} pages: it is not listed as a whole")


def _place(project_id: str) -> dict[str, str]:
    return {"email": f"project#{project_id}", "projectId": SETTINGS}


def _sender(item: Fields) -> Sender:
    role = SenderRole(item.get("role", SenderRole.BOTH))
    return Sender(item["email"], ProjectUser(item["projectId"], item["userId"]), role)


_IDS_AT_ONCE = 50  # two keys each, and a batch reads 100
_LONGEST_ID = 500
_THERE = "attribute_exists(#id)"

BEGIN = """
SET #projectUserId = if_not_exists(#projectUserId, :owner), #subject = if_not_exists(#subject, :subject),
    #agentSession = if_not_exists(#agentSession, :session), #branch = if_not_exists(#branch, :branch),
    #createdAt = if_not_exists(#createdAt, :now)"""

AS_GIVEN = """
attribute_not_exists(#id) OR (#projectUserId = :owner AND #subject = :subject AND #agentSession = :session)"""

FILE = """
SET #threadId = if_not_exists(#threadId, :thread), #emailId = if_not_exists(#emailId, :mail),
    #expiresAt = if_not_exists(#expiresAt, :expires)"""
# The first thread keeps a Message-ID, so that a forged copy of an id cannot move a conversation.


class AwsThreads:
    """See Threads. A Message-ID expires with its mail; the thread itself stays, known by its id."""

    def __init__(
        self, dynamo: Dynamo, now: Callable[[], datetime], table: str = names.THREADS, keep_days: int = KEEP_DAYS
    ) -> None:
        self._dynamo, self._now, self._table, self._keep_days = dynamo, now, table, keep_days

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
        key, filed = _thread(thread.thread_id), self.filed(thread.thread_id, message_id, email_id)
        as_given = update(self._table, key, BEGIN, AS_GIVEN, **values)
        if self._dynamo.transact(what, [as_given, filed], secrets.token_hex(16)) is None:
            return thread
        stored = self._dynamo.write(what, update(self._table, key, BEGIN, **values))
        self._dynamo.write(what, filed)
        assert not isinstance(stored, ConditionFailed), "a write without a condition is not refused"
        return _read(stored)

    def add_message(self, thread_id: str, message_id: str, email_id: str = "") -> None:
        writes = [self.filed(thread_id, message_id, email_id), check(self._table, _thread(thread_id), _THERE)]
        if self._dynamo.transact(f"filing a message under thread {thread_id}", writes, secrets.token_hex(16)):
            raise Permanent(f"thread {thread_id} is not recorded: {message_id} cannot join it")

    def mail_of(self, message_ids: Sequence[str]) -> str:
        for message_id in message_ids:
            if item := self._dynamo.get("finding the mail that is answered", (self._table, _message(message_id))):
                return str(item.get("emailId", ""))
        return ""

    def save_session(self, thread_id: str, agent_session: str) -> None:
        keep = update(self._table, _thread(thread_id), "SET #agentSession = :session", _THERE, session=agent_session)
        self._dynamo.write(f"keeping the agent's session of thread {thread_id}", keep)

    def filed(self, thread_id: str, message_id: str, email_id: str) -> Write:
        """The write by which a Message-ID leads to its thread."""
        expires = epoch(self._now() + timedelta(days=self._keep_days))
        return update(self._table, _message(message_id), FILE, thread=thread_id, mail=email_id, expires=expires)


def _message(message_id: str) -> dict[str, str]:
    """A Message-ID as a key, which has at most 2,048 bytes: a longer one is stored by its digest."""
    if len(message_id) > _LONGEST_ID:
        message_id = hashlib.sha256(message_id.encode("utf-8", "surrogatepass")).hexdigest()
    return {"id": f"message#{message_id}"}


def _thread(thread_id: str) -> dict[str, str]:
    return {"id": f"thread#{thread_id}"}


def _read(item: dict[str, Any]) -> Thread:
    key = ProjectUser.parse(item["projectUserId"])
    return Thread(item["id"].removeprefix("thread#"), key, item["subject"], item["agentSession"])
