"""Tasks that wait for a token: the worker's side and the engine's."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.asl.engine_harness import NOON, CrashingStore, EngineCrash, EngineHarness

from webordinary.asl.ports import Status, send_task_failure, send_task_heartbeat, send_task_success, stop_execution
from webordinary.asl.values import JSON

AWAIT = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "Parameters": {"FunctionName": "ask", "Payload": {"token.$": "$$.Task.Token"}},
    "End": True,
}


class Office(EngineHarness):
    """A world with a desk where tokens arrive."""

    def __init__(self, **fields: JSON) -> None:
        self.desk: list[str] = []
        self.answer_at_once = False
        states = {"Await": {**AWAIT, **fields}, "Late": {"Type": "Pass", "End": True}}
        super().__init__(states, {"ask": self._ask})

    def _ask(self, given: JSON) -> JSON:
        assert isinstance(given, dict)
        self.desk.append(given["token"])
        if self.answer_at_once:
            send_task_success(self.store, given["token"], "quick")
        return None

    def begin(self) -> str:
        self.engine.start("one", {})
        self.engine.run_ready()
        return self.desk[-1]


def test_the_answer_is_the_result() -> None:
    office = Office()
    token = office.begin()
    assert office.execution().status is Status.RUNNING
    assert send_task_success(office.store, token, {"commit": "abc"})
    assert office.settle().output == {"commit": "abc"}


def test_an_answer_may_come_before_the_handler_returns() -> None:
    office = Office()
    office.answer_at_once = True
    office.begin()
    assert office.execution().output == "quick"
    assert office.types()[2:6] == ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded"]


def test_a_failure_reaches_retry_and_catch_and_a_retry_has_a_new_token() -> None:
    office = Office(Retry=[{"ErrorEquals": ["PREEMPTED"]}])
    first = office.begin()
    send_task_failure(office.store, first, "PREEMPTED", "another thread")
    office.settle()
    assert len(set(office.desk)) == 2
    send_task_success(office.store, office.desk[1], "done")
    assert office.settle().output == "done"


def test_a_failure_without_error_is_null_for_the_catch() -> None:
    office = Office(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Late"}])
    send_task_failure(office.store, office.begin())
    assert office.settle().output == {"Error": None, "Cause": None}


def test_only_the_first_answer_counts_and_later_ones_are_lost() -> None:
    office = Office()
    token = office.begin()
    assert send_task_success(office.store, token, 1)
    assert not send_task_success(office.store, token, 2)
    assert office.settle().output == 1
    assert not send_task_failure(office.store, token)


def test_without_an_answer_the_task_times_out_and_the_token_is_lost() -> None:
    office = Office(TimeoutSeconds=60)
    token = office.begin()
    assert office.settle().error == "States.Timeout"
    assert office.clock.now() == NOON + timedelta(seconds=60)
    assert not send_task_success(office.store, token, "too late")


def test_an_answer_that_came_just_before_the_timeout_counts() -> None:
    office = Office(TimeoutSeconds=60)
    token = office.begin()
    office.clock.pass_seconds(61)
    assert send_task_success(office.store, token, "just in time")
    assert office.settle().output == "just in time"


def test_heartbeats_keep_a_task_alive_and_their_end_ends_it() -> None:
    office = Office(TimeoutSeconds=600, HeartbeatSeconds=30)
    token = office.begin()
    for _ in range(3):
        office.clock.pass_seconds(20)
        assert send_task_heartbeat(office.store, token, office.clock.now())
        office.engine.run_ready()
        assert office.execution().status is Status.RUNNING
    assert office.settle().error == "States.HeartbeatTimeout"
    assert office.clock.now() == NOON + timedelta(seconds=90)
    assert not send_task_heartbeat(office.store, token, office.clock.now())


def test_states_timeout_catches_a_missing_heartbeat_too() -> None:
    office = Office(HeartbeatSeconds=30, Catch=[{"ErrorEquals": ["States.Timeout"], "Next": "Late"}])
    office.begin()
    assert office.settle().status is Status.SUCCEEDED


def test_stopping_an_execution_loses_its_token_and_announces_its_end() -> None:
    office = Office()
    token = office.begin()
    assert stop_execution(office.store, "one", office.clock.now(), "Operator", "was wrong")
    assert not stop_execution(office.store, "one", office.clock.now())
    assert not send_task_heartbeat(office.store, token, office.clock.now())
    office.settle()
    assert [(e.status, e.error, e.cause) for e in office.announced] == [(Status.ABORTED, "Operator", "was wrong")]


def test_an_answer_outlives_an_engine_that_died_before_it_noted_its_call() -> None:
    office = Office()
    office.answer_at_once = True
    office.engine = office.new_engine(CrashingStore(office.store, crash_at=2, after=False))
    with pytest.raises(EngineCrash):
        office.begin()
    assert office.types()[-1] == "TaskStarted"
    office.engine = office.new_engine()
    assert office.settle().output == "quick"
    assert len(office.desk) == 1, "what is answered need not be asked again"
    assert office.types().count("TaskSubmitted") == 1


def test_two_answers_of_which_the_first_ends_the_others_branch_are_both_taken() -> None:
    office = Office()
    branch = {"StartAt": "Await", "States": {"Await": AWAIT}}
    both = EngineHarness({"Both": {"Type": "Parallel", "Branches": [branch, branch], "End": True}}, office.handlers)
    both.engine.start("one", {})
    both.engine.run_ready()
    send_task_failure(both.store, office.desk[0], "Broken")
    send_task_success(both.store, office.desk[1], "well")
    assert both.settle().error == "Broken"


def test_an_invocation_without_token_wraps_its_answer_as_lambda_does() -> None:
    parameters = {"FunctionName": "double", "Payload.$": "$"}
    invoke = {**AWAIT, "Resource": "arn:aws:states:::lambda:invoke", "Parameters": parameters}
    world = EngineHarness({"Invoke": {**invoke, "OutputPath": "$.Payload"}}, {"double": lambda n: n * 2})  # type: ignore[operator]
    assert world.output(21) == 42
