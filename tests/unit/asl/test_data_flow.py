"""How data travels through a state: five filters, the context object, variables."""

from __future__ import annotations

import pytest
from tests.unit.asl.engine_harness import EngineHarness

from webordinary.asl.values import JSON


def passing(**fields: JSON) -> EngineHarness:
    return EngineHarness({"Only": {"Type": "Pass", "End": True, **fields}})


def test_input_path_narrows_and_result_path_puts_back_into_the_whole_input() -> None:
    world = passing(InputPath="$.job", ResultPath="$.seen.job")
    assert world.output({"job": {"id": 7}, "seen": {"by": "me"}}) == {
        "job": {"id": 7},
        "seen": {"by": "me", "job": {"id": 7}},
    }


def test_null_paths_mean_nothing_in_nothing_kept_nothing_out() -> None:
    assert passing(InputPath=None).output({"a": 1}) == {}
    assert passing(Result="dropped", ResultPath=None).output({"a": 1}) == {"a": 1}
    assert passing(OutputPath=None).output({"a": 1}) == {}


def test_a_template_mixes_constants_paths_calls_and_context() -> None:
    world = passing(
        Parameters={
            "fixed": [1, {"deep.$": "$.a"}],
            "joined.$": "States.Format('{}-{}', $.a, States.ArrayLength($.list))",
            "who.$": "$$.Execution.Name",
            "state.$": "$$.State.Name",
            "entered.$": "$$.State.EnteredTime",
        }
    )
    assert world.output({"a": "x", "list": [1, 2]}) == {
        "fixed": [1, {"deep": "x"}],
        "joined": "x-2",
        "who": "one",
        "state": "Only",
        "entered": "2025-11-16T12:00:00.000Z",
    }


def test_result_selector_shapes_what_result_path_places() -> None:
    world = EngineHarness(
        {
            "Only": {
                "Type": "Task",
                "Resource": "count",
                "ResultSelector": {"n.$": "$.numbers.length()"},
                "ResultPath": "$.counted",
                "OutputPath": "$.counted",
                "End": True,
            }
        },
        {"count": lambda _: {"numbers": [3, 4]}},
    )
    assert world.output({"keep": True}) == {"n": 2}


def test_the_result_of_a_call_is_not_an_alias_of_the_handlers_data() -> None:
    shared: dict[str, JSON] = {"n": 1}
    world = EngineHarness(
        {
            "A": {"Type": "Task", "Resource": "give", "ResultPath": "$.a", "Next": "B"},
            "B": {"Type": "Task", "Resource": "spoil", "ResultPath": "$.b", "End": True},
        },
        {"give": lambda _: shared, "spoil": lambda given: given.clear() or shared.update(n=2)},  # type: ignore[union-attr]
    )
    assert world.output({"keep": True}) == {"keep": True, "a": {"n": 1}, "b": None}


def test_a_result_that_does_not_fit_its_place_is_an_error_that_can_be_caught() -> None:
    world = EngineHarness(
        {
            "Only": {
                "Type": "Task",
                "Resource": "echo",
                "ResultPath": "$.text.inside",
                "Catch": [{"ErrorEquals": ["States.ResultPathMatchFailure"], "Next": "Told"}],
                "End": True,
            },
            "Told": {"Type": "Pass", "OutputPath": "$.Error", "End": True},
        },
        {"echo": lambda given: given},
    )
    assert world.output({"text": "a string"}) == "States.ResultPathMatchFailure"


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ({"InputPath": "$.a.b"}, "Invalid path '$.a.b' : Missing property in path $['a']"),
        ({"OutputPath": "$.a"}, "Invalid path '$.a' : No results for path: $['a']"),
        (
            {"Parameters": {"x.$": "$.a"}},
            "The JSONPath '$.a' specified for the field 'x.$' could not be found in the input '{\"z\":1}'",
        ),
    ],
)
def test_a_missing_path_tells_its_place_as_aws_does(field: dict[str, JSON], told: str) -> None:
    error, cause = passing(**field).failure({"z": 1})
    place = "An error occurred while executing the state 'Only' (entered at the event id #2)."
    assert (error, cause) == ("States.Runtime", f"{place} {told}")


def test_variables_are_seen_by_later_states_and_inside_branches_but_not_outside_them() -> None:
    branch = {
        "StartAt": "In",
        "States": {
            "In": {"Type": "Pass", "Assign": {"y": 1}, "Next": "Out"},
            "Out": {"Type": "Pass", "Parameters": {"x.$": "$x", "y.$": "$y"}, "End": True},
        },
    }
    leaks = {"Variable": "$y", "IsPresent": True, "Next": "Leak"}
    world = EngineHarness(
        {
            "Set": {"Type": "Pass", "Assign": {"x.$": "$.n"}, "Next": "Both"},
            "Both": {"Type": "Parallel", "Branches": [branch], "Next": "After"},
            "After": {"Type": "Choice", "Choices": [leaks], "Default": "Tight"},
            "Leak": {"Type": "Fail"},
            "Tight": {"Type": "Succeed"},
        }
    )
    assert world.output({"n": 5}) == [{"x": 5, "y": 1}]
