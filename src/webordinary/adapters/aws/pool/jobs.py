"""Jobs in DynamoDB."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Fields, Refused
from webordinary.adapters.aws.items import moment
from webordinary.adapters.aws.pool.job_items import (
    OPEN,
    OWES,
    Record,
    counter_key,
    fields_of,
    key_of,
    pointer_key,
    pointer_of,
    record_of,
)
from webordinary.adapters.aws.pool.job_table import NEW, JobTable
from webordinary.adapters.aws.writes import put, update
from webordinary.model.errors import Transient
from webordinary.model.jobs import Job, NewJob, Settlement
from webordinary.model.names import ProjectUser
from webordinary.pool.reading import all_open
from webordinary.pool.rules import settles_at_once
from webordinary.pool.turns import settled

IS_IT = "#jobId = :job"
ENQUEUE = "SET #state = :queued, #queuedAt = :now ADD #revision :one"
PREPARING = f"{IS_IT} AND #state = :preparing"
BIND = "SET #taskToken = :token REMOVE #calledBack ADD #revision :one"
BIND_SETTLED = "SET #taskToken = :token, #owes = :owes REMOVE #calledBack ADD #revision :one"
LET_GO = "REMOVE #notBefore ADD #revision :one"
PUT_OFF = f"{IS_IT} AND #state = :queued AND attribute_exists(#notBefore)"

OF_SHARD = "#openShard = :open AND #projectUserId > :after"
OF_PROJECT = "#openShard = :open AND #projectUserId BETWEEN :first AND :last"

_TRIES = 8
_RECORD_TRIES = 24
"""Somebody who sends many mails at once waits for a moment, while they get their orders one by one."""
_PAGE = 1000


class AwsJobs:
    """The truth about work, as items."""

    def __init__(self, table: JobTable) -> None:
        self._table, self._dynamo = table, table.dynamo

    def record(self, new: NewJob, now: datetime, *, ready: bool = False) -> Job:
        """Give a new job its order."""
        what = f"recording job {new.job_id}"
        last = (self._dynamo.get(what, (self._table.name, counter_key(new.key))) or {}).get("lastOrder", 0)
        for tries in range(_RECORD_TRIES):
            job = new.recorded(last + 1, now, ready=ready)
            refused = self._record(what, job, last)
            if refused is None:
                self._table.remember(job)
                return job
            if 2 in refused.by:
                return self._table.get(new.job_id).job
            last = refused.by.get(0, {}).get("lastOrder", last)
            self._dynamo.back_off(tries)
        raise Transient(f"{what}: too many jobs of {new.key} are recorded at the same time")

    def enqueue(self, job_id: str, now: datetime) -> Job:
        """Make a preparing job runnable."""
        values = {"queued": "queued", "preparing": "preparing", "now": moment(now), "one": 1}
        return self._update(job_id, ENQUEUE, PREPARING, values).job

    def get(self, job_id: str) -> Job | None:
        """One job, open or settled."""
        record = self._table.find(job_id)
        return record.job if record else None

    def open_jobs(self, key: ProjectUser, limit: int = 1000, after: int = 0) -> Sequence[Job]:
        """The open jobs of a key, in order."""
        return [record.job for record in self._table.open(key, limit, after)]

    def bind_token(self, job_id: str, token: str) -> Job:
        """Name whom to call back."""
        for _ in range(_TRIES):
            place = self._table.place(job_id)
            is_open = isinstance(place["order"], int) and place["order"] > 0
            change, more = (BIND, {}) if is_open else (BIND_SETTLED, {"owes": OWES})
            values = {"job": job_id, "token": token, "one": 1, **more}
            written = self._dynamo.write(
                f"binding a token to job {job_id}", update(self._table.name, place, change, IS_IT, **values)
            )
            if not isinstance(written, Refused):
                return record_of(written).job
            self._table.missed(job_id, place)
        raise Transient(f"job {job_id} moves faster than it can be written")

    def settle_waiting(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        """End a job that waits, or ask a worker."""
        for _ in range(_TRIES):
            record = self._table.get(job_id)
            if not record.job.open:
                return record.job
            at_once = settles_at_once(record.job)
            if record.job.cancel_requested and not at_once:
                return record.job
            asked = replace(record.job, cancel_requested=True, not_before=None)
            after, request = settled(record.job, settlement, now) if at_once else asked, str(uuid.uuid4())
            writes = self._table.change(record, after, request)
            if self._dynamo.transact(f"settling job {job_id}", writes, request) is None:
                self._table.remember(after)
                return after
        raise Transient(f"job {job_id} changes faster than it can be settled")

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        """Every key that has work, as the index knew it a moment ago."""
        keys: list[str] = []
        last = str(after) if after else " "
        while len(keys) < limit:
            found = self._index(OF_SHARD, after=last)
            keys += _keys(found)
            if len(found) < _PAGE:
                break
            last = keys[-1]
        return [ProjectUser.parse(key) for key in keys[:limit]]

    def keys_of(self, project_id: str) -> Sequence[ProjectUser]:
        """Every key of a project that has open jobs, as the index knew it a moment ago."""
        keys: list[str] = []
        first, last = f"{project_id}#", f"{project_id}$"  # '$' is the character after '#'
        while found := self._index(OF_PROJECT, first=first, last=last):
            keys += _keys(found)
            if len(found) < _PAGE:
                break
            first = f"{keys[-1]} "  # no name has a space: it is behind this key, and before every other
        return [ProjectUser.parse(key) for key in keys]

    def let_go(self, project_id: str) -> Sequence[ProjectUser]:
        """Jobs of a project that were put off may start now; the keys that have such jobs."""
        return [key for key in self.keys_of(project_id) if self._let_go(key)]

    def _let_go(self, key: ProjectUser) -> bool:
        waiting = [job for job in all_open(self, key) if job.not_before]
        values = {"queued": "queued", "one": 1}
        freed = [
            self._dynamo.write(
                f"letting job {job.job_id} go",
                update(self._table.name, key_of(job), LET_GO, PUT_OFF, job=job.job_id, **values),
            )
            for job in waiting
        ]
        return any(not isinstance(written, Refused) for written in freed)

    def _record(self, what: str, job: Job, last: int) -> Refused | None:
        table, request = self._table.name, str(uuid.uuid4())
        writes = [
            self._table.count(job.key, last),
            put(table, fields_of(Record(job, 1), request), NEW),
            put(table, {**pointer_of(job), "request": request}, NEW),
        ]
        return self._dynamo.transact(what, writes, request, (table, pointer_key(job.job_id)))

    def _update(self, job_id: str, change: str, when: str, values: Fields) -> Record:
        """The job after the change, or as it is if `when` did not hold."""
        for _ in range(_TRIES):
            place = self._table.place(job_id)
            write = update(self._table.name, place, change, when, job=job_id, **values)
            written = self._dynamo.write(f"changing job {job_id}", write)
            if not isinstance(written, Refused):
                return record_of(written)
            if written.by[0]:
                return record_of(written.by[0])
            self._table.missed(job_id, place)
        raise Transient(f"job {job_id} moves faster than it can be written")

    def _index(self, where: str, **values: object) -> list[Fields]:
        what, values = "looking for keys with work", {"open": OPEN, **values}
        return self._dynamo.query(what, self._table.name, where, values, _PAGE, index=names.OPEN_INDEX)


def _keys(found: Iterable[Fields]) -> list[str]:
    return list(dict.fromkeys(fields["projectUserId"] for fields in found))
