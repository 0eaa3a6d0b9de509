"""Dead letters in DynamoDB: one partition of numbered letters, and a mark with each mail so that it dies once.

Also the ledger of agents' costs: sums by day and thread, and by job, which expire after COSTS_KEPT_SECONDS.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import ConditionFailed, Dynamo, Fields, at, delete, epoch, moment, put, update
from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import DeadLetter, Job
from webordinary.model.snapshot import Interruption, Spent

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

PARTITION = "dead-letters"
COUNTER = {"emailId": "dead-letters-counter", "part": "-"}
COUNT = "ADD #last :one"
ALL = "#emailId = :partition"
OF_RUNS = "#emailId = :mail AND #part BETWEEN :first AND :last"
NEW = "attribute_not_exists(#emailId)"
THERE = "attribute_exists(#emailId)"

_CLEARED_AT_ONCE = 40
_LOOKED_THROUGH = 10_000


class AwsDeadLetters:
    """What was given up, as items; kept until a person drops it or redrives its mail."""

    def __init__(self, dynamo: Dynamo, table: str = names.MAILS) -> None:
        self._dynamo, self._table = dynamo, table

    def add(self, email_id: str, job_id: str | None, reason: str, now: datetime, redrives: int = 0) -> None:
        """Keep it with its reason."""
        what = f"giving up mail {email_id}"
        mark = _mark(email_id, redrives, reason)
        if self._dynamo.get(what, (self._table, mark)) is None:
            letter = DeadLetter(self._next_number(what), email_id, job_id, reason, now, redrives)
            fields = {**_fields_of(letter), "mark": mark["part"]}
            writes = [
                put(self._table, {**mark, "letterId": letter.letter_id}, NEW),
                put(self._table, fields, NEW),
            ]
            self._dynamo.transact(what, writes, str(uuid.uuid4()))

    def all(self, limit: int) -> Sequence[DeadLetter]:
        """The newest first."""
        return [letter_of(fields) for fields in self._newest(limit)]

    def get(self, letter_id: int) -> DeadLetter | None:
        """One of them."""
        fields = self._find(letter_id)
        return letter_of(fields) if fields else None

    def remove(self, letter_id: int) -> bool:
        """It was dropped."""
        fields = self._find(letter_id)
        if fields is None:
            return False
        writes = [
            delete(self._table, _place(letter_id), THERE),
            delete(self._table, {"emailId": fields["mail"], "part": fields["mark"]}),
        ]
        return self._dynamo.transact(f"dropping dead letter {letter_id}", writes, str(uuid.uuid4())) is None

    def clear(self, email_id: str, redrives: int) -> None:
        """Its mail runs once more."""
        what = f"clearing the dead letters of mail {email_id}"
        runs = {"mail": email_id, "first": "dead#", "last": f"dead#{redrives:06d}~"}
        while marks := self._dynamo.query(what, self._table, OF_RUNS, runs, _CLEARED_AT_ONCE):
            writes: list[Write] = []
            for mark in marks:
                writes.append(delete(self._table, {"emailId": email_id, "part": mark["part"]}))
                writes.append(delete(self._table, _place(mark["letterId"])))
            self._dynamo.transact(what, writes, str(uuid.uuid4()))

    def of_mail(self, start: str, limit: int) -> Sequence[DeadLetter]:
        """The letters of the mails whose id begins so, the newest first."""
        found = [letter_of(fields) for fields in self._newest(_LOOKED_THROUGH) if fields["mail"].startswith(start)]
        return found[:limit]

    def _newest(self, limit: int) -> list[Fields]:
        what, values = "reading the dead letters", {"partition": PARTITION}
        return self._dynamo.query(what, self._table, ALL, values, limit, newest=True)

    def _find(self, letter_id: int) -> Fields | None:
        return self._dynamo.get(f"reading dead letter {letter_id}", (self._table, _place(letter_id)))

    def _next_number(self, what: str) -> int:
        counted = self._dynamo.write(what, update(self._table, COUNTER, COUNT, one=1))
        if isinstance(counted, ConditionFailed):
            raise Transient(f"{what}: letters cannot be counted")
        return int(counted["last"])


def letter_of(fields: Fields) -> DeadLetter:
    """An item as a letter."""
    return DeadLetter(
        letter_id=fields["letterId"],
        email_id=fields["mail"],
        job_id=fields.get("jobId"),
        reason=fields["reason"],
        died_at=at(fields["diedAt"]),
        redrives=fields["redrives"],
    )


def _fields_of(letter: DeadLetter) -> Fields:
    return {
        **_place(letter.letter_id),
        "letterId": letter.letter_id,
        "mail": letter.email_id,
        "jobId": letter.job_id,
        "reason": letter.reason,
        "diedAt": moment(letter.died_at),
        "redrives": letter.redrives,
    }


def _place(letter_id: int) -> Mapping[str, object]:
    return {"emailId": PARTITION, "part": f"{letter_id:012d}"}


def _mark(email_id: str, redrives: int, reason: str) -> dict[str, object]:
    """The same mail with the same reason after as many redrives has the same mark."""
    digest = hashlib.sha256(reason.encode()).hexdigest()[:32]
    return {"emailId": email_id, "part": f"dead#{redrives:06d}#{digest}"}


RETENTION_SECONDS = 30 * 24 * 3600


_MOST_OF_MAIL = 100
"""A job is interrupted three times at most, and a mail redriven by hand."""


class AwsInterruptions:
    """What was interrupted, as items."""

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


COSTS_KEPT_SECONDS = 400 * 24 * 3600

ADD_TO_THREAD = "SET #projectId = :project, #threadId = :thread, #expiresAt = :expires ADD #usd :usd, #jobs :jobs"
ADD_TO_JOB = "SET #expiresAt = :expires ADD #usd :usd"
OF_DAY = "#day = :day"
OF_PROJECT = "#day = :day AND begins_with(#part, :project)"
_MOST_THREADS = 10_000


class AwsLedger:
    """Every run of an agent that cost something, added up as it is written: a lost answer is not counted twice."""

    def __init__(
        self,
        dynamo: Dynamo,
        table: str = names.COSTS,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self._dynamo, self._table, self._today = dynamo, table, today

    def spend(self, job: Job, usd: float, now: datetime) -> None:
        """Write down what one run of an agent cost."""
        project, expires = job.key.project_id, epoch(now, COSTS_KEPT_SECONDS)
        of_thread = {"day": now.date().isoformat(), "part": f"{project}#{job.thread_id}"}
        named: Fields = {"project": project, "thread": job.thread_id, "jobs": {job.job_id}}
        writes = [
            update(self._table, of_thread, ADD_TO_THREAD, usd=usd, expires=expires, **named),
            update(self._table, _of_job(job.job_id), ADD_TO_JOB, usd=usd, expires=expires),
        ]
        self._dynamo.transact(f"job {job.job_id}: writing down its cost", writes, str(uuid.uuid4()))

    def on_day(self, project_id: str, day: date) -> float:
        """What a project cost on a day."""
        return float(sum(fields["usd"] for fields in self._on_day(project_id, day, _MOST_THREADS)))

    def of_job(self, job_id: str) -> float:
        """What a job cost, all its runs together."""
        fields = self._dynamo.get(f"job {job_id}: reading its cost", (self._table, _of_job(job_id)))
        return float(fields["usd"]) if fields else 0.0

    def listing(self, project_id: str | None, since: date, limit: int = 1000) -> Sequence[Spent]:
        """By day, project and thread, the newest first."""
        spent: list[Spent] = []
        for day in _days_back(self._today(), since):
            found = [_spent_of(fields) for fields in self._on_day(project_id, day, _MOST_THREADS)]
            spent += sorted(found, key=lambda one: (one.project_id, -one.usd))
            if len(spent) >= limit:
                break
        return spent[:limit]

    def _on_day(self, project_id: str | None, day: date, limit: int) -> list[Fields]:
        values = {"day": day.isoformat(), **({"project": f"{project_id}#"} if project_id else {})}
        where = OF_PROJECT if project_id else OF_DAY
        return self._dynamo.query(f"reading the costs of {day}", self._table, where, values, limit)


def _of_job(job_id: str) -> Fields:
    return {"day": f"job#{job_id}", "part": "-"}


def _days_back(last: date, first: date) -> Iterator[date]:
    for days in range((last - first).days + 1):
        yield last - timedelta(days=days)


def _spent_of(fields: Fields) -> Spent:
    return Spent(fields["projectId"], fields["day"], fields["threadId"], len(fields["jobs"]), float(fields["usd"]))
