"""Task: calls a handler, perhaps waits for its token, and tries again as Retry says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webordinary.asl.errors import (
    DATA_LIMIT_EXCEEDED,
    HEARTBEAT_TIMEOUT,
    TIMEOUT,
    Failure,
    InvalidDefinition,
    NotReady,
    result_too_large,
    runtime,
)
from webordinary.asl.ports import TaskAnswer
from webordinary.asl.query.base import Data, Field, QueryLanguage
from webordinary.asl.run import Attempt, Phase
from webordinary.asl.states.base import State
from webordinary.asl.states.simple import whole_seconds
from webordinary.asl.values import JSON, dump, to_microseconds, too_large

if TYPE_CHECKING:
    from webordinary.asl.run import Frame
    from webordinary.asl.step import RunStep


Handler = Callable[[JSON], JSON]
Handlers = Mapping[str, Handler]

_SERVICE = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:(?!activity:)(.+)")
_ACTIVITY = re.compile(r"arn:[^:]+:states:[^:]*:[^:]*:activity:.+")
_PATTERN = re.compile(r"\.(waitForTaskToken|sync(?::2)?)$")
LAMBDA_INVOKE = "lambda:invoke"


@dataclass(frozen=True, slots=True)
class Resource:
    """A compiled Resource. `kind` starts the names of its history events."""

    kind: str
    name: str  # the handler's key, without the integration pattern
    service: str  # "lambda:invoke", "sqs:sendMessage"; empty for a function named directly
    waits_for_token: bool
    waits_for_end: bool

    def call(self, handlers: Handlers, parameters: JSON) -> JSON:
        """Call the handler and shape its answer; raises Failure for whatever it raised."""
        if self.service == LAMBDA_INVOKE and self.name not in handlers:
            return self._invoke_function(handlers, parameters)
        return _guarded(handlers, self.name, parameters)

    def _invoke_function(self, handlers: Handlers, parameters: JSON) -> JSON:
        given = parameters if isinstance(parameters, dict) else {}
        payload = _guarded(handlers, str(given.get("FunctionName")), given.get("Payload", {}))
        return {"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200}


def parse_resource(text: str) -> Resource:
    """Read a Resource: an ASL service ARN, an activity, or else the name of a function."""
    if _ACTIVITY.fullmatch(text):
        return Resource("Activity", text, "", waits_for_token=False, waits_for_end=False)
    match = _SERVICE.fullmatch(text)
    if match is None:
        return Resource("LambdaFunction", text, "", waits_for_token=False, waits_for_end=False)
    pattern = _PATTERN.search(text)
    suffix = pattern[1] if pattern else ""
    name = _PATTERN.sub("", text)
    return Resource("Task", name, _PATTERN.sub("", match[1]), suffix == "waitForTaskToken", suffix.startswith("sync"))


def _guarded(handlers: Handlers, name: str, parameters: JSON) -> JSON:
    handler = handlers.get(name)
    if handler is None:
        raise Failure("Lambda.ResourceNotFoundException", f"Function not found: {name}")
    try:
        result = handler(parameters)
    except (Failure, NotReady):
        raise
    except Exception as problem:  # the boundary where Python's errors become the language's
        raise Failure(type(problem).__name__, error_document(problem)) from problem
    return _as_json(name, result)


def error_document(problem: Exception) -> str:
    """The cause as AWS Lambda words it, so that a Catch reads the same on both engines."""
    return dump({"errorMessage": str(problem), "errorType": type(problem).__name__})


def _as_json(name: str, result: JSON) -> JSON:
    """The engine's own copy of a result, proven to be JSON and of bearable size."""
    try:
        text = dump(result)
    except (TypeError, ValueError, RecursionError) as problem:
        raise Failure("Runtime.MarshalError", f"{name} returned what JSON cannot say: {problem}") from problem
    if too_large(text):
        raise Failure(DATA_LIMIT_EXCEEDED, f"{name} returned more than the maximum number of bytes service limit.")
    copy: JSON = json.loads(text)
    return copy


class Task(State):
    """Calls a handler, at least once, however often the engine dies."""

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

    def is_repeatable(self, handlers: Collection[str]) -> bool:
        """Whether an attempt may be lost in a crash: its handler is one of these, and neither token nor time counts."""
        timed = self.timeout is not None or self.heartbeat is not None
        return self.handler in handlers and not self.resource.waits_for_token and not timed

    def begin(self, step: RunStep, frame: Frame) -> None:
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

    def call(self, step: RunStep, frame: Frame) -> None:
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

    def answered(self, step: RunStep, frame: Frame, outcome: TaskAnswer) -> None:
        """Take the answer to the token; it may have come before the handler returned, or the engine died."""
        if frame.phase is Phase.CALLING:
            step.record(frame, "TaskSubmitted")
        if outcome.failed:
            self._attempt_failed(step, frame, Failure(outcome.error, outcome.cause))
        else:
            self._attempt_succeeded(step, frame, outcome.output)

    def wake(self, step: RunStep, frame: Frame) -> None:
        """Neither answer nor heartbeat came in time."""
        attempt = _attempt(frame)
        late = attempt.timeout is not None and step.at >= to_microseconds(attempt.since + attempt.timeout)
        self._attempt_failed(step, frame, Failure(TIMEOUT if late else HEARTBEAT_TIMEOUT))

    def _attempt_succeeded(self, step: RunStep, frame: Frame, result: JSON) -> None:
        token = _attempt(frame).token
        self._note_submission(step, frame)
        step.record(frame, f"{self.resource.kind}Succeeded")
        step.complete(frame, step.data(frame, token=token), result)

    def _attempt_failed(self, step: RunStep, frame: Frame, failure: Failure) -> None:
        self._note_submission(step, frame)
        timed_out = failure.error in (TIMEOUT, HEARTBEAT_TIMEOUT)
        event = f"{self.resource.kind}{'TimedOut' if timed_out else 'Failed'}"
        step.record(frame, event, error=failure.error, cause=failure.cause)
        step.fail(frame, failure)

    def _note_submission(self, step: RunStep, frame: Frame) -> None:
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
