"""The JSONPath query language: InputPath, Parameters, ResultSelector, ResultPath, OutputPath."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from webordinary.asl.errors import Failure, InvalidDefinition
from webordinary.asl.json_types import JSON, dump
from webordinary.asl.paths import CannotPlace, place
from webordinary.asl.query import expressions
from webordinary.asl.query.base import Condition, Data, DataFlow, Expression, Field
from webordinary.asl.query.conditions import compile_condition

Placement = Callable[[Data, JSON], JSON]


@dataclass(frozen=True, slots=True)
class JsonPathField:
    """A literal field, or its …Path form."""

    label: str
    source: str
    expression: Expression

    def read(self, data: Data) -> JSON:
        """The literal, or what the path finds in the state's effective input."""
        return self.expression(data)


@dataclass(frozen=True, slots=True)
class JsonPathFlow:
    """Five optional filters in the order that the language gives them."""

    input_path: Expression
    parameters: Expression | None
    result_selector: Expression | None
    result_path: Placement
    output_path: Expression

    def effective_input(self, data: Data) -> JSON:
        """InputPath."""
        return self.input_path(data)

    def arguments(self, data: Data, effective: JSON) -> JSON:
        """Parameters, of the effective input."""
        return effective if self.parameters is None else self.parameters(data.on(effective))

    def shaped(self, data: Data, result: JSON) -> JSON:
        """ResultSelector."""
        return result if self.result_selector is None else self.result_selector(data.on(result))

    def output(self, data: Data, result: JSON) -> JSON:
        """ResultPath into the raw input, then OutputPath."""
        return self.output_path(data.on(self.result_path(data, result)))


class JsonPath:
    """The strategy object of the JSONPath dialect."""

    def flow(self, raw: Mapping[str, Any], where: str) -> DataFlow:
        """Compile the five filters of a state."""
        return JsonPathFlow(
            input_path=_filter(raw, "InputPath", where),
            parameters=_optional_template(raw, "Parameters", where),
            result_selector=_optional_template(raw, "ResultSelector", where),
            result_path=self.placement(raw, where),
            output_path=_filter(raw, "OutputPath", where),
        )

    def field(self, raw: Mapping[str, Any], name: str, where: str) -> Field | None:
        """`Seconds` or `SecondsPath`; giving both is refused."""
        path_name = f"{name}Path"
        if name in raw and path_name in raw:
            raise InvalidDefinition(where, path_name, f"cannot stand beside {name}")
        if path_name in raw:
            read = expressions.path_expression(raw[path_name], path_name, where)
            return JsonPathField(path_name, raw[path_name], read)
        if name in raw:
            value = raw[name]
            return JsonPathField(name, dump(value), lambda _: value)
        return None

    def text(self, raw: Mapping[str, Any], name: str, where: str) -> Field | None:
        """`Error` or `ErrorPath`, whose path may also be an intrinsic call."""
        path_name = f"{name}Path"
        if path_name in raw and name not in raw:
            read = expressions.value_expression(raw[path_name], path_name, where)
            return JsonPathField(path_name, raw[path_name], read)
        return self.field(raw, name, where)

    def template(self, value: JSON, field: str, where: str) -> Expression:
        """A payload template with `name.$` fields."""
        return expressions.template(value, where)

    def condition(self, rule: Mapping[str, Any], where: str) -> Condition:
        """A Choice rule with Variable and one comparison, or And, Or, Not of such."""
        return compile_condition(dict(rule), where)

    def placement(self, raw: Mapping[str, Any], where: str) -> Placement:
        """ResultPath: replace, insert, or (null) drop the result."""
        text = raw.get("ResultPath", "$")
        if text is None:
            return lambda data, _: data.input
        path = expressions.compiled(text, "ResultPath", where)
        if path.root != "$" or not path.definite:
            raise InvalidDefinition(where, "ResultPath", f"must be a reference path into the input, not {text}")
        if not path.steps:
            return lambda _, result: result

        def put(data: Data, result: JSON) -> JSON:
            try:
                return place(data.input, path.steps, result)
            except CannotPlace:
                raise Failure(
                    "States.ResultPathMatchFailure",
                    f"Unable to apply ReferencePath {text} to input {dump(data.input)}",
                    located=True,
                ) from None

        return put


def _filter(raw: Mapping[str, Any], field: str, where: str) -> Expression:
    text = raw.get(field, "$")
    if text is None:
        return lambda _: {}
    return expressions.path_expression(text, field, where)


def _optional_template(raw: Mapping[str, Any], field: str, where: str) -> Expression | None:
    return expressions.template(raw[field], where) if field in raw else None
