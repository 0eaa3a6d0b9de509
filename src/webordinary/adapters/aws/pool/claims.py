"""Claims in DynamoDB: claim and first start, and settle and next start, are one transaction each.

A lost answer is asked for again under the same token, or looked up in what was written; so a worker never takes a
claim for lost that it has. One that it did not hear of at all ends as a foreign one does, by its beat standing still.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime

from webordinary.adapters.aws.dynamo import Refused
from webordinary.adapters.aws.pool.claim_table import MOST_CLAIMS, ClaimTable, claim_of
from webordinary.adapters.aws.pool.hinting import Hinting
from webordinary.adapters.aws.pool.job_table import JobTable
from webordinary.adapters.aws.pool.turn_taking import ANY_FENCE, TurnTaking
from webordinary.model.claims import Claim, ClaimStatus, Started, Turn
from webordinary.model.errors import ClaimLost, Transient
from webordinary.model.jobs import Ending, Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Hints
from webordinary.pool.turns import started, unmoved

_TRIES = 8


class AwsClaims:
    """Who acts for which ProjectUser, as items. With `hints`, a key's hint goes as it is claimed, and keys make way."""

    def __init__(self, claims: ClaimTable, jobs: JobTable, hints: Hints | None = None) -> None:
        self._claims, self._jobs, self._dynamo = claims, jobs, jobs.dynamo
        self._hinting = Hinting(hints)
        self._turn_taking = TurnTaking(claims, jobs, self._hinting)

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> Started | Claim | None:
        """Take a key with its first runnable job: one read, one transaction."""
        last_fence = over.fence if over else 0
        for _ in range(_TRIES):
            record = self._jobs.queue(key).next(ANY_FENCE, now)
            if record is None:
                self._hinting.acknowledge(key)
                return None
            claim, request = self._claims.new(key, worker, last_fence, now), str(uuid.uuid4())
            job = started(record.job, claim, now)
            writes = [self._claims.take(claim, over, job.job_id, request), *self._jobs.change(record, job, request)]
            refused = self._dynamo.transact(f"claiming {key}", writes, request, self._claims.place(key))
            if refused is None:
                self._hinting.acknowledge(key)
                return Started(claim, job)
            if row := refused.by.get(0):
                if row["status"] == ClaimStatus.HELD and not unmoved(claim_of(row), over):
                    return claim_of(row)
                last_fence = row["fence"]
        raise Transient(f"claiming {key}: its queue changes faster than it can be read")

    def take_longest_waiting(self, worker: str, now: datetime) -> Started | None:
        """A hint that the queue hands out is nobody else's for a while: there is no crowd to be too late for."""
        return None

    def start_next(self, claim: Claim, now: datetime) -> Job | None:
        """Start the next runnable job of a key that is ours; where there is none, nobody asks whose it is."""
        for _ in range(_TRIES):
            record = self._jobs.queue(claim.key).next(claim.fence, now)
            if record is None:
                return None
            job, request = started(record.job, claim, now), str(uuid.uuid4())
            writes = [self._claims.use(claim, job.job_id, now), *self._jobs.change(record, job, request)]
            witness = self._jobs.name, record.key
            refused = self._dynamo.transact(f"starting a job of {claim.key}", writes, request, witness)
            if refused is None:
                return job
            if 0 in refused.by:
                raise ClaimLost(claim.key, claim.worker, claim.fence)
        raise Transient(f"starting a job of {claim.key}: its queue changes faster than it can be read")

    def end_and_take_next(self, started: Started, ending: Ending, now: datetime, *, more: bool) -> Turn:
        """Settle or requeue, then start the next job or make way: one read, one transaction."""
        return self._turn_taking.end_and_take_next(started, ending, now, more=more)

    def renew(self, claims: Collection[Claim], now: datetime) -> set[ProjectUser]:
        """Prolong the leases of all that is still ours."""
        left, kept = list(claims), set()
        while left:
            bite = left[:MOST_CLAIMS]
            writes = [self._claims.renew(claim, now) for claim in bite]
            refused = self._dynamo.transact(f"renewing {len(bite)} claims", writes, str(uuid.uuid4()))
            if refused is None:
                kept |= {claim.key for claim in bite}
                left = left[MOST_CLAIMS:]
            else:
                left = [claim for number, claim in enumerate(left) if number not in refused.by]
        return kept

    def begin_release(self, claim: Claim) -> bool:
        """Held becomes releasing."""
        written = self._dynamo.write(f"releasing {claim.key}", self._claims.leave(claim))
        if not isinstance(written, Refused):
            return True
        row = written.by[0]
        mine = (row.get("containerId"), row.get("fence")) == (claim.worker, claim.fence)
        return mine and row["status"] == ClaimStatus.RELEASING  # then only the answer was lost

    def end_release(self, claim: Claim) -> None:
        """Releasing becomes free."""
        self._dynamo.write(f"releasing {claim.key}", self._claims.free(claim))

    def look(self, key: ProjectUser) -> Claim | None:
        """Who holds the key now."""
        return self._claims.look(key)

    def busy(self, worker: str) -> int:
        """How many jobs that worker runs, by an index that may be a moment behind."""
        return sum(1 for fields in self._claims.held_by(worker) if "running" in fields)
