"""Parallel and Map: many at once, results in order, the first failure decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.asl.engine_harness import CountingStore, EngineHarness

from webordinary.asl.ports import Status
from webordinary.asl.values import JSON


def one(state: dict[str, JSON]) -> dict[str, JSON]:
    return {"StartAt": "S", "States": {"S": state}}


def mapping(
    item: dict[str, JSON], handlers: dict[str, Callable[[JSON], JSON]] | None = None, **fields: JSON
) -> EngineHarness:
    states = {
        "Each": {"Type": "Map", "ItemProcessor": one(item), "End": True, **fields},
        "Caught": {"Type": "Pass", "End": True},
    }
    return EngineHarness(states, handlers)


TASK: dict[str, JSON] = {"Type": "Task", "Resource": "work", "End": True}


def test_branches_start_with_the_same_input_and_their_outputs_keep_their_order() -> None:
    slow = one({"Type": "Wait", "Seconds": 5, "End": True})
    quick = one({"Type": "Pass", "Result": "quick", "End": True})
    assert EngineHarness({"Both": {"Type": "Parallel", "Branches": [slow, quick], "End": True}}).output({"n": 1}) == [
        {"n": 1},
        "quick",
    ]


def test_the_first_branch_to_fail_ends_the_others() -> None:
    branches = [one({"Type": "Wait", "Seconds": 50, "End": True}), one({"Type": "Fail", "Error": "Broken"})]
    world = EngineHarness(
        {
            "Both": {
                "Type": "Parallel",
                "Branches": branches,
                "Catch": [{"ErrorEquals": ["Broken"], "ResultPath": "$.why", "Next": "Told"}],
                "End": True,
            },
            "Told": {"Type": "Pass", "OutputPath": "$.why.Error", "End": True},
        }
    )
    assert world.output({}) == "Broken"
    assert "WaitStateExited" not in world.types()


def test_no_more_iterations_run_than_may_run_at_once() -> None:
    world = mapping({"Type": "Wait", "Seconds": 1, "End": True}, MaxConcurrency=2)
    world.engine.start("one", [1, 2, 3, 4, 5])
    world.engine.run_ready()
    assert world.types().count("MapIterationStarted") == 2
    assert world.settle().output == [1, 2, 3, 4, 5]


def test_an_empty_map_has_an_empty_result() -> None:
    assert mapping({"Type": "Succeed"}).output([]) == []


def test_a_selector_sees_the_item_its_index_and_the_whole_input() -> None:
    selector: JSON = {"n.$": "$$.Map.Item.Value", "i.$": "$$.Map.Item.Index", "of.$": "$.name"}
    world = mapping({"Type": "Pass", "End": True}, ItemsPath="$.list", ItemSelector=selector)
    assert world.output({"name": "x", "list": ["a", "b"]}) == [
        {"n": "a", "i": 0, "of": "x"},
        {"n": "b", "i": 1, "of": "x"},
    ]


def test_the_item_is_in_the_context_of_every_state_inside_nested_ones_too() -> None:
    inner = one({"Type": "Pass", "Parameters": {"v.$": "$$.Map.Item.Value"}, "End": True})
    world = mapping({"Type": "Parallel", "Branches": [inner], "End": True})
    assert world.output([7]) == [[{"v": 7}]]


def odd_is_bad(n: JSON) -> JSON:
    assert isinstance(n, int)
    if n % 2:
        raise ValueError(n)
    return n


def test_tolerated_failures_leave_the_others_results() -> None:
    world = mapping(TASK, {"work": odd_is_bad}, ToleratedFailureCount=2)
    assert world.output([0, 1, 2, 3]) == [0, 2]
    assert world.run([1, 3, 5], name="two").error == "ValueError"


def test_a_percentage_tolerates_in_proportion() -> None:
    world = mapping(TASK, {"work": odd_is_bad}, ToleratedFailurePercentage=50)
    assert world.output([0, 1, 2, 3]) == [0, 2]


def test_a_map_retries_as_a_whole_and_ends_its_siblings() -> None:
    calls: list[JSON] = []

    def work(n: JSON) -> JSON:
        calls.append(n)
        if len(calls) < 3:
            raise ValueError(n)
        return n

    world = mapping(TASK, {"work": work}, Retry=[{"ErrorEquals": ["ValueError"]}])
    assert world.output([1, 2]) == [1, 2]
    assert calls == [1, 1, 1, 2]
    assert world.types().count("MapIterationAborted") == 2


@pytest.mark.parametrize("mode", ["INLINE", "DISTRIBUTED"])
def test_a_distributed_map_of_items_runs_here_as_well(mode: str) -> None:
    processor = {**one(TASK), "ProcessorConfig": {"Mode": mode, "ExecutionType": "STANDARD"}}
    world = EngineHarness({"Each": {"Type": "Map", "ItemProcessor": processor, "End": True}}, {"work": lambda n: [n]})
    assert world.output([1, 2]) == [[1], [2]]
    assert ("TaskStateEntered" in world.types()) == (mode == "INLINE")


def test_items_that_are_no_list_are_a_runtime_error() -> None:
    error, cause = mapping({"Type": "Succeed"}, ItemsPath="$.n").failure({"n": 1})
    assert error == "States.Runtime"
    assert 'Reference path "$.n" must point to array.' in (cause or "")


def test_a_thousand_items_cost_few_commits_when_nothing_happens_outside() -> None:
    world = mapping({"Type": "Pass", "End": True})
    counting = CountingStore(world.store)
    world.engine = world.new_engine(counting)
    assert world.run(list(range(1000))).status is Status.SUCCEEDED
    assert counting.appends < 20
