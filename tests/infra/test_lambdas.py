"""The lambdas: who they are, and what none of them may do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.infra.templates import StackTemplates, plain, synthesise
from webordinary.adapters.aws import names
from webordinary.adapters.aws.functions import FUNCTIONS, Function
from webordinary.config import Config

pytestmark = pytest.mark.xdist_group("infra")

READS_OF_DYNAMODB = {f"dynamodb:{action}" for action in ("GetItem", "BatchGetItem", "Query", "ConditionCheckItem")}
MAY_LOOK_AT_OWNERSHIP = {
    names.function_of("CheckOwnership"),
    names.function_of("SendClaimRequest"),
    names.RECONCILE,
    names.BROKER,
}
BY_NAME = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)


@BY_NAME
def test_no_lambda_may_write_ownership(cloud: StackTemplates, function: Function) -> None:
    allowed = {action for action, resource in _rights(cloud, function) if _covers(resource, names.OWNERSHIP)}
    assert allowed <= READS_OF_DYNAMODB
    assert bool(allowed) == (function.name in MAY_LOOK_AT_OWNERSHIP)


@BY_NAME
def test_a_lambda_may_do_nothing_to_everything(cloud: StackTemplates, function: Function) -> None:
    for action, resource in _rights(cloud, function):
        assert "*" not in action
        assert resource != "*"
        assert action != "dynamodb:Scan"
        assert not action.startswith(("iam:", "ecs:"))
        if action.startswith("sts:"):
            assert (function.name, resource.rpartition("/")[2]) == (names.BROKER, names.PUBLISHER_ROLE)


@BY_NAME
def test_a_lambda_writes_only_its_own_log(cloud: StackTemplates, function: Function) -> None:
    groups = {resource for action, resource in _rights(cloud, function) if action.startswith("logs:")}
    [group] = groups
    logical = group.strip("<>").removesuffix(".Arn")
    made = cloud.lambdas.template["Resources"][logical]["Properties"]
    assert made["LogGroupName"] == f"/aws/lambda/{function.name}"
    assert made["RetentionInDays"] == 30


def test_every_lambda_has_a_role_of_its_own(cloud: StackTemplates) -> None:
    roles = [plain(made["Role"]) for made in cloud.lambdas.of_type("AWS::Lambda::Function").values()]
    assert len(set(roles)) == len(roles) == len(FUNCTIONS)
    assert not any(role.get("ManagedPolicyArns") for role in cloud.lambdas.of_type("AWS::IAM::Role").values())


@BY_NAME
def test_a_lambda_is_deployed_as_the_list_says(cloud: StackTemplates, function: Function) -> None:
    made = cloud.lambdas.named("AWS::Lambda::Function", "FunctionName")[function.name]
    assert made["Handler"] == function.handler
    assert made["Architectures"] == ["arm64"]
    assert made["Runtime"] == "python3.13"
    assert made["MemorySize"] == function.memory_mb
    assert made["Timeout"] == function.timeout_seconds
    assert "ReservedConcurrentExecutions" not in made  # a new account's quota allows no reservation
    assert not {"PROJECT_ID", "USER_ID"} & made["Environment"]["Variables"].keys()


@BY_NAME
def test_a_lambda_understands_what_it_is_told(cloud: StackTemplates, function: Function) -> None:
    made = cloud.lambdas.named("AWS::Lambda::Function", "FunctionName")[function.name]
    told = {name: str(plain(value)) for name, value in made["Environment"]["Variables"].items()}
    config = Config.load(env={**told, "AWS_REGION": "eu-west-1"})
    assert (config.backend, config.mailbox, config.aws_region) == ("aws", "edit@mail.example.com", "eu-west-1")
    assert config.aws_unclaimed_url.endswith(names.UNCLAIMED)


def test_nobody_else_is_deployed(cloud: StackTemplates) -> None:
    made = cloud.lambdas.named("AWS::Lambda::Function", "FunctionName")
    assert made.keys() == {function.name for function in FUNCTIONS}
    others = [stack for name, stack in cloud.stacks.items() if name != "lambdas"]
    assert not any(stack.of_type("AWS::Lambda::Function") for stack in others)


@BY_NAME
def test_an_event_that_nobody_can_take_goes_to_the_dead_letters(cloud: StackTemplates, function: Function) -> None:
    configured = {
        plain(made["FunctionName"]): made for made in cloud.lambdas.of_type("AWS::Lambda::EventInvokeConfig").values()
    }
    logical = next(
        name
        for name, made in cloud.lambdas.of_type("AWS::Lambda::Function").items()
        if made["FunctionName"] == function.name
    )
    made = configured[f"<{logical}>"]
    assert made["MaximumRetryAttempts"] == function.retries
    if function.retries:
        destination = plain(made["DestinationConfig"]["OnFailure"]["Destination"])
        assert destination.endswith(f":{names.DEAD_LETTERS}")
        assert ("sqs:SendMessage", destination) in _rights(cloud, function)


def test_the_reconciler_runs_each_minute(cloud: StackTemplates) -> None:
    rule = cloud.lambdas.only("AWS::Events::Rule")
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    [target] = rule["Targets"]
    called = cloud.lambdas.template["Resources"][target["Arn"]["Fn::GetAtt"][0]]["Properties"]
    assert called["FunctionName"] == names.RECONCILE
    assert json.loads(target["InputTransformer"]["InputTemplate"].replace("<time>", '""')) == {
        "time": "", "share": 0, "of": 1
    }  # fmt: skip


def test_as_many_reconcilers_run_each_minute_as_a_deployment_asks_for(tmp_path: Path) -> None:
    """EventBridge calls each target of a rule; each is told its share of the keys."""
    rule = synthesise(tmp_path, reconcilers="3").lambdas.only("AWS::Events::Rule")
    said = [target["InputTransformer"]["InputTemplate"].replace("<time>", '""') for target in rule["Targets"]]
    assert [json.loads(one) for one in said] == [{"time": "", "share": number, "of": 3} for number in range(3)]
    assert len({json.dumps(target["Arn"]) for target in rule["Targets"]}) == 1


def _rights(cloud: StackTemplates, function: Function) -> set[tuple[str, str]]:
    made = cloud.lambdas.named("AWS::Lambda::Function", "FunctionName")[function.name]
    return cloud.lambdas.rights(made["Role"]["Fn::GetAtt"][0])


def _covers(resource: str, table: str) -> bool:
    return resource == "*" or f"table/{table}" in resource or "table/*" in resource or "table/webordinary-*" in resource
