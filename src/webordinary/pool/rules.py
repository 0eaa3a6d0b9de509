"""The pool's decisions as pure functions; a store that can, says the same in its own tongue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from webordinary.model.claims import MAX_INTERRUPTIONS, PREPARING_WAIT_SECONDS
from webordinary.model.jobs import Job, JobState
from webordinary.model.mail import Command

ANOTHER_THREAD = "a mail on another thread"
"""The one reason to interrupt a job."""
_PREPARING_WAIT = timedelta(seconds=PREPARING_WAIT_SECONDS)


def next_job(open_jobs: Iterable[Job], fence: int, now: datetime) -> Job | None:
    """The lowest order that may start under `fence`, no earlier job of its thread being open.

    A job still marked running under an older fence is one whose worker lost the key: it starts again.
    """
    jobs = sorted(open_jobs, key=lambda job: job.order)
    return next((job for job in jobs if _startable(job, fence, now) and not _blocked(job, jobs, now)), None)


def next_due_at(open_jobs: Iterable[Job]) -> datetime | None:
    """When a job that backs off, or waits for a preparing one, is worth another look."""
    due = [job.not_before for job in open_jobs if job.state is JobState.QUEUED and job.not_before]
    due += [job.recorded_at + _PREPARING_WAIT for job in open_jobs if job.state is JobState.PREPARING]
    return min(due, default=None)


def settles_at_once(job: Job) -> bool:
    """It waits, and every start that it had was seen to end: nobody has published it, nor can any more."""
    return job.state is not JobState.RUNNING and not job.attempts


def held_up(job: Job, of_thread: Iterable[Job]) -> bool:
    """Nobody may work on it yet: it is held, or an earlier job of its thread is, and it must not overtake that."""
    return any(one.held for one in of_thread if one.thread_order <= job.thread_order)


def interrupting_job(running: Job, open_jobs: Sequence[Job], now: datetime) -> Job | None:
    """The job that `running` must make way for: an edit of another thread that came in while it ran.

    What waited already when `running` began keeps its turn: a backlog would else be begun as a whole and only then
    finished. A clock that is wrong here makes a mail wait its turn, or be early; nothing depends on it.
    """
    if running.command is not Command.EDIT or running.interruptions >= MAX_INTERRUPTIONS:
        return None
    others = (job for job in open_jobs if job.thread_id != running.thread_id and job.command is Command.EDIT)
    fresh = (job for job in others if not job.attempts and not job.interruptions and _came_after(job, running))
    return next((job for job in fresh if _startable(job, 0, now) and not _blocked(job, open_jobs, now)), None)


def _came_after(job: Job, running: Job) -> bool:
    return job.queued_at is None or running.started_at is None or job.queued_at >= running.started_at


def _startable(job: Job, fence: int, now: datetime) -> bool:
    if job.state is JobState.RUNNING:
        return job.fence < fence
    return job.state is JobState.QUEUED and (job.not_before is None or job.not_before <= now)


def _blocked(job: Job, open_jobs: Iterable[Job], now: datetime) -> bool:
    return any(
        earlier.thread_id == job.thread_id and earlier.thread_order < job.thread_order and not _overdue(earlier, now)
        for earlier in open_jobs
    )


def _overdue(job: Job, now: datetime) -> bool:
    """A mail whose photos never arrive must not hold up its thread for ever."""
    return job.state is JobState.PREPARING and job.recorded_at <= now - _PREPARING_WAIT
