"""What is looked at before the stacks are made, made beside them, and taken out of the way before they are removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import dns.resolver
from botocore.exceptions import BotoCoreError, ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import code_of, translated
from webordinary.adapters.aws.provision.account_checks import ask
from webordinary.adapters.aws.provision.package import ARCHITECTURE, newest_tag
from webordinary.adapters.aws.site.own_domains import TenantDomains
from webordinary.model.checks import Check, CheckResult, broken, doubtful, good
from webordinary.model.errors import Transient

ClientOf = Callable[..., Any]
"""The client of a service by name, and by region where that is not the deployment's."""
Report = Callable[[str], None]

BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION = 6
"""What the synthesised stacks require (`requiresBootstrapStackVersion` of the CDK's manifest)."""
ECS_ROLE = "AWSServiceRoleForECS"
CERTIFICATES = "us-east-1"
"""CloudFront takes certificates of this region alone."""
USUAL_CONCURRENCY = 100
VCPUS_OF_A_WORKER = 2
QUOTAS = {
    "machine quota": ("ec2", "L-1216C47A", ""),
    "network quota": ("vpc", "L-F678F1CE", ""),
    "address quota": ("ec2", "L-0263D0A3", ""),
    "distribution quota": ("cloudfront", "L-24B04930", CERTIFICATES),
    "bucket quota": ("s3", "L-DC2B2D3D", CERTIFICATES),
}
"""Service, code and region in Service Quotas; of networks and addresses an account has 5 in a region."""
NEEDED = {"network quota": 1, "address quota": 1, "distribution quota": 2, "bucket quota": 4}
MAKES = {"network quota": "workers", "address quota": "workers", "distribution quota": "web", "bucket quota": "data"}
"""The stack that has what is counted: once it is there, no more is needed."""
NOT_MADE = "ROLLBACK"
"""Begins the status of a stack whose creation failed."""
STUCK = {
    "ROLLBACK_FAILED": "`webordinary aws destroy`, then deploy again",
    "DELETE_FAILED": "`webordinary aws destroy` again; the stack's events name what stays",
    "UPDATE_ROLLBACK_FAILED": "`aws cloudformation continue-update-rollback --stack-name {name}`",
}
ALARMS, ALARM_METRICS = 24, 30
ALARM_METRIC_USD, RECONCILE_USD, ZONE_USD = 0.10, 1.0, 0.50
NAT_USD = {"gateway": 36.50, "instance": 7.0, "none": 0.0}
"""A month, us-east-1: gateway 0.045 an hour and its IPv4 address 0.005 an hour; t4g.nano with disk and address."""
CONSOLE_CPU, CONSOLE_MEMORY = 256, 1024
CONSOLE_USD = 32.25
"""A month of its load balancer, of the two addresses that this has, and of its task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentIntent:
    """The settings of a deployment that the checks look at."""

    region: str
    mailbox: str
    account: str = ""
    operator: str = ""
    hosted_zone: str = ""
    capacity: str = "ec2"
    nat: str = "gateway"
    max_workers: int = 10
    take_over_mail: bool = False
    receipt_rules: str = names.RECEIPT_RULES
    console: str = ""

    @property
    def mail_domain(self) -> str:
        """The domain that SES will receive mail for."""
        return self.mailbox.rpartition("@")[2]

    @property
    def way_out(self) -> str:
        """How machines reach the net: tasks on Fargate have addresses of their own."""
        return "none" if self.capacity == "fargate" else self.nat

    @property
    def idle_usd(self) -> float:
        """What the deployment costs a month while no mail comes."""
        return (
            NAT_USD[self.way_out]
            + ALARM_METRICS * ALARM_METRIC_USD
            + RECONCILE_USD
            + (ZONE_USD if self.hosted_zone else 0.0)
            + (CONSOLE_USD if self.console else 0.0)
        )


class Preflight:
    """Read-only. `emulated` leaves out what no emulator has: quotas and other people's DNS."""

    def __init__(
        self,
        client_of: ClientOf,
        intent: DeploymentIntent,
        resolver: dns.resolver.Resolver | None = None,
        *,
        emulated: bool = False,
    ) -> None:
        self._client_of, self._intent, self._emulated = client_of, intent, emulated
        self._resolver = resolver or dns.resolver.Resolver()

    def checks(self) -> Iterator[Check]:
        """All of them."""
        yield Check("region", self.region)
        yield Check("operator", self.operator)
        yield Check("bootstrap", self.bootstrap)
        yield Check("ecs role", self.ecs_role)
        yield Check("stacks", self.stacks)
        yield Check("identity", self.identity)
        yield Check("image", self.image)
        if not self._emulated:
            yield Check("receiving", self.receiving)
            yield Check("mx", self.mx)
            yield Check("receipt rules", self.receipt_rules)
            yield Check("sending", self.sending)
            yield Check("lambda quota", self.lambda_quota)
            for name in QUOTAS:
                yield Check(name, partial(self.quota, name))
        yield Check("costs", self.costs)

    def region(self) -> CheckResult:
        """CloudFront's certificates are a stack of this region."""
        region = self._intent.region
        if self._intent.hosted_zone and region != CERTIFICATES:
            words = f"the region is {region}, and CloudFront takes certificates of {CERTIFICATES} only"
            return broken(words, f"deploy to {CERTIFICATES}, or leave hosted_zone out")
        return good(f"region {region}")

    def operator(self) -> CheckResult:
        """Check the address of the alarms."""
        operator, domain = self._intent.operator, self._intent.mail_domain
        if not operator:
            return doubtful("no operator is named: alarms are mailed to no operator", "say `-c operator=ADDRESS`")
        if operator.rpartition("@")[2].lower() == domain:
            return broken(f"mail to {operator} would come to WebOrdinary itself", "name an address of another domain")
        return good(f"alarms go to {operator}")

    def bootstrap(self) -> CheckResult:
        """The CDK's bucket and roles: stacks with assets need them."""
        version = bootstrap_version(self._client_of("ssm"))
        if version < BOOTSTRAP_VERSION:
            found = f"has version {version}" if version else "is missing"
            return doubtful(f"the CDK's bootstrap {found}", "deploying runs `cdk bootstrap` first")
        return good(f"the CDK's bootstrap has version {version}")

    def ecs_role(self) -> CheckResult:
        """A new account has none, and a cluster's first capacity provider fails without it."""
        with translated(f"looking for the role {ECS_ROLE}"):
            try:
                self._client_of("iam").get_role(RoleName=ECS_ROLE)
            except ClientError as problem:
                if code_of(problem) != "NoSuchEntity":
                    raise
                return doubtful(f"the role {ECS_ROLE} is missing", "deploying makes it first")
        return good(f"the role {ECS_ROLE}")

    def stacks(self) -> CheckResult:
        """Is one of ours half made, or being changed?"""
        found = our_stacks(self._client_of("cloudformation"))
        for name, status in found.items():
            if status in STUCK:
                return broken(f"stack {name} is {status}", STUCK[status].format(name=name))
            if status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
                return broken(f"stack {name} is being changed ({status})", "wait until that has ended")
        again = [name for name, status in found.items() if status == "ROLLBACK_COMPLETE"]
        if again:
            return doubtful(f"{', '.join(again)} could not be made last time", "they are removed and made anew")
        return good(f"{len(found)} stacks of ours are there")

    def identity(self) -> CheckResult:
        """An identity of the mail domain that this system did not make is used as it is."""
        domain = self._intent.mail_domain
        if existing_identity(self._client_of, domain) == "existing":
            return doubtful(f"SES knows {domain} already", "it is used as it is; its DKIM records stay")
        return good(f"SES's identity {domain} is this deployment's")

    def image(self) -> CheckResult:
        """Check that the image of the workers is there."""
        tag = newest_tag(self._client_of("ecr"))
        if not tag:
            return doubtful("there is no image of the worker yet", "`webordinary aws image` after the deployment")
        if not tag.endswith(f"-{ARCHITECTURE}"):
            return broken(
                f"the image {tag} is not for {ARCHITECTURE} machines", "`webordinary aws image` makes another"
            )
        return good(f"image {tag}")

    def receiving(self) -> CheckResult:
        """SES sends from nearly every region and receives in few; those have a server by this name (SES, regions)."""
        region = self._intent.region
        inbound = f"inbound-smtp.{region}.amazonaws.com"
        if not ask(self._resolver, inbound, "A"):
            words = f"{inbound} has no address: SES seems to receive no mail in {region}"
            return doubtful(words, "take a region that SES receives in, such as us-east-1, us-west-2 or eu-west-1")
        return good(f"SES receives mail in {region}")

    def mx(self) -> CheckResult:
        """Which server receives the domain's mail today?"""
        domain, region = self._intent.mail_domain, self._intent.region
        inbound = f"inbound-smtp.{region}.amazonaws.com"
        others = [one for one in ask(self._resolver, domain, "MX") if inbound not in one.lower()]
        if not others:
            return good(f"no other server receives the mail of {domain}")
        words = f"mail to {domain} goes to {', '.join(others[:3])} today; SES would take all of it over"
        if self._intent.take_over_mail:
            return doubtful(words, "that is wanted: --take-over-mail")
        mailbox = names.mailbox_of(domain)
        return broken(words, f"take a domain of its own, such as mailbox={mailbox}, or say --take-over-mail")

    def receipt_rules(self) -> CheckResult:
        """Only one set of rules is active in an account and region."""
        active, rules = active_rules(self._client_of("ses")), self._intent.receipt_rules
        if rules not in (active, names.RECEIPT_RULES):
            return broken(f"SES receives by {active or 'no rules'}, not by {rules}", "name those that are active")
        if active and active != rules:
            return doubtful(f"SES receives by the rules {active}", f"`-c receipt_rules={active}` adds ours to them")
        return good(f"SES receives by {active or 'no rules yet'}")

    def sending(self) -> CheckResult:
        """How much may SES send, and to which recipients?"""
        with translated("asking SES about our account"):
            account = self._client_of("sesv2").get_account()
        if not account.get("SendingEnabled", True):
            return broken("SES has stopped this account's sending", "write to AWS's support first")
        quota = f"{account.get('SendQuota', {}).get('Max24HourSend', 0):.0f} mails a day"
        if not account.get("ProductionAccessEnabled"):
            words = f"SES is in its sandbox: {quota}, to verified addresses only"
            return doubtful(words, "ask for production access; replies wait three days for it")
        return good(f"SES sends {quota}")

    def lambda_quota(self) -> CheckResult:
        """Check Lambda's quota; new accounts have 10."""
        with translated("asking for Lambda's quota"):
            limit = self._client_of("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
        if limit < USUAL_CONCURRENCY:
            words = f"{limit} lambdas run at a time: about {limit * 12} mails a minute, others wait"
            return doubtful(words, "ask for 1,000 (Service Quotas, Lambda, Concurrent executions); it is free")
        return good(f"{limit} lambdas at a time")

    def quota(self, name: str) -> CheckResult:
        """Of machines, networks, addresses, distributions and buckets."""
        service, code, region = QUOTAS[name]
        try:
            client = self._client_of("service-quotas", region) if region else self._client_of("service-quotas")
            limit = client.get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"]
        except (ClientError, BotoCoreError) as problem:
            return doubtful(f"the {name} ({service} {code}) cannot be asked: {problem}", "look in Service Quotas")
        if name == "machine quota":
            return self._machines(int(limit))
        used, needed = self._used(name), NEEDED[name]
        made = our_stacks(self._client_of("cloudformation")).get(f"{names.PREFIX}-{MAKES[name]}", NOT_MADE)
        if not made.startswith(NOT_MADE) or (name == "address quota" and self._intent.way_out != "gateway"):
            needed = 0
        if used + needed > limit:
            return broken(f"{name}: {used} of {limit:.0f} are used, {needed} more are needed", "ask AWS for more")
        return good(f"{name}: {used} of {limit:.0f} are used")

    def _machines(self, vcpus: int) -> CheckResult:
        workers = vcpus // VCPUS_OF_A_WORKER
        if self._intent.capacity == "fargate" or workers >= self._intent.max_workers:
            return good(f"{vcpus} vCPU: room for {workers} workers")
        words = f"{vcpus} vCPU: room for {workers} workers of max_workers={self._intent.max_workers}"
        if not workers:
            return broken(words, "ask AWS for more (Service Quotas, EC2, Running On-Demand Standard instances)")
        return doubtful(words, "ask AWS for more (Service Quotas, EC2, Running On-Demand Standard instances)")

    def _used(self, name: str) -> int:
        with translated(f"counting for the {name}"):
            match name:
                case "network quota":
                    return len(self._client_of("ec2").describe_vpcs()["Vpcs"])
                case "address quota":
                    return len(self._client_of("ec2").describe_addresses()["Addresses"])
                case "bucket quota":
                    return len(self._client_of("s3").list_buckets()["Buckets"])
            listed = self._client_of("cloudfront").list_distributions(MaxItems="100")
            return int(listed["DistributionList"]["Quantity"])

    def costs(self) -> CheckResult:
        """The cost of an idle deployment; mails, machines and models are added to it."""
        nat = "no NAT" if self._intent.capacity == "fargate" else f"NAT {self._intent.nat}"
        parts = f"{nat}, {ALARMS} alarms{', the console' if self._intent.console else ''}"
        words = f"about {self._intent.idle_usd:.0f} dollars a month while no mail comes ({parts})"
        return good(f"{words}; each worker 0.08 an hour while it runs, 1,000 mails about 1")


def bootstrap_version(ssm: Any) -> int:  # noqa: ANN401
    """The version of the CDK's bootstrap; 0 where there is none."""
    with translated("looking for the CDK's bootstrap"):
        try:
            return int(ssm.get_parameter(Name=BOOTSTRAP)["Parameter"]["Value"])
        except ClientError as problem:
            if code_of(problem) != "ParameterNotFound":
                raise
            return 0


def our_stacks(cloudformation: Any) -> dict[str, str]:  # noqa: ANN401
    """The status of each stack of this deployment, by name."""
    with translated("looking at the stacks"):
        return {
            stack["StackName"]: stack["StackStatus"]
            for page in cloudformation.get_paginator("describe_stacks").paginate()
            for stack in page["Stacks"]
            if stack["StackName"].startswith(f"{names.PREFIX}-")
        }


def existing_identity(client_of: ClientOf, domain: str) -> str:
    """`existing` if SES has the identity and our stack did not make it; else `made`."""
    with translated(f"asking SES about {domain}"):
        try:
            client_of("sesv2").get_email_identity(EmailIdentity=domain)
        except ClientError as problem:
            if code_of(problem) != "NotFoundException":
                raise
            return "made"
        try:
            held = client_of("cloudformation").describe_stack_resources(StackName=f"{names.PREFIX}-mail")
        except ClientError as problem:
            if code_of(problem) != "ValidationError":  # there is no such stack
                raise
            return "existing"
    ours = [one for one in held["StackResources"] if one["ResourceType"] == "AWS::SES::EmailIdentity"]
    return "made" if any(one.get("PhysicalResourceId") == domain for one in ours) else "existing"


def active_rules(ses: Any) -> str:  # noqa: ANN401
    """The receipt rules that SES receives by; empty if none are active."""
    with translated("asking SES for its receipt rules"):
        return str(ses.describe_active_receipt_rule_set().get("Metadata", {}).get("Name", ""))


def make_ecs_role(iam: Any) -> None:  # noqa: ANN401
    """Before the first cluster: ECS makes it by itself, but assumes it at the same moment and often fails then."""
    with translated(f"making the role {ECS_ROLE}"):
        try:
            iam.create_service_linked_role(AWSServiceName="ecs.amazonaws.com")
        except ClientError as problem:
            if code_of(problem) not in ("InvalidInput", "EntityAlreadyExists"):  # it "has been taken": it is there
                raise


NO_SERVICE = frozenset({"ClusterNotFoundException", "ServiceNotFoundException", "ServiceNotActiveException"})
DESTROY_LOOKS = 120
WORKERS = f"service/{names.CLUSTER}/{names.SERVICE}"
"""How Application Auto Scaling calls our service."""


def clear_the_way(client_of: ClientOf, report: Report, pause: Callable[[], None]) -> None:
    """Stop what keeps CloudFormation from removing our stacks. Idempotent.

    An active receipt rule set cannot be deleted (SES, DeleteReceiptRuleSet), nor a distribution that has tenants, and
    an Auto Scaling group with machines that are protected from scale-in is never emptied (aws-cdk#18179).
    """
    if active_rules(client_of("ses")) == names.RECEIPT_RULES:
        with translated("letting SES receive by no rules"):
            client_of("ses").set_active_receipt_rule_set()
        report("SES receives no more mail")
    TenantDomains(client_of).hide_all(report, pause)
    _stop_workers(client_of("ecs"))
    groups = _release_machines(client_of("autoscaling"))
    for _ in range(DESTROY_LOOKS):
        left = sum(len(group["Instances"]) for group in _groups(client_of("autoscaling")))
        if not left:
            return
        report(f"{left} machines of {', '.join(groups)} still run")
        pause()
    raise Transient("the workers' machines do not end: look at the Auto Scaling group's activity, then destroy again")


def allow_scaling(scaling: Any, *, allowed: bool) -> None:  # noqa: ANN401
    """Whether waiting keys start workers. A removal forbids it first; a deployment allows it again."""
    ours = {"ServiceNamespace": "ecs", "ScalableDimension": "ecs:service:DesiredCount"}
    with translated("asking whether workers are scaled"):
        if scaling.describe_scalable_targets(ResourceIds=[WORKERS], **ours)["ScalableTargets"]:
            suspended = {"DynamicScalingOutSuspended": not allowed}
            scaling.register_scalable_target(ResourceId=WORKERS, SuspendedState=suspended, **ours)


def _stop_workers(ecs: Any) -> None:  # noqa: ANN401
    with translated(f"stopping the service {names.SERVICE}"), suppress(_Gone):
        _there(ecs.update_service, cluster=names.CLUSTER, service=names.SERVICE, desiredCount=0)
        pages = ecs.get_paginator("list_tasks").paginate(cluster=names.CLUSTER)
        tasks: Sequence[str] = _there(pages.build_full_result).get("taskArns", [])
        for first in range(0, len(tasks), 10):
            some = list(tasks[first : first + 10])
            _there(ecs.update_task_protection, cluster=names.CLUSTER, tasks=some, protectionEnabled=False)


class _Gone(Exception):
    """The service does not exist."""


def _there(call: Callable[..., Any], **given: object) -> Any:  # noqa: ANN401
    try:
        return call(**given)
    except ClientError as problem:
        if code_of(problem) in NO_SERVICE:
            raise _Gone from problem
        raise


def _release_machines(autoscaling: Any) -> list[str]:  # noqa: ANN401
    groups = _groups(autoscaling)
    with translated("letting the workers' machines go"):
        for group in groups:
            name, machines = group["AutoScalingGroupName"], [one["InstanceId"] for one in group["Instances"]]
            for first in range(0, len(machines), 50):
                autoscaling.set_instance_protection(
                    AutoScalingGroupName=name, InstanceIds=machines[first : first + 50], ProtectedFromScaleIn=False
                )
            autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0)
    return [group["AutoScalingGroupName"] for group in groups]


def _groups(autoscaling: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401
    tagged = {"Name": "tag:aws:cloudformation:stack-name", "Values": [f"{names.PREFIX}-workers"]}
    with translated("looking for the workers' machines"):
        return list(autoscaling.describe_auto_scaling_groups(Filters=[tagged])["AutoScalingGroups"])
