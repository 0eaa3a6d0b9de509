"""Callbacks to Step Functions: answers and heartbeats of task tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, translated
from webordinary.workflow.start import BrokenExecution

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient
    from types_boto3_stepfunctions.literals import ExecutionStatusType

LOST = frozenset({"TaskDoesNotExist", "InvalidToken", "TaskTimedOut"})
"""The task was answered, stopped, timed out or never existed: AWS does not say which. No execution waits for it."""
_BAD_STATUSES: tuple[ExecutionStatusType, ...] = ("FAILED", "TIMED_OUT", "ABORTED")
MOST_LISTED = 100
ENGINE_RESTARTED = "States.ServiceRestart"
"""The error with which the emulator ends the executions that ran when it was stopped."""
ERROR_CHARACTERS, CAUSE_CHARACTERS = 256, 32768


class StepFunctionsCallbacks:
    """Task tokens as the pool knows them."""

    def __init__(self, stepfunctions: SFNClient) -> None:
        self._stepfunctions = stepfunctions

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        text = json.dumps(output)
        return _heard("answering", lambda: self._stepfunctions.send_task_success(taskToken=token, output=text))

    def fail(self, token: str, error: str, cause: str) -> bool:
        error, cause = error[:ERROR_CHARACTERS], cause[:CAUSE_CHARACTERS]
        return _heard(
            "answering", lambda: self._stepfunctions.send_task_failure(taskToken=token, error=error, cause=cause)
        )

    def heartbeat(self, token: str) -> bool:
        return _heard("asking", lambda: self._stepfunctions.send_task_heartbeat(taskToken=token))


def _heard(what: str, call: Callable[[], object]) -> bool:
    with translated(f"{what} Step Functions"):
        try:
            call()
        except ClientError as problem:
            if code_of(problem) not in LOST:
                raise
            return False
    return True


class StepFunctions:
    """See Workflows: executions of the deployed state machine."""

    def __init__(self, client: SFNClient, state_machine_arn: str) -> None:
        self._client, self._arn = client, state_machine_arn

    def start(self, name: str, input: Mapping[str, Any]) -> bool:
        """See Workflows. While one of this name runs with this input, AWS itself answers as if it were new."""
        with translated(f"starting the workflow {name}"):
            try:
                self._client.start_execution(
                    stateMachineArn=self._arn, name=name, input=json.dumps(input, sort_keys=True)
                )
            except ClientError as problem:
                if code_of(problem) != "ExecutionAlreadyExists":
                    raise
                return False
        return True


class StepFunctionsEndings:
    """See BrokenExecutions."""

    def __init__(self, client: SFNClient, state_machine_arn: str) -> None:
        self._client, self._arn = client, state_machine_arn

    def ended_badly(self, since: datetime) -> Sequence[str]:
        return [name for status in _BAD_STATUSES for name in self._ended(status, since)]

    def _ended(self, status: ExecutionStatusType, since: datetime) -> Iterator[str]:
        """Step Functions lists the newest first, by their start."""
        with translated(f"listing {status} executions"):
            page = self._client.list_executions(stateMachineArn=self._arn, statusFilter=status, maxResults=MOST_LISTED)
        for one in page["executions"]:
            if one.get("stopDate", since) >= since:
                yield one["name"]

    def is_under_way(self, name: str) -> bool:
        """Whether an execution of this name exists and has not ended."""
        with translated(f"looking for the execution {name}"):
            try:
                found = self._client.describe_execution(executionArn=self._arn_of(name))
            except ClientError as problem:
                if code_of(problem) != "ExecutionDoesNotExist":
                    raise
                return False
        return found["status"] == "RUNNING"

    def _arn_of(self, name: str) -> str:
        return f"{self._arn.replace(':stateMachine:', ':execution:')}:{name}"

    def describe(self, name: str) -> BrokenExecution:
        with translated(f"describing the execution {name}"):
            found = self._client.describe_execution(executionArn=self._arn_of(name))
        error = found.get("error") or ""
        return BrokenExecution(name, found["status"], error, found.get("cause") or "", error == ENGINE_RESTARTED)


def ensure_state_machine(client: SFNClient, definition: str, role_arn: str) -> tuple[str, bool]:
    """Deploy the definition; its ARN, and whether it was made now. Executions under way keep what they began with."""
    name = names.STATE_MACHINE
    with translated(f"deploying the workflow {name}"):
        if arn := _find(client, name):  # making it again would be answered as if it were new
            client.update_state_machine(stateMachineArn=arn, definition=definition, roleArn=role_arn)
            return arn, False
        made = client.create_state_machine(name=name, definition=definition, roleArn=role_arn, type="STANDARD")
        return made["stateMachineArn"], True


def _find(client: SFNClient, name: str) -> str | None:
    pages = client.get_paginator("list_state_machines").paginate()
    machines = (machine for page in pages for machine in page["stateMachines"])
    return next((machine["stateMachineArn"] for machine in machines if machine["name"] == name), None)
