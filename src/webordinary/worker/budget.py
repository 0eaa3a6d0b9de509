"""Stage zero: may this job run now? A paused project and a used-up day make it wait, with words."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from webordinary.model.errors import NotNow
from webordinary.model.mail import Command
from webordinary.worker.run import JobRun

PAUSE = timedelta(days=365)  # until the operator resumes the project, which lets its jobs go at once


def check_budget(run: JobRun) -> None:
    """Raise NotNow where the operator paused the project, or its agents have cost enough today."""
    now = run.now()
    if run.project.paused:
        raise NotNow("work on this site is paused", now + PAUSE)
    cap = run.project.daily_cap_usd or run.kit.daily_cap_usd
    if run.job.command is not Command.EDIT or not cap:
        return
    if run.kit.ledger.on_day(run.project.project_id, now.date()) >= cap:
        raise NotNow("today's budget of this site is used up", _tomorrow(now))


def _tomorrow(now: datetime) -> datetime:
    return datetime.combine(now.date() + timedelta(days=1), time(), UTC)
