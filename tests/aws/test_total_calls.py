"""What mails and workers cost in calls of AWS, all together: the bars that `benchmarks/aws_cost.py` measures.

A mail goes its whole way; time is virtual where only time passes.
"""
# ruff: noqa: E402

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")
needs_extra("aws_lambda_powertools", "aws")

from tests.aws.counting_harness import CountingHarness
from tests.aws.emulator import RunningEmulator
from tests.aws.patient_worker import patient_worker
from webordinary.model.names import ProjectUser

MOST_PER_MAIL, MOST_OF_A_CLAIM, MOST_PER_JOB_MINUTE, MOST_PER_IDLE_HOUR = 35, 42, 8, 600
MOST_OF_THE_BROKER = 7
SCOTT, ANN = ProjectUser("kiln", "scott"), ProjectUser("kiln", "ann")


@pytest.mark.parametrize("slots", [2, 1], ids=["with a free slot", "making way"])
def test_a_mail_keeps_to_its_bar_whether_its_key_is_held_or_has_to_be_claimed(
    ministack: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    house = CountingHarness(ministack.endpoint, tmp_path, monkeypatch)
    house.onboard(SCOTT)
    house.onboard(ANN)
    with house.working(slots):
        house.calls_of_a_mail(SCOTT, slots)  # what is looked up once
        held = house.calls_of_a_mail(SCOTT, slots)
        unclaimed = house.calls_of_a_mail(ANN, slots)
    assert "sqs:SendMessage" in held
    assert unclaimed["sqs:SendMessage"] == held["sqs:SendMessage"] + 1, "no hint was sent"
    assert held.total() <= MOST_PER_MAIL, held
    assert unclaimed.total() <= MOST_OF_A_CLAIM, unclaimed


def test_the_broker_hands_out_rights_with_few_calls(
    ministack: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the bars: once in an hour in which a worker serves a project, not for each mail. One call invokes it."""
    house = CountingHarness(ministack.endpoint, tmp_path, monkeypatch)
    house.onboard(SCOTT)
    calls = house.calls_of_the_broker(SCOTT)
    assert calls["sts:AssumeRole"] == 1
    assert calls.total() <= MOST_OF_THE_BROKER, calls


def test_a_worker_that_waits_with_a_claim_keeps_to_its_bar(ministack: RunningEmulator) -> None:
    with patient_worker(ministack.endpoint, lasts=False) as worker:
        calls = worker.calls_in(hours=1)
    assert calls.total() <= MOST_PER_IDLE_HOUR, calls


def test_a_job_keeps_to_its_bar_for_each_minute(ministack: RunningEmulator) -> None:
    with patient_worker(ministack.endpoint, lasts=True) as worker:
        calls = worker.calls_in(hours=0.75)  # within a job's limit
    assert calls.total() <= 45 * MOST_PER_JOB_MINUTE, calls
