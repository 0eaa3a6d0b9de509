"""Projects and entitled senders: an item per address and project, and one per project with its settings."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.dynamo import Dynamo, Fields
from webordinary.adapters.aws.items import from_item, moment
from webordinary.adapters.aws.writes import check, delete, expressed, put, update
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

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
        """See Directory."""
        if "@" not in address:
            return ()
        where, values = "#email = :address", {"address": address.lower()}
        found = self._dynamo.query(f"looking up {address}", self._table, where, values, MOST_ENTRIES)
        return tuple(_sender(item) for item in found)

    def project(self, project_id: str) -> Project | None:
        """See Directory."""
        item = self._dynamo.get(f"looking up project {project_id}", (self._table, _place(project_id)))
        project = Project(**item["settings"]) if item else None
        if len(self._outputs) >= _REMEMBERED:
            self._outputs.clear()
        self._outputs[project_id] = (self._monotonic(), project is not None and project.output)
        return project

    def wants_output(self, project_id: str) -> bool:
        """Whether somebody wants to hear of this project's jobs, as of the last minute."""
        asked_at, wanted = self._outputs.get(project_id, (-FRESH_SECONDS, False))
        if self._monotonic() - asked_at < FRESH_SECONDS:
            return wanted
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
        """See Directory."""
        change = update(self._table, _place(project.project_id), SET, settings=asdict(project), now=moment(now))
        self._dynamo.write(f"keeping the settings of project {project.project_id}", change)

    def add_sender(self, sender: Sender, now: datetime) -> None:
        """See Directory."""
        project_id, address = sender.key.project_id, sender.address.lower()
        if "@" not in address:
            raise Permanent(f"{address!r} is no mail address: write it like scott@example.com")
        item = {"email": address, "projectId": project_id, "userId": sender.key.user_id, "createdAt": moment(now)}
        writes = [
            put(self._table, item),
            check(self._table, _place(project_id), "attribute_exists(#email)"),
        ]
        if self._dynamo.transact(f"entitling {address}", writes, secrets.token_hex(16)):
            raise Permanent(f"there is no project {project_id}: add it first")

    def remove_sender(self, address: str, project_id: str) -> None:
        """See Directory."""
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
    return Sender(item["email"], ProjectUser(item["projectId"], item["userId"]))
