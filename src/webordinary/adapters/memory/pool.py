"""The pool's ports in memory: the same sentences as a database says, for tests and simulation."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from webordinary.model.claims import (
    LEASE_SECONDS,
    YIELD_AFTER_SECONDS,
    Claim,
    ClaimRequest,
    ClaimStatus,
    Interrupt,
    Started,
    Turn,
    next_fence,
)
from webordinary.model.errors import ClaimLost, Permanent
from webordinary.model.jobs import Ending, Job, JobState, NewJob, Requeue, Settlement, Why
from webordinary.model.names import ProjectUser
from webordinary.pool.rules import next_job


@dataclass
class MemoryPoolState:
    """What a database would hold; shared by the adapters below, as one file is by several processes."""

    jobs: dict[str, Job] = field(default_factory=dict)
    orders: dict[ProjectUser, int] = field(default_factory=dict)
    claims: dict[ProjectUser, Claim] = field(default_factory=dict)
    hints: dict[ProjectUser, tuple[ClaimRequest, datetime]] = field(default_factory=dict)
    interrupts: dict[tuple[ProjectUser, str], Interrupt] = field(default_factory=dict)
    called_back: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def open_of(self, key: ProjectUser) -> list[Job]:
        """The open jobs of a key, in order."""
        return sorted((j for j in self.jobs.values() if j.key == key and j.open), key=lambda j: j.order)

    def next_order(self, key: ProjectUser) -> int:
        """Count up; orders are never used twice."""
        self.orders[key] = self.orders.get(key, 0) + 1
        return self.orders[key]


class MemoryJobs:
    """The truth about work, as a dictionary."""

    def __init__(self, state: MemoryPoolState) -> None:
        self._state = state

    def record(self, new: NewJob, now: datetime, *, ready: bool = False) -> Job:
        """Give a new job its order."""
        with self._state.lock:
            if known := self._state.jobs.get(new.job_id):
                return known
            return self._put(new.recorded(self._state.next_order(new.key), now, ready=ready))

    def enqueue(self, job_id: str, now: datetime) -> Job:
        """Make a preparing job runnable."""
        with self._state.lock:
            job = self._get(job_id)
            if job.state is not JobState.PREPARING:
                return job
            return self._put(replace(job, state=JobState.QUEUED, queued_at=now))

    def get(self, job_id: str) -> Job | None:
        """One job, open or settled."""
        with self._state.lock:
            return self._state.jobs.get(job_id)

    def open_jobs(self, key: ProjectUser, limit: int = 1000) -> Sequence[Job]:
        """The open jobs of a key, in order."""
        with self._state.lock:
            return self._state.open_of(key)[:limit]

    def bind_token(self, job_id: str, token: str) -> Job:
        """Name whom to call back."""
        with self._state.lock:
            self._state.called_back.discard(job_id)
            return self._put(replace(self._get(job_id), task_token=token))

    def settle_unstarted(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        """End a job that never started, or ask the worker."""
        with self._state.lock:
            job = self._get(job_id)
            if not job.open:
                return job
            if job.fence:
                return self._put(replace(job, cancel_requested=True))
            return self._put(_settled(job, settlement, now))

    def keys_with_open_jobs(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        """Every key that has work."""
        with self._state.lock:
            keys = sorted({job.key for job in self._state.jobs.values() if job.open}, key=str)
            return [key for key in keys if after is None or str(key) > str(after)][:limit]

    def owed(self, limit: int) -> Sequence[Job]:
        """Jobs whose workflow waits to be told."""
        with self._state.lock:
            return [job for job in self._state.jobs.values() if self._owes(job)][:limit]

    def paid(self, job_id: str, token: str) -> None:
        """The workflow behind this token was told."""
        with self._state.lock:
            job = self._get(job_id)
            if job.task_token == token:
                self._state.called_back.add(job_id)
            if job.preempted_token == token:
                self._put(replace(job, preempted_token=None))

    def _owes(self, job: Job) -> bool:
        settled = not job.open and job.task_token is not None and job.job_id not in self._state.called_back
        return settled or job.preempted_token is not None

    def _get(self, job_id: str) -> Job:
        if job := self._state.jobs.get(job_id):
            return job
        raise Permanent(f"job {job_id} is not recorded; it was pruned, or its mail never got this far")

    def _put(self, job: Job) -> Job:
        self._state.jobs[job.job_id] = job
        return job


class MemoryClaims:
    """Who acts for which ProjectUser, as a dictionary."""

    def __init__(self, state: MemoryPoolState, lease_seconds: float = LEASE_SECONDS) -> None:
        self._state = state
        self._lease = timedelta(seconds=lease_seconds)

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> Started | Claim | None:
        """Take a key with its first runnable job."""
        with self._state.lock:
            current = self._state.claims.get(key)
            fence = next_fence(current.fence if current else 0, now)
            job = next_job(self._state.open_of(key), fence, now)
            if job is None:
                self._state.hints.pop(key, None)
                return None
            if current and current.status is ClaimStatus.HELD and not _unmoved(current, over):
                return current
            self._state.hints.pop(key, None)
            claim = Claim(key, worker, fence, 0, ClaimStatus.HELD, now, now, now + self._lease)
            self._state.claims[key] = claim
            return Started(claim, self._start(job, claim, now))

    def start_next(self, claim: Claim, now: datetime) -> Job | None:
        """Start the next runnable job of a key that is ours."""
        with self._state.lock:
            self._check(claim)
            job = next_job(self._state.open_of(claim.key), claim.fence, now)
            return self._start(job, claim, now) if job else None

    def end_and_take_next(self, started: Started, ending: Ending, now: datetime, *, more: bool) -> Turn:
        """Settle or requeue, then start the next job or yield."""
        claim = started.claim
        with self._state.lock:
            self._check(claim)
            ended = self._end(started, ending, now)
            owed = ended if _tells(ended) else None
            kept, following = self._go_on(claim, now) if more else (claim, None)
            return Turn(kept, following, owed)

    def renew(self, claims: Collection[Claim], now: datetime) -> set[ProjectUser]:
        """Prolong the leases of all that is still ours."""
        with self._state.lock:
            mine = [claim for claim in claims if self._mine(claim)]
            for claim in mine:
                beat = self._state.claims[claim.key].beat + 1
                self._change(claim, beat=beat, lease_expires_at=now + self._lease)
            return {claim.key for claim in mine}

    def begin_release(self, claim: Claim) -> bool:
        """Held becomes releasing."""
        with self._state.lock:
            if not self._mine(claim):
                return False
            self._change(claim, status=ClaimStatus.RELEASING)
            return True

    def end_release(self, claim: Claim) -> None:
        """Releasing becomes free."""
        with self._state.lock:
            current = self._state.claims.get(claim.key)
            releasing = current is not None and current.status is ClaimStatus.RELEASING
            if current and releasing and (current.worker, current.fence) == (claim.worker, claim.fence):
                self._change(claim, status=ClaimStatus.FREE)

    def look(self, key: ProjectUser) -> Claim | None:
        """Who holds the key now."""
        with self._state.lock:
            claim = self._state.claims.get(key)
            return None if claim is None or claim.status is ClaimStatus.FREE else claim

    def busy(self, worker: str) -> int:
        """How many jobs that worker runs now."""
        with self._state.lock:
            jobs = self._state.jobs.values()
            return sum(1 for job in jobs if job.state is JobState.RUNNING and job.worker == worker)

    def _mine(self, claim: Claim) -> bool:
        current = self._state.claims.get(claim.key)
        return (
            current is not None
            and current.status is ClaimStatus.HELD
            and (current.worker, current.fence) == (claim.worker, claim.fence)
        )

    def _check(self, claim: Claim) -> None:
        if not self._mine(claim):
            raise ClaimLost(claim.key, claim.worker, claim.fence)

    def _change(self, claim: Claim, **fields: object) -> None:
        self._state.claims[claim.key] = replace(self._state.claims[claim.key], **fields)  # type: ignore[arg-type]

    def _start(self, job: Job, claim: Claim, now: datetime) -> Job:
        running = replace(
            job,
            state=JobState.RUNNING,
            worker=claim.worker,
            fence=claim.fence,
            attempts=job.attempts + 1,
            started_at=now,
            not_before=None,
        )
        self._state.jobs[job.job_id] = running
        return running

    def _end(self, started: Started, ending: Ending, now: datetime) -> Job:
        job = self._state.jobs[started.job.job_id]
        if job.state is not JobState.RUNNING or job.fence != started.claim.fence:
            raise ClaimLost(started.claim.key, started.claim.worker, started.claim.fence)
        ended = _settled(job, ending, now) if isinstance(ending, Settlement) else self._requeued(job, ending)
        self._state.jobs[job.job_id] = ended
        return ended

    def _requeued(self, job: Job, requeue: Requeue) -> Job:
        queued = replace(job, state=JobState.QUEUED, started_at=None)
        match requeue.why:
            case Why.RETRY:
                return replace(queued, not_before=requeue.not_before)
            case Why.HELD:
                return replace(
                    queued,
                    attempts=job.attempts - 1,
                    not_before=requeue.not_before,
                    preempted_token=job.task_token or job.preempted_token,
                    task_token=None,
                )
            case Why.STOPPED:
                return replace(queued, attempts=job.attempts - 1)
            case Why.INTERRUPTED:
                return replace(
                    queued,
                    attempts=job.attempts - 1,
                    interruptions=job.interruptions + 1,
                    order=self._state.next_order(job.key),
                    preempted_token=job.task_token or job.preempted_token,
                    task_token=None,
                )

    def _go_on(self, claim: Claim, now: datetime) -> tuple[Claim | None, Started | None]:
        """What is kept, and what starts: the key's next job, or that of a key which has waited longer."""
        open_jobs = self._state.open_of(claim.key)
        own = next_job(open_jobs, claim.fence, now)
        if own is None and open_jobs:
            return claim, None
        just_now = now - timedelta(seconds=YIELD_AFTER_SECONDS)
        if own and claim.claimed_at > just_now:
            return claim, Started(claim, self._start(own, claim, now))
        waited = min(own.queued_at, just_now) if own and own.queued_at else just_now
        if handed := self._take_waiting_since(waited, claim, now):
            self._change(claim, status=ClaimStatus.FREE)
            if own and own.queued_at:
                request = ClaimRequest(claim.key, own.queued_at, claim.worker)
                self._state.hints.setdefault(claim.key, (request, now))
            return None, handed
        return claim, Started(claim, self._start(own, claim, now)) if own else None

    def _take_waiting_since(self, waited: datetime, claim: Claim, now: datetime) -> Started | None:
        just_now = now - timedelta(seconds=YIELD_AFTER_SECONDS)
        for hint, sent_at in sorted(self._state.hints.values(), key=lambda sent: sent[0].waiting_since):
            theirs = hint.preferred not in (None, claim.worker) and sent_at > just_now
            if hint.key == claim.key or hint.waiting_since >= waited or theirs:
                continue
            taken = self.claim_and_start(hint.key, claim.worker, now)
            if isinstance(taken, Started):
                return taken
        return None


class MemoryHints:
    """At most one hint a key."""

    def __init__(self, state: MemoryPoolState) -> None:
        self._state = state

    def send(self, request: ClaimRequest, now: datetime) -> bool:
        """Say that a key has work and no owner."""
        with self._state.lock:
            if request.key in self._state.hints:
                return False
            self._state.hints[request.key] = (request, now)
            return True

    def receive(self, now: datetime, skip: Collection[ProjectUser], limit: int) -> Sequence[ClaimRequest]:
        """Hints that wait, the longest first."""
        with self._state.lock:
            waiting = [hint for hint, _ in self._state.hints.values() if hint.key not in skip]
            return sorted(waiting, key=lambda hint: hint.waiting_since)[:limit]

    def acknowledge(self, key: ProjectUser) -> None:
        """Hints for this key have nothing to tell any more."""
        with self._state.lock:
            self._state.hints.pop(key, None)


class MemoryInterrupts:
    """Requests to end a running job early."""

    def __init__(self, state: MemoryPoolState) -> None:
        self._state = state

    def send(self, interrupt: Interrupt, now: datetime) -> None:
        """Ask; asking twice is asking once."""
        with self._state.lock:
            self._state.interrupts.setdefault((interrupt.key, interrupt.job_id), interrupt)

    def take(self, key: ProjectUser) -> Sequence[Interrupt]:
        """Receive and delete what was asked for this key."""
        with self._state.lock:
            found = [asked for (of, _), asked in self._state.interrupts.items() if of == key]
            for asked in found:
                del self._state.interrupts[asked.key, asked.job_id]
            return found


def _settled(job: Job, settlement: Settlement, now: datetime) -> Job:
    return replace(job, state=JobState.SETTLED, outcome=settlement.outcome, result=settlement.result, settled_at=now)


def _tells(job: Job) -> bool:
    """A workflow waits to hear of this job."""
    return bool(job.preempted_token or (not job.open and job.task_token))


def _unmoved(current: Claim, over: Claim | None) -> bool:
    return over is not None and (current.worker, current.fence, current.beat) == (
        over.worker,
        over.fence,
        over.beat,
    )
