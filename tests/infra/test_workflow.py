"""The deployed workflow is the embedded one, and what breaks in it is seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.templates import StackTemplates, plain
from webordinary.adapters.aws import names
from webordinary.asl.definition import Definition
from webordinary.workflow import definition
from webordinary.workflow.definition import STEPS

pytestmark = pytest.mark.xdist_group("infra")


def test_the_deployed_definition_is_the_one_file_byte_for_byte(cloud: StackTemplates) -> None:
    assert _machine(cloud)["DefinitionString"] == definition.text()


def test_with_steps_for_names_it_is_what_the_embedded_engine_runs(cloud: StackTemplates) -> None:
    deployed = Definition.load(_machine(cloud)["DefinitionString"], {step: step for step in STEPS})
    assert deployed.digest == definition.embedded().digest


def test_every_step_is_the_lambda_named_after_it(cloud: StackTemplates) -> None:
    filled = {step: plain(arn) for step, arn in _machine(cloud)["DefinitionSubstitutions"].items()}
    assert filled.keys() == set(STEPS)
    made = cloud.lambdas.named("AWS::Lambda::Function", "FunctionName")
    for step, arn in filled.items():
        assert arn.rpartition(":function:")[2] == names.function_of(step)
        assert names.function_of(step) in made


def test_it_compiles_with_arns_filled_in(cloud: StackTemplates) -> None:
    filled = {step: str(plain(arn)) for step, arn in _machine(cloud)["DefinitionSubstitutions"].items()}
    text = json.loads(definition.for_aws(filled))
    assert text["States"]["ParseEmail"]["Resource"] == filled["ParseEmail"]
    assert text["States"]["AwaitResult"]["Parameters"]["FunctionName"] == filled["AwaitResult"]


def test_it_may_call_its_steps_and_nothing_else(cloud: StackTemplates) -> None:
    [role] = cloud.workflow.of_type("AWS::IAM::Role").keys() - _roles_of_events(cloud)
    called = {resource for action, resource in cloud.workflow.rights(role) if action.startswith("lambda:")}
    assert called == {str(plain(arn)) for arn in _machine(cloud)["DefinitionSubstitutions"].values()}
    others = {action.partition(":")[0] for action, _ in cloud.workflow.rights(role)} - {"lambda"}
    assert others == {"logs", "xray"}


def test_its_log_carries_no_content(cloud: StackTemplates) -> None:
    assert _machine(cloud)["LoggingConfiguration"]["IncludeExecutionData"] is False


def test_failed_late_and_aborted_executions_are_dead_lettered(cloud: StackTemplates) -> None:
    rule = cloud.workflow.only("AWS::Events::Rule")
    pattern = rule["EventPattern"]
    assert pattern["source"] == ["aws.states"]
    assert pattern["detail-type"] == ["Step Functions Execution Status Change"]
    assert pattern["detail"]["status"] == ["FAILED", "TIMED_OUT", "ABORTED"]
    [machine] = pattern["detail"]["stateMachineArn"]
    assert machine["Ref"] in cloud.workflow.of_type("AWS::StepFunctions::StateMachine")
    [target] = rule["Targets"]
    assert plain(target["Arn"]).endswith(f":function:{names.ABANDONED}")
    assert plain(target["DeadLetterConfig"]["Arn"]).endswith(f":{names.DEAD_LETTERS}")


def test_only_that_rule_may_call_who_buries_them(cloud: StackTemplates) -> None:
    permission = cloud.workflow.only("AWS::Lambda::Permission")
    assert plain(permission["FunctionName"]).endswith(names.ABANDONED)
    assert permission["Principal"] == "events.amazonaws.com"
    [rule] = cloud.workflow.of_type("AWS::Events::Rule")
    assert plain(permission["SourceArn"]) == f"<{rule}.Arn>"


def test_events_may_reach_the_dead_letters(cloud: StackTemplates) -> None:
    allowed = [
        statement
        for policy in cloud.data.of_type("AWS::SQS::QueuePolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Principal"] == {"Service": "events.amazonaws.com"}
    ]
    [statement] = allowed
    assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def _machine(cloud: StackTemplates) -> dict[str, Any]:
    machine = cloud.workflow.only("AWS::StepFunctions::StateMachine")
    assert machine["StateMachineName"] == names.STATE_MACHINE
    return machine


def _roles_of_events(cloud: StackTemplates) -> set[str]:
    roles = cloud.workflow.of_type("AWS::IAM::Role").items()
    return {name for name, role in roles if "events.amazonaws.com" in json.dumps(role["AssumeRolePolicyDocument"])}
