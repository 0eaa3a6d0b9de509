"""Rules of the services that a first deployment, a failed one and a second one meet."""

from __future__ import annotations

import pytest

from tests.infra.templates import StackTemplates

pytestmark = pytest.mark.xdist_group("infra")

ADOPTABLE = {"AWS::DynamoDB::Table": "TableName", "AWS::S3::Bucket": "BucketName"}
"""What outlives its stack, and the property that CloudFormation finds it by."""
KEPT = ("Retain", "RetainExceptOnCreate")


def resources(cloud: StackTemplates, kind: str) -> list[dict[str, object]]:
    found = [one for stack in cloud.stacks.values() for one in stack.template["Resources"].values()]
    return [one for one in found if one["Type"] == kind]


@pytest.mark.parametrize("kind", ADOPTABLE)
def test_what_stays_can_be_adopted_by_the_next_deployment(cloud: StackTemplates, kind: str) -> None:
    """CloudFormation, import-resources-automatically: a static custom name, and Retain or RetainExceptOnCreate.

    With RetainExceptOnCreate a creation that fails leaves nothing behind.
    """
    found = resources(cloud, kind)
    assert found
    for one in found:
        assert one["DeletionPolicy"] == "RetainExceptOnCreate"
        assert one["UpdateReplacePolicy"] == "Retain"
        assert isinstance(one["Properties"][ADOPTABLE[kind]], str)  # type: ignore[index]


def test_nothing_stays_that_could_not_be_adopted(cloud: StackTemplates) -> None:
    """Ids that are read-only (QueueUrl, the ARN of a state machine) cannot be imported: aws-cdk#36268."""
    kept = {
        one["Type"]
        for stack in cloud.stacks.values()
        for one in stack.template["Resources"].values()
        if one.get("DeletionPolicy") in KEPT
    }
    assert kept == set(ADOPTABLE)


def test_the_agent_of_ecs_offers_the_security_option_that_the_task_asks_for(cloud: StackTemplates) -> None:
    """ECS, ContainerDefinition.dockerSecurityOptions: the agent must register with ECS_SELINUX_CAPABLE=true."""
    [container] = cloud.workers.only("AWS::ECS::TaskDefinition")["ContainerDefinitions"]
    assert container["DockerSecurityOptions"] == ["no-new-privileges"]
    template = cloud.workers.template["Resources"]
    [machine] = [one for one in template.values() if one["Type"] == "AWS::EC2::LaunchTemplate"]
    assert "ECS_SELINUX_CAPABLE=true" in str(machine["Properties"]["LaunchTemplateData"]["UserData"])


def test_the_service_waits_for_its_capacity_provider_and_goes_before_it(cloud: StackTemplates) -> None:
    """aws/containers-roadmap#631: "strongly recommended … explicit dependency"; aws-cdk#19275."""
    template = cloud.workers.template["Resources"]
    [service] = [one for one in template.values() if one["Type"] == "AWS::ECS::Service"]
    waits_for = {template[name]["Type"] for name in service["DependsOn"]}
    assert "AWS::ECS::ClusterCapacityProviderAssociations" in waits_for


def test_a_deployment_at_full_size_finds_machines(cloud: StackTemplates) -> None:
    """A machine runs one worker, and a deployment starts new workers before it stops the old ones."""
    service = cloud.workers.only("AWS::ECS::Service")
    most = cloud.workers.only("AWS::ApplicationAutoScaling::ScalableTarget")["MaxCapacity"]
    wanted = most * service["DeploymentConfiguration"]["MaximumPercent"] / 100
    assert int(cloud.workers.only("AWS::AutoScaling::AutoScalingGroup")["MaxSize"]) >= wanted


def test_one_mail_starts_one_worker(cloud: StackTemplates) -> None:
    """Application Auto Scaling goes on answering an alarm while machines start, for as long as it stands."""
    policies = cloud.workers.of_type("AWS::ApplicationAutoScaling::ScalingPolicy")
    starting = {
        name: policy["StepScalingPolicyConfiguration"]
        for name, policy in policies.items()
        if any(step["ScalingAdjustment"] > 0 for step in policy["StepScalingPolicyConfiguration"]["StepAdjustments"])
    }
    every = [policy["StepScalingPolicyConfiguration"] for policy in policies.values()]
    exact = [one for one in every if one["AdjustmentType"] == "ExactCapacity"]
    assert {step["ScalingAdjustment"] for one in exact for step in one["StepAdjustments"]} == {1}
    assert all(one["Cooldown"] >= 300 for one in starting.values())


def test_what_wakes_the_first_worker_waits_for_late_metrics(cloud: StackTemplates) -> None:
    """A filled metric reads as nobody's asking while the newest minute has no data yet."""
    alarms = [
        alarm
        for alarm in cloud.workers.of_type("AWS::CloudWatch::Alarm").values()
        if "ClaimRequested" in str(alarm.get("Metrics"))
    ]
    [wake] = alarms
    [expression] = [one["Expression"] for one in wake["Metrics"] if "Expression" in one]
    assert "FILL(asked" not in expression
    periods = {one["MetricStat"]["Period"] for one in wake["Metrics"] if "MetricStat" in one}
    assert periods == {300}
