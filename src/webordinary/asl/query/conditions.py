"""Choice rules of the JSONPath dialect, compiled to one function each."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from webordinary.asl.errors import InvalidDefinition, runtime
from webordinary.asl.json_types import JSON, is_number
from webordinary.asl.paths import Missing, Path
from webordinary.asl.query.base import Condition, Data
from webordinary.asl.query.comparable import boolean, number, text, timestamp
from webordinary.asl.query.expressions import compiled

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
        if (wanted := key(operand)) is None:
            raise InvalidDefinition(where, name, f"cannot compare with {operand!r}")
        return lambda data: (mine := key(_read(variable, data))) is not None and compare(mine, wanted)
    if name.endswith("Path") and name[:-4] in _COMPARISONS:
        return _path_comparison(name, operand, variable, where)
    raise InvalidDefinition(where, "Choices", f"unknown comparison {name}")


def _path_comparison(name: str, operand: JSON, variable: Path, where: str) -> Condition:
    key, compare = _COMPARISONS[name[:-4]]
    other = compiled(operand, name, where)

    def test(data: Data) -> bool:
        mine, wanted = key(_read(variable, data)), key(_read(other, data))
        return mine is not None and wanted is not None and compare(mine, wanted)

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
