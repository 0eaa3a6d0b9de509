"""Callbacks follow from a job's record; whoever comes second sees both token and ending, and sends them."""

from __future__ import annotations

from webordinary.model.jobs import Job, Outcome
from webordinary.pool.ports import Callbacks, Pool

PREEMPTED = "PREEMPTED"
JOB_DIED = "JobDied"
_BATCH = 100


def pay(job: Job, pool: Pool) -> None:
    """Tell the workflow, and who else wants to hear it, what became of this job.

    Safe to repeat: a token is answered once, and what follows is redone until it is done.
    """
    if job.preempted_token:
        pool.callbacks.fail(job.preempted_token, PREEMPTED, f"interrupted, goes on later; job {job.job_id}")
        pool.owed.paid(job.job_id, job.preempted_token)
    if not job.open and job.task_token:
        _answer(job, job.task_token, pool.callbacks)
        pool.outputs.send(job)
        pool.owed.paid(job.job_id, job.task_token)


def pay_all(pool: Pool) -> int:
    """Redo what a crash left undone."""
    jobs = pool.owed.owed(_BATCH)
    for job in jobs:
        pay(job, pool)
    return len(jobs)


def _answer(job: Job, token: str, callbacks: Callbacks) -> None:
    if job.outcome is Outcome.DEAD:
        reason = job.result.error if job.result else None
        callbacks.fail(token, JOB_DIED, reason or "no reason was kept")
    else:
        callbacks.succeed(token, {"jobId": job.job_id, "outcome": str(job.outcome)})
