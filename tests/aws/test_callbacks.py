"""Callbacks to Step Functions: answered once, and a token that is lost is understood, whatever AWS calls it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.aws.accounts import clients_of
from tests.aws.emulator import RunningEmulator, running_moto
from webordinary.adapters.aws.clients import Clients
from webordinary.adapters.aws.pool.step_functions import (
    CAUSE_CHARACTERS,
    ERROR_CHARACTERS,
    StepFunctionsCallbacks,
    StepFunctionsEndings,
)
from webordinary.model.errors import Transient

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient

TIMEOUT_SECONDS = 60.0
ROLE = "arn:aws:iam::000000000000:role/workflow"
Call = Callable[[StepFunctionsCallbacks], bool]
CALLS: dict[str, tuple[str, Call]] = {
    "success": ("send_task_success", lambda callbacks: callbacks.succeed("token", {"jobId": "job-1"})),
    "failure": ("send_task_failure", lambda callbacks: callbacks.fail("token", "PREEMPTED", "a mail came")),
    "heartbeat": ("send_task_heartbeat", lambda callbacks: callbacks.heartbeat("token")),
}


@dataclass
class Workflow:
    """A workflow that waits for a task token, and whoever was given that."""

    clients: Clients
    execution: str
    token: str

    def ended(self) -> dict[str, Any]:
        """How it ended."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            found: dict[str, Any] = dict(self.clients.stepfunctions.describe_execution(executionArn=self.execution))
            if found["status"] != "RUNNING":
                return found
            time.sleep(0.05)  # asking again and again: it tells nobody that it has ended
        pytest.fail("the workflow does not end")


def waiting(endpoint: str, **more: object) -> Workflow:
    clients, name = clients_of(endpoint), f"w{secrets.token_hex(4)}"
    queue = clients.sqs.create_queue(QueueName=name)["QueueUrl"]
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "Parameters": {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}},
        "End": True,
        **more,
    }
    definition = json.dumps({"StartAt": "AwaitResult", "States": {"AwaitResult": state}})
    machine = clients.stepfunctions.create_state_machine(name=name, definition=definition, roleArn=ROLE)
    started = clients.stepfunctions.start_execution(stateMachineArn=machine["stateMachineArn"], input="{}")
    [message] = clients.sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]
    return Workflow(clients, started["executionArn"], json.loads(message["Body"])["token"])


@pytest.fixture
def workflow(ministack: RunningEmulator) -> Workflow:
    return waiting(ministack.endpoint)


@pytest.fixture
def callbacks(ministack: RunningEmulator) -> StepFunctionsCallbacks:
    return StepFunctionsCallbacks(clients_of(ministack.endpoint).stepfunctions)


@pytest.fixture(scope="module")
def client() -> SFNClient:
    """One that is stubbed: nobody else has it, and nobody answers where it points to."""
    return clients_of("http://127.0.0.1:9").stepfunctions


def test_a_settled_job_ends_its_workflows_wait_once(workflow: Workflow, callbacks: StepFunctionsCallbacks) -> None:
    assert callbacks.heartbeat(workflow.token)
    assert callbacks.succeed(workflow.token, {"jobId": "job-1", "outcome": "succeeded"})
    ended = workflow.ended()
    assert (ended["status"], json.loads(ended["output"])) == (
        "SUCCEEDED",
        {"jobId": "job-1", "outcome": "succeeded"},
    )
    assert not callbacks.succeed(workflow.token, {"jobId": "job-1", "outcome": "succeeded"})
    assert not callbacks.fail(workflow.token, "PREEMPTED", "too late")
    assert not callbacks.heartbeat(workflow.token)


def test_an_interrupted_job_is_told_by_its_error_name(workflow: Workflow, callbacks: StepFunctionsCallbacks) -> None:
    assert callbacks.fail(workflow.token, "PREEMPTED", "a mail on another thread")
    ended = workflow.ended()
    assert (ended["status"], ended["error"], ended["cause"]) == ("FAILED", "PREEMPTED", "a mail on another thread")


def test_words_are_cut_to_what_step_functions_takes(workflow: Workflow, callbacks: StepFunctionsCallbacks) -> None:
    assert callbacks.fail(workflow.token, "E" * 1000, "c" * 100_000)
    ended = workflow.ended()
    assert (len(ended["error"]), len(ended["cause"])) == (ERROR_CHARACTERS, CAUSE_CHARACTERS)


def test_an_execution_is_under_way_until_it_ends_and_one_that_never_was_is_not(
    workflow: Workflow, callbacks: StepFunctionsCallbacks
) -> None:
    machine, _, name = workflow.execution.replace(":execution:", ":stateMachine:").rpartition(":")
    executions = StepFunctionsEndings(workflow.clients.stepfunctions, machine)
    assert executions.is_under_way(name)
    assert not executions.is_under_way(f"{name}-r1")
    assert callbacks.succeed(workflow.token, {"jobId": "job-1"})
    workflow.ended()
    assert not executions.is_under_way(name)


def test_a_token_that_never_was_is_lost(callbacks: StepFunctionsCallbacks) -> None:
    assert [call(callbacks) for _, call in CALLS.values()] == [False, False, False]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", ["TaskDoesNotExist", "InvalidToken", "TaskTimedOut"])
def test_whatever_aws_calls_it_a_lost_token_is_lost(client: SFNClient, call: str, code: str) -> None:
    assert not answered(client, call, code)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDeniedException", "InternalServerError"])
def test_anything_else_is_worth_another_try(client: SFNClient, call: str, code: str) -> None:
    with pytest.raises(Transient, match=code):
        answered(client, call, code)


def test_heartbeats_keep_a_task_alive_and_without_them_it_is_lost(tmp_path: Path) -> None:
    # Only a state with HeartbeatSeconds has heartbeats on moto; AWS takes them from any that waits.
    with running_moto(tmp_path) as moto:
        workflow = waiting(moto.endpoint, HeartbeatSeconds=8)  # long enough for the first to come in time
        callbacks = StepFunctionsCallbacks(workflow.clients.stepfunctions)
        assert callbacks.heartbeat(workflow.token)
        assert workflow.ended()["error"] == "States.Timeout"
        assert not callbacks.heartbeat(workflow.token)
        assert not callbacks.succeed(workflow.token, {"jobId": "job-1"})


def answered(client: SFNClient, call: str, code: str) -> bool:
    from botocore.stub import Stubber

    operation, ask = CALLS[call]
    with Stubber(client) as stub:
        stub.add_client_error(operation, code)
        return ask(StepFunctionsCallbacks(client))
