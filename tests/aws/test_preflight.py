"""`webordinary aws preflight`, and what is taken out of the way before stacks go, against recorded answers of AWS."""
# ruff: noqa: E402, ANN401

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from tests.aws.accounts import session_of
from tests.aws.recorded import REGION, Recorded
from tests.aws.test_dns_records import name_server
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import connect
from webordinary.adapters.aws.provision.account_checks import MailChecks
from webordinary.adapters.aws.provision.preflight import (
    MAKES,
    DeploymentIntent,
    Preflight,
    allow_scaling,
    clear_the_way,
    existing_identity,
    make_ecs_role,
)
from webordinary.model.checks import CheckResult, Verdict

ROLES = {"Path": "/", "RoleName": "AWSServiceRoleForECS", "RoleId": "A" * 16, "Arn": "arn:aws:iam::1:role/x" * 2}


def intent(**given: Any) -> DeploymentIntent:
    return DeploymentIntent(**{"region": REGION, "mailbox": "edit@mail.kiln.example", **given})


def look(check: str, tape: Callable[[Recorded], None] = lambda _: None, **given: Any) -> CheckResult:
    recorded = Recorded()
    tape(recorded)
    [found] = [one for one in Preflight(recorded, intent(**given)).checks() if one.name == check]
    result = found.look()
    recorded.done()
    return result


def test_a_fresh_account_has_no_bootstrap() -> None:
    """SSM, GetParameter: ParameterNotFound. The stacks of the CDK require version 6."""
    fresh = look("bootstrap", lambda tape: tape.refuses("ssm", "get_parameter", "ParameterNotFound"))
    assert (fresh.verdict, fresh.todo) == (Verdict.WARN, "deploying runs `cdk bootstrap` first")
    for version, verdict in (("5", Verdict.WARN), ("21", Verdict.OK)):
        answer = {"Parameter": {"Name": "v", "Value": version}}
        assert look("bootstrap", lambda tape: tape.answers("ssm", "get_parameter", answer)).verdict is verdict  # noqa: B023


def test_a_fresh_account_has_no_service_linked_role_of_ecs() -> None:
    """aws/containers-roadmap#631: CreateCapacityProvider fails without it."""
    assert look("ecs role", lambda tape: tape.refuses("iam", "get_role", "NoSuchEntity")).verdict is Verdict.WARN
    made = {"Role": {**ROLES, "CreateDate": datetime(2026, 1, 1, tzinfo=UTC)}}
    assert look("ecs role", lambda tape: tape.answers("iam", "get_role", made)).verdict is Verdict.OK


def test_the_role_of_ecs_is_made_once() -> None:
    """IAM, CreateServiceLinkedRole: InvalidInput, "has been taken in this account"."""
    recorded = Recorded()
    recorded.answers("iam", "create_service_linked_role", {}, {"AWSServiceName": "ecs.amazonaws.com"})
    recorded.refuses("iam", "create_service_linked_role", "InvalidInput", "has been taken in this account")
    make_ecs_role(recorded("iam"))
    make_ecs_role(recorded("iam"))
    recorded.done()


def stack(name: str, status: str) -> dict[str, Any]:
    return {"StackName": name, "StackStatus": status, "CreationTime": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("status", "verdict", "words"),
    [
        ("ROLLBACK_COMPLETE", Verdict.WARN, "removed and made anew"),
        ("UPDATE_IN_PROGRESS", Verdict.FAIL, "wait until"),
        ("DELETE_FAILED", Verdict.FAIL, "`webordinary aws destroy` again"),
        ("UPDATE_ROLLBACK_FAILED", Verdict.FAIL, f"continue-update-rollback --stack-name {names.PREFIX}-mail"),
        ("UPDATE_COMPLETE", Verdict.OK, ""),
    ],
)
def test_a_half_made_stack_is_seen(status: str, verdict: Verdict, words: str) -> None:
    """CloudFormation, stack status codes."""
    stacks = {"Stacks": [stack(f"{names.PREFIX}-mail", status), stack("somebody-elses", "DELETE_FAILED")]}
    found = look("stacks", lambda tape: tape.answers("cloudformation", "describe_stacks", stacks))
    assert found.verdict is verdict
    assert words in found.todo


def test_an_identity_that_exists_already_is_used_and_ours_is_kept() -> None:
    """AWS::SES::EmailIdentity fails with AlreadyExists otherwise."""
    domain = "mail.kiln.example"

    def used(*held: dict[str, Any], there: bool = True, stacked: bool = True) -> str:
        recorded = Recorded()
        if there:
            recorded.answers("sesv2", "get_email_identity", {})
            if stacked:
                recorded.answers("cloudformation", "describe_stack_resources", {"StackResources": list(held)})
            else:
                recorded.refuses("cloudformation", "describe_stack_resources", "ValidationError", "does not exist")
        else:
            recorded.refuses("sesv2", "get_email_identity", "NotFoundException")
        return existing_identity(recorded, domain)

    ours = {
        "LogicalResourceId": "identity",
        "PhysicalResourceId": domain,
        "ResourceType": "AWS::SES::EmailIdentity",
        "Timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "ResourceStatus": "CREATE_COMPLETE",
    }
    assert used(there=False) == "made"
    assert used(ours) == "made"
    assert used() == "existing"
    assert used(stacked=False) == "existing"


def test_the_owners_own_mail_is_never_taken_over_unless_told_so() -> None:
    records = {("kiln.example.", "MX"): ["10 mail.provider.example."]}
    with name_server(records) as resolver:
        for said, verdict in ((False, Verdict.FAIL), (True, Verdict.WARN)):
            wanted = intent(mailbox="edit@kiln.example", take_over_mail=said)
            found = Preflight(Recorded(), wanted, resolver).mx()
            assert found.verdict is verdict
            assert "goes to 10 mail.provider.example" in found.what
        assert Preflight(Recorded(), intent(), resolver).mx().verdict is Verdict.OK


def test_a_region_in_which_ses_only_sends_is_told() -> None:
    """SES, regions: email receiving endpoints are in some regions alone; the mail stack fails in the others."""
    with name_server({("inbound-smtp.eu-west-1.amazonaws.com.", "A"): ["192.0.2.1"]}) as resolver:
        for region, verdict in (("eu-west-1", Verdict.OK), ("eu-north-1", Verdict.WARN)):
            assert Preflight(Recorded(), intent(region=region), resolver).receiving().verdict is verdict


def test_the_operator_must_not_read_his_alarms_in_the_mailbox_of_the_system() -> None:
    assert look("operator", operator="me@mail.kiln.example").verdict is Verdict.FAIL
    assert look("operator", operator="me@kiln.example").verdict is Verdict.OK
    assert look("operator").verdict is Verdict.WARN


def test_certificates_of_cloudfront_come_from_one_region() -> None:
    """CloudFront, requirements for certificates: in US East (N. Virginia)."""
    assert look("region", hosted_zone="Z1", region="eu-west-1").verdict is Verdict.FAIL
    assert look("region", hosted_zone="Z1").verdict is Verdict.OK
    assert look("region", region="eu-west-1").verdict is Verdict.OK


def test_a_small_account_is_told_what_it_holds() -> None:
    limits = {"AccountLimit": {"ConcurrentExecutions": 10}}
    found = look("lambda quota", lambda tape: tape.answers("lambda", "get_account_settings", limits))
    assert found.verdict is Verdict.WARN
    assert "10 lambdas" in found.what


@pytest.mark.parametrize(("vcpus", "verdict"), [(1, Verdict.FAIL), (5, Verdict.WARN), (64, Verdict.OK)])
def test_machines_need_room(vcpus: int, verdict: Verdict) -> None:
    """Service Quotas, L-1216C47A: Running On-Demand Standard instances, in vCPU."""
    quota = {"Quota": {"Value": float(vcpus)}}
    given = {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}
    assert (
        look("machine quota", lambda tape: tape.answers("service-quotas", "get_service_quota", quota, given)).verdict
        is verdict
    )


def test_a_quota_that_cannot_be_asked_stops_nobody() -> None:
    refused = look(
        "bucket quota", lambda tape: tape.refuses("service-quotas", "get_service_quota", "AccessDeniedException")
    )
    assert refused.verdict is Verdict.WARN


COUNTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "network quota": ("ec2", "describe_vpcs", {"Vpcs": [{"VpcId": f"vpc-{n}"} for n in range(5)]}),
    "address quota": ("ec2", "describe_addresses", {"Addresses": [{"PublicIp": "192.0.2.1"}] * 5}),
    "bucket quota": ("s3", "list_buckets", {"Buckets": [{"Name": "a"}] * 5}),
    "distribution quota": (
        "cloudfront",
        "list_distributions",
        {"DistributionList": {"Marker": "", "MaxItems": 100, "IsTruncated": False, "Quantity": 5}},
    ),
}


@pytest.mark.parametrize(
    ("limit", "stacks", "verdict"),
    [
        (5.0, [], Verdict.FAIL),
        (9.0, [], Verdict.OK),
        (5.0, ["CREATE_COMPLETE"], Verdict.OK),
        (5.0, ["ROLLBACK_COMPLETE"], Verdict.FAIL),
    ],
    ids=["full", "room", "ours are among them", "ours were removed again"],
)
@pytest.mark.parametrize("name", COUNTED)
def test_what_an_account_has_few_of_is_counted(name: str, limit: float, stacks: list[str], verdict: Verdict) -> None:
    """Service Quotas: 5 VPCs and 5 Elastic IP addresses in a region; a stack that is there needs no more of them."""
    service, call, counted = COUNTED[name]
    made = [stack(f"{names.PREFIX}-{MAKES[name]}", status) for status in stacks]

    def tape(recorded: Recorded) -> None:
        recorded.answers("service-quotas", "get_service_quota", {"Quota": {"Value": limit}})
        recorded.answers(service, call, counted)
        recorded.answers("cloudformation", "describe_stacks", {"Stacks": made})

    assert look(name, tape).verdict is verdict


def test_a_way_out_without_a_gateway_needs_no_address() -> None:
    def tape(recorded: Recorded) -> None:
        recorded.answers("service-quotas", "get_service_quota", {"Quota": {"Value": 5.0}})
        recorded.answers("ec2", "describe_addresses", COUNTED["address quota"][2])
        recorded.answers("cloudformation", "describe_stacks", {"Stacks": []})

    assert look("address quota", tape, nat="instance").verdict is Verdict.OK


def test_an_image_of_another_architecture_is_refused() -> None:
    def pushed(tag: str) -> Callable[[Recorded], None]:
        images = {"imageDetails": [{"imageTags": [tag], "imagePushedAt": datetime(2026, 1, 1, tzinfo=UTC)}]}
        return lambda tape: tape.answers("ecr", "describe_images", images)

    assert look("image", pushed("0.1.0-20260101000000-amd64")).verdict is Verdict.FAIL
    assert look("image", pushed("0.1.0-20260101000000-arm64")).verdict is Verdict.OK
    assert (
        look("image", lambda tape: tape.refuses("ecr", "describe_images", "RepositoryNotFoundException")).verdict
        is Verdict.WARN
    )


def test_the_sandbox_is_told_with_its_quota() -> None:
    account = {"SendingEnabled": True, "ProductionAccessEnabled": False, "SendQuota": {"Max24HourSend": 200.0}}
    found = look("sending", lambda tape: tape.answers("sesv2", "get_account", account))
    assert found.verdict is Verdict.WARN
    assert "200 mails a day" in found.what
    stopped = look("sending", lambda tape: tape.answers("sesv2", "get_account", {"SendingEnabled": False}))
    assert stopped.verdict is Verdict.FAIL


def test_somebody_elses_active_rules_are_told() -> None:
    theirs, call = {"Metadata": {"Name": "theirs"}}, "describe_active_receipt_rule_set"
    found = look("receipt rules", lambda tape: tape.answers("ses", call, theirs))
    assert found.verdict is Verdict.WARN
    assert found.todo == "`-c receipt_rules=theirs` adds ours to them"
    for active, verdict in (("theirs", Verdict.OK), ("others", Verdict.FAIL)):
        rules = {"Metadata": {"Name": active}}
        told = look("receipt rules", lambda tape: tape.answers("ses", call, rules), receipt_rules="theirs")  # noqa: B023
        assert told.verdict is verdict


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ([{"Name": "a", "Enabled": True, "Recipients": ["mail.kiln.example"]}], Verdict.OK),
        ([{"Name": "a", "Enabled": False, "Recipients": ["mail.kiln.example"]}], Verdict.FAIL),
        ([{"Name": "a", "Enabled": True, "Recipients": ["kiln.example"]}], Verdict.FAIL),
        ([], Verdict.FAIL),
    ],
)
def test_the_doctor_looks_for_a_rule_that_takes_our_mail(rules: list[dict[str, Any]], verdict: Verdict) -> None:
    """SES, DescribeActiveReceiptRuleSet: whatever the set is called, its rules say whose mail is taken."""
    recorded, clients = Recorded(), connect(REGION, "http://127.0.0.1:1", session_of("1" * 12))
    recorded.answers("ses", "describe_active_receipt_rule_set", {"Metadata": {"Name": "any"}, "Rules": rules})
    checks = MailChecks(clients, recorded("ses"), "edit@mail.kiln.example", emulated=False)
    assert checks.receiving().verdict is verdict


def test_the_monthly_costs_are_said() -> None:
    assert "about 40 dollars" in look("costs").what
    assert "about 11 dollars" in look("costs", nat="instance").what
    assert "about 4 dollars" in look("costs", capacity="fargate").what
    assert "about 73 dollars a month while no mail comes (NAT gateway, 24 alarms, the console)" in (
        look("costs", console="console.example.com").what
    )


def group(*machines: str) -> dict[str, Any]:
    instances = [
        {
            "InstanceId": name,
            "AvailabilityZone": "a",
            "LifecycleState": "InService",
            "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": True,
        }
        for name in machines
    ]
    shape: dict[str, Any] = defaultdict(int, AutoScalingGroupName="machines", Instances=instances)
    for number in ("MinSize", "MaxSize", "DesiredCapacity", "DefaultCooldown"):
        shape[number] = 0
    return {
        "AutoScalingGroups": [
            dict(shape)
            | {"AvailabilityZones": ["a"], "HealthCheckType": "EC2", "CreatedTime": datetime(2026, 1, 1, tzinfo=UTC)}
        ]
    }


TARGET = {
    "ServiceNamespace": "ecs",
    "ResourceId": f"service/{names.CLUSTER}/{names.SERVICE}",
    "ScalableDimension": "ecs:service:DesiredCount",
    "MinCapacity": 0,
    "MaxCapacity": 40,
    "RoleARN": "r",
    "CreationTime": datetime(2026, 1, 1, tzinfo=UTC),
}


@pytest.mark.parametrize("allowed", [True, False])
def test_a_removal_stops_scaling_and_the_next_deployment_allows_it_again(allowed: bool) -> None:
    """Application Auto Scaling, RegisterScalableTarget: SuspendedState of an existing target."""
    recorded = Recorded()
    recorded.answers("application-autoscaling", "describe_scalable_targets", {"ScalableTargets": [TARGET]})
    kept = {name: TARGET[name] for name in ("ServiceNamespace", "ResourceId", "ScalableDimension")}
    state = {**kept, "SuspendedState": {"DynamicScalingOutSuspended": not allowed}}
    recorded.answers("application-autoscaling", "register_scalable_target", {}, state)
    recorded.answers("application-autoscaling", "describe_scalable_targets", {"ScalableTargets": []})
    for _ in range(2):  # half a deployment has no target
        allow_scaling(recorded("application-autoscaling"), allowed=allowed)
    recorded.done()


def test_destroy_takes_away_what_would_keep_stacks_from_going() -> None:
    """An active rule set cannot be deleted (SES, DeleteReceiptRuleSet); protected machines stay (aws-cdk#18179)."""
    recorded, said = Recorded(), list[str]()
    recorded.answers("ses", "describe_active_receipt_rule_set", {"Metadata": {"Name": names.RECEIPT_RULES}})
    recorded.answers("ses", "set_active_receipt_rule_set", {}, {})
    recorded.refuses("cloudformation", "describe_stacks", "ValidationError", "does not exist")
    idle = {"cluster": names.CLUSTER, "service": names.SERVICE, "desiredCount": 0}
    recorded.answers("ecs", "update_service", {}, idle)
    tasks = [f"t{number}" for number in range(12)]
    recorded.answers("ecs", "list_tasks", {"taskArns": tasks[:11], "nextToken": "more"}, {"cluster": names.CLUSTER})
    more = {"cluster": names.CLUSTER, "nextToken": "more"}
    recorded.answers("ecs", "list_tasks", {"taskArns": tasks[11:]}, more)
    for some in (tasks[:10], tasks[10:]):
        free = {"cluster": names.CLUSTER, "tasks": some, "protectionEnabled": False}
        recorded.answers("ecs", "update_task_protection", {}, free)
    recorded.answers("autoscaling", "describe_auto_scaling_groups", group("i-1"))
    open_to_go = {"AutoScalingGroupName": "machines", "InstanceIds": ["i-1"], "ProtectedFromScaleIn": False}
    recorded.answers("autoscaling", "set_instance_protection", {}, open_to_go)
    none = {"AutoScalingGroupName": "machines", "MinSize": 0, "DesiredCapacity": 0}
    recorded.answers("autoscaling", "update_auto_scaling_group", {}, none)
    recorded.answers("autoscaling", "describe_auto_scaling_groups", group("i-1"))
    recorded.answers("autoscaling", "describe_auto_scaling_groups", group())
    clear_the_way(recorded, said.append, lambda: None)
    recorded.done()
    assert said == ["SES receives no more mail", "1 machines of machines still run"]


def test_destroying_half_a_deployment_goes_on_where_there_is_no_service() -> None:
    recorded = Recorded()
    recorded.answers("ses", "describe_active_receipt_rule_set", {})
    recorded.refuses("cloudformation", "describe_stacks", "ValidationError", "does not exist")
    recorded.refuses("ecs", "update_service", "ClusterNotFoundException")
    for _ in range(2):
        recorded.answers("autoscaling", "describe_auto_scaling_groups", {"AutoScalingGroups": []})
    clear_the_way(recorded, lambda _: None, lambda: None)
    recorded.done()
