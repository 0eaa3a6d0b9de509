"""Pass, Succeed, Fail and Wait: states without work of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webordinary.asl.errors import Failure, InvalidDefinition, runtime
from webordinary.asl.query.base import Condition, Data, Expression, Field, QueryLanguage
from webordinary.asl.states.base import State
from webordinary.asl.values import JSON, dump, parse_nanoseconds, to_microseconds

if TYPE_CHECKING:
    from webordinary.asl.run import Frame
    from webordinary.asl.step import RunStep

_WAIT_FIELDS = ("Seconds", "Timestamp")


class Pass(State):
    """Hands its input on, or a fixed Result, or a template."""

    type = "Pass"

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        self.has_result = "Result" in raw
        self.result: JSON = raw.get("Result")

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Done at once."""
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
        """Hand the input on."""
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
    """A test, and what follows if it holds."""

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
