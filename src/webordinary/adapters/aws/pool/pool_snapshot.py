"""A snapshot of the pool: claims, running and waiting jobs, and the unclaimed queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.dynamo import Fields, from_item
from webordinary.adapters.aws.pool.claim_table import ClaimTable, Presence, claim_of, worker_in
from webordinary.adapters.aws.pool.job_table import OPEN, JobTable, record_of
from webordinary.adapters.aws.pool.queues import Queues
from webordinary.model.claims import Claim, ClaimStatus
from webordinary.model.jobs import Job, JobState
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import (
    ClaimSummary,
    DeadLetterSummary,
    PoolSnapshot,
    QueueSummary,
    RunningJob,
    UnclaimedQueue,
    WorkerSummary,
)
from webordinary.pool.ports import DeadLetters

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

OPEN_JOBS = "#openShard = :open"
_MOST_PAGES = 20


@dataclass(frozen=True, slots=True)
class PoolSnapshotReader:
    """Bounded, and as of about now: the parts are read one after another."""

    dynamodb: DynamoDBClient
    claims: ClaimTable
    jobs: JobTable
    queues: Queues
    is_dead: Callable[[str], bool] = lambda worker: False
    """Whether a worker's process is known to have ended."""

    def open_jobs(self, limit: int) -> list[Job]:
        """Open jobs of all keys, by an index that may be a moment behind."""
        what = "looking at open jobs"
        found = self.jobs.dynamo.query(what, self.jobs.name, OPEN_JOBS, {"open": OPEN}, limit, index=names.OPEN_INDEX)
        keys = [{"projectUserId": fields["projectUserId"], "order": fields["order"]} for fields in found]
        records = [record_of(fields) for fields in self.jobs.dynamo.get_all(what, self.jobs.name, keys)]
        return sorted((record.job for record in records if record.job.open), key=lambda job: (job.key, job.order))

    def snapshot(self, now: datetime, limit: int, letters: DeadLetters) -> PoolSnapshot:
        """The snapshot of the whole pool."""
        jobs = self.open_jobs(limit)
        claims, present = self._owners(now, limit)
        live = {c.key: c for c in claims if c.lease_expires_at > now and not self.is_dead(c.worker)}
        present = [worker for worker in present if not self.is_dead(worker.worker)]
        workers = _workers(present, list(live.values()))[:limit]
        called = {worker.worker: worker.name for worker in workers}
        running = [job for job in jobs if job.state is JobState.RUNNING]
        dead = letters.all(limit)
        queues = _queues(jobs, live, called)
        return PoolSnapshot(
            workers=workers,
            running=tuple(RunningJob(job.worker or "", job.key, job.email_id, None, job.started_at) for job in running),
            claims=tuple(self._claim(claim, {job.key for job in running} & live.keys(), called) for claim in claims),
            queues=queues,
            dead_letters=tuple(
                DeadLetterSummary(one.email_id, None, one.reason, one.died_at, one.letter_id) for one in dead
            ),
            dead_letter_count=len(dead),
            unclaimed=self._unclaimed(queues),
        )

    def _claim(self, claim: Claim, busy: Set[ProjectUser], called: Mapping[str, str]) -> ClaimSummary:
        return ClaimSummary(
            key=claim.key,
            worker=called.get(claim.worker, claim.worker),
            fence=claim.fence,
            claimed_at=claim.claimed_at,
            lease_expires_at=claim.lease_expires_at,
            worker_id=claim.worker,
            status=claim.status,
            busy=claim.key in busy,
            dead=self.is_dead(claim.worker),
        )

    def names(self, workers: Iterable[str]) -> dict[str, str]:
        """The names of these workers."""
        return Presence(self.jobs.dynamo, self.claims.name).names(workers)

    def _owners(self, now: datetime, limit: int) -> tuple[list[Claim], list[WorkerSummary]]:
        """What is held, and the workers that say that they are there."""
        rows: list[Fields] = []
        pages = self.dynamodb.get_paginator("scan").paginate(
            TableName=self.claims.name, ConsistentRead=True, PaginationConfig={"MaxItems": limit * _MOST_PAGES}
        )
        with translated("looking at claims"):
            for page in pages:
                rows += [from_item(item) for item in page["Items"]]
        claims = [claim_of(row) for row in rows if "beat" in row and row["status"] != ClaimStatus.FREE]
        present = [worker for worker in (worker_in(row, now) for row in rows) if worker]
        return sorted(claims, key=lambda claim: claim.key)[:limit], present

    def _unclaimed(self, queues: Sequence[QueueSummary]) -> UnclaimedQueue:
        since = min((queue.unowned_since for queue in queues if queue.unowned_since), default=None)
        return UnclaimedQueue(self.queues.depth(names.UNCLAIMED), since)


def _queues(
    jobs: Sequence[Job], live: Mapping[ProjectUser, Claim], called: Mapping[str, str]
) -> tuple[QueueSummary, ...]:
    by_key: dict[ProjectUser, list[Job]] = defaultdict(list)
    for job in jobs:
        by_key[job.key].append(job)
    return tuple(_queue(key, of_key, live.get(key), called) for key, of_key in sorted(by_key.items()))


def _queue(key: ProjectUser, jobs: Sequence[Job], owner: Claim | None, called: Mapping[str, str]) -> QueueSummary:
    states = [job.state for job in jobs]
    waiting = min((job.queued_at for job in jobs if job.state is JobState.QUEUED and job.queued_at), default=None)
    return QueueSummary(
        key=key,
        open=len(jobs),
        running=states.count(JobState.RUNNING),
        waiting_since=waiting,
        unowned_since=None if owner else waiting,
        preparing=states.count(JobState.PREPARING),
        queued=states.count(JobState.QUEUED),
        owner=called.get(owner.worker, owner.worker) if owner else None,
    )


def _workers(present: Sequence[WorkerSummary], claims: Sequence[Claim]) -> tuple[WorkerSummary, ...]:
    """Those that say so, and those that hold something and have not said so yet."""
    known = {worker.worker: worker for worker in present}
    for claim in sorted(claims, key=lambda claim: claim.claimed_at):
        known.setdefault(claim.worker, WorkerSummary(claim.worker, claim.worker, 0, 0, claim.claimed_at))
    return tuple(sorted(known.values(), key=lambda worker: (worker.name, worker.started_at, worker.worker)))
