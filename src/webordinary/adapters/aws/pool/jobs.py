"""Jobs, and the audit of their interruptions, in DynamoDB."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import ConditionFailed, Dynamo, Fields, at, epoch, moment, put, update
from webordinary.adapters.aws.pool.job_table import (
    CALLBACK_PENDING,
    NEW,
    OPEN,
    UNCHANGED,
    JobTable,
    Record,
    counter_key,
    fields_of,
    has_pending_callback,
    key_of,
    pointer_key,
    pointer_of,
    record_of,
)
from webordinary.model.errors import HourlyLimitReached, Permanent, Transient
from webordinary.model.jobs import Job, NewJob, Settlement
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Interruption
from webordinary.pool.transitions import all_open, hour_of, stopped

if TYPE_CHECKING:
    pass


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
"""Tries to give a job its order: mails of one person that arrive together contend for one counter."""
_PAGE = 1000


class AwsJobs:
    """See Jobs and WaitingJobs."""

    def __init__(self, table: JobTable) -> None:
        self._table, self._dynamo = table, table.dynamo

    def record(self, new: NewJob, now: datetime, *, ready: bool = False, hourly_limit: int = 0) -> Job:
        """Give a new job its order. The counter of orders counts the jobs of the hour, too."""
        what = f"recording job {new.job_id}"
        counter = self._dynamo.get(what, (self._table.name, counter_key(new.key))) or {}
        for tries in range(_RECORD_TRIES):
            in_hour = counter.get("inHour", 0) if counter.get("hour") == hour_of(now) else 0
            if hourly_limit and in_hour >= hourly_limit:
                return self._known(new, hourly_limit)
            last = counter.get("lastOrder", 0)
            job = new.recorded(last + 1, now, ready=ready)
            refused = self._record(what, job, last, in_hour + 1)
            if refused is None:
                self._table.remember(job)
                return job
            if 2 in refused.by:
                return self._table.get(new.job_id).job
            counter = refused.by.get(0) or counter
            self._dynamo.back_off(tries)
        raise Transient(f"{what}: too many jobs of {new.key} are recorded at the same time")

    def enqueue(self, job_id: str, now: datetime) -> Job:
        values = {"queued": "queued", "preparing": "preparing", "now": moment(now), "one": 1}
        return self._update(job_id, ENQUEUE, PREPARING, values).job

    def get(self, job_id: str) -> Job | None:
        record = self._table.find(job_id)
        return record.job if record else None

    def open_jobs(self, key: ProjectUser, limit: int = 1000, after: int = 0) -> Sequence[Job]:
        return [record.job for record in self._table.open(key, limit, after)]

    def settled_jobs(self, key: ProjectUser, limit: int) -> Sequence[Job]:
        return [record.job for record in self._table.settled(key, limit)]

    def bind_token(self, job_id: str, token: str) -> Job:
        for _ in range(_TRIES):
            place = self._table.place(job_id)
            is_open = isinstance(place["order"], int) and place["order"] > 0
            change, more = (BIND, {}) if is_open else (BIND_SETTLED, {"owes": CALLBACK_PENDING})
            values = {"job": job_id, "token": token, "one": 1, **more}
            written = self._dynamo.write(
                f"binding a token to job {job_id}", update(self._table.name, place, change, IS_IT, **values)
            )
            if not isinstance(written, ConditionFailed):
                return record_of(written).job
            self._table.missed(job_id, place)
        raise Transient(f"job {job_id} moves faster than it can be written")

    def settle_waiting(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        """Settles a waiting job; for a running one, requests its cancellation."""
        for _ in range(_TRIES):
            record = self._table.get(job_id)
            after, request = stopped(record.job, settlement, now), str(uuid.uuid4())
            if after == record.job:
                return after
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
        """By an index that may lag a moment."""
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
        return any(not isinstance(written, ConditionFailed) for written in freed)

    def _known(self, new: NewJob, hourly_limit: int) -> Job:
        """The job, if an earlier try has recorded it."""
        if known := self._table.find(new.job_id):
            return known.job
        raise HourlyLimitReached(new.key, hourly_limit)

    def _record(self, what: str, job: Job, last: int, in_hour: int) -> ConditionFailed | None:
        table, request = self._table.name, str(uuid.uuid4())
        writes = [
            self._table.count(job.key, last, hour=hour_of(job.recorded_at), inHour=in_hour),
            put(table, fields_of(Record(job, 1), self._table.keep_days, request), NEW),
            put(table, {**pointer_of(job, self._table.keep_days), "request": request}, NEW),
        ]
        return self._dynamo.transact(what, writes, request, (table, pointer_key(job.job_id)))

    def _update(self, job_id: str, change: str, when: str, values: Fields) -> Record:
        """The job after the change, or as it is if `when` did not hold."""
        for _ in range(_TRIES):
            place = self._table.place(job_id)
            write = update(self._table.name, place, change, when, job=job_id, **values)
            written = self._dynamo.write(f"changing job {job_id}", write)
            if not isinstance(written, ConditionFailed):
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


HAS_PENDING_CALLBACK = "#owes = :owes"
MARK_DELIVERED = "SET #calledBack = :yes REMOVE #owes ADD #revision :one"
ONLY_THIS_CALLBACK = """
#jobId = :job AND #taskToken = :token AND #state = :settled AND attribute_not_exists(#preemptedToken)"""


class AwsPendingCallbacks:
    """See PendingCallbacks."""

    def __init__(self, table: JobTable) -> None:
        self._table, self._dynamo = table, table.dynamo

    def pending(self, limit: int) -> Sequence[Job]:
        what = "looking for pending callbacks"
        found = self._dynamo.query(
            what,
            self._table.name,
            HAS_PENDING_CALLBACK,
            {"owes": CALLBACK_PENDING},
            limit,
            index=names.PENDING_CALLBACKS_INDEX,
        )
        keys = [{"projectUserId": fields["projectUserId"], "order": fields["order"]} for fields in found]
        records = [record_of(fields) for fields in self._dynamo.get_all(what, self._table.name, keys)]
        return [record.job for record in records if has_pending_callback(record)]

    def mark_delivered(self, job_id: str, token: str) -> None:
        what = f"noting that job {job_id} was told"
        values = {"job": job_id, "token": token, "settled": "settled", "yes": True, "one": 1}
        for _ in range(_TRIES):
            place = self._table.place(job_id)
            written = self._dynamo.write(
                what, update(self._table.name, place, MARK_DELIVERED, ONLY_THIS_CALLBACK, **values)
            )
            if not isinstance(written, ConditionFailed):
                return
            if not written.by[0]:
                self._table.missed(job_id, place)
            elif self._mark_other_case(what, record_of(written.by[0]), token):
                return
        raise Transient(f"job {job_id} changes faster than it can be written")

    def _mark_other_case(self, what: str, record: Record, token: str) -> bool:
        """A job that goes on, or that has callbacks for two tokens. False if it changed meanwhile."""
        job = record.job
        delivered = job._replace(preempted_token=None) if job.preempted_token == token else job
        after = Record(delivered, record.revision + 1, record.called_back or job.task_token == token, record.events)
        if (after.job, after.called_back) == (job, record.called_back):
            return True
        write = put(self._table.name, fields_of(after, self._table.keep_days), UNCHANGED, revision=record.revision)
        return not isinstance(self._dynamo.write(what, write), ConditionFailed)


RETENTION_SECONDS = 30 * 24 * 3600

_MOST_OF_MAIL = 100
"""A job is interrupted three times at most, and a mail redriven by hand."""


class AwsInterruptions:
    """See Interruptions."""

    def __init__(self, dynamo: Dynamo, table: str = names.INTERRUPTIONS) -> None:
        self._dynamo, self._table = dynamo, table

    def record(self, job: Job, reason: str, now: datetime, new_thread_id: str = "") -> None:
        """Write down a job's last interruption, unless it is written down."""
        fields = {
            "newThreadId": new_thread_id,
            "messageId": job.email_id,
            "recordId": f"{job.job_id}#{job.interruptions}",
            "jobId": job.job_id,
            "threadId": job.thread_id,
            "projectUserId": str(job.key),
            "interruptedContainer": job.worker,
            "reason": reason,
            "timestamp": moment(now),
            "expiresAt": epoch(now, RETENTION_SECONDS),
        }
        first = put(self._table, fields, "attribute_not_exists(#recordId)")
        self._dynamo.write(f"recording that job {job.job_id} was interrupted", first)

    def listing(self, limit: int, email_id: str = "") -> Sequence[Interruption]:
        """The newest first, of one mail: the table has no order over all mails."""
        if not email_id:
            raise Permanent("on AWS interruptions are kept by mail: name one, as `webordinary status --json` shows it")
        found = self._dynamo.query(
            "reading interruptions", self._table, "#messageId = :mail", {"mail": email_id}, _MOST_OF_MAIL
        )
        entries = [
            Interruption(
                email_id,
                item["jobId"],
                item.get("interruptedContainer") or "",
                item["reason"],
                item.get("newThreadId") or "",
                at(item["timestamp"]),
            )
            for item in found
        ]
        return sorted(entries, key=lambda entry: entry.at, reverse=True)[:limit]
