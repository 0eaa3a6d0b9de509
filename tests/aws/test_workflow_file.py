"""One workflow file: what is deployed on AWS is what the embedded engine runs, but for the names of its steps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webordinary.adapters.aws.names import POOL_STEPS, function_of
from webordinary.asl.definition import Definition
from webordinary.asl.states import Task
from webordinary.model.errors import Permanent
from webordinary.workflow import definition
from webordinary.workflow.definition import STEPS

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:"
ARNS = {step: f"{FUNCTION}{step}" for step in STEPS}


def test_the_deployed_file_is_the_file_byte_for_byte_but_for_the_arns() -> None:
    deployed = definition.for_aws(ARNS)
    for step, arn in ARNS.items():
        assert deployed.count(f'"{arn}"') == definition.text().count(f'"${{{step}}}"') >= 1
        deployed = deployed.replace(f'"{arn}"', f'"${{{step}}}"')
    assert deployed == definition.text()


def test_both_engines_read_the_same_states() -> None:
    deployed, embedded = Definition.load(definition.for_aws(ARNS)), definition.embedded()
    assert _with_steps(json.loads(deployed.text)) == json.loads(embedded.text)


def test_every_task_of_the_deployed_workflow_calls_a_function_of_ours() -> None:
    arns = {step: f"{FUNCTION}{function_of(step)}" for step in STEPS}
    tasks = [state for state in Definition.load(definition.for_aws(arns)).machine.walk() if isinstance(state, Task)]
    assert {task.handler for task in tasks} == set(arns.values())


def test_a_task_whose_function_does_several_steps_names_its_state() -> None:
    """Without a state less: only what a function is told tells them apart."""
    states = json.loads(definition.text())["States"]
    shared = {step for step in STEPS if sum(function_of(step) == function_of(other) for other in STEPS) > 1}
    assert shared == set(POOL_STEPS)
    for step in shared:
        assert states[step]["Parameters"]["step.$"] == "$$.State.Name"
    embedded = {state.name: state for state in definition.embedded().machine.walk() if isinstance(state, Task)}
    assert shared <= embedded.keys()


def test_a_step_without_a_function_is_named_before_anything_is_deployed() -> None:
    with pytest.raises(Permanent, match="no function is named for Reply"):
        definition.for_aws({step: arn for step, arn in ARNS.items() if step != "Reply"})


def test_a_burst_on_a_new_account_outlasts_its_ten_lambdas() -> None:
    """Step Functions, Retry: MaxDelaySeconds caps the growing interval; Lambda throttles beyond its concurrency.

    With full jitter the tries of one step last nine minutes on average, and a step waits at most as long again.
    """
    tasks = [state for state in definition.embedded().machine.walk() if isinstance(state, Task)]
    for task in tasks:
        [patient] = [one for one in task.retriers if "Lambda.TooManyRequestsException" in one.errors]
        assert patient.errors == ("Lambda.TooManyRequestsException",)
        longest = [patient.delay(tries, Longest) for tries in range(int(patient.max_attempts))]  # type: ignore[arg-type]
        assert max(longest) == 60
        assert sum(longest) > 15 * 60


class Longest:
    """The dice at their highest."""

    def uniform(self, low: float, high: float) -> float:
        return high


def _with_steps(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The same document with steps where it has ARNs."""
    names = {arn: step for step, arn in ARNS.items()}
    if isinstance(value, dict):
        return {key: _with_steps(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_steps(inner) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value
