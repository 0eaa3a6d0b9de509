"""The workers: generic, protected while busy, and with no more rights than they need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.templates import Resource, Stack, StackTemplates, plain, ready
from webordinary.adapters.agents.claude_access import model_access
from webordinary.adapters.aws import names
from webordinary.config import Config
from webordinary.entrypoints import lifecycle

pytestmark = pytest.mark.xdist_group("infra")


def test_cluster_and_service_have_their_names(cloud: StackTemplates) -> None:
    assert cloud.workers.only("AWS::ECS::Cluster")["ClusterName"] == names.CLUSTER
    assert cloud.workers.only("AWS::ECS::Service")["ServiceName"] == names.SERVICE


def test_a_worker_is_told_no_project(cloud: StackTemplates) -> None:
    told = {one["Name"]: plain(one["Value"]) for one in _container(cloud.workers)["Environment"]}
    assert not {"PROJECT_ID", "USER_ID"} & told.keys()
    assert told["OWNERSHIP_TABLE_NAME"] == names.OWNERSHIP
    assert told["ACTIVE_JOBS_TABLE"] == names.JOBS
    assert told["UNCLAIMED_QUEUE_URL"].endswith(f"/<AWS::AccountId>/{names.UNCLAIMED}")
    assert told["AWS_REGION"] == "<AWS::Region>"
    assert told["AWS_ACCOUNT_ID"] == "<AWS::AccountId>"
    assert told["WORKSPACE_PATH"] == "/work"


def test_a_worker_understands_what_it_is_told(cloud: StackTemplates) -> None:
    told = {one["Name"]: plain(one["Value"]) for one in _container(cloud.workers)["Environment"]}
    config = Config.load(env={**told, "AWS_REGION": "eu-west-1", "AWS_ACCOUNT_ID": "123456789012"})
    assert (config.backend, str(config.data)) == ("aws", "/work")
    assert (config.domain, config.mailbox) == ("example.com", "edit@mail.example.com")
    assert (config.aws_jobs_table, config.aws_ownership_table) == (names.JOBS, names.OWNERSHIP)
    assert config.aws_broker == names.BROKER


def test_a_worker_has_two_minutes_to_save(cloud: StackTemplates) -> None:
    assert _container(cloud.workers)["StopTimeout"] == 120 > lifecycle.worker_stop_seconds(Config(backend="aws"))


def test_a_worker_that_hangs_is_replaced(cloud: StackTemplates) -> None:
    assert _container(cloud.workers)["HealthCheck"]["Command"] == ["CMD", "webordinary", "worker", "health"]


def test_a_worker_runs_as_nobody_and_stays_so(cloud: StackTemplates) -> None:
    container = _container(cloud.workers)
    assert container["User"] == "10001:10001"
    # Docker's filters are off, as ECS offers no other way to user namespaces; capabilities it never gets.
    assert container["Privileged"] is True
    assert container["DockerSecurityOptions"] == ["no-new-privileges"]


def test_no_task_reaches_the_machines_own_credentials(cloud: StackTemplates) -> None:
    machine = cloud.workers.only("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert machine["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    assert "echo ECS_AWSVPC_BLOCK_IMDS=true >> /etc/ecs/ecs.config" in plain(machine["UserData"]["Fn::Base64"])
    assert cloud.workers.only("AWS::ECS::TaskDefinition")["NetworkMode"] == "awsvpc"


def test_machines_are_arm_and_their_disks_encrypted(cloud: StackTemplates) -> None:
    machine = cloud.workers.only("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    [disk] = machine["BlockDeviceMappings"]
    assert disk["Ebs"]["Encrypted"] is True
    assert "arm64" in str(machine["ImageId"])
    overrides = _group(cloud.workers)["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
    assert [one["InstanceType"] for one in overrides] == ["m7g.large", "m6g.large"]


def test_nobody_can_call_a_worker(cloud: StackTemplates) -> None:
    assert not cloud.workers.of_type("AWS::EC2::SecurityGroupIngress")
    for wall in cloud.workers.of_type("AWS::EC2::SecurityGroup").values():
        assert "SecurityGroupIngress" not in wall
        assert sorted(rule["FromPort"] for rule in wall["SecurityGroupEgress"]) == [22, 443]


def test_there_may_be_no_worker_at_all(cloud: StackTemplates) -> None:
    target = cloud.workers.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == (0, 10)
    assert _group(cloud.workers)["MinSize"] == "0"
    assert cloud.workers.only("AWS::ECS::Service")["DesiredCount"] == 0


def test_workers_come_when_keys_wait_and_go_when_none_does(cloud: StackTemplates) -> None:
    steps = _scaling(cloud.workers)
    depth, age = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
    assert steps[(depth, "GreaterThanOrEqualToThreshold")] == [1, 3, 10]
    assert steps[(age, "GreaterThanOrEqualToThreshold")] == [1, 2]
    assert steps[(depth, "LessThanOrEqualToThreshold")] == [-1]
    assert len(steps) == 4


def test_scaling_looks_at_the_unclaimed_queue(cloud: StackTemplates) -> None:
    looked_at = [alarm for alarm in cloud.workers.of_type("AWS::CloudWatch::Alarm").values() if "MetricName" in alarm]
    assert [alarm["Dimensions"] for alarm in looked_at] == [[{"Name": "QueueName", "Value": names.UNCLAIMED}]] * 3


def test_the_first_mail_after_a_quiet_night_wakes_a_worker_at_once(cloud: StackTemplates) -> None:
    [wake] = [alarm for alarm in cloud.workers.of_type("AWS::CloudWatch::Alarm").values() if "Metrics" in alarm]
    told = {one["MetricStat"]["Metric"]["MetricName"] for one in wake["Metrics"] if "MetricStat" in one}
    assert told == {"ClaimRequested", "ClaimsHeld"}
    assert (wake["EvaluationPeriods"], wake["Threshold"]) == (1, 1)


def test_a_busy_worker_may_protect_its_task_and_its_machine_waits_for_it(cloud: StackTemplates) -> None:
    rights = cloud.workers.rights(_role(cloud.workers, "webordinary-worker"))
    tasks = [resource for action, resource in rights if action == "ecs:UpdateTaskProtection"]
    assert [task.rpartition(":")[2] for task in tasks] == [f"task/{names.CLUSTER}/*"]
    provider = cloud.workers.only("AWS::ECS::CapacityProvider")["AutoScalingGroupProvider"]
    assert provider["ManagedTerminationProtection"] == "ENABLED"
    assert provider["ManagedDraining"] == "ENABLED"
    assert _group(cloud.workers)["NewInstancesProtectedFromScaleIn"] is True


def test_a_worker_itself_reaches_no_site_and_no_session(cloud: StackTemplates) -> None:
    rights = cloud.workers.rights(_role(cloud.workers, "webordinary-worker"))
    objects = {resource.rpartition(":::")[2] for action, resource in rights if action.startswith("s3:")}
    assert all(name.startswith("webordinary-store-") for name in objects)
    assert not any("/sessions" in name or name.endswith("<AWS::AccountId>/*") for name in objects)
    assert not any(action.startswith(("iam:", "secretsmanager:", "ssm:", "ses:", "sts:")) for action, _ in rights)
    invoked = {resource.rpartition(":")[2] for action, resource in rights if action.startswith("lambda:")}
    assert invoked == {names.BROKER}


def test_a_publisher_reaches_the_project_of_its_tag_and_no_other(cloud: StackTemplates) -> None:
    rights = cloud.workers.rights(_role(cloud.workers, names.PUBLISHER_ROLE))
    tag = "${aws:PrincipalTag/project}"
    written = {resource.rpartition(":::")[2] for action, resource in rights if action == "s3:PutObject"}
    assert written == {
        f"webordinary-sites-<AWS::AccountId>/{tag}/*",
        f"webordinary-sites-<AWS::AccountId>/.previews/{tag}/*",
        f"webordinary-store-<AWS::AccountId>/sessions/{tag}/*",
    }
    assert all(tag in resource for _, resource in rights)
    assert "s3:ListBucket" not in {action for action, _ in rights}, "names of other projects' files are theirs"


def test_only_the_broker_becomes_a_publisher_and_names_the_project(cloud: StackTemplates) -> None:
    role = cloud.workers.of_type("AWS::IAM::Role")[_role(cloud.workers, names.PUBLISHER_ROLE)]
    for statement in role["AssumeRolePolicyDocument"]["Statement"]:
        assert plain(statement["Principal"]["AWS"]).endswith(f":role/{names.BROKER}")
        assert statement["Condition"] == {
            "StringLike": {"aws:RequestTag/project": "?*"},
            "ForAllValues:StringEquals": {"aws:TagKeys": ["project"]},
        }
    actions = {json.dumps(one["Action"]) for one in role["AssumeRolePolicyDocument"]["Statement"]}
    assert "sts:TagSession" in str(actions)


def test_only_workers_write_ownership(cloud: StackTemplates) -> None:
    writers = set()
    for name, stack in cloud.stacks.items():
        for role in stack.of_type("AWS::IAM::Role"):
            rights = stack.rights(role)
            if any(action.endswith("UpdateItem") and resource.endswith(names.OWNERSHIP) for action, resource in rights):
                writers.add((name, role))
    assert writers == {("workers", _role(cloud.workers, "webordinary-worker"))}


def test_on_spot_a_machine_that_must_go_is_drained() -> None:
    spot = _workers(spot=True)
    policy = _group(spot)["MixedInstancesPolicy"]["InstancesDistribution"]
    assert policy["OnDemandPercentageAboveBaseCapacity"] == 0
    user_data = plain(spot.only("AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["UserData"]["Fn::Base64"])
    assert "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true" in user_data


def test_fargate_says_what_it_loses() -> None:
    fargate = _workers(capacity="fargate")
    assert "no user namespaces" in fargate.template["Outputs"]["Loses"]["Value"]
    container = _container(fargate)
    assert "Privileged" not in container or container["Privileged"] is False
    task = fargate.only("AWS::ECS::TaskDefinition")
    assert task["RuntimePlatform"]["CpuArchitecture"] == "ARM64"
    assert not fargate.of_type("AWS::AutoScaling::AutoScalingGroup")
    assert not fargate.of_type("AWS::EC2::NatGateway")


def test_the_agents_key_comes_from_the_secrets(cloud: StackTemplates) -> None:
    assert "Secrets" not in _container(cloud.workers)
    [secret] = _container(_workers(agent_secret="webordinary/agent-key"))["Secrets"]
    assert secret["Name"] == "ANTHROPIC_API_KEY"


def test_nobody_asks_bedrock_unless_told_to(cloud: StackTemplates) -> None:
    told = {one["Name"] for one in _container(cloud.workers)["Environment"]}
    assert not [name for name in told if name.startswith(("CLAUDE_", "ANTHROPIC_"))]
    for stack in cloud.stacks.values():
        for role in stack.of_type("AWS::IAM::Role"):
            assert not [action for action, _ in stack.rights(role) if action.startswith("bedrock:")]


@pytest.mark.parametrize(
    ("model", "resources"),
    [
        ("anthropic.claude-x-v1:0", {"<AWS::Region>::foundation-model/anthropic.claude-x-v1:0"}),
        (
            "eu.anthropic.claude-x-v1:0",
            {
                "*::foundation-model/anthropic.claude-x-v1:0",
                "<AWS::Region>:<AWS::AccountId>:inference-profile/eu.anthropic.claude-x-v1:0",
            },
        ),
    ],
    ids=["a model", "an inference profile"],
)
def test_through_bedrock_a_worker_reaches_the_one_model_that_was_chosen(model: str, resources: set[str]) -> None:
    workers = _workers(bedrock_model=model)
    rights = workers.rights(_role(workers, "webordinary-worker"))
    asked = {(action, resource) for action, resource in rights if action.startswith("bedrock:")}
    actions = ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream")
    assert asked == {(action, f"arn:<AWS::Partition>:bedrock:{one}") for action in actions for one in resources}
    publisher = workers.rights(_role(workers, names.PUBLISHER_ROLE))
    assert not [action for action, _ in publisher if action.startswith("bedrock:")]


def test_claude_code_finds_bedrock_and_only_that_model(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = _container(_workers(bedrock_model="anthropic.x"))["Environment"]
    told = {one["Name"]: plain(one["Value"]) for one in environment}
    for name, value in {"AWS_ACCESS_KEY_ID": "of the task", "AWS_SECRET_ACCESS_KEY": "hidden"}.items():
        monkeypatch.setenv(name, value)  # as ECS gives them, for the proxy to sign with
    access = model_access({**told, "AWS_REGION": "eu-west-1"})
    assert access.upstream.url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert access.upstream.sign
    assert access.env["CLAUDE_CODE_USE_BEDROCK"] == "1"
    assert {value for name, value in access.env.items() if name.startswith("ANTHROPIC_")} == {"anthropic.x"}


def test_a_nat_instance_is_the_cheap_way_out() -> None:
    cheap = _workers(nat="instance")
    assert not cheap.of_type("AWS::EC2::NatGateway")
    assert cheap.only("AWS::EC2::Instance")["InstanceType"] == "t4g.nano"
    [wall] = [one for one in cheap.of_type("AWS::EC2::SecurityGroup").values() if "SecurityGroupIngress" in one]
    assert sorted(rule["FromPort"] for rule in wall["SecurityGroupIngress"]) == [22, 443]
    assert {rule["CidrIp"] for rule in wall["SecurityGroupIngress"]} == {cheap.only("AWS::EC2::VPC")["CidrBlock"]}


def _workers(**choices: Any) -> Stack:  # noqa: ANN401 - as the settings are
    ready()
    from aws_cdk import App
    from aws_cdk.assertions import Template
    from infra.app import FLAGS
    from infra.settings import Settings
    from infra.workers import WorkersStack

    stack = WorkersStack(App(post_cli_context=FLAGS), Settings(**choices))
    return Stack(Template.from_stack(stack).to_json())


def _container(stack: Stack) -> Resource:
    [container] = stack.only("AWS::ECS::TaskDefinition")["ContainerDefinitions"]
    return dict(container)


def _group(stack: Stack) -> Resource:
    return stack.only("AWS::AutoScaling::AutoScalingGroup")


def _role(stack: Stack, name: str) -> str:
    return next(logical for logical, role in stack.of_type("AWS::IAM::Role").items() if role.get("RoleName") == name)


def _scaling(stack: Stack) -> dict[tuple[str, str], list[int]]:
    policies = stack.of_type("AWS::ApplicationAutoScaling::ScalingPolicy")
    found = {}
    for alarm in stack.of_type("AWS::CloudWatch::Alarm").values():
        [action] = alarm["AlarmActions"]
        steps = policies[action["Ref"]]["StepScalingPolicyConfiguration"]["StepAdjustments"]
        metric = alarm.get("MetricName") or alarm["Metrics"][0]["Expression"]
        found[metric, alarm["ComparisonOperator"]] = [step["ScalingAdjustment"] for step in steps]
    return found


def test_a_pushed_image_cannot_be_replaced(cloud: StackTemplates) -> None:
    assert cloud.workers.only("AWS::ECR::Repository")["ImageTagMutability"] == "IMMUTABLE"
