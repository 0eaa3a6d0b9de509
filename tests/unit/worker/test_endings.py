"""How a job ends, by what happened to it."""

from __future__ import annotations

import errno
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
    ProgramKilled,
    Stopped,
    Transient,
    is_machine_fault,
)
from webordinary.model.jobs import DeferReason, Job, JobOutcome, JobState, Requeue, RequeueReason, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.worker.slot import outcome_of, refusal_to_start
from webordinary.worker.worker import CircuitBreaker

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = ProjectUser("amelia", "scott")


def job(attempts: int = 1, *, cancel: bool = False) -> Job:
    return Job(
        "a", KEY, 1, 1, "t", "mail", Command.EDIT, JobState.RUNNING, NOON, attempts=attempts, cancel_requested=cancel
    )


def ended(problem: Exception, attempts: int = 1) -> Settlement | Requeue:
    return outcome_of(problem, job(attempts), NOON, 2.0, random.Random(1), machine_fault=is_machine_fault(problem))


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (Interrupted("a mail came in"), RequeueReason.INTERRUPTED),
        (Stopped("the worker ends"), RequeueReason.STOPPED),
        (NotNow(DeferReason.PAUSE, NOON + timedelta(days=1)), RequeueReason.HELD),
        (MustWait("a colleague publishes", 15.0), RequeueReason.WAITING),
        (Transient("disk full"), RequeueReason.RETRY),
        (RuntimeError("a bug"), RequeueReason.RETRY),
    ],
)
def test_what_can_go_on_later_goes_back_to_its_queue(problem: Exception, why: RequeueReason) -> None:
    ending = ended(problem)
    assert isinstance(ending, Requeue)
    assert ending.why is why


@pytest.mark.parametrize(
    ("problem", "outcome"),
    [
        (Cancelled("stop"), JobOutcome.CANCELLED),
        (JobTimedOut("too long"), JobOutcome.TIMED_OUT),
        (Permanent("no such project"), JobOutcome.DEAD),
    ],
)
def test_what_cannot_go_on_is_settled(problem: Exception, outcome: JobOutcome) -> None:
    ending = ended(problem)
    assert isinstance(ending, Settlement)
    assert ending.outcome is outcome


def raised(problem: Exception, cause: BaseException) -> Exception:
    problem.__cause__ = cause
    return problem


MACHINE_FAULTS = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EMFILE, "Too many open files"),
    MemoryError(),
    ProgramKilled("the agent"),
    raised(Transient("could not be written"), OSError(errno.EDQUOT, "Disk quota exceeded")),
    raised(Permanent("the agent cannot be started"), OSError(errno.ENOMEM, "Cannot allocate memory")),
]


@pytest.mark.parametrize("problem", MACHINE_FAULTS, ids=repr)
def test_a_fault_of_the_machine_is_waited_out_for_a_day_without_counting_attempts(problem: Exception) -> None:
    waiting = ended(problem, attempts=3)
    assert isinstance(waiting, Requeue)
    assert waiting.why is RequeueReason.WAITING
    late = outcome_of(problem, job(3), NOON, 2.0, random.Random(1), machine_fault=False)
    assert isinstance(late, Settlement)
    assert late.outcome is JobOutcome.DEAD


def test_a_customer_who_stops_a_job_stops_it_on_a_full_disk_too() -> None:
    stopped = ended(raised(Cancelled("stop"), OSError(errno.ENOSPC, "No space left on device")))
    assert isinstance(stopped, Settlement)
    assert stopped.outcome is JobOutcome.CANCELLED


def test_a_killed_program_waits_longer_the_longer_it_had_run() -> None:
    def waits(ran: timedelta) -> timedelta:
        running = job()._replace(started_at=NOON - ran)
        ending = outcome_of(ProgramKilled("the agent"), running, NOON, 2.0, random.Random(1), machine_fault=True)
        assert isinstance(ending, Requeue)
        assert ending.not_before
        return ending.not_before - NOON

    assert waits(timedelta(0)) < timedelta(seconds=11)
    assert timedelta(minutes=5) < waits(timedelta(minutes=2)) < timedelta(minutes=21)
    assert waits(timedelta(hours=1)) < timedelta(hours=1, seconds=1)


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
    assert last.outcome is JobOutcome.DEAD
    assert "failed 3 times" in (last.result.error or "")


def test_a_job_that_took_three_workers_down_or_was_cancelled_does_not_start() -> None:
    assert refusal_to_start(job(3)) is None
    crashed, unwanted = refusal_to_start(job(4)), refusal_to_start(job(1, cancel=True))
    assert crashed
    assert unwanted
    assert (crashed.outcome, unwanted.outcome) == (JobOutcome.DEAD, JobOutcome.CANCELLED)


def test_the_breaker_opens_at_the_fifth_error_in_a_row_and_closes_at_the_first_success() -> None:
    breaker = CircuitBreaker(random.Random(1))
    assert [breaker.failed() for _ in range(6)] == [False, False, False, False, True, False]
    assert 0.1 <= breaker.pause_seconds() <= 30.0
    assert breaker.succeeded()
    assert not breaker.succeeded()
