"""Sends the callbacks of settled jobs. Idempotent: token binding and settlement may happen in either order."""

from __future__ import annotations

import logging
from datetime import datetime

from webordinary.model.errors import Permanent, Transient
from webordinary.model.jobs import Job, JobOutcome, JobState, Settlement
from webordinary.pool.ports import STOP, Callbacks, Pool
from webordinary.pool.transitions import sends_callback

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
        pool.owed.mark_delivered(job.job_id, job.preempted_token)
    if not job.open and job.task_token:
        _answer(job, job.task_token, pool.callbacks)
        pool.outputs.send(job)
        pool.owed.mark_delivered(job.job_id, job.task_token)


def wake_for_end(job: Job, pool: Pool) -> None:
    """Wake the worker that has to stop this job, or those that may start it or what waited behind it."""
    if job.state is JobState.RUNNING:
        pool.tickets.notify_owner(job, STOP)
    else:
        pool.tickets.notify_owner(job)
        pool.tickets.notify_unclaimed()


def end_workflow(job: Job, settlement: Settlement, pool: Pool, now: datetime) -> Job:
    """End a job for good: one that waits at once, and its workflow is told; of one that runs, its worker hears it."""
    ended = pool.jobs.settle_waiting(job.job_id, settlement, now)
    wake_for_end(ended, pool)
    if not ended.open and sends_callback(ended):
        try:
            deliver_callback(ended, pool)
        except (Transient, Permanent) as problem:  # asked again, we would find nothing to end: the reconciler pays
            _log.warning("job %s is ended; its callback is owed: %s", ended.job_id, problem)
    return ended


def deliver_pending_callbacks(pool: Pool) -> int:
    """Redo what a crash left undone."""
    jobs = pool.owed.owed(_BATCH)
    for job in jobs:
        deliver_callback(job, pool)
    return len(jobs)


def _answer(job: Job, token: str, callbacks: Callbacks) -> None:
    if job.outcome in GIVEN_UP:
        reason = job.result.error if job.result else None
        callbacks.fail(token, GIVEN_UP[job.outcome], reason or "no reason was kept")
    else:
        callbacks.succeed(token, {"jobId": job.job_id, "outcome": str(job.outcome)})
