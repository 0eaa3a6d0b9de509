"""How a job ends, decided from what happened to it; no effects here."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from webordinary.model.claims import MAX_ATTEMPTS
from webordinary.model.errors import Cancelled, Interrupted, JobTimedOut, NotNow, Permanent, Stopped
from webordinary.model.jobs import Ending, Job, JobResult, Outcome, Requeue, Settlement, Why

_MAX_BACKOFF_SECONDS = 300.0
_ERROR_CHARACTERS = 2000

DEAD_SUMMARY = "I tried this several times and could not finish it. A person will look at it."
TIMED_OUT_SUMMARY = "This took longer than I may spend on one mail, so I stopped. Nothing was published."
CANCELLED_SUMMARY = "Stopped, as asked. Nothing was published."


def may_look(job: Job) -> bool:
    """One start more than there are attempts is for finding out what they have published."""
    return job.attempts <= MAX_ATTEMPTS + 1


def refusal_to_start(job: Job) -> Settlement | None:
    """A job that must not run again: it was cancelled, or it took its workers down with it."""
    if not may_look(job):
        return _dead(f"started {job.attempts - 1} times; not even a look at what it has published came to an end")
    if job.cancel_requested:
        return Settlement(Outcome.CANCELLED, JobResult(CANCELLED_SUMMARY))
    if job.attempts > MAX_ATTEMPTS:
        return _dead(f"started {MAX_ATTEMPTS} times without ending")
    return None


def ending_of(problem: Exception, job: Job, now: datetime, retry_base_seconds: float, dice: random.Random) -> Ending:
    """What becomes of a job that raised `problem`."""
    match problem:
        case Stopped():
            return Requeue(Why.STOPPED)
        case Interrupted():
            return Requeue(Why.INTERRUPTED)
        case NotNow():
            return Requeue(Why.HELD, problem.until)
        case Cancelled():
            return Settlement(Outcome.CANCELLED, JobResult(CANCELLED_SUMMARY, error=str(problem)))
        case JobTimedOut():
            return Settlement(Outcome.TIMED_OUT, JobResult(TIMED_OUT_SUMMARY, error=str(problem)))
        case Permanent():
            return _dead(_words(problem))
        case _ if job.attempts >= MAX_ATTEMPTS:
            return _dead(f"failed {job.attempts} times, at last with {_words(problem)}")
        case _:
            # Full jitter: jobs that failed together do not come back together.
            ceiling = min(_MAX_BACKOFF_SECONDS, retry_base_seconds * 2 ** (job.attempts - 1))
            return Requeue(Why.RETRY, now + timedelta(seconds=dice.uniform(ceiling / 2, ceiling)))


def _dead(reason: str) -> Settlement:
    return Settlement(Outcome.DEAD, JobResult(DEAD_SUMMARY, error=reason[:_ERROR_CHARACTERS]))


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
