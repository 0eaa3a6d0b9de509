"""The JSONPath query language: InputPath, Parameters, ResultSelector, ResultPath, OutputPath.

Paths, intrinsic calls and payload templates are compiled to functions of Data.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from webordinary.asl.errors import Failure, InvalidDefinition, runtime
from webordinary.asl.intrinsics import (
    BadIntrinsic,
    DataFlow,
    Field,
    compile_intrinsic,
)
from webordinary.asl.values import (
    JSON,
    BadPath,
    CannotPlace,
    Condition,
    Data,
    Expression,
    Missing,
    Path,
    compile_path,
    dump,
    is_number,
    parse_nanoseconds,
    place,
)


def compiled(text: object, field: str, where: str) -> Path:
    """A path of a definition; raises InvalidDefinition with its place."""
    if not isinstance(text, str):
        raise InvalidDefinition(where, field, f"must be a path, not {text!r}")
    try:
        return compile_path(text)
    except BadPath as problem:
        raise InvalidDefinition(where, field, str(problem)) from problem


def path_expression(text: object, field: str, where: str) -> Expression:
    """InputPath, OutputPath, ItemsPath…: a path whose absence AWS words its own way."""
    path = compiled(text, field, where)
    if path.text == "$":
        return lambda data: data.input

    def read(data: Data) -> JSON:
        try:
            return data.look_up(path)
        except Missing as problem:
            raise runtime(f"Invalid path '{path.text}' : {problem}") from problem

    return read


def value_expression(text: object, field: str, where: str) -> Expression:
    """The right side of a `name.$` field: a path or an intrinsic call."""
    if not isinstance(text, str):
        raise InvalidDefinition(where, field, f"must be a path or an intrinsic function, not {text!r}")
    if text.startswith("States."):
        return _intrinsic(text, field, where)
    path = compiled(text, field, where)
    if path.text == "$":
        return lambda data: data.input

    def read(data: Data) -> JSON:
        try:
            return data.look_up(path)
        except Missing as problem:
            seen = dump(data.context() if path.root == "$$" else data.input)
            raise runtime(
                f"The JSONPath '{text}' specified for the field '{field}' could not be found in the input '{seen}'"
            ) from problem

    return read


def _intrinsic(text: str, field: str, where: str) -> Expression:
    try:
        call = compile_intrinsic(text)
    except (BadIntrinsic, BadPath) as problem:
        raise InvalidDefinition(where, field, str(problem)) from problem

    def evaluate(data: Data) -> JSON:
        try:
            return call(data)
        except Missing as problem:
            raise runtime(f"The function '{text}' had the following error: {problem}") from problem
        except BadIntrinsic as problem:
            raise Failure("States.IntrinsicFailure", str(problem), located=True) from problem

    return evaluate


def template(value: JSON, where: str) -> Expression:
    """Compile a payload template; parts without expressions are shared, not copied."""
    part = _part(value, where)
    return part if part is not None else lambda _: value


def _part(value: JSON, where: str) -> Expression | None:
    """None for a part that is constant."""
    if isinstance(value, dict):
        return _object(value, where)
    if isinstance(value, list):
        return _array(value, where)
    return None


def _object(value: dict[str, JSON], where: str) -> Expression | None:
    live: list[tuple[str, Expression]] = []
    constant: dict[str, JSON] = {}
    for key, inner in value.items():
        if key.endswith(".$"):
            live.append((key[:-2], value_expression(inner, key, where)))
        elif (part := _part(inner, where)) is not None:
            live.append((key, part))
        else:
            constant[key] = inner
    if not live:
        return None

    def build(data: Data) -> JSON:
        made = dict(constant)
        for key, part in live:
            made[key] = part(data)
        return made

    return build


def _array(value: list[JSON], where: str) -> Expression | None:
    parts = [_part(inner, where) for inner in value]
    if all(part is None for part in parts):
        return None
    return lambda data: [inner if part is None else part(data) for part, inner in zip(parts, value, strict=True)]


def text(value: JSON) -> bytes | None:
    """Strings compare by UTF-16 code units, as Java does."""
    return value.encode("utf-16-be", "surrogatepass") if isinstance(value, str) else None


def number(value: JSON) -> float | int | None:
    """Numbers, without booleans."""
    return value if is_number(value) else None  # type: ignore[return-value]


def boolean(value: JSON) -> bool | None:
    """Booleans only."""
    return value if isinstance(value, bool) else None


def timestamp(value: JSON) -> int | None:
    """Strict RFC 3339 strings, as nanoseconds."""
    return parse_nanoseconds(value) if isinstance(value, str) else None


Key = Callable[[JSON], Any]  # a comparable of the right type, or None
_KINDS: dict[str, Key] = {"String": text, "Numeric": number, "Boolean": boolean, "Timestamp": timestamp}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "GreaterThan": operator.gt,
    "LessThanEquals": operator.le,
    "GreaterThanEquals": operator.ge,
}
_COMPARISONS = {
    kind + order: (key, compare)
    for kind, key in _KINDS.items()
    for order, compare in _ORDERS.items()
    if kind != "Boolean" or order == "Equals"
}
_TYPE_TESTS: dict[str, Callable[[JSON], bool]] = {
    "IsNull": lambda value: value is None,
    "IsString": lambda value: isinstance(value, str),
    "IsNumeric": is_number,
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": lambda value: timestamp(value) is not None,
}
_NOT_A_TEST = frozenset({"Variable", "Next", "Comment", "Assign", "Output"})


def compile_condition(rule: JSON, where: str) -> Condition:
    """One rule, however deeply nested; raises InvalidDefinition."""
    if not isinstance(rule, dict):
        raise InvalidDefinition(where, "Choices", f"a rule must be an object, not {rule!r}")
    tests = [name for name in rule if name not in _NOT_A_TEST]
    if len(tests) != 1:
        raise InvalidDefinition(where, "Choices", f"a rule needs exactly one comparison, found {tests}")
    name = tests[0]
    if name in ("And", "Or", "Not"):
        return _combination(name, rule[name], where)
    return _test(name, rule[name], compiled(rule.get("Variable"), "Variable", where), where)


def _combination(name: str, operand: JSON, where: str) -> Condition:
    nested = operand if isinstance(operand, list) else [operand]
    if isinstance(operand, list) == (name == "Not"):
        raise InvalidDefinition(where, name, "Not holds one rule, And and Or hold a list of them")
    rules = [compile_condition(rule, where) for rule in nested]
    if name == "Not":
        return lambda data: not rules[0](data)
    if name == "And":
        return lambda data: all(rule(data) for rule in rules)
    return lambda data: any(rule(data) for rule in rules)


def _test(name: str, operand: JSON, variable: Path, where: str) -> Condition:
    if name == "IsPresent":
        return lambda data: _present(variable, data) is operand
    if name in _TYPE_TESTS:
        is_type = _TYPE_TESTS[name]
        return lambda data: is_type(_read(variable, data)) is operand
    if name == "StringMatches":
        pattern = _glob(operand, where)
        return lambda data: isinstance(value := _read(variable, data), str) and bool(pattern.fullmatch(value))
    if name in _COMPARISONS:
        key, compare = _COMPARISONS[name]
        if (expected := key(operand)) is None:
            raise InvalidDefinition(where, name, f"cannot compare with {operand!r}")
        return lambda data: (mine := key(_read(variable, data))) is not None and compare(mine, expected)
    if name.endswith("Path") and name[:-4] in _COMPARISONS:
        return _path_comparison(name, operand, variable, where)
    raise InvalidDefinition(where, "Choices", f"unknown comparison {name}")


def _path_comparison(name: str, operand: JSON, variable: Path, where: str) -> Condition:
    key, compare = _COMPARISONS[name[:-4]]
    other = compiled(operand, name, where)

    def test(data: Data) -> bool:
        mine, expected = key(_read(variable, data)), key(_read(other, data))
        return mine is not None and expected is not None and compare(mine, expected)

    return test


def _present(variable: Path, data: Data) -> bool:
    try:
        return data.look_up(variable) != [] or variable.definite
    except Missing:
        return False


def _read(path: Path, data: Data) -> JSON:
    try:
        return data.look_up(path)
    except Missing:
        raise runtime(
            f"Invalid path '{path.text}': The choice state's condition path references an invalid value."
        ) from None


def _glob(pattern: JSON, where: str) -> re.Pattern[str]:
    """`*` matches anything; `\\*` and `\\\\` are themselves."""
    if not isinstance(pattern, str):
        raise InvalidDefinition(where, "StringMatches", f"must be a string, not {pattern!r}")
    parts = re.findall(r"\\.|\*|[^\\*]+|\\", pattern, re.DOTALL)
    spelled = (".*" if p == "*" else re.escape(p[1:] if len(p) == 2 and p[0] == "\\" else p) for p in parts)
    return re.compile("".join(spelled), re.DOTALL)


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
            read = path_expression(raw[path_name], path_name, where)
            return JsonPathField(path_name, raw[path_name], read)
        if name in raw:
            value = raw[name]
            return JsonPathField(name, dump(value), lambda _: value)
        return None

    def text(self, raw: Mapping[str, Any], name: str, where: str) -> Field | None:
        """`Error` or `ErrorPath`, whose path may also be an intrinsic call."""
        path_name = f"{name}Path"
        if path_name in raw and name not in raw:
            read = value_expression(raw[path_name], path_name, where)
            return JsonPathField(path_name, raw[path_name], read)
        return self.field(raw, name, where)

    def template(self, value: JSON, field: str, where: str) -> Expression:
        """A payload template with `name.$` fields."""
        return template(value, where)

    def condition(self, rule: Mapping[str, Any], where: str) -> Condition:
        """A Choice rule with Variable and one comparison, or And, Or, Not of such."""
        return compile_condition(dict(rule), where)

    def placement(self, raw: Mapping[str, Any], where: str) -> Placement:
        """ResultPath: replace, insert, or (null) drop the result."""
        text = raw.get("ResultPath", "$")
        if text is None:
            return lambda data, _: data.input
        path = compiled(text, "ResultPath", where)
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
    return path_expression(text, field, where)


def _optional_template(raw: Mapping[str, Any], field: str, where: str) -> Expression | None:
    return template(raw[field], where) if field in raw else None
