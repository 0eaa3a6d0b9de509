"""How a job ends, by what happened to it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from webordinary.model.errors import (
    Cancelled,
    Interrupted,
    JobTimedOut,
    MustWait,
    NotNow,
    Permanent,
    Stopped,
    Transient,
)
from webordinary.model.jobs import HeldBy, Job, JobState, Outcome, Requeue, Settlement, Why
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.worker.breaker import Breaker
from webordinary.worker.endings import ending_of, refusal_to_start

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = ProjectUser("amelia", "scott")


def job(attempts: int = 1, *, cancel: bool = False) -> Job:
    return Job(
        "a", KEY, 1, 1, "t", "mail", Command.EDIT, JobState.RUNNING, NOON, attempts=attempts, cancel_requested=cancel
    )


def ended(problem: Exception, attempts: int = 1) -> Settlement | Requeue:
    return ending_of(problem, job(attempts), NOON, 2.0, random.Random(1))


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (Interrupted("a mail came in"), Why.INTERRUPTED),
        (Stopped("the worker ends"), Why.STOPPED),
        (NotNow(HeldBy.PAUSE, NOON + timedelta(days=1)), Why.HELD),
        (MustWait("a colleague publishes", 15.0), Why.WAITING),
        (Transient("disk full"), Why.RETRY),
        (RuntimeError("a bug"), Why.RETRY),
    ],
)
def test_what_can_go_on_later_goes_back_to_its_queue(problem: Exception, why: Why) -> None:
    ending = ended(problem)
    assert isinstance(ending, Requeue)
    assert ending.why is why


@pytest.mark.parametrize(
    ("problem", "outcome"),
    [
        (Cancelled("stop"), Outcome.CANCELLED),
        (JobTimedOut("too long"), Outcome.TIMED_OUT),
        (Permanent("no such project"), Outcome.DEAD),
    ],
)
def test_what_cannot_go_on_is_settled(problem: Exception, outcome: Outcome) -> None:
    ending = ended(problem)
    assert isinstance(ending, Settlement)
    assert ending.outcome is outcome


def test_retries_wait_longer_each_time_and_the_third_failure_is_the_last() -> None:
    first, second = ended(Transient("busy"), 1), ended(Transient("busy"), 2)
    assert isinstance(first, Requeue)
    assert isinstance(second, Requeue)
    assert first.not_before
    assert second.not_before
    assert NOON + timedelta(seconds=1) <= first.not_before <= NOON + timedelta(seconds=2)
    assert NOON + timedelta(seconds=30) <= second.not_before <= NOON + timedelta(seconds=60)
    last = ended(Transient("busy"), 3)
    assert isinstance(last, Settlement)
    assert last.outcome is Outcome.DEAD
    assert "failed 3 times" in (last.result.error or "")


def test_a_job_that_took_three_workers_down_or_was_cancelled_does_not_start() -> None:
    assert refusal_to_start(job(3)) is None
    crashed, unwanted = refusal_to_start(job(4)), refusal_to_start(job(1, cancel=True))
    assert crashed
    assert unwanted
    assert (crashed.outcome, unwanted.outcome) == (Outcome.DEAD, Outcome.CANCELLED)


def test_the_breaker_opens_at_the_fifth_error_in_a_row_and_closes_at_the_first_success() -> None:
    breaker = Breaker(random.Random(1))
    assert [breaker.failed() for _ in range(6)] == [False, False, False, False, True, False]
    assert 0.1 <= breaker.pause_seconds() <= 30.0
    assert breaker.succeeded()
    assert not breaker.succeeded()
