"""The pool's ports in memory: the same sentences as a database says, for tests and simulation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from webordinary.adapters.memory.pool_state import MemoryPoolState
from webordinary.model.claims import (
    LEASE_SECONDS,
    YIELD_AFTER_SECONDS,
    Claim,
    ClaimRequest,
    ClaimStatus,
    FinishResult,
    Interrupt,
    StartedJob,
    next_fence,
)
from webordinary.model.errors import ClaimLost, HourlyLimitReached, Permanent
from webordinary.model.jobs import Ending, Job, JobState, NewJob, Settlement
from webordinary.model.names import ProjectUser
from webordinary.pool import transitions as turns
from webordinary.pool.transitions import hour_of, next_job


class MemoryJobs:
    """The truth about work, as a dictionary."""

    def __init__(self, state: MemoryPoolState) -> None:
        self._state = state

    def record(self, new: NewJob, now: datetime, *, ready: bool = False, hourly_limit: int = 0) -> Job:
        """Give a new job its order."""
        with self._state.lock:
            if known := self._state.jobs.get(new.job_id):
                return known
            of_key = (job for job in self._state.jobs.values() if job.key == new.key)
            if hourly_limit and sum(hour_of(job.recorded_at) == hour_of(now) for job in of_key) >= hourly_limit:
                raise HourlyLimitReached(new.key, hourly_limit)
            return self._state.put(new.recorded(self._state.next_order(new.key), now, ready=ready))

    def enqueue(self, job_id: str, now: datetime) -> Job:
        """Make a preparing job runnable."""
        with self._state.lock:
            job = self._get(job_id)
            if job.state is not JobState.PREPARING:
                return job
            return self._state.put(job._replace(state=JobState.QUEUED, queued_at=now))

    def get(self, job_id: str) -> Job | None:
        """One job, open or settled."""
        with self._state.lock:
            return self._state.jobs.get(job_id)

    def open_jobs(self, key: ProjectUser, limit: int = 1000, after: int = 0) -> Sequence[Job]:
        """The open jobs of a key, in order."""
        with self._state.lock:
            return [job for job in self._state.open_of(key) if job.order > after][:limit]

    def bind_token(self, job_id: str, token: str) -> Job:
        """Name whom to call back."""
        with self._state.lock:
            self._state.called_back.discard(job_id)
            return self._state.put(self._get(job_id)._replace(task_token=token))

    def settle_waiting(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        """End a job that waits, or ask a worker."""
        with self._state.lock:
            return self._state.put(turns.stopped(self._get(job_id), settlement, now))

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        """Every key that has work."""
        with self._state.lock:
            return self._state.keys_to_look_at(after, limit)

    def owed(self, limit: int) -> Sequence[Job]:
        """Jobs whose workflow waits to be told."""
        with self._state.lock:
            return self._state.owing()[:limit]

    def mark_delivered(self, job_id: str, token: str) -> None:
        """The workflow behind this token was told."""
        with self._state.lock:
            job = self._get(job_id)
            if job.task_token == token:
                self._state.told(job)
            if job.preempted_token == token:
                self._state.put(job._replace(preempted_token=None))

    def keys_of(self, project_id: str) -> Sequence[ProjectUser]:
        """Every key of a project that has open jobs."""
        with self._state.lock:
            return self._state.keys_of(project_id)

    def let_go(self, project_id: str) -> Sequence[ProjectUser]:
        """Jobs of a project that were put off may start now; the keys that have such jobs."""
        with self._state.lock:
            mine = (job for job in self._state.jobs.values() if job.key.project_id == project_id)
            put_off = [job for job in mine if job.state is JobState.QUEUED and job.not_before]
            for job in put_off:
                self._state.put(job._replace(not_before=None))
            return sorted({job.key for job in put_off})

    def _get(self, job_id: str) -> Job:
        if job := self._state.jobs.get(job_id):
            return job
        raise Permanent(f"job {job_id} is not recorded; it was pruned, or its mail never got this far")


class MemoryClaims:
    """Who acts for which ProjectUser, as a dictionary."""

    def __init__(self, state: MemoryPoolState, lease_seconds: float = LEASE_SECONDS) -> None:
        self._state = state
        self._lease = timedelta(seconds=lease_seconds)

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> StartedJob | Claim | None:
        """Take a key with its first runnable job."""
        with self._state.lock:
            current = self._state.claims.get(key)
            fence = next_fence(current.fence if current else 0, now)
            job = next_job(self._state.open_of(key), fence, now)
            if job is None:
                self._state.hints.remove(key)
                return None
            if current and current.status is ClaimStatus.HELD and not turns.is_unchanged(current, over):
                return current
            self._state.hints.remove(key)
            claim = Claim(key, worker, fence, 0, ClaimStatus.HELD, now, now, now + self._lease)
            self._state.claims[key] = claim
            return StartedJob(claim, self._start(job, claim, now))

    def take_longest_waiting(self, worker: str, now: datetime) -> StartedJob | None:
        """Take whichever key has a hint, the longest first."""
        with self._state.lock:
            return self._take_waiting_since(now, worker, now)

    def start_next(self, claim: Claim, now: datetime) -> Job | None:
        """Start the next runnable job of a key that is ours."""
        with self._state.lock:
            self._check(claim)
            job = next_job(self._state.open_of(claim.key), claim.fence, now)
            return self._start(job, claim, now) if job else None

    def end_and_take_next(self, started: StartedJob, ending: Ending, now: datetime, *, more: bool) -> FinishResult:
        """Settle or requeue, then start the next job or yield."""
        claim = started.claim
        with self._state.lock:
            self._check(claim)
            ended = self._end(started, ending, now)
            owed = ended if turns.sends_callback(ended) else None
            kept, following = self._go_on(claim, now) if more else (claim, None)
            return FinishResult(kept, following, owed, empty=not self._state.open_of(claim.key))

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
            return self._state.running_at(worker)

    def held_by(self, worker: str) -> Sequence[Claim]:
        """The claims that the store says this worker holds."""
        with self._state.lock:
            claims = self._state.claims.values()
            return [claim for claim in claims if claim.worker == worker and claim.status is ClaimStatus.HELD]

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
        return self._state.put(turns.started(job, claim, now))

    def _end(self, started: StartedJob, ending: Ending, now: datetime) -> Job:
        job = self._state.jobs[started.job.job_id]
        if job.state is not JobState.RUNNING or job.fence != started.claim.fence:
            raise ClaimLost(started.claim.key, started.claim.worker, started.claim.fence)
        tail = self._state.next_order(job.key) if turns.requeues_at_tail(ending) else job.order
        return self._state.put(turns.ended(job, ending, now, tail))

    def _go_on(self, claim: Claim, now: datetime) -> tuple[Claim | None, StartedJob | None]:
        """What is kept, and what starts: the key's next job, or that of a key which has waited longer."""
        open_jobs = self._state.open_of(claim.key)
        own = next_job(open_jobs, claim.fence, now)
        waited = turns.yields_after(claim, own, now, empty=not open_jobs)
        if waited and (handed := self._take_waiting_since(waited, claim.worker, now, own=claim.key)):
            self._change(claim, status=ClaimStatus.FREE)
            if own:
                self._state.hints.add(ClaimRequest(claim.key, now, claim.worker), now)
            return None, handed
        return claim, StartedJob(claim, self._start(own, claim, now)) if own else None

    def _take_waiting_since(
        self, waited: datetime, worker: str, now: datetime, own: ProjectUser | None = None
    ) -> StartedJob | None:
        just_now = now - timedelta(seconds=YIELD_AFTER_SECONDS)
        for hint, sent_at in self._state.hints.longest_first():
            if hint.waiting_since >= waited:
                return None
            theirs = hint.preferred not in (None, worker) and sent_at > just_now
            if hint.key == own or theirs:
                continue
            taken = self.claim_and_start(hint.key, worker, now)
            if isinstance(taken, StartedJob):
                return taken
        return None


class MemoryHints:
    """At most one hint a key."""

    def __init__(self, state: MemoryPoolState) -> None:
        self._state = state

    def send(self, request: ClaimRequest, now: datetime, *, again: bool = False) -> bool:
        """Say that a key has work and no owner."""
        with self._state.lock:
            return self._state.hints.add(request, now)

    def receive(self, now: datetime, skip: Collection[ProjectUser], limit: int) -> Sequence[ClaimRequest]:
        """Hints that wait, the longest first."""
        with self._state.lock:
            waiting = (hint for hint, _ in self._state.hints.longest_first() if hint.key not in skip)
            return list(islice(waiting, limit))

    def acknowledge(self, key: ProjectUser) -> None:
        """Hints for this key have nothing to tell any more."""
        with self._state.lock:
            self._state.hints.remove(key)


class MemoryInterrupts:
    """Requests to look at a key's queue."""

    def __init__(self, state: MemoryPoolState) -> None:
        self._state = state

    def send(self, interrupt: Interrupt, now: datetime) -> None:
        """Ask; asking twice is asking once."""
        with self._state.lock:
            self._state.interrupts.setdefault(interrupt.key, {}).setdefault(interrupt.job_id, interrupt)

    def take(self, key: ProjectUser) -> Sequence[Interrupt]:
        """Receive and delete what was asked for this key."""
        with self._state.lock:
            return list(self._state.interrupts.pop(key, {}).values())
