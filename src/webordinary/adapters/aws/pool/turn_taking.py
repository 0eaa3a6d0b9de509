"""The end of a job and what comes next, in one transaction under the fence."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from webordinary.adapters.aws.dynamo import Fields, Refused
from webordinary.adapters.aws.pool.claim_table import ClaimTable
from webordinary.adapters.aws.pool.hinting import Hinting
from webordinary.adapters.aws.pool.job_items import Record, key_of, owes
from webordinary.adapters.aws.pool.job_table import JobTable, Queue
from webordinary.adapters.aws.pool.turn_plan import Handover, TurnPlan
from webordinary.model.claims import Claim, ClaimRequest, ClaimStatus, Started, Turn
from webordinary.model.errors import ClaimLost, Transient
from webordinary.model.jobs import Ending, Job, JobState, Requeue, Why
from webordinary.model.names import ProjectUser
from webordinary.pool.rules import next_job
from webordinary.pool.turns import ended, goes_to_tail, makes_way_after, started

ANY_FENCE = 1 << 62
"""Finds an orphan of any fence: only a key that can be claimed has one."""
_TRIES = 8


@dataclass(slots=True)
class Offers:
    """The keys that wait, as they were received once, and what was learned of them since."""

    received: Sequence[ClaimRequest] | None = None
    passed_over: set[ProjectUser] = field(default_factory=set)
    fences: dict[ProjectUser, int] = field(default_factory=dict)

    def learn(self, row: Fields) -> None:
        """Its key was not to be had like that."""
        key = ProjectUser.parse(row["projectKey"])
        self.fences[key] = row["fence"]
        if row["status"] == ClaimStatus.HELD:
            self.passed_over.add(key)


class TurnTaking:
    """Reads the queue, decides, writes all at once; again if somebody changed what it had read."""

    def __init__(self, claims: ClaimTable, jobs: JobTable, hinting: Hinting) -> None:
        self._claims, self._jobs, self._hinting = claims, jobs, hinting

    def end_and_take_next(self, begun: Started, ending: Ending, now: datetime, *, more: bool) -> Turn:
        """See Claims."""
        offers = Offers()
        for _ in range(_TRIES):
            queue = self._jobs.queue(begun.claim.key)
            mine = queue.of(begun.job.job_id)
            if mine is None or not _same_start(mine.job, begun.job):
                return self._ended_before(begun, queue, now, more=more)
            after = ended(mine.job, ending, now, queue.last_order + 1)
            tail = queue.last_order if goes_to_tail(ending) else None
            plan = TurnPlan(begun.claim, mine, after, tail)
            if more:
                plan = self._go_on(plan, queue, offers, now)
            refused = self._write(plan, now)
            if refused is None:
                return self._done(plan, now)
            self._learn(plan, refused, offers)
        raise Transient(f"ending job {begun.job.job_id}: its queue changes faster than it can be read")

    def _go_on(self, plan: TurnPlan, queue: Queue, offers: Offers, now: datetime) -> TurnPlan:
        """With the key's next job, and that of a key which has waited longer."""
        claim, mine, after = plan.claim, plan.mine, plan.after
        ending = [Record(after, mine.revision, mine.called_back, mine.told)] if after.open else []
        left = Queue(queue.last_order, [record for record in queue.records if record is not mine] + ending)
        own = next_job(left.jobs, claim.fence, now)
        since = makes_way_after(claim, own, left.jobs, now)
        handed = self._waiting_since(since, claim, offers, now) if since else None
        first = own or min(left.jobs, key=lambda job: job.not_before or now, default=None)
        own_record = left.of(own.job_id) if own else None
        return replace(plan, own=own_record, handed=handed, left=first, empty=not left.records)

    def _waiting_since(self, since: datetime, claim: Claim, offers: Offers, now: datetime) -> Handover | None:
        """The first key that has waited longer and can be served."""
        if offers.received is None:
            offers.received = self._hinting.offers(claim, now)
        for offer in offers.received:
            if offer.waiting_since >= since:
                return None
            if offer.key in offers.passed_over:
                continue
            if record := self._jobs.queue(offer.key).next(ANY_FENCE, now):
                theirs = self._claims.new(offer.key, claim.worker, offers.fences.get(offer.key, 0), now)
                return Handover(Started(theirs, started(record.job, theirs, now)), record)
            self._hinting.acknowledge(offer.key)
            offers.passed_over.add(offer.key)
        return None

    def _write(self, plan: TurnPlan, now: datetime) -> Refused | None:
        request = str(uuid.uuid4())
        what, witness = f"ending job {plan.after.job_id}", (self._jobs.name, key_of(plan.final(now)))
        return self._jobs.dynamo.transact(what, plan.writes(self._claims, self._jobs, request, now), request, witness)

    def _done(self, plan: TurnPlan, now: datetime) -> Turn:
        self._jobs.remember(plan.after)
        if plan.handed:
            self._hinting.acknowledge(plan.handed.started.claim.key)
            self._hinting.made_way(plan.claim, plan.left, now)
        return plan.turn(now)

    def _learn(self, plan: TurnPlan, refused: Refused, offers: Offers) -> None:
        """Why it was refused: the claim is lost, or another key is taken; else somebody only changed a job."""
        if 0 in refused.by and refused.by[0].get("fence") != plan.claim.fence:
            raise ClaimLost(plan.claim.key, plan.claim.worker, plan.claim.fence)
        if plan.handed and refused.by.get(1):
            offers.learn(refused.by[1])

    def _ended_before(self, begun: Started, queue: Queue, now: datetime, *, more: bool) -> Turn:
        """The job does not run as it was started: somebody took the key, or an earlier try got through unheard.

        Nobody but the holder of the fence ends a job, so while the fence stands it was this worker.
        """
        claim = begun.claim
        row = self._claims.row(claim.key)
        if row is None or row["fence"] != claim.fence:
            raise ClaimLost(claim.key, claim.worker, claim.fence)
        record = self._jobs.get(begun.job.job_id)
        owed = record.job if owes(record) else None
        if row["status"] != ClaimStatus.HELD:
            return Turn(None, None, owed)
        running = next((job for job in queue.jobs if job.state is JobState.RUNNING and job.fence == claim.fence), None)
        if running and not more:
            self.end_and_take_next(Started(claim, running), Requeue(Why.STOPPED), now, more=False)
            running = None
        return Turn(claim, Started(claim, running) if running else None, owed)


def _same_start(stored: Job, begun: Job) -> bool:
    """Still running as it was started. A start that looks the same in all of these was never heard of, and may end."""
    return stored.state is JobState.RUNNING and _start(stored) == _start(begun)


def _start(job: Job) -> tuple[object, ...]:
    return job.fence, job.attempts, job.interruptions, job.started_at
