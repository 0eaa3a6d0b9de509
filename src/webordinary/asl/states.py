"""The states but Map: what all share (their way on, data flow, errors), Pass, Succeed, Fail, Wait and Task.

A Task calls a handler, perhaps waits for its token, and tries again as Retry says.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

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
from webordinary.asl.intrinsics import Field, QueryLanguage
from webordinary.asl.ports import TaskAnswer
from webordinary.asl.retry import compile_catch, compile_retry
from webordinary.asl.run import Attempt, Phase
from webordinary.asl.values import (
    JSON,
    Condition,
    Data,
    Expression,
    dump,
    parse_nanoseconds,
    to_microseconds,
    too_large,
)

if TYPE_CHECKING:
    from webordinary.asl.definition import Machine
    from webordinary.asl.run import Frame
    from webordinary.asl.step import RunStep


class State(ABC):
    """A compiled state. It holds nothing of any execution: all of that is in the Frame."""

    type: ClassVar[str]
    retriable: ClassVar[bool] = False  # has Retry and Catch, and so $$.State.RetryCount
    moves_on: ClassVar[bool] = True  # has Next or End

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        self.name = name
        self.next: str | None = raw.get("Next")
        self.flow = language.flow(raw, name)
        self.assign = language.template(raw["Assign"], "Assign", name) if "Assign" in raw else None
        self.retriers = compile_retry(raw, name) if self.retriable else ()
        self.catchers = compile_catch(raw, language, name) if self.retriable else ()
        self.machines: tuple[Machine, ...] = ()
        self._check_fields(raw)

    def _check_fields(self, raw: Mapping[str, Any]) -> None:
        if self.moves_on and ("Next" in raw) == (raw.get("End") is True):
            raise InvalidDefinition(self.name, "Next", "give either Next or End: true")
        for field in ("Arguments", "Output"):
            if field in raw:
                raise InvalidDefinition(self.name, field, "belongs to JSONata, which is not supported yet")
        for field in ("Retry", "Catch"):
            if field in raw and not self.retriable:
                raise InvalidDefinition(self.name, field, f"a {self.type} state has none")

    def targets(self) -> list[str]:
        """The states that this one can go to, for checking the definition."""
        return [name for name in (self.next, *(catcher.next for catcher in self.catchers)) if name is not None]

    @abstractmethod
    def begin(self, step: RunStep, frame: Frame) -> None:
        """Do the state's work, or start it; again for every retry."""

    def wake(self, step: RunStep, frame: Frame) -> None:
        """The time that this state waited for has come."""
        raise AssertionError(f"{self.type} state {self.name} does not wait")

    def child_ended(self, step: RunStep, frame: Frame, child: Frame) -> None:
        """A branch or iteration has its output."""
        raise AssertionError(f"{self.type} state {self.name} has no children")

    def child_failed(self, step: RunStep, frame: Frame, child: Frame, failure: Failure) -> None:
        """A branch or iteration failed for good."""
        raise AssertionError(f"{self.type} state {self.name} has no children")


_WAIT_FIELDS = ("Seconds", "Timestamp")


class Pass(State):
    """Hands its input on, or a fixed Result, or a template."""

    type = "Pass"

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        self.has_result = "Result" in raw
        self.result: JSON = raw.get("Result")

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Finishes at once."""
        data = step.data(frame)
        made = self.flow.arguments(data, self.flow.effective_input(data))
        step.complete(frame, data, self.result if self.has_result else made)


class Succeed(State):
    """Ends its machine well."""

    type = "Succeed"
    moves_on = False

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Output is the filtered input."""
        data = step.data(frame)
        step.complete(frame, data, self.flow.effective_input(data))


class Fail(State):
    """Ends its machine with an error of the author's choice."""

    type = "Fail"
    moves_on = False

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        self.error = language.text(raw, "Error", name)
        self.cause = language.text(raw, "Cause", name)

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Always raises."""
        data = step.data(frame)
        raise Failure(_string(self.error, data), _string(self.cause, data))


def _string(field: Field | None, data: Data) -> str | None:
    if field is None:
        return None
    value = field.read(data)
    if not isinstance(value, str):
        raise runtime(
            f"The {field.label} field refers to a value that is not a string: {field.source} == {dump(value)}"
        )
    return value


class Wait(State):
    """Waits for a number of seconds, or until a time."""

    type = "Wait"

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        fields = [field for field in (language.field(raw, f, name) for f in _WAIT_FIELDS) if field is not None]
        if len(fields) != 1:
            raise InvalidDefinition(name, "Seconds", "give one of Seconds, SecondsPath, Timestamp, TimestampPath")
        self.field = fields[0]
        literal = raw.get("Timestamp")
        if literal is not None and (not isinstance(literal, str) or parse_nanoseconds(literal) is None):
            raise InvalidDefinition(name, "Timestamp", "String does not match RFC3339 timestamp")

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Note until when; a time in the past ends the wait at once."""
        data = step.data(frame)
        until = self._until(step, data.on(self.flow.effective_input(data)))
        if until <= step.at:
            self.wake(step, frame)
        else:
            step.record(frame, "waitPlanned", until=until)

    def wake(self, step: RunStep, frame: Frame) -> None:
        """Finishes with the input."""
        data = step.data(frame)
        step.complete(frame, data, self.flow.effective_input(data))

    def _until(self, step: RunStep, data: Data) -> float:
        if self.field.label.startswith("Seconds"):
            return to_microseconds(step.at + whole_seconds(self.field, data))
        value = self.field.read(data)
        nanoseconds = parse_nanoseconds(value) if isinstance(value, str) else None
        if nanoseconds is None:
            text = value if isinstance(value, str) else dump(value)
            raise runtime(
                f"The {self.field.label} parameter does not reference a valid ISO-8601 extended offset "
                f"date-time format string: {self.field.source} == {text}"
            )
        return to_microseconds(nanoseconds / 1e9)


def whole_seconds(field: Field, data: Data) -> int:
    """A field that must be a whole number of zero or more."""
    value = field.read(data)
    if isinstance(value, bool) or not isinstance(value, int):
        text = value if isinstance(value, str) else dump(value)
        raise runtime(f"The {field.label} parameter cannot be parsed as a long value: {field.source} == {text}")
    if value < 0:
        raise runtime(f"The {field.label} parameter references a negative value: {field.source} == {value}")
    return value


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    """A test and the next state if it holds."""

    holds: Condition
    next: str
    assign: Expression | None


class Choice(State):
    """Rules in order, then Default."""

    type = "Choice"
    moves_on = False

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        rules = raw.get("Choices")
        if not isinstance(rules, list) or not rules:
            raise InvalidDefinition(name, "Choices", "must be a list of at least one rule")
        self.rules = tuple(_rule(rule, language, name) for rule in rules)
        self.default: str | None = raw.get("Default")

    def targets(self) -> list[str]:
        """Every rule's Next, and Default."""
        return [rule.next for rule in self.rules] + ([self.default] if self.default is not None else [])

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Decide at once."""
        data = step.data(frame)
        effective = data.on(self.flow.effective_input(data))
        for rule in self.rules:
            if rule.holds(effective):
                step.complete(frame, data, effective.input, next_state=rule.next, assign=rule.assign)
                return
        if self.default is None:
            raise Failure("States.NoChoiceMatched", f"No choice rule of '{self.name}' matched", located=True)
        step.complete(frame, data, effective.input, next_state=self.default, assign=self.assign)


def _rule(raw: Mapping[str, Any], language: QueryLanguage, where: str) -> ChoiceRule:
    if "Next" not in raw:
        raise InvalidDefinition(where, "Choices", "each rule needs a Next")
    assign = language.template(raw["Assign"], "Assign", where) if "Assign" in raw else None
    return ChoiceRule(language.condition(raw, where), raw["Next"], assign)


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
        """Call the handler for the recorded attempt."""
        attempt = _attempt(frame)
        began = step.at
        try:
            result = self.resource.call(step.handlers, json.loads(dump(attempt.parameters)))
        except Failure as failure:
            step.check_ready(frame, failure)
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
