"""Dates in a wish: `later` does nothing before a time, `until` takes the change back then.

Neither needs a record of its own: the job waits, held by its date, with what its customer was told.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from webordinary.jobs.ports import AgentResult, Answered, Asked, Changed, NotUnderstood
from webordinary.jobs.run import JobRun
from webordinary.model.errors import NotNow
from webordinary.model.jobs import DeferReason, JobOutcome, Settlement

LATER, UNTIL = "later", "until"
MOST_PUT_OFF = 50
"""Mails of one person that wait for a date."""
MORNING, EVENING = time(8), time(23, 59)
"""The time of day of a date without one: a wish for it, and a change until it."""
_MARGIN = timedelta(days=1)


def settle_date(run: JobRun, result: AgentResult) -> AgentResult:
    """The result with its date as a point in time, in `then`; a question if that cannot be kept."""
    if not isinstance(result, Changed | Answered) or result.then not in (LATER, UNTIL):
        return result
    if result.then == LATER and run.due_at:
        words = "The date of your wish has come, and I could not do it. Please write it again, without the date."
        return NotUnderstood(words, result.session, result.cost_usd, result.agent)
    at = _moment(run, result.then, result.at)
    if problem := _problem(run, at):
        return Asked(problem, result.session, result.cost_usd, result.agent)
    then = f"{result.then} {at.isoformat()}" if at else ""
    if result.then == LATER:
        words = result.summary if isinstance(result, Changed) else result.text
        return Answered(words, result.session, result.cost_usd, result.agent, then)
    return replace(result, then=then, at="")


def _moment(run: JobRun, kind: str, text: str) -> datetime | None:
    zone = run.project.zone
    try:
        if len(text) == len("2026-12-01"):
            day = MORNING if kind == LATER else EVENING
            return datetime.combine(date.fromisoformat(text), day, zone).astimezone(UTC)
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _problem(run: JobRun, at: datetime | None) -> str:
    """Why a date cannot be kept, as a question; empty if it can."""
    if at is None:
        return "I did not understand which day you mean, so nothing was changed. Please write the date, with its month."
    if at <= run.now():
        return "The date that you name is over, so nothing was changed. Which day do you mean?"
    last = run.job.recorded_at + run.deps.longest_ahead - _MARGIN
    if at > last:
        day = last.astimezone(run.project.zone).date().isoformat()
        return f"That is further ahead than I can keep it, so nothing was changed. Which day until {day} shall it be?"
    if run.deps.put_off(run.job.key) >= MOST_PUT_OFF:
        return f"{MOST_PUT_OFF} of your mails wait for their dates already, so nothing was changed. Which shall I drop?"
    return ""


def put_off(run: JobRun, done: Settlement, then: str) -> Settlement:
    """Raise NotNow if the job goes on at a date: with its wish, or to take back the change that it has made."""
    kind, _, at = then.partition(" ")
    if kind not in (LATER, UNTIL) or done.outcome is not JobOutcome.SUCCEEDED or done.result.question:
        return done
    if run.job.cancel_requested or (kind == UNTIL and not done.result.commit):
        return done
    raise NotNow(DeferReason.LATER, datetime.fromisoformat(at), replace(done.result, due_at=at))
