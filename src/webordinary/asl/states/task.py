"""Task: calls a handler, perhaps waits for its token, and tries again as Retry says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from webordinary.asl.errors import (
    HEARTBEAT_TIMEOUT,
    TIMEOUT,
    Failure,
    InvalidDefinition,
    result_too_large,
    runtime,
)
from webordinary.asl.json_types import JSON, dump, too_large
from webordinary.asl.ports import Outcome
from webordinary.asl.query.base import Data, Field, QueryLanguage
from webordinary.asl.resources import LAMBDA_INVOKE, Resource, parse_resource
from webordinary.asl.run import Attempt, Phase
from webordinary.asl.states.base import State
from webordinary.asl.states.simple import whole_seconds
from webordinary.asl.timestamps import to_microseconds

if TYPE_CHECKING:
    from webordinary.asl.run import Frame
    from webordinary.asl.step import Step


class Task(State):
    """An attempt is scheduled on disk first, then made: at least once, however often the engine dies."""

    type = "Task"
    retriable = True

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        if not isinstance(raw.get("Resource"), str):
            raise InvalidDefinition(name, "Resource", "must name what to call")
        self.resource = parse_resource(raw["Resource"])
        self.handler = _handler_name(self.resource, raw.get("Parameters"))
        self.timeout = language.field(raw, "TimeoutSeconds", name)
        self.heartbeat = language.field(raw, "HeartbeatSeconds", name)

    def begin(self, step: Step, frame: Frame) -> None:
        """Schedule an attempt."""
        if self.resource.kind == "Activity" and self.resource.name not in step.handlers:
            raise runtime(f"The activity {self.resource.name} does not exist.")
        token = step.run.new_token(frame) if self.resource.waits_for_token else None
        data = step.data(frame, token=token)
        effective = self.flow.effective_input(data)
        parameters = self.flow.arguments(data, effective)
        if too_large(dump(parameters)):
            raise result_too_large(self.name)
        optional = {
            "token": token,
            "timeoutInSeconds": _seconds(self.timeout, data.on(effective)),
            "heartbeatInSeconds": _seconds(self.heartbeat, data.on(effective)),
        }
        details: dict[str, Any] = {key: value for key, value in optional.items() if value is not None}
        if parameters is not frame.input:
            details["parameters"] = parameters
        step.record(frame, f"{self.resource.kind}Scheduled", **details)
        step.record(frame, f"{self.resource.kind}Started")

    def call(self, step: Step, frame: Frame) -> None:
        """Make the attempt that is on disk."""
        attempt = _attempt(frame)
        began = step.at
        try:
            result = self.resource.call(step.handlers, json.loads(dump(attempt.parameters)))
        except Failure as failure:
            step.tick()
            self._attempt_failed(step, frame, failure)
            return
        step.tick()
        if self.resource.waits_for_token:
            step.record(frame, "TaskSubmitted")
        elif attempt.timeout is not None and step.at - began > attempt.timeout:
            self._attempt_failed(step, frame, Failure(TIMEOUT))
        else:
            self._attempt_succeeded(step, frame, result)

    def answered(self, step: Step, frame: Frame, outcome: Outcome) -> None:
        """Take the answer to the token; it may have come before the handler returned, or the engine died."""
        if frame.phase is Phase.CALLING:
            step.record(frame, "TaskSubmitted")
        if outcome.failed:
            self._attempt_failed(step, frame, Failure(outcome.error, outcome.cause))
        else:
            self._attempt_succeeded(step, frame, outcome.output)

    def wake(self, step: Step, frame: Frame) -> None:
        """Neither answer nor heartbeat came in time."""
        attempt = _attempt(frame)
        late = attempt.timeout is not None and step.at >= to_microseconds(attempt.since + attempt.timeout)
        self._attempt_failed(step, frame, Failure(TIMEOUT if late else HEARTBEAT_TIMEOUT))

    def _attempt_succeeded(self, step: Step, frame: Frame, result: JSON) -> None:
        token = _attempt(frame).token
        self._note_submission(step, frame)
        step.record(frame, f"{self.resource.kind}Succeeded")
        step.complete(frame, step.data(frame, token=token), result)

    def _attempt_failed(self, step: Step, frame: Frame, failure: Failure) -> None:
        self._note_submission(step, frame)
        timed_out = failure.error in (TIMEOUT, HEARTBEAT_TIMEOUT)
        event = f"{self.resource.kind}{'TimedOut' if timed_out else 'Failed'}"
        step.record(frame, event, error=failure.error, cause=failure.cause)
        step.fail(frame, failure)

    def _note_submission(self, step: Step, frame: Frame) -> None:
        if self.resource.waits_for_end:
            step.record(frame, "TaskSubmitted")


def _handler_name(resource: Resource, parameters: JSON) -> str | None:
    """The handler that a definition names outright; None if it is found out only at run time."""
    if resource.kind == "LambdaFunction":
        return resource.name
    if resource.service == LAMBDA_INVOKE and isinstance(parameters, dict):
        name = parameters.get("FunctionName")
        return name if isinstance(name, str) else None
    return None


def _attempt(frame: Frame) -> Attempt:
    assert frame.attempt is not None, f"{frame.state} has no attempt under way"
    return frame.attempt


def _seconds(field: Field | None, data: Data) -> int | None:
    return None if field is None else whole_seconds(field, data)
