"""Claims in DynamoDB: claim and first start, and settle and next start, are one transaction each.

A lost answer is asked for again under the same token, or looked up in what was written; so a worker never takes a
claim for lost that it has. One that it did not hear of at all ends as a foreign one does, by its beat standing still.

Project leases in DynamoDB. A lease ends as soon as its job does not run any more.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import ConditionFailed, Fields, Place, epoch, moment, put, update
from webordinary.adapters.aws.pool.claim_requests import ClaimOffers
from webordinary.adapters.aws.pool.claim_table import MOST_CLAIMS, ClaimTable, claim_of
from webordinary.adapters.aws.pool.job_table import JobTable, Queue, Record, has_pending_callback, key_of
from webordinary.model.claims import (
    CancelToken,
    Claim,
    ClaimRequest,
    ClaimStatus,
    FinishResult,
    LeaseRecord,
    LeaseStatus,
    ProjectLease,
    StartedJob,
    next_fence,
)
from webordinary.model.errors import ClaimLost, Transient
from webordinary.model.jobs import Job, JobEnd, JobState, Requeue, RequeueReason
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import ClaimRequestQueue
from webordinary.pool.transitions import (
    ANY_FENCE,
    ended,
    may_claim,
    may_take_lease,
    next_job,
    requeues_at_tail,
    sends_callback,
    start,
    started,
    yields_after,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write


@dataclass(frozen=True, slots=True)
class NextStart:
    """A job of a key that has waited longer; `record` is the job as it was read."""

    started: StartedJob
    record: Record


@dataclass(frozen=True, slots=True)
class FinishPlan:
    """How the job ends, and what follows: the key's next job, that of another key, or nothing."""

    claim: Claim
    mine: Record
    after: Job
    """The job that ends, as it is then."""
    last_order: int | None = None
    """The key's last order, if the job goes behind it."""
    own: Record | None = None
    """The key's next job; it may be the one that ends."""
    handed: NextStart | None = None
    left: Job | None = None
    """Of the key's open jobs the one that can start first, now or later."""
    empty: bool = False
    """The key has no open job then."""

    @property
    def pending_callback(self) -> Job | None:
        """The job that ends, if a workflow waits to hear of it."""
        return self.after if sends_callback(self.after) else None

    def result(self, now: datetime) -> FinishResult:
        """What the worker gets: its claim or none, its next job, and the callback that is pending."""
        if self.handed:
            return FinishResult(None, self.handed.started, self.pending_callback)
        following = start(self.own.job, self.claim, now) if self.own else None
        return FinishResult(self.claim, following, self.pending_callback, self.empty)

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
            free = claims.free(self.claim)
            return [free, claims.take(taken.claim, None, taken.job.job_id, request)]
        return [claims.use(self.claim, self.own.job.job_id if self.own else None, now)]


@dataclass(slots=True)
class Offers:
    """The waiting keys of one receive call, with what later writes showed of them."""

    received: Sequence[ClaimRequest] | None = None
    passed_over: set[ProjectUser] = field(default_factory=set)
    fences: dict[ProjectUser, int] = field(default_factory=dict)

    def learn(self, row: Fields) -> None:
        """Remember the fence of a key after a failed condition; a key that is held is passed over."""
        key = ProjectUser.parse(row["projectKey"])
        self.fences[key] = row["fence"]
        if row["status"] == ClaimStatus.HELD:
            self.passed_over.add(key)


class FinishJob:
    """Reads the queue, decides, and writes in one transaction; repeats if the rows changed since the read."""

    def __init__(self, claims: ClaimTable, jobs: JobTable, claim_offers: ClaimOffers) -> None:
        self._claims, self._jobs, self._claim_offers = claims, jobs, claim_offers

    def end_and_take_next(self, begun: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        offers = Offers()
        for _ in range(_TRIES):
            queue = self._jobs.queue(begun.claim.key)
            mine = queue.of(begun.job.job_id)
            if mine is None or not _same_start(mine.job, begun.job):
                return self._ended_before(begun, queue, now, more=more)
            after = ended(mine.job, ending, now, queue.last_order + 1)
            tail = queue.last_order if requeues_at_tail(ending) else None
            plan = FinishPlan(begun.claim, mine, after, tail)
            if more:
                plan = self._go_on(plan, queue, offers, now)
            refused = self._write(plan, now)
            if refused is None:
                return self._done(plan, now)
            self._learn(plan, refused, offers)
        raise Transient(f"ending job {begun.job.job_id}: its queue changes faster than it can be read")

    def _go_on(self, plan: FinishPlan, queue: Queue, offers: Offers, now: datetime) -> FinishPlan:
        """With the key's next job, and that of a key which has waited longer."""
        claim, mine, after = plan.claim, plan.mine, plan.after
        ending = [Record(after, mine.revision, mine.called_back, mine.events)] if after.open else []
        left = Queue(queue.last_order, [record for record in queue.records if record is not mine] + ending)
        own = next_job(left.jobs, claim.fence, now)
        since = yields_after(claim, own, now, empty=not left.records)
        handed = self._waiting_since(since, claim, offers, now) if since else None
        first = own or min(left.jobs, key=lambda job: job.not_before or now, default=None)
        own_record = left.of(own.job_id) if own else None
        return replace(plan, own=own_record, handed=handed, left=first, empty=not left.records)

    def _waiting_since(self, since: datetime, claim: Claim, offers: Offers, now: datetime) -> NextStart | None:
        """The first key that has waited longer and can be served."""
        if offers.received is None:
            offers.received = self._claim_offers.offers(claim, now)
        for offer in offers.received:
            if offer.waiting_since >= since:
                return None
            if offer.key in offers.passed_over:
                continue
            if record := self._jobs.queue(offer.key).next(ANY_FENCE, now):
                theirs = self._claims.new(offer.key, claim.worker, offers.fences.get(offer.key, 0), now)
                return NextStart(start(record.job, theirs, now), record)
            self._claim_offers.acknowledge(offer.key)
            offers.passed_over.add(offer.key)
        return None

    def _write(self, plan: FinishPlan, now: datetime) -> ConditionFailed | None:
        request = str(uuid.uuid4())
        what, witness = f"ending job {plan.after.job_id}", (self._jobs.name, key_of(plan.final(now)))
        return self._jobs.dynamo.transact(what, plan.writes(self._claims, self._jobs, request, now), request, witness)

    def _done(self, plan: FinishPlan, now: datetime) -> FinishResult:
        self._jobs.remember(plan.after)
        if plan.handed:
            self._claim_offers.acknowledge(plan.handed.started.claim.key)
            self._claim_offers.yielded(plan.claim, plan.left, now)
        return plan.result(now)

    def _learn(self, plan: FinishPlan, refused: ConditionFailed, offers: Offers) -> None:
        """Handle a failed condition: the claim is lost, the other key is taken, or only a job changed."""
        if 0 in refused.by and refused.by[0].get("fence") != plan.claim.fence:
            raise ClaimLost(plan.claim.key, plan.claim.worker, plan.claim.fence)
        if plan.handed and refused.by.get(1):
            offers.learn(refused.by[1])

    def _ended_before(self, begun: StartedJob, queue: Queue, now: datetime, *, more: bool) -> FinishResult:
        """The job does not run as it was started: the key was taken over, or an earlier try's answer was lost.

        Only the holder of the fence ends a job, so an unchanged fence means that this worker did.
        """
        claim = begun.claim
        row = self._claims.row(claim.key)
        if row is None or row["fence"] != claim.fence:
            raise ClaimLost(claim.key, claim.worker, claim.fence)
        record = self._jobs.get(begun.job.job_id)
        pending = record.job if has_pending_callback(record) else None
        if row["status"] != ClaimStatus.HELD:
            return FinishResult(None, None, pending)
        running = next((job for job in queue.jobs if job.state is JobState.RUNNING and job.fence == claim.fence), None)
        if running and not more:
            self.end_and_take_next(StartedJob(claim, running), Requeue(RequeueReason.STOPPED), now, more=False)
            running = None
        return FinishResult(claim, StartedJob(claim, running) if running else None, pending)


def _same_start(stored: Job, begun: Job) -> bool:
    """Still running as it was started. A start that looks the same in all of these was never heard of, and may end."""
    return stored.state is JobState.RUNNING and _start(stored) == _start(begun)


def _start(job: Job) -> tuple[object, ...]:
    return job.fence, job.attempts, job.interruptions, job.started_at


_TRIES = 8


class AwsClaims:
    """Claims as items. With `hints`, a claim deletes the key's claim request, and keys yield to waiting ones."""

    def __init__(self, claims: ClaimTable, jobs: JobTable, hints: ClaimRequestQueue | None = None) -> None:
        self._claims, self._jobs, self._dynamo = claims, jobs, jobs.dynamo
        self._claim_offers = ClaimOffers(hints)
        self._finish = FinishJob(claims, jobs, self._claim_offers)

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> StartedJob | Claim | None:
        """One read and one transaction."""
        last_fence = over.fence if over else 0
        for _ in range(_TRIES):
            record = self._jobs.queue(key).next(ANY_FENCE, now)
            if record is None:
                self._claim_offers.acknowledge(key)
                return None
            claim, request = self._claims.new(key, worker, last_fence, now), str(uuid.uuid4())
            begun = start(record.job, claim, now)
            change = self._jobs.change(record, begun.job, request)
            writes = [self._claims.take(claim, over, begun.job.job_id, request), *change]
            refused = self._dynamo.transact(f"claiming {key}", writes, request, self._claims.place(key))
            if refused is None:
                self._claim_offers.acknowledge(key)
                return begun
            if row := refused.by.get(0):
                if not may_claim(claim_of(row), over):
                    return claim_of(row)
                last_fence = row["fence"]
        raise Transient(f"claiming {key}: its queue changes faster than it can be read")

    def take_longest_waiting(self, worker: str, now: datetime) -> StartedJob | None:
        """Always None: SQS hands each claim request to one worker, so that no race is lost."""
        return None

    def start_next(self, claim: Claim, now: datetime) -> StartedJob | None:
        """Start the next runnable job of a held key; without one, the claim is not checked."""
        for _ in range(_TRIES):
            record = self._jobs.queue(claim.key).next(claim.fence, now)
            if record is None:
                return None
            begun, request = start(record.job, claim, now), str(uuid.uuid4())
            change = self._jobs.change(record, begun.job, request)
            writes = [self._claims.use(claim, begun.job.job_id, now), *change]
            witness = self._jobs.name, record.key
            refused = self._dynamo.transact(f"starting a job of {claim.key}", writes, request, witness)
            if refused is None:
                return begun
            if 0 in refused.by:
                raise ClaimLost(claim.key, claim.worker, claim.fence)
        raise Transient(f"starting a job of {claim.key}: its queue changes faster than it can be read")

    def end_and_take_next(self, started: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        """Settle or requeue, then start the next job or make way: one read, one transaction."""
        return self._finish.end_and_take_next(started, ending, now, more=more)

    def renew(self, claims: Collection[Claim], now: datetime) -> set[ProjectUser]:
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
        """Held becomes free at once: others may claim either, and a second write would be paid for at each release."""
        written = self._dynamo.write(f"releasing {claim.key}", self._claims.free(claim))
        if not isinstance(written, ConditionFailed):
            return True
        row = written.by[0]
        return row.get("fence") == claim.fence and row["status"] == ClaimStatus.FREE  # then only the answer was lost

    def end_release(self, claim: Claim) -> None:
        """Does nothing: `begin_release` has freed the key."""

    def look(self, key: ProjectUser) -> Claim | None:
        return self._claims.look(key)

    def look_all(self, keys: Collection[ProjectUser]) -> Mapping[ProjectUser, Claim]:
        """A hundred keys in a call."""
        return self._claims.look_all(keys)

    def busy(self, worker: str) -> int:
        """How many jobs that worker runs, by an index that may be a moment behind."""
        return sum(1 for fields in self._claims.held_by(worker) if "running" in fields)

    def held_by(self, worker: str) -> Sequence[Claim]:
        """By an index that may lag a moment."""
        return [claim_of(fields) for fields in self._claims.held_by(worker)]


TAKEABLE = "attribute_not_exists(#projectKey) OR (#status = :free AND #fence < :fence)"
OR_SEEN = " OR (#fence = :seen AND #status = :seenAs)"
RELEASE = "SET #status = :free"
CURRENT = "#fence = :fence"
CONFIRM = "SET #status = :showing"
STILL_HELD = "#fence = :fence AND #status <> :free"

OPERATOR_SECONDS = 900.0
"""How long a lease without a job is respected, on the waiting worker's clock: such leases have no beat."""
_GARBAGE_AFTER_SECONDS = 7 * 24 * 3600
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
        return self._take(project_id, token, now, overtaking=False)

    def overtake(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
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
