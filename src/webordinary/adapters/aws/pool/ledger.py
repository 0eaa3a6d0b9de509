"""The ledger of agents' costs in DynamoDB: sums by day and thread, and by job. They expire after COSTS_KEPT_SECONDS."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo, Fields, epoch, update
from webordinary.model.jobs import Job
from webordinary.model.snapshot import Spent

if TYPE_CHECKING:
    pass


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
        spent: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`spent` is told of what was written down."""
        self._dynamo, self._table, self._today, self._spent = dynamo, table, today, spent

    def spend(self, job: Job, usd: float, now: datetime) -> None:
        project, expires = job.key.project_id, epoch(now, COSTS_KEPT_SECONDS)
        of_thread = {"day": now.date().isoformat(), "part": f"{project}#{job.thread_id}"}
        named: Fields = {"project": project, "thread": job.thread_id, "jobs": {job.job_id}}
        writes = [
            update(self._table, of_thread, ADD_TO_THREAD, usd=usd, expires=expires, **named),
            update(self._table, _of_job(job.job_id), ADD_TO_JOB, usd=usd, expires=expires),
        ]
        self._dynamo.transact(f"job {job.job_id}: writing down its cost", writes, str(uuid.uuid4()))
        self._spent(usd)

    def on_day(self, project_id: str, day: date) -> float:
        return float(sum(fields["usd"] for fields in self._on_day(project_id, day, _MOST_THREADS)))

    def of_job(self, job_id: str) -> float:
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
