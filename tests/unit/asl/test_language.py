"""Paths, intrinsic functions and choice rules, each by example. AWS's recordings test them more widely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.asl.engine_harness import EngineHarness

from webordinary.asl.values import JSON, BadPath, Missing, compile_path, place

SHOP: JSON = {"items": [{"n": 1, "on": True}, {"n": 2}, {"n": 3, "on": True}], "a b": {"c'd": 4}, "deep": {"n": 5}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.deep.n", 5),
        ("$['a b']['c\\'d']", 4),
        ('$["deep"].n', 5),
        ("$.items[0].n", 1),
        ("$.items[-1].n", 3),
        ("$.items[*].n", [1, 2, 3]),
        ("$.items[1:].n", [2, 3]),
        ("$.items[?(@.on == true)].n", [1, 3]),
        ("$.items.length()", 3),
        ("$.items[0,2].n", [1, 3]),
        ("$..n", [1, 2, 3, 5]),
        ("$.nowhere[*].n", []),
    ],
)
def test_a_path_finds(path: str, found: JSON) -> None:
    result = compile_path(path).find(SHOP)
    assert (sorted(result) if path == "$..n" else result) == found  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["$.nowhere", "$.items[3]", "$.deep.n.more", "$.items.n"])
def test_a_definite_path_that_leads_nowhere_says_so(path: str) -> None:
    with pytest.raises(Missing):
        compile_path(path).find(SHOP)


@pytest.mark.parametrize("path", ["", "items", "$.items[", "$.items[?(", "$."])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        compile_path(path)


@given(st.dictionaries(st.text(), st.integers()), st.lists(st.text(), min_size=1, max_size=4), st.integers())
def test_placing_a_value_changes_only_its_place(target: dict[str, int], steps: list[str], value: int) -> None:
    before = dict(target)
    if steps[0] in target:
        del target[steps[0]]
        del before[steps[0]]
    placed = place(target, tuple(steps), value)
    assert target == before, "what was given is not touched"
    assert isinstance(placed, dict)
    found: JSON = placed
    for step in steps:
        assert isinstance(found, dict)
        found = found[step]
    assert found == value
    assert {key: placed[key] for key in before} == before


def evaluated(call: str, data: JSON) -> JSON:
    output = EngineHarness({"Only": {"Type": "Pass", "Parameters": {"r.$": call}, "End": True}}).output(data)
    assert isinstance(output, dict)
    return output["r"]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ("States.Array(1, 'two', $.x, null, true)", [1, "two", "X", None, True]),
        ("States.ArrayPartition($.n, 2)", [[1, 2], [3]]),
        ("States.ArrayContains($.n, 3)", True),
        ("States.ArrayRange(5, 1, -2)", [5, 3, 1]),
        ("States.ArrayGetItem($.n, 1)", 2),
        ("States.ArrayLength($.n)", 3),
        ("States.ArrayUnique(States.Array(1, 1, '1'))", [1, "1"]),
        ("States.Base64Decode(States.Base64Encode('h\\'i'))", "h'i"),
        ("States.Hash('a', 'MD5')", "0cc175b9c0f1b6a831c399e269772661"),
        ("States.JsonMerge($.o, States.StringToJson('{\"b\":2}'), false)", {"a": 1, "b": 2}),
        ("States.JsonToString($.o)", '{"a":1}'),
        ("States.MathAdd(-1.5, 0)", -1),
        ("States.MathRandom(3, 4)", 3),
        ("States.StringSplit('1,2;3', ',;')", ["1", "2", "3"]),
        ("States.Format('\\{{}\\} of {}', $.x, $.o)", "{X} of {a=1}"),
    ],
)
def test_a_function_gives(call: str, result: JSON) -> None:
    assert evaluated(call, {"x": "X", "n": [1, 2, 3], "o": {"a": 1}}) == result


@pytest.mark.parametrize(
    "call",
    [
        "States.ArrayLength('text')",
        "States.ArrayGetItem($.n, 9)",
        "States.ArrayRange(1, 9, 0)",
        "States.Format('{} {}', 1)",
        "States.Hash('a', 'ROT13')",
        "States.StringToJson('{')",
        "States.UUID(1)",
    ],
)
def test_a_function_that_cannot_is_an_intrinsic_failure(call: str) -> None:
    world = EngineHarness({"Only": {"Type": "Pass", "Parameters": {"r.$": call}, "End": True}})
    assert world.failure({"n": []})[0] == "States.IntrinsicFailure"


def chosen(rule: dict[str, JSON], data: JSON) -> bool:
    which = {"Type": "Choice", "Choices": [{**rule, "Next": "Yes"}], "Default": "No"}
    yes, no = ({"Type": "Pass", "Result": answer, "End": True} for answer in (True, False))
    return EngineHarness({"Which": which, "Yes": yes, "No": no}).output(data) is True


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"Variable": "$.s", "StringEquals": "b"}, True),
        ({"Variable": "$.s", "StringGreaterThan": "a"}, True),
        ({"Variable": "$.s", "StringLessThanEqualsPath": "$.s"}, True),
        ({"Variable": "$.n", "StringEquals": "2"}, False),
        ({"Variable": "$.n", "NumericGreaterThanEquals": 2.0}, True),
        ({"Variable": "$.yes", "NumericEquals": 1}, False),
        ({"Variable": "$.yes", "BooleanEquals": True}, True),
        ({"Variable": "$.t", "TimestampLessThan": "2025-11-16T12:00:00+00:00"}, True),
        ({"Variable": "$.s", "TimestampEqualsPath": "$.t"}, False),
        ({"Variable": "$.f", "StringMatches": "log-*.txt"}, True),
        ({"Variable": "$.f", "StringMatches": "log-\\*.txt"}, False),
        ({"Variable": "$.none", "IsPresent": False}, True),
        ({"Variable": "$.null", "IsPresent": True}, True),
        ({"Variable": "$.null", "IsNull": True}, True),
        ({"Variable": "$.yes", "IsNumeric": False}, True),
        ({"Variable": "$.t", "IsTimestamp": True}, True),
        ({"And": [{"Variable": "$.n", "IsNumeric": True}, {"Variable": "$.n", "NumericLessThan": 2}]}, False),
        ({"Or": [{"Variable": "$.n", "NumericLessThan": 2}, {"Variable": "$.s", "IsString": True}]}, True),
        ({"Not": {"Variable": "$.n", "NumericEquals": 2}}, False),
        ({"And": [{"Variable": "$.none", "IsPresent": True}, {"Variable": "$.none", "IsNull": True}]}, False),
    ],
)
def test_a_rule_holds_or_not(rule: dict[str, JSON], holds: bool) -> None:
    data: JSON = {"s": "b", "n": 2, "yes": True, "t": "2025-11-16T12:59:59+01:00", "f": "log-1.txt", "null": None}
    assert chosen(rule, data) is holds


def test_a_rule_on_a_missing_path_is_a_runtime_error() -> None:
    world = EngineHarness(
        {
            "Which": {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": True, "Next": "End"}]},
            "End": {"Type": "Succeed"},
        }
    )
    error, cause = world.failure({})
    assert error == "States.Runtime"
    assert "Invalid path '$.a'" in (cause or "")
