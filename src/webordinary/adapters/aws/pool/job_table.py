"""The table of jobs as jobs and claims both use it: a key's queue, one job by its name, and moves between places."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo, Fields
from webordinary.adapters.aws.pool.diary import ToldOf, merged, nothing_told
from webordinary.adapters.aws.pool.job_items import (
    Record,
    counter_key,
    fields_of,
    key_of,
    pointer_key,
    pointer_of,
    record_of,
)
from webordinary.adapters.aws.writes import delete, put, update
from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.rules import next_job

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

MOST_OPEN = 1000
_MOVE_TRIES = 5
_KNOWN_PLACES = 4096

QUEUE = "#projectUserId = :key AND #order >= :first"
COUNT = "SET #lastOrder = :order"
COUNTED = "#lastOrder = :last"
NOT_COUNTED = "attribute_not_exists(#lastOrder)"
NEW = "attribute_not_exists(#projectUserId)"
UNCHANGED = "#revision = :revision"
SAME_PLACE = "#key = :key AND #at = :at"


@dataclass(frozen=True, slots=True)
class Queue:
    """The open jobs of a key in order, and the last order it gave."""

    last_order: int
    records: list[Record]

    @property
    def jobs(self) -> list[Job]:
        """Without their revisions."""
        return [record.job for record in self.records]

    def next(self, fence: int, now: datetime) -> Record | None:
        """What may start under this fence."""
        job = next_job(self.jobs, fence, now)
        return self.of(job.job_id) if job else None

    def of(self, job_id: str) -> Record | None:
        """The open job of that name."""
        return next((record for record in self.records if record.job.job_id == job_id), None)


class JobTable:
    """Reads are consistent. Where jobs lie is remembered, and looked up again when they have moved."""

    def __init__(self, dynamo: Dynamo, name: str = names.JOBS, told_of: ToldOf = nothing_told) -> None:
        """What was told of a job by this process is written with the job's next change."""
        self.dynamo, self.name, self._told_of = dynamo, name, told_of
        self._places: dict[str, dict[str, object]] = {}
        self._guard = threading.Lock()

    def queue(self, key: ProjectUser) -> Queue:
        """A key's open jobs and its counter, in one call."""
        found = self._read(key, 0, MOST_OPEN + 1)
        last_order = found[0]["lastOrder"] if found and found[0]["order"] == 0 else 0
        return Queue(last_order, self._records(fields for fields in found if fields["order"] > 0))

    def open(self, key: ProjectUser, limit: int, after: int = 0) -> list[Record]:
        """The first open jobs of a key behind the order `after`."""
        return self._records(self._read(key, after + 1, limit))

    def find(self, job_id: str) -> Record | None:
        """One job, wherever it lies; None if it is not recorded."""
        for _ in range(_MOVE_TRIES):
            place = self._place(job_id)
            if place is None:
                return None
            fields = self.dynamo.get(f"reading job {job_id}", (self.name, place))
            if fields:
                return record_of(fields)
            self.missed(job_id, place)
        raise Transient(f"job {job_id} moves faster than it can be read")

    def get(self, job_id: str) -> Record:
        """One job that must be there."""
        if record := self.find(job_id):
            return record
        raise _not_recorded(job_id)

    def place(self, job_id: str) -> dict[str, object]:
        """Where a job that must be there lies, as far as is known here."""
        if place := self._place(job_id):
            return place
        raise _not_recorded(job_id)

    def remember(self, job: Job) -> None:
        """This is how it lies now."""
        self._remember(job.job_id, key_of(job))

    def expect(self, job_id: str, key: str, order: int) -> None:
        """Somebody was told that it lies here. If it has moved since, it is looked up."""
        self._remember(job_id, {"projectUserId": key, "order": order})

    def missed(self, job_id: str, place: dict[str, object]) -> None:
        """It was not there any more: mostly it has settled, and lies at minus its order; else it is looked up."""
        order = place["order"]
        assert isinstance(order, int)
        if order > 0:
            self._remember(job_id, {**place, "order": -order})
            return
        with self._guard:
            self._places.pop(job_id, None)

    def change(self, before: Record, after: Job, request: str) -> list[Write]:
        """Make a job what it is to be, unless somebody changed it; it moves when it settles or goes to the tail."""
        told = merged(before.told, self._told_of(after.job_id))
        fields = fields_of(Record(after, before.revision + 1, before.called_back, told), request)
        if key_of(after) == before.key:
            return [put(self.name, fields, UNCHANGED, revision=before.revision)]
        return [
            delete(self.name, before.key, UNCHANGED, revision=before.revision),
            put(self.name, fields, NEW),
            self._moved(before.job, after),
        ]

    def _place(self, job_id: str) -> dict[str, object] | None:
        with self._guard:
            known = self._places.get(job_id)
        if known:
            return known
        pointer = self.dynamo.get(f"looking for job {job_id}", (self.name, pointer_key(job_id)))
        return self._remember(job_id, {"projectUserId": pointer["key"], "order": pointer["at"]}) if pointer else None

    def _read(self, key: ProjectUser, first: int, limit: int) -> list[Fields]:
        values = {"key": str(key), "first": first}
        return self.dynamo.query(f"reading the queue of {key}", self.name, QUEUE, values, limit)

    def count(self, key: ProjectUser, last: int) -> Write:
        """Give out the order after `last`."""
        counter = counter_key(key)
        if last:
            return update(self.name, counter, COUNT, COUNTED, order=last + 1, last=last)
        return update(self.name, counter, COUNT, NOT_COUNTED, order=1)

    def _moved(self, before: Job, after: Job) -> Write:
        return put(self.name, pointer_of(after), SAME_PLACE, key=str(before.key), at=key_of(before)["order"])

    def _records(self, found: Iterable[Fields]) -> list[Record]:
        records = [record_of(fields) for fields in found]
        for record in records:
            self.remember(record.job)
        return records

    def _remember(self, job_id: str, place: dict[str, object]) -> dict[str, object]:
        with self._guard:
            if len(self._places) >= _KNOWN_PLACES:
                self._places.clear()
            self._places[job_id] = place
        return place


def _not_recorded(job_id: str) -> Permanent:
    return Permanent(f"job {job_id} is not recorded; it was pruned, or its mail never got this far")
