"""What starting and ending do to a job, and when a key makes way, as pure functions for stores without SQL."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from webordinary.model.claims import YIELD_AFTER_SECONDS, Claim
from webordinary.model.jobs import Ending, Job, JobState, Requeue, Settlement, Why

_A_MOMENT = timedelta(seconds=YIELD_AFTER_SECONDS)


def started(job: Job, claim: Claim, now: datetime) -> Job:
    """The job as it runs under this claim."""
    return replace(
        job,
        state=JobState.RUNNING,
        worker=claim.worker,
        fence=claim.fence,
        attempts=job.attempts + 1,
        started_at=now,
        not_before=None,
    )


def ended(job: Job, ending: Ending, now: datetime, tail: int) -> Job:
    """The job as it is after its ending; `tail` is the order it gets if it goes to the tail."""
    return settled(job, ending, now) if isinstance(ending, Settlement) else _requeued(job, ending, tail)


def settled(job: Job, settlement: Settlement, now: datetime) -> Job:
    """The job as it ended for good."""
    return replace(job, state=JobState.SETTLED, outcome=settlement.outcome, result=settlement.result, settled_at=now)


def goes_to_tail(ending: Ending) -> bool:
    """Whether a job that ends so gets a new order."""
    return isinstance(ending, Requeue) and ending.why is Why.INTERRUPTED


def tells(job: Job) -> bool:
    """A workflow waits to hear of this job."""
    return bool(job.preempted_token or (not job.open and job.task_token))


def unmoved(current: Claim, seen: Claim | None) -> bool:
    """Whether a claim stands as it was seen."""
    return seen is not None and (current.worker, current.fence, current.beat) == (seen.worker, seen.fence, seen.beat)


def makes_way_after(claim: Claim, own: Job | None, open_jobs: Collection[Job], now: datetime) -> datetime | None:
    """Another key is served before this one if it has waited since before this moment; None if none is.

    `own` is the key's next job. A key whose jobs wait for a moment that comes by itself is kept, and quick jobs are
    not worth a change of keys; a key that came just now is left to a worker without work.
    """
    just_now = now - _A_MOMENT
    if own is None:
        return None if open_jobs else just_now
    if claim.claimed_at > just_now:
        return None
    return min(own.queued_at or just_now, just_now)


def _requeued(job: Job, requeue: Requeue, tail: int) -> Job:
    queued = replace(job, state=JobState.QUEUED, started_at=None)
    if requeue.why is Why.RETRY:
        return replace(queued, not_before=requeue.not_before, held=None)
    given_back = replace(queued, attempts=job.attempts - 1)
    if requeue.why is Why.STOPPED:
        return given_back
    if requeue.why is Why.WAITING:
        return replace(given_back, not_before=requeue.not_before, held=None)
    told = replace(given_back, preempted_token=job.task_token or job.preempted_token, task_token=None)
    if requeue.why is Why.HELD:
        return replace(given_back if job.held else told, not_before=requeue.not_before, held=requeue.held)
    return replace(told, interruptions=job.interruptions + 1, order=tail, held=None)
