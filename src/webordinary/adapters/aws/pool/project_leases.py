"""Project leases in DynamoDB. A lease ends as soon as its job does not run any more."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import ConditionFailed, Fields, Place, epoch, moment, put, update
from webordinary.adapters.aws.pool.job_table import JobTable
from webordinary.model.claims import CancelToken, LeaseRecord, LeaseStatus, ProjectLease, next_fence
from webordinary.model.errors import ClaimLost, Transient
from webordinary.model.jobs import Job
from webordinary.pool.transitions import may_take_lease

TAKEABLE = "attribute_not_exists(#projectKey) OR (#status = :free AND #fence < :fence)"
OR_SEEN = " OR (#fence = :seen AND #status = :seenAs)"
RELEASE = "SET #status = :free"
CURRENT = "#fence = :fence"
CONFIRM = "SET #status = :showing"
STILL_HELD = "#fence = :fence AND #status <> :free"

OPERATOR_SECONDS = 900.0
"""How long a lease without a job is respected, on the waiting worker's clock: such leases have no beat."""
_GARBAGE_AFTER_SECONDS = 7 * 24 * 3600
_TRIES = 8
_WATCHED = 1000


class AwsProjectLeases:
    """One item a project, beside the claims. `is_dead` tells whether a worker's process has certainly ended."""

    def __init__(
        self,
        jobs: JobTable,
        table: str = names.OWNERSHIP,
        is_dead: Callable[[str], bool] = lambda _: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._jobs, self._dynamo, self._table = jobs, jobs.dynamo, table
        self._is_dead, self._monotonic = is_dead, monotonic
        self._watched: dict[tuple[str, int], float] = {}

    def take(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        """Take the right to publish under a new, higher fence; None while another running job has it."""
        return self._take(project_id, token, now, overtaking=False)

    def overtake(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        """Take it from a job that has not confirmed yet, too."""
        return self._take(project_id, token, now, overtaking=True)

    def _take(self, project_id: str, token: CancelToken, now: datetime, *, overtaking: bool) -> ProjectLease | None:
        seen: Fields = {}
        for _ in range(_TRIES):
            lease = ProjectLease(project_id, token.worker, next_fence(seen.get("fence", 0), now))
            row = self._put(lease, token, seen, now)
            if row is None:
                return lease
            if not self._may_take(project_id, row, token, overtaking=overtaking):
                return None
            seen = row
        raise Transient(f"{project_id}: others keep taking the right to publish it")

    def confirm(self, lease: ProjectLease) -> None:
        """Make the lease final before the site changes; raises ClaimLost when a newer lease exists."""
        table, key = self._place(lease.project_id)
        confirmed = update(table, key, CONFIRM, STILL_HELD, showing="showing", free="free", fence=lease.fence)
        if isinstance(
            self._dynamo.write(f"{lease.project_id}: about to show its new state", confirmed), ConditionFailed
        ):
            raise ClaimLost(lease.project_id, lease.worker, lease.fence)

    def release(self, lease: ProjectLease) -> None:
        """Give it back; nothing happens if a newer lease exists."""
        table, key = self._place(lease.project_id)
        given_back = update(table, key, RELEASE, CURRENT, free="free", fence=lease.fence)
        self._dynamo.write(f"{lease.project_id}: giving back the right to publish it", given_back)

    def _put(self, lease: ProjectLease, token: CancelToken, seen: Fields, now: datetime) -> Fields | None:
        """Take the lease if it is free or unchanged since `seen`; else return the present holder's."""
        table, key = self._place(lease.project_id)
        request = str(uuid.uuid4())
        fields = {
            **key,
            "publisher": lease.worker,
            "fence": lease.fence,
            "jobId": token.job_id,
            "jobFence": token.fence,
            "status": "held",
            "claimedAt": moment(now),
            "ttl": epoch(now, _GARBAGE_AFTER_SECONDS),
            "request": request,
        }
        values: Fields = {"free": "free", "fence": lease.fence}
        if seen:
            values |= {"seen": seen["fence"], "seenAs": seen["status"]}
        write = put(table, fields, TAKEABLE + OR_SEEN if seen else TAKEABLE, **values)
        written = self._dynamo.write(f"{lease.project_id}: taking the right to publish it", write)
        if not isinstance(written, ConditionFailed) or written.by[0].get("request") == request:
            return None  # ours, even if the first answer was lost
        return written.by[0]

    def _may_take(self, project_id: str, row: Fields, token: CancelToken, *, overtaking: bool) -> bool:
        stands = LeaseRecord(row["fence"], row["publisher"], row["jobId"], row["jobFence"], LeaseStatus(row["status"]))
        if stands.status is LeaseStatus.FREE:
            return True
        job, claim_fence = self._job_of(stands)
        is_dead = self._is_dead(stands.worker) or (not stands.job_id and self._stood_still(project_id, stands.fence))
        return may_take_lease(stands, token, job, claim_fence, overtaking=overtaking, holder_is_dead=is_dead)

    def _job_of(self, lease: LeaseRecord) -> tuple[Job | None, int]:
        """The job that a lease was taken for, and the newest fence of that job's key."""
        record = self._jobs.find(lease.job_id) if lease.job_id else None
        if record is None:
            return None, 0
        key = record.job.key
        claim = self._dynamo.get(f"looking who owns {key}", (self._table, {"projectKey": key.text}))
        return record.job, claim["fence"] if claim else 0

    def _stood_still(self, project_id: str, fence: int) -> bool:
        now = self._monotonic()
        if len(self._watched) >= _WATCHED:
            self._watched.clear()
        return now - self._watched.setdefault((project_id, fence), now) >= OPERATOR_SECONDS

    def _place(self, project_id: str) -> Place:
        return self._table, {"projectKey": f"project:{project_id}"}  # no key has a colon, so none is called so
