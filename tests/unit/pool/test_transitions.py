"""Which job is next, and which must make way."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.test_project_leases import JobHold
from webordinary.model.claims import LeaseRecord, LeaseStatus
from webordinary.model.jobs import DeferReason, Job, JobState
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool.transitions import blocked_by, interrupting_job, may_take_lease, next_due_at, next_job

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = ProjectUser("amelia", "scott")
MINUTE = timedelta(minutes=1)


def job(name: str, order: int, *, thread: str = "", state: JobState = JobState.QUEUED, **fields: object) -> Job:
    plain = Job(name, KEY, order, order, thread or name, f"mail-{name}", Command.EDIT, state, NOON, queued_at=NOON)
    return plain._replace(**fields)  # type: ignore[arg-type]


def test_the_lowest_order_is_next() -> None:
    assert next_job([job("b", 2), job("a", 1)], 5, NOON) == job("a", 1)


def test_a_job_waits_for_the_earlier_one_of_its_thread_wherever_that_stands_in_the_queue() -> None:
    interrupted = job("a1", 9, thread="t", thread_order=1)
    assert next_job([job("a2", 2, thread="t"), interrupted], 5, NOON) == interrupted


def test_a_job_left_running_under_an_older_fence_starts_again() -> None:
    orphan = job("a", 1, state=JobState.RUNNING, fence=4)
    assert next_job([orphan], 5, NOON) == orphan
    assert next_job([orphan], 4, NOON) is None


def test_a_job_that_a_wrong_clock_has_put_off_for_weeks_may_start() -> None:
    put_off = job("a", 1, not_before=NOON + timedelta(days=40))
    assert next_job([put_off], 5, NOON) == put_off
    assert next_job([job("a", 1, not_before=NOON + MINUTE)], 5, NOON) is None


def test_what_backs_off_or_prepares_is_worth_a_later_look() -> None:
    backing_off = job("a", 1, not_before=NOON + MINUTE)
    assert next_due_at([backing_off, job("b", 2, state=JobState.PREPARING)]) == NOON + MINUTE


def test_a_fresh_edit_of_another_thread_interrupts() -> None:
    running, fresh = job("a", 1, state=JobState.RUNNING), job("b", 2)
    assert interrupting_job(running, [running, fresh], NOON) == fresh


def test_what_waited_already_when_a_job_began_waits_its_turn() -> None:
    running = job("a", 1, state=JobState.RUNNING, started_at=NOON + MINUTE)
    waiting, newcomer = job("b", 2), job("c", 3, queued_at=NOON + 2 * MINUTE)
    assert interrupting_job(running, [running, waiting], NOON + 3 * MINUTE) is None
    assert interrupting_job(running, [running, waiting, newcomer], NOON + 3 * MINUTE) == newcomer


def test_nothing_of_the_same_thread_interrupts() -> None:
    running = job("a", 1, thread="t", state=JobState.RUNNING)
    assert interrupting_job(running, [running, job("b", 2, thread="t")], NOON) is None


def test_commands_neither_interrupt_nor_are_interrupted() -> None:
    running = job("a", 1, state=JobState.RUNNING)
    assert interrupting_job(running, [running, job("b", 2, command=Command.UNDO)], NOON) is None
    undo = running._replace(command=Command.UNDO)
    assert interrupting_job(undo, [undo, job("b", 2)], NOON) is None


def test_what_was_started_before_does_not_interrupt() -> None:
    running = job("a", 1, state=JobState.RUNNING)
    for again in (job("b", 2, attempts=1), job("b", 2, interruptions=1)):
        assert interrupting_job(running, [running, again], NOON) is None


def test_after_three_interruptions_a_job_is_left_to_end() -> None:
    running = job("a", 1, state=JobState.RUNNING, interruptions=3)
    assert interrupting_job(running, [running, job("b", 2)], NOON) is None


def test_what_stands_behind_a_held_mail_of_its_thread_is_held_up_with_it() -> None:
    first, second, later = job("a", 1, held=DeferReason.PAUSE), job("b", 2), job("c", 3, held=DeferReason.BUDGET)
    assert blocked_by(second, [first, second, later])
    assert not blocked_by(second, [second, later])


OTHER = JobHold("w2", 8, "b")
RUNNING = job("a", 1, state=JobState.RUNNING, fence=5)
HELD = LeaseRecord(100, "w1", "a", 5, LeaseStatus.HELD)
SHOWING = replace(HELD, status=LeaseStatus.SHOWING)
OPERATORS = LeaseRecord(100, "operator", "", 0, LeaseStatus.HELD)


@pytest.mark.parametrize(
    ("lease", "held_job", "claim_fence", "more", "may"),
    [
        (None, None, 0, {}, True),
        (replace(HELD, status=LeaseStatus.FREE), RUNNING, 5, {}, True),
        (HELD, RUNNING, 5, {}, False),
        (HELD, RUNNING, 5, {"overtaking": True}, True),
        (SHOWING, RUNNING, 5, {"overtaking": True}, False),
        (SHOWING, RUNNING, 5, {"holder_is_dead": True}, True),
        (HELD, RUNNING, 6, {}, True),
        (HELD, RUNNING._replace(fence=6), 6, {}, True),
        (HELD, RUNNING._replace(state=JobState.SETTLED), 5, {}, True),
        (HELD, None, 0, {}, True),
        (replace(HELD, job_id="b", job_fence=8), RUNNING, 8, {}, True),
        (OPERATORS, None, 0, {}, False),
        (OPERATORS, None, 0, {"holder_is_dead": True}, True),
    ],
)
def test_the_right_to_publish_ends_with_its_job_its_claim_or_its_process(
    lease: LeaseRecord | None, held_job: Job | None, claim_fence: int, more: dict[str, bool], may: bool
) -> None:
    flags = {"overtaking": False, "holder_is_dead": False} | more
    assert may_take_lease(lease, OTHER, held_job, claim_fence, **flags) is may
