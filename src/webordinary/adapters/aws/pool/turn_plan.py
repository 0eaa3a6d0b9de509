"""What a worker decided at the end of a job, and all that is written for it at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from webordinary.adapters.aws.pool.claim_table import ClaimTable
from webordinary.adapters.aws.pool.job_items import Record
from webordinary.adapters.aws.pool.job_table import JobTable
from webordinary.model.claims import Claim, Started, Turn
from webordinary.model.jobs import Job
from webordinary.pool.turns import started, tells

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write


@dataclass(frozen=True, slots=True)
class Handover:
    """A job of a key that has waited longer; `record` is the job as it was read."""

    started: Started
    record: Record


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """How the job ends, and what follows: the key's next job, that of another key, or nothing."""

    claim: Claim
    mine: Record
    after: Job
    """The job that ends, as it is then."""
    last_order: int | None = None
    """The key's last order, if the job goes behind it."""
    own: Record | None = None
    """The key's next job; it may be the one that ends."""
    handed: Handover | None = None
    left: Job | None = None
    """Of the key's open jobs the one that can start first, now or later."""
    empty: bool = False
    """The key has no open job then."""

    @property
    def turn_owed(self) -> Job | None:
        """The job that ends, if a workflow waits to hear of it."""
        return self.after if tells(self.after) else None

    def turn(self, now: datetime) -> Turn:
        """What the worker holds then."""
        if self.handed:
            return Turn(None, self.handed.started, self.turn_owed)
        following = Started(self.claim, started(self.own.job, self.claim, now)) if self.own else None
        return Turn(self.claim, following, self.turn_owed, self.empty)

    def final(self, now: datetime) -> Job:
        """The job that ends, as it is written: it may start again at once."""
        again = self.own is not None and not self.handed and self.own.job.job_id == self.after.job_id
        return started(self.after, self.claim, now) if again else self.after

    def writes(self, claims: ClaimTable, jobs: JobTable, request: str, now: datetime) -> list[Write]:
        """Ownership first: of this key, then of the other one."""
        writes = [*self._ownership(claims, request, now), *jobs.change(self.mine, self.final(now), request)]
        if self.handed:
            writes += jobs.change(self.handed.record, self.handed.started.job, request)
        elif self.own and self.own.job.job_id != self.after.job_id:
            writes += jobs.change(self.own, started(self.own.job, self.claim, now), request)
        if self.last_order is not None:
            writes.append(jobs.count(self.claim.key, self.last_order))
        return writes

    def _ownership(self, claims: ClaimTable, request: str, now: datetime) -> list[Write]:
        if self.handed:
            taken = self.handed.started
            free = claims.free(self.claim, from_held=True)
            return [free, claims.take(taken.claim, None, taken.job.job_id, request)]
        return [claims.use(self.claim, self.own.job.job_id if self.own else None, now)]
