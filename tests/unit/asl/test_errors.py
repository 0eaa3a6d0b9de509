"""Retry, Catch, and what passes by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from tests.unit.asl.engine_harness import NOON, EngineHarness

from webordinary.asl.errors import Failure
from webordinary.asl.ports import Status
from webordinary.asl.values import JSON


class WorthRetrying(Exception):
    """Worth trying again."""


class Flaky:
    """Fails so many times, then works; remembers when it was called."""

    def __init__(self, failures: int, problem: Exception | None = None) -> None:
        self.left, self.problem = failures, problem or WorthRetrying("later")
        self.world: EngineHarness | None = None
        self.called_at: list[datetime] = []

    def __call__(self, given: JSON) -> JSON:
        assert self.world is not None
        self.called_at.append(self.world.clock.now())
        self.left -= 1
        if self.left >= 0:
            raise self.problem
        return "done"

    def waits(self) -> list[float]:
        pairs = zip(self.called_at, self.called_at[1:], strict=False)
        return [(later - sooner).total_seconds() for sooner, later in pairs]


def task(handler: Callable[[JSON], JSON], **fields: JSON) -> EngineHarness:
    world = EngineHarness(
        {
            "Work": {"Type": "Task", "Resource": "work", "End": True, **fields},
            "Caught": {"Type": "Pass", "End": True},
        },
        {"work": handler},
    )
    if isinstance(handler, Flaky):
        handler.world = world
    return world


def raising(problem: Exception) -> Callable[[JSON], JSON]:
    def handler(_: JSON) -> JSON:
        raise problem

    return handler


def catching(*errors: str) -> list[JSON]:
    return [{"ErrorEquals": list(errors), "ResultPath": "$.error", "Next": "Caught"}]


def test_a_python_error_is_an_asl_error_of_its_class_name_worded_as_lambda_words_it() -> None:
    error, cause = task(raising(WorthRetrying("the disk was full"))).failure()
    assert error == "WorthRetrying"
    assert json.loads(cause or "") == {"errorMessage": "the disk was full", "errorType": "WorthRetrying"}


def test_a_handler_may_choose_error_and_cause_itself() -> None:
    assert task(raising(Failure("PREEMPTED", "by thread 2"))).failure() == ("PREEMPTED", "by thread 2")


def test_a_retry_waits_longer_each_time_up_to_its_bound() -> None:
    flaky = Flaky(4)
    retry: JSON = [{"ErrorEquals": ["WorthRetrying"], "IntervalSeconds": 2, "MaxAttempts": 9, "MaxDelaySeconds": 10}]
    assert task(flaky, Retry=retry).output() == "done"
    assert flaky.waits() == [2, 4, 8, 10]


def test_full_jitter_waits_somewhere_below_the_delay_and_differs() -> None:
    flaky = Flaky(5)
    retry: JSON = [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 6, "JitterStrategy": "FULL"}]
    assert task(flaky, Retry=retry).output() == "done"
    assert all(0 <= wait <= 2**n for n, wait in enumerate(flaky.waits()))
    assert len(set(flaky.waits())) == 5


def test_attempts_run_out_and_then_the_catch_has_its_turn() -> None:
    flaky = Flaky(99)
    world = task(flaky, Retry=[{"ErrorEquals": ["WorthRetrying"], "MaxAttempts": 2}], Catch=catching("WorthRetrying"))
    output = world.output({"kept": True})
    assert isinstance(output, dict)
    assert output["kept"] is True
    assert output["error"]["Error"] == "WorthRetrying"
    assert len(flaky.called_at) == 3


def test_each_retrier_counts_its_own_attempts() -> None:
    flaky = Flaky(3)
    retry: JSON = [{"ErrorEquals": ["Other"], "MaxAttempts": 1}, {"ErrorEquals": ["WorthRetrying"], "MaxAttempts": 3}]
    assert task(flaky, Retry=retry).output() == "done"


def test_max_attempts_zero_never_retries() -> None:
    flaky = Flaky(1)
    world = task(flaky, Retry=[{"ErrorEquals": ["States.ALL"], "MaxAttempts": 0}])
    assert world.run().status is Status.FAILED
    assert len(flaky.called_at) == 1


def test_task_failed_catches_any_error_but_a_timeout() -> None:
    assert task(raising(KeyError("x")), Catch=catching("States.TaskFailed")).run().status is Status.SUCCEEDED
    timed_out = task(raising(Failure("States.Timeout")), Catch=catching("States.TaskFailed"))
    assert timed_out.failure()[0] == "States.Timeout"


def test_nothing_catches_a_runtime_error() -> None:
    world = task(lambda _: 1, InputPath="$.nowhere", Catch=[*catching("States.Runtime"), *catching("States.ALL")])
    assert world.failure()[0] == "States.Runtime"


def test_a_large_output_is_not_caught_but_a_large_answer_of_a_handler_is() -> None:
    big = "x" * 300_000
    answer = task(lambda _: big, Catch=catching("States.ALL")).run()
    assert answer.status is Status.SUCCEEDED
    assert isinstance(answer.output, dict)
    assert answer.output["error"]["Error"] == "States.DataLimitExceeded"
    doubled = task(lambda _: big[:150_000], ResultPath="$.more", Catch=catching("States.ALL"))
    assert doubled.failure({"given": big[:150_000]})[0] == "States.DataLimitExceeded"


def test_what_json_cannot_say_is_an_error_of_the_handler() -> None:
    assert task(lambda _: {1, 2}).failure()[0] == "Runtime.MarshalError"  # type: ignore[arg-type, return-value]
    assert task(lambda _: float("nan")).failure()[0] == "Runtime.MarshalError"


def test_a_handler_that_overran_its_timeout_has_timed_out() -> None:
    world = task(lambda _: world.clock.pass_seconds(6), TimeoutSeconds=5)
    assert world.failure() == ("States.Timeout", None)
    assert "LambdaFunctionTimedOut" in world.types()


def test_a_choice_that_nothing_matches_is_an_error() -> None:
    world = EngineHarness(
        {
            "Which": {"Type": "Choice", "Choices": [{"Variable": "$.n", "NumericEquals": 1, "Next": "One"}]},
            "One": {"Type": "Succeed"},
        }
    )
    assert world.failure({"n": 2})[0] == "States.NoChoiceMatched"


def test_the_retry_count_is_in_the_context() -> None:
    seen: list[JSON] = []

    def work(given: JSON) -> JSON:
        seen.append(given)
        raise WorthRetrying

    world = task(work, Parameters={"try.$": "$$.State.RetryCount"}, Retry=[{"ErrorEquals": ["WorthRetrying"]}])
    assert world.run().status is Status.FAILED
    assert seen == [{"try": 0}, {"try": 1}, {"try": 2}, {"try": 3}]


def test_an_execution_that_lasts_too_long_times_out() -> None:
    world = EngineHarness({"Sleep": {"Type": "Wait", "Seconds": 60, "End": True}}, TimeoutSeconds=10)
    assert world.run().status is Status.TIMED_OUT
    assert world.clock.now() == NOON + timedelta(seconds=10)
    assert [execution.status for execution in world.announced] == [Status.TIMED_OUT]


def test_a_history_never_grows_beyond_its_bound() -> None:
    world = EngineHarness(
        {
            "Round": {"Type": "Pass", "Next": "AndRound"},
            "AndRound": {"Type": "Pass", "Next": "Round"},
        }
    )
    error, cause = world.failure()
    assert (error, cause) == (
        "States.Runtime",
        "The execution reached the maximum number of history events (25000).",
    )
    assert len(world.events()) == 25_000


@pytest.mark.parametrize("field", ["Seconds", "SecondsPath"])
def test_a_wait_waits(field: str) -> None:
    world = EngineHarness({"Sleep": {"Type": "Wait", field: 90 if field == "Seconds" else "$.s", "End": True}})
    assert world.output({"s": 90}) == {"s": 90}
    assert world.clock.now() == NOON + timedelta(seconds=90)
