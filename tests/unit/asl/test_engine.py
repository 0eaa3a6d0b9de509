"""Starting, carrying on, announcing; and what each of it costs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.unit.asl.engine_harness import CountingStore, CrashingStore, EngineCrash, EngineHarness

from webordinary.asl.definition import Definition
from webordinary.asl.errors import AslError, InvalidDefinition, NotReady, UnknownExecution
from webordinary.asl.ports import Execution, Status
from webordinary.asl.values import JSON

RULE = {"Variable": "$.ok", "IsPresent": True, "Next": "B"}
CHAIN = {
    "A": {"Type": "Task", "Resource": "work", "Next": "IsIt"},
    "IsIt": {"Type": "Choice", "Choices": [RULE], "Default": "B"},
    "B": {"Type": "Task", "Resource": "work", "Next": "C"},
    "C": {"Type": "Task", "Resource": "work", "End": True},
}
FAILING = {"Only": {"Type": "Fail", "Error": "Broken", "Cause": "for good"}}


def test_a_name_runs_once() -> None:
    world = EngineHarness(CHAIN, {"work": lambda given: given})
    assert world.engine.start("one", {"first": True})
    assert not world.engine.start("one", {"second": True})
    assert world.settle().output == {"first": True}
    assert not world.engine.start("one", {"third": True})


def test_a_transition_costs_one_commit() -> None:
    world = EngineHarness(CHAIN, {"work": lambda given: given})
    counting = CountingStore(world.store)
    engine = world.new_engine(counting)
    engine.start("one", {})
    engine.run_ready()
    assert counting.appends == 4, "one before each of three calls, one for the end"


def test_steps_see_what_is_on_disk_already() -> None:
    seen: list[str] = []

    def work(given: JSON) -> JSON:
        seen.append(world.types()[-1])
        return given

    world = EngineHarness(CHAIN, {"work": work})
    world.run()
    assert seen == ["LambdaFunctionStarted"] * 3


THREE = {
    "A": {"Type": "Task", "Resource": "a", "Next": "B"},
    "B": {"Type": "Task", "Resource": "b", "Next": "C"},
    "C": {"Type": "Task", "Resource": "c", "End": True},
}


def test_repeatable_handlers_cost_no_commits_of_their_own() -> None:
    assert _seen_by_each_handler(repeatable=("a", "b", "c")) == {"a": 0, "b": 0, "c": 0}


def test_the_result_of_a_handler_that_is_not_repeatable_is_stored_before_the_next_call() -> None:
    assert _seen_by_each_handler(repeatable=("a", "c")) == {"a": 0, "b": 1, "c": 2}


def _seen_by_each_handler(repeatable: tuple[str, ...]) -> dict[str, int]:
    """How many results each handler found on disk when it was called."""
    seen: dict[str, int] = {}

    def handler(name: str) -> Callable[[JSON], JSON]:
        return lambda _: seen.update({name: world.types().count("LambdaFunctionSucceeded")})

    world = EngineHarness(THREE, {name: handler(name) for name in "abc"})
    world.engine.repeatable = frozenset(repeatable)
    assert world.run().status is Status.SUCCEEDED
    return seen


def test_a_handler_that_is_not_ready_does_not_repeat_those_before_it() -> None:
    calls: list[str] = []

    def not_ready(_: JSON) -> JSON:
        calls.append("b")
        if calls.count("b") < 3:
            raise NotReady("the disk is full")
        return {}

    world = EngineHarness(THREE, {"a": lambda _: calls.append("a"), "b": not_ready, "c": lambda _: calls.append("c")})
    world.engine.repeatable = frozenset("abc")
    world.engine.start("one", {})
    for _ in range(2):
        with pytest.raises(NotReady):
            world.engine.run_ready()
    world.engine.run_ready()
    assert calls == ["a", "b", "b", "b", "c"]


def test_a_failure_of_the_machine_is_hidden_from_the_definition_while_the_caller_says_so() -> None:
    failures: list[str] = []

    def failing(_: JSON) -> JSON:
        raise OSError("the disk is full")

    world = EngineHarness(THREE, {"a": lambda given: given, "b": failing, "c": lambda given: given})
    world.engine.calls_again = lambda call, problem: not failures.append(call) and len(failures) < 3
    world.engine.start("one", {})
    for _ in range(2):
        with pytest.raises(NotReady, match="the disk is full"):
            world.engine.run_ready()
    world.engine.run_ready()
    assert failures == ["one, B"] * 3
    assert [(e.error, e.cause and "disk is full" in e.cause) for e in world.announced] == [("OSError", True)]


def test_a_bad_end_is_announced_once_and_a_good_one_is_not() -> None:
    world = EngineHarness(FAILING)
    world.run()
    world.engine.run_ready()
    assert [(e.name, e.error, e.cause) for e in world.announced] == [("one", "Broken", "for good")]
    quiet = EngineHarness({"Only": {"Type": "Succeed"}})
    quiet.run()
    assert quiet.announced == []


def test_an_end_that_was_not_announced_before_a_crash_is_announced_after_it() -> None:
    world = EngineHarness(FAILING)
    dying = world.new_engine(CrashingStore(world.store, crash_at=1, after=True))
    dying.start("one", {})
    with pytest.raises(EngineCrash):
        dying.run_ready()
    assert world.announced == []
    world.new_engine().run_ready()
    assert [execution.status for execution in world.announced] == [Status.FAILED]


def test_a_hook_that_breaks_is_called_again() -> None:
    world = EngineHarness(FAILING)

    def broken(_: Execution) -> None:
        raise OSError("the log is full")

    world.engine.on_finished = broken
    world.engine.start("one", {})
    with pytest.raises(OSError, match="full"):
        world.engine.run_ready()
    world.new_engine().run_ready()
    assert len(world.announced) == 1


def test_an_execution_keeps_the_definition_that_it_started_with() -> None:
    old = {"Type": "Pass", "Result": "old", "End": True}
    new = {"Type": "Pass", "Result": "new", "End": True}
    world = EngineHarness({"Nap": {"Type": "Wait", "Seconds": 5, "Next": "Old"}, "Old": old})
    world.engine.start("one", {})
    world.engine.run_ready()
    world.definition = Definition.load({"StartAt": "New", "States": {"New": new}})
    world.engine = world.new_engine()
    assert world.settle("one").output == "old"
    assert world.run(name="two").output == "new"


def test_an_input_too_large_is_refused_and_an_unknown_name_too() -> None:
    world = EngineHarness({"Only": {"Type": "Succeed"}})
    with pytest.raises(AslError, match="256 KiB"):
        world.engine.start("big", "x" * 300_000)
    with pytest.raises(UnknownExecution):
        world.engine.advance("nobody")


def test_a_missing_handler_shows_before_anything_runs() -> None:
    with pytest.raises(InvalidDefinition, match="work"):
        EngineHarness(CHAIN, {})


def test_placeholders_are_replaced_where_things_are_named_and_nowhere_else() -> None:
    raw: dict[str, JSON] = {
        "Comment": "${Untouched}",
        "StartAt": "Parse",
        "States": {"Parse": {"Type": "Task", "Resource": "${ParseEmail}", "End": True}},
    }
    assert Definition.load(json.dumps(raw), {"ParseEmail": "parse"}).handlers == {"parse"}
    with pytest.raises(InvalidDefinition, match=r"Resource: nothing is given for \$\{ParseEmail\}"):
        Definition.load(raw, {})


@pytest.mark.parametrize(
    ("state", "field"),
    [
        ({"Type": "Pass", "QueryLanguage": "JSONata", "End": True}, "QueryLanguage"),
        ({"Type": "Pass", "Output": "{% 1 %}", "End": True}, "Output"),
        ({"Type": "Pass"}, "Next"),
        ({"Type": "Pass", "Next": "Nowhere"}, "Next"),
        ({"Type": "Pass", "End": True, "Retry": []}, "Retry"),
        ({"Type": "Pass", "End": True, "InputPath": "no path"}, "InputPath"),
        ({"Type": "Pass", "End": True, "ResultPath": "$.a[*]"}, "ResultPath"),
        ({"Type": "Pass", "End": True, "Parameters": {"a.$": "States.Nothing()"}}, "a.$"),
        ({"Type": "Task", "End": True}, "Resource"),
        ({"Type": "Task", "Resource": "r", "End": True, "Retry": [{"ErrorEquals": []}]}, "Retry.ErrorEquals"),
        ({"Type": "Choice", "Choices": []}, "Choices"),
        ({"Type": "Choice", "Choices": [{"Variable": "$.a", "IsOdd": True, "Next": "S"}]}, "Choices"),
        ({"Type": "Wait", "End": True}, "Seconds"),
        ({"Type": "Wait", "Timestamp": "tomorrow", "End": True}, "Timestamp"),
        ({"Type": "Map", "End": True}, "ItemProcessor"),
        ({"Type": "Map", "End": True, "ItemReader": {}, "ItemProcessor": {}}, "ItemReader"),
        ({"Type": "Sleep"}, "Type"),
    ],
)
def test_what_cannot_run_is_refused_with_its_state_and_field(state: dict[str, JSON], field: str) -> None:
    with pytest.raises(InvalidDefinition) as refusal:
        Definition.load({"StartAt": "S", "States": {"S": state}})
    assert (refusal.value.where, refusal.value.field) == ("S", field)
