"""Callbacks to Step Functions: the answer to a task token, and the question whether anybody still waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import code_of, translated

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient

LOST = frozenset({"TaskDoesNotExist", "InvalidToken", "TaskTimedOut"})
"""Answered already, stopped, timed out or never there: AWS does not say which, and nobody waits any more."""
ERROR_CHARACTERS, CAUSE_CHARACTERS = 256, 32768


class StepFunctionsCallbacks:
    """Task tokens as the pool knows them."""

    def __init__(self, stepfunctions: SFNClient) -> None:
        self._stepfunctions = stepfunctions

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        """The job settled."""
        text = json.dumps(output)
        return _heard("answering", lambda: self._stepfunctions.send_task_success(taskToken=token, output=text))

    def fail(self, token: str, error: str, cause: str) -> bool:
        """The job did not settle and will not under this token."""
        error, cause = error[:ERROR_CHARACTERS], cause[:CAUSE_CHARACTERS]
        return _heard(
            "answering", lambda: self._stepfunctions.send_task_failure(taskToken=token, error=error, cause=cause)
        )

    def heartbeat(self, token: str) -> bool:
        """Is anybody still waiting for this job?"""
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
