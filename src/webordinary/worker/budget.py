"""Stage zero: may this job run now? A paused project and a used-up day make it wait, and look again."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from webordinary.model.errors import NotNow
from webordinary.model.jobs import HeldBy, Job
from webordinary.model.mail import Command
from webordinary.worker.run import JobRun

SOONEST, LATEST = timedelta(minutes=5), timedelta(hours=1)


def check_budget(run: JobRun) -> None:
    """Raise NotNow where the operator paused the project, or its agents have cost enough today."""
    now = run.now()
    if run.project.paused:
        raise NotNow(HeldBy.PAUSE, _soon(run.job, now))
    cap = run.project.daily_cap_usd or run.kit.daily_cap_usd
    if run.job.command is not Command.EDIT or not cap:
        return
    if run.kit.ledger.on_day(run.project.project_id, now.date()) >= cap:
        raise NotNow(HeldBy.BUDGET, min(_soon(run.job, now), _tomorrow(now)))


def _soon(job: Job, now: datetime) -> datetime:
    """After as long as it has waited already, within bounds.

    `resume` lets its jobs go at once, but one that is on its way here just then sees the pause and misses that.
    """
    waited = now - (job.queued_at or job.recorded_at)
    return now + min(max(waited, SOONEST), LATEST)


def _tomorrow(now: datetime) -> datetime:
    return datetime.combine(now.date() + timedelta(days=1), time(), UTC)
