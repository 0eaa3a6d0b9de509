"""Executions are started by name, and deploying again updates; answers as AWS gives them, which no emulator does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3  # noqa: E402
from botocore.stub import Stubber  # noqa: E402

from webordinary.adapters.aws.pool.step_functions import StepFunctions, ensure_state_machine  # noqa: E402
from webordinary.model.errors import Transient  # noqa: E402

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:email-processor"
ROLE = "arn:aws:iam::123456789012:role/email-processor"
NOON = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def client() -> SFNClient:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    return session.client("stepfunctions")


@pytest.fixture
def aws(client: SFNClient) -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def test_an_execution_is_started_with_its_mail_s_name(client: SFNClient, aws: Stubber) -> None:
    started = {"executionArn": MACHINE.replace("stateMachine", "execution") + ":e1", "startDate": NOON}
    asked = {"stateMachineArn": MACHINE, "name": "e1", "input": '{"emailId": "e1", "redrive": 0}'}
    aws.add_response("start_execution", started, asked)
    assert StepFunctions(client, MACHINE).start("e1", {"emailId": "e1", "redrive": 0})


def test_an_execution_of_this_name_that_has_ended_is_not_started_again(client: SFNClient, aws: Stubber) -> None:
    aws.add_client_error("start_execution", "ExecutionAlreadyExists")
    assert not StepFunctions(client, MACHINE).start("e1", {"emailId": "e1"})


def test_a_refused_start_is_worth_another_try(client: SFNClient, aws: Stubber) -> None:
    aws.add_client_error("start_execution", "ExecutionLimitExceeded")
    with pytest.raises(Transient, match="starting the workflow e1"):
        StepFunctions(client, MACHINE).start("e1", {"emailId": "e1"})


def test_a_workflow_that_is_there_is_brought_up_to_date(client: SFNClient, aws: Stubber) -> None:
    there = {"stateMachineArn": MACHINE, "name": "email-processor", "type": "STANDARD", "creationDate": NOON}
    aws.add_response("list_state_machines", {"stateMachines": [there]})
    wanted = {"stateMachineArn": MACHINE, "definition": "{}", "roleArn": ROLE}
    aws.add_response("update_state_machine", {"updateDate": NOON}, wanted)
    assert ensure_state_machine(client, "{}", ROLE) == (MACHINE, False)
