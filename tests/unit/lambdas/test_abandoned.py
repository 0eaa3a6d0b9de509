"""Executions that ended badly, as EventBridge tells of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.lambdas.harness import FIRST_MAIL, SCOTT, LambdaHarness, raw_mail, recorded
from webordinary.adapters.aws import names


def told(name: str, email_id: str) -> dict[str, Any]:
    """A recorded event, about this mail."""
    event: dict[str, Any] = json.loads(json.dumps(recorded(name)).replace("e" * 64, email_id))
    return event


@pytest.fixture
def email_id(cloud: LambdaHarness) -> str:
    """A mail whose workflow runs."""
    cloud.inbox.objects[FIRST_MAIL] = raw_mail()
    cloud.invoke(names.INTAKE, recorded("s3_put"))
    cloud.engine.run_ready()
    [email_id] = cloud.names()
    return email_id


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("execution_failed", "workflow FAILED: States.Runtime: An error occurred"),
        ("execution_timed_out", "workflow TIMED_OUT"),
    ],
)
def test_a_broken_workflow_is_dead_lettered_and_the_customer_told(
    cloud: LambdaHarness, email_id: str, event: str, reason: str
) -> None:
    cloud.invoke(names.ABANDONED, told(event, email_id))
    [letter] = cloud.dead_letters.all(10)
    assert letter.email_id == email_id
    assert letter.reason.startswith(reason)
    assert [reply.recipient for reply in cloud.post.sent] == [SCOTT]


def test_a_redriven_mail_is_known_by_the_name_of_its_execution_where_the_input_is_left_out(
    cloud: LambdaHarness, email_id: str
) -> None:
    cloud.invoke(names.ABANDONED, told("execution_aborted", email_id))
    [letter] = cloud.dead_letters.all(10)
    assert (letter.email_id, letter.redrives) == (email_id, 2)


def test_an_event_that_comes_twice_is_one_dead_letter_and_one_reply(cloud: LambdaHarness, email_id: str) -> None:
    for _ in range(2):
        cloud.invoke(names.ABANDONED, told("execution_failed", email_id))
    assert len(cloud.dead_letters.all(10)) == 1
    assert len(cloud.post.sent) == 1
