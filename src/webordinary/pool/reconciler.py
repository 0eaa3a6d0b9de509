"""Effects of job records: the callbacks of settled jobs, and the reconciler, which redoes what a dead process left.

Sending a callback is idempotent: token binding and settlement may happen in either order. The reconciler sends hints
for open jobs without a live owner and is not a job in a queue.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webordinary.model.claims import Claim, ClaimRequest, ClaimStatus
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.jobs import Job, JobOutcome, JobState, Settlement
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import STOP, Callbacks, Pool
from webordinary.pool.transitions import ANY_FENCE, next_job, sends_callback

STOPPED = "This was stopped. Nothing was changed."
"""What the customer reads. It is certain once the job is stored as ended."""
PREEMPTED = "PREEMPTED"
JOB_DIED, JOB_TIMED_OUT = "JobDied", "JobTimedOut"
GIVEN_UP = {JobOutcome.DEAD: JOB_DIED, JobOutcome.TIMED_OUT: JOB_TIMED_OUT}
"""Outcomes that leave a dead letter, and the error that the workflow catches."""
_BATCH = 100
_log = logging.getLogger(__name__)


def deliver_callback(job: Job, pool: Pool) -> None:
    """Tell the workflow, and who else wants to hear it, what became of this job.

    Safe to repeat: a token is answered once, and what follows is redone until it is done.
    """
    if job.preempted_token:
        pool.callbacks.fail(job.preempted_token, PREEMPTED, f"interrupted, goes on later; job {job.job_id}")
        pool.pending_callbacks.mark_delivered(job.job_id, job.preempted_token)
    if not job.open and job.task_token:
        _answer(job, job.task_token, pool.callbacks)
        if pool.outputs:
            pool.outputs.send(job)
        pool.pending_callbacks.mark_delivered(job.job_id, job.task_token)


def wake_for_end(job: Job, pool: Pool) -> None:
    """Wake the worker that has to stop this job, or those that may start it or what waited behind it."""
    if job.state is JobState.RUNNING:
        pool.tickets.notify_owner(job, STOP)
    else:
        pool.tickets.notify_owner(job)
        pool.tickets.notify_unclaimed()


def end_workflow(job: Job, settlement: Settlement, pool: Pool, now: datetime) -> Job:
    """Cancel a job: a waiting one is settled at once with its callback; for a running one its worker is notified."""
    ended = pool.jobs.settle_waiting(job.job_id, settlement, now)
    wake_for_end(ended, pool)
    if not ended.open and sends_callback(ended):
        try:
            deliver_callback(ended, pool)
        except (Transient, Permanent) as problem:  # asked again, we would find nothing to end: the reconciler pays
            _log.warning("job %s is ended; its callback is pending: %s", ended.job_id, problem)
    return ended


def deliver_pending_callbacks(pool: Pool) -> int:
    """Deliver callbacks that a crash left pending."""
    jobs = pool.pending_callbacks.pending(_BATCH)
    for job in jobs:
        deliver_callback(job, pool)
    return len(jobs)


def _answer(job: Job, token: str, callbacks: Callbacks) -> None:
    if job.outcome in GIVEN_UP:
        reason = job.result.error if job.result else None
        callbacks.fail(token, GIVEN_UP[job.outcome], reason or "no reason was kept")
    else:
        callbacks.succeed(token, {"jobId": job.job_id, "outcome": str(job.outcome)})


_PAGE = 1_000
MOST_KEYS, MOST_HINTS = 50_000, 500
"""Bounds of one pass that the next one continues. Each takes a lambda of 256 MB about half a minute on DynamoDB.

A look costs a hundredth of a call there, a hint four calls.
"""


@dataclass(frozen=True, slots=True)
class Share:
    """The keys of one of several reconcilers. Number 0 also does the work that is not about keys."""

    number: int = 0
    of: int = 1

    def has(self, key: ProjectUser) -> bool:
        return self.of == 1 or zlib.crc32(key.text.encode()) % self.of == self.number


WHOLE = Share()


class PassProgress(Protocol):
    """Where a pass ended, kept for the next one, which may run in another process."""

    def after(self) -> ProjectUser | None:
        """The last key that was looked at; None to begin with the first."""

    def passed(self, after: ProjectUser | None, now: datetime) -> None:
        """Keep it; None when all keys were looked at."""


class Reconciler:
    """Makes sure that every open job has a live owner or a hint; harmless to run anywhere, any time."""

    def __init__(
        self,
        pool: Pool,
        events: Events,
        is_over: Callable[[Claim], bool] | None = None,
        is_mine: Callable[[ProjectUser], bool] = lambda key: False,
        progress: PassProgress | None = None,
        share: Share = WHOLE,
    ) -> None:
        """`is_over` is what a worker has seen; who only looks now and then goes by the lease's end.

        A worker's own keys have an owner: it looks after them itself, and its lease keeper notices when they are lost.
        With `progress` a pass is bounded, and what it did not reach comes next.
        """
        self._pool, self._events, self._is_over, self._is_mine = pool, events, is_over, is_mine
        self._progress, self._share = progress, share

    def run_once(self, now: datetime) -> int:
        """One pass over the keys with work; returns how many hints it sent."""
        if self._share.number == 0:
            deliver_pending_callbacks(self._pool)
        sent, looked, hinted, after = 0, 0, 0, self._progress.after() if self._progress else None
        while True:
            keys = self._pool.jobs.keys_to_look_at(after, _PAGE)
            mine = [key for key in keys if self._share.has(key) and not self._is_mine(key)]
            ownerless = self._without_owner(mine, now)
            after = keys[-1] if len(keys) == _PAGE else None
            if self._progress and hinted + len(ownerless) > MOST_HINTS:
                ownerless = ownerless[: MOST_HINTS - hinted]
                after = ownerless[-1][0]
            sent += sum(self._hint(key, claim, now) for key, claim in ownerless)
            looked, hinted = looked + len(mine), hinted + len(ownerless)
            if self._progress:
                self._progress.passed(after, now)  # after each page: a pass may be cut off
            if after is None or (self._progress and (looked >= MOST_KEYS or hinted >= MOST_HINTS)):
                break
        if sent:
            self._pool.tickets.notify_unclaimed()
        return sent

    def _without_owner(self, keys: Sequence[ProjectUser], now: datetime) -> list[tuple[ProjectUser, Claim | None]]:
        """Of these keys, in their order, each with the claim that it has nevertheless."""
        claims = self._pool.claims.look_all(keys)
        seen = ((key, claims.get(key)) for key in keys)
        return [(key, claim) for key, claim in seen if claim is None or self._ownerless(claim, now)]

    def _hint(self, key: ProjectUser, claim: Claim | None, now: datetime) -> bool:
        job = next_job(self._pool.jobs.open_jobs(key), ANY_FENCE, now)
        if job is None:
            return False  # what waits for its time, or for its attachments, needs no worker yet
        request = ClaimRequest.for_job(job, fence=claim.fence if claim else None)
        sent = self._pool.hints.send(request, now, again=True)
        if sent:
            self._events.emit(Event(EventKind.CLAIM_REQUESTED, key=key, data={"by": "reconciler"}))
        return sent

    def _ownerless(self, claim: Claim, now: datetime) -> bool:
        # Only a reason to hint: whether a lease is over, the worker that claims decides by the beat.
        if claim.status is not ClaimStatus.HELD:
            return True
        if self._is_over:
            return self._is_over(claim)
        return self._pool.liveness.is_dead(claim.worker) or claim.lease_expires_at < now
