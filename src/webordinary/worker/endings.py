"""How a job ends, decided from what happened to it; no effects here."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from webordinary.model.claims import MAX_ATTEMPTS
from webordinary.model.errors import Cancelled, Interrupted, JobTimedOut, MustWait, NotNow, Permanent, Stopped
from webordinary.model.jobs import Ending, Job, JobResult, Outcome, Requeue, Settlement, Why
from webordinary.model.text import clean
from webordinary.pool.effects import STOPPED

_BACKOFF_FACTOR = 30
_ERROR_CHARACTERS = 2000

DEAD_SUMMARY = "I tried this several times and could not finish it. A person will look at it."
TIMED_OUT_SUMMARY = (
    "The work on your mail did not end in the time it may take, so it was stopped. Your site is as it was before. "
    "Asking for less at once often helps."
)


def may_look(job: Job) -> bool:
    """One start more than there are attempts is for finding out what they have published."""
    return job.attempts <= MAX_ATTEMPTS + 1


def refusal_to_start(job: Job) -> Settlement | None:
    """A job that must not run again: it was cancelled, or it took its workers down with it."""
    if not may_look(job):
        return _dead(f"started {job.attempts - 1} times; not even a look at what it has published came to an end")
    if job.cancel_requested:
        return Settlement(Outcome.CANCELLED, JobResult(STOPPED))
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
            return Requeue(Why.HELD, problem.look_again_at, problem.held)
        case MustWait():
            # Jitter: those who wait for the same thing do not come back together.
            seconds = dice.uniform(problem.seconds / 2, problem.seconds)
            return Requeue(Why.WAITING, now + timedelta(seconds=seconds), words=str(problem))
        case Cancelled():
            return Settlement(Outcome.CANCELLED, JobResult(STOPPED, error=str(problem)))
        case JobTimedOut():
            return Settlement(Outcome.TIMED_OUT, JobResult(TIMED_OUT_SUMMARY, error=str(problem)))
        case Permanent():
            return _dead(_words(problem))
        case _ if job.attempts >= MAX_ATTEMPTS:
            return _dead(f"failed {job.attempts} times, at last with {_words(problem)}")
        case _:
            # Jitter: jobs that failed together do not come back together. Few tries, so they soon lie far apart: a
            # remote or a model that is away for two minutes must not cost anybody their mail.
            ceiling = retry_base_seconds * _BACKOFF_FACTOR ** (job.attempts - 1)
            again_at = now + timedelta(seconds=dice.uniform(ceiling / 2, ceiling))
            return Requeue(Why.RETRY, again_at, words=clean(_words(problem)))


def _dead(reason: str) -> Settlement:
    return Settlement(Outcome.DEAD, JobResult(DEAD_SUMMARY, error=clean(reason)[:_ERROR_CHARACTERS]))


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
