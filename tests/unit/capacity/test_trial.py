"""A simulated day with the real pool, workflow steps and workers."""

from __future__ import annotations

import pytest

from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.demand import DAY_SECONDS, Demand, Mail, OutOfBounds, mails_of
from webordinary.operations.capacity.simulation import (
    MESSAGE_SECONDS,
    SAVING_SECONDS,
    Measures,
    SimulatedDay,
    WaitTarget,
    percentile,
)

SCOTT, INES, ANN = ProjectUser("amelia", "scott"), ProjectUser("amelia", "ines"), ProjectUser("bakery", "ann")
A_DAY = mails_of(Demand(projects=100, mails=600, job_seconds=300, seed=3))


def mail(number: int, at: float, key: ProjectUser = SCOTT, thread: str = "", seconds: float = 100.0) -> Mail:
    return Mail(number, at, key, thread or f"thread-{number}", seconds)


def played(mails: list[Mail], workers: int, slots: int = 1) -> Measures:
    trial = SimulatedDay(mails, workers, slots)
    measures = trial.run()
    assert trial.settled == len(mails)
    return measures


def starts(measures: Measures) -> list[float]:
    return [round(wait, 2) for wait in measures.start_waits]


def test_every_mail_of_a_day_is_settled_once() -> None:
    measures = played(A_DAY, workers=8)
    assert measures.kinds["JobSettled"] == len(A_DAY)
    assert len(measures.start_waits) == len(A_DAY)
    assert sum(measures.arrivals) == len(A_DAY)


@pytest.mark.slow
def test_the_same_day_goes_the_same_way_twice() -> None:
    one, other = played(A_DAY, workers=3), played(A_DAY, workers=3)
    assert one.claim_waits == other.claim_waits
    assert one.start_waits == other.start_waits
    assert one.kinds == other.kinds


def test_with_workers_to_spare_nobody_waits_longer_than_a_message_takes() -> None:
    measures = played(A_DAY, workers=30)
    assert max(measures.claim_waits) == pytest.approx(MESSAGE_SECONDS)


def test_the_work_done_is_the_work_that_was_asked_for() -> None:
    quiet = [mail(0, 100.0), mail(1, 5000.0, INES), mail(2, 9000.0, ANN)]
    measures = played(quiet, workers=2)
    assert sum(measures.busy_seconds) == pytest.approx(300.0)
    assert measures.utilisation(2) == pytest.approx(300.0 / (2 * DAY_SECONDS))
    assert max(measures.busiest) == 1


@pytest.mark.slow
def test_fewer_workers_make_customers_wait_longer() -> None:
    waits = [percentile(played(A_DAY, workers).claim_waits, 0.95) for workers in (3, 4, 6)]
    assert waits[0] > waits[1] > waits[2]


def test_a_second_customer_does_not_wait_for_the_first_ones_idle_time() -> None:
    measures = played([mail(0, 0.0), mail(1, 150.0, ANN)], workers=1)
    assert max(measures.start_waits) < 1.0
    assert measures.kinds["ClaimYielded"] == 1


def test_a_customer_who_writes_again_soon_is_served_under_the_claim_that_was_kept_warm() -> None:
    measures = played([mail(0, 0.0), mail(1, 500.0)], workers=1)
    assert measures.kinds["ClaimTaken"] == 1
    assert measures.kinds["JobStarted"] == 2


def test_an_idle_claim_is_released_after_half_an_hour() -> None:
    measures = played([mail(0, 0.0), mail(1, 4000.0)], workers=1)
    assert measures.kinds["ClaimReleased"] == 1
    assert measures.kinds["ClaimTaken"] == 2


def test_mails_of_one_conversation_wait_for_each_other_however_many_workers_there_are() -> None:
    measures = played([mail(0, 0.0, thread="t"), mail(1, 10.0, thread="t")], workers=5)
    assert starts(measures)[1] == pytest.approx(90.0, abs=0.2)
    assert measures.kinds["JobInterrupted"] == 0


def test_a_mail_of_another_conversation_interrupts_and_the_interrupted_job_goes_on() -> None:
    measures = played([mail(0, 0.0, thread="old"), mail(1, 40.0, thread="new")], workers=1)
    assert measures.kinds["JobInterrupted"] == 1
    assert starts(measures)[1] == pytest.approx(SAVING_SECONDS, abs=0.2)
    assert sum(measures.busy_seconds) == pytest.approx(200.0, abs=1.0)


def test_two_users_of_one_project_are_served_side_by_side() -> None:
    measures = played([mail(0, 0.0), mail(1, 0.0, INES)], workers=1, slots=2)
    assert max(measures.busiest) == 2


def test_a_hopeless_trial_stops_when_enough_were_late() -> None:
    trial = SimulatedDay(A_DAY, 1, 1, WaitTarget(seconds=60.0, late=20))
    trial.run()
    assert trial.gave_up
    assert trial.settled < len(A_DAY)


def test_what_still_waits_after_the_day_is_counted_as_waiting() -> None:
    trial = SimulatedDay([mail(n, 0.0, ProjectUser(f"site-{n}", "owner"), seconds=3000.0) for n in range(50)], 1, 1)
    measures = trial.run()
    assert measures.unstarted == len(measures.start_waits) - measures.kinds["JobStarted"] > 0
    assert percentile(measures.claim_waits, 1.0) > DAY_SECONDS


def test_a_pool_without_workers_is_refused() -> None:
    with pytest.raises(OutOfBounds, match="workers 0"):
        SimulatedDay(A_DAY, 0, 1)
