"""Are tables, queues and buckets there, and as they should be?

Also the checks of `webordinary doctor` on ECS, ECR, quotas and SNS: can workers start, do alarms reach an operator?
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import NOT_THERE, Clients, code_of, translated
from webordinary.adapters.aws.functions import FUNCTIONS, STEP_FUNCTIONS
from webordinary.adapters.aws.provision.deployment import Tools
from webordinary.adapters.aws.provision.package import newest_tag
from webordinary.adapters.aws.provision.preflight import NO_SERVICE, WORKERS, ClientOf, DeploymentIntent, Preflight
from webordinary.adapters.aws.provision.shapes import (
    EXPIRING,
    RAW_PREFIX,
    SHARED_QUEUES,
    TABLES,
    Attribute,
    QueueShape,
    TableShape,
    key_queues,
    own_dead_letters_of,
)
from webordinary.model.checks import Check, CheckResult, broken, doubtful, good
from webordinary.model.names import ProjectUser
from webordinary.workflow.definition import for_aws

DEPLOY = "`webordinary aws deploy` makes it"
ONBOARD = "`webordinary project add … --backend aws` makes it"
_GONE = NOT_THERE | {"404", "NoSuchPublicAccessBlockConfiguration"}


def table_checks(clients: Clients) -> Iterator[Check]:
    """One check for each table."""
    for name, shape in TABLES.items():
        yield Check(f"table {name}", partial(_table, clients, name, shape))


def queue_checks(clients: Clients, keys: Sequence[ProjectUser]) -> Iterator[Check]:
    """One for the shared queues, one per customer."""
    yield Check("shared queues", partial(_queues, clients, SHARED_QUEUES, "the shared queues", DEPLOY))
    for key in keys:
        title = f"queues of {key}"
        yield Check(title, partial(_customers_queues, clients, key, title))


def bucket_checks(clients: Clients, shared: Sequence[str], sites: str) -> Iterator[Check]:
    """One check for each bucket; that of the sites must keep versions."""
    for name in shared:
        yield Check(f"bucket {name}", partial(_bucket, clients, name, versions=False))
    yield Check(f"bucket {sites}", partial(_bucket, clients, sites, versions=True))


def _table(clients: Clients, name: str, shape: TableShape) -> CheckResult:
    try:
        table = clients.dynamodb.describe_table(TableName=name)["Table"]
        lifetime = clients.dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    except ClientError as problem:
        return _absent(problem, f"table {name}", DEPLOY)
    expected = _keys(shape.hash, shape.range)
    indexes = {one.name: _keys(one.hash, one.range) for one in shape.indexes}
    found: Mapping[str, Any] = {one["IndexName"]: one["KeySchema"] for one in table.get("GlobalSecondaryIndexes", [])}
    wrong = [
        *([] if table["TableStatus"] in ("ACTIVE", "UPDATING") else [f"is {table['TableStatus']}"]),
        *([] if table["KeySchema"] == expected else ["has another key"]),
        *(f"has no index {index}" for index, keys in indexes.items() if found.get(index) != keys),
        *([] if _expires(lifetime, shape.ttl) else [f"lets nothing expire by {shape.ttl}"]),
    ]
    if wrong:
        return broken(f"table {name} {', '.join(wrong)}", "deploy again; a table with another key must be made anew")
    return good(f"table {name}")


def _expires(lifetime: Mapping[str, Any], attribute: str) -> bool:
    return lifetime.get("AttributeName") == attribute and lifetime.get("TimeToLiveStatus") in EXPIRING


def _keys(hash_key: Attribute, range_key: Attribute | None) -> list[dict[str, str]]:
    keys = [{"AttributeName": hash_key.name, "KeyType": "HASH"}]
    return [*keys, {"AttributeName": range_key.name, "KeyType": "RANGE"}] if range_key else keys


def _customers_queues(clients: Clients, key: ProjectUser, title: str) -> CheckResult:
    left = own_dead_letters_of(clients, key)
    if left is None:
        return _queues(clients, key_queues(key), title, ONBOARD)
    words = f"queue {names.own_dead_letters(key)} of an earlier version is there, with {left} dead letters"
    removal = "`webordinary aws migrate` removes it once it is empty"
    return doubtful(words, f"look at them: docs/aws.md, input-dead-letters; {removal}" if left else removal)


def _queues(clients: Clients, shapes: Sequence[QueueShape], title: str, maker: str) -> CheckResult:
    waiting = 0
    for shape in shapes:
        try:
            url = clients.sqs.get_queue_url(QueueName=shape.name)["QueueUrl"]
            found = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        except ClientError as problem:
            return _absent(problem, f"queue {shape.name}", maker)
        if wrong := _wrong(shape, found):
            return doubtful(f"queue {shape.name} {wrong}", f"{maker} as it should be")
        waiting += int(found["ApproximateNumberOfMessages"]) if "dlq" in shape.name else 0
    if waiting:
        return doubtful(f"{title}: {waiting} dead letters wait", "look at them: docs/operations.md, On AWS by hand")
    return good(title)


def _wrong(shape: QueueShape, found: Mapping[Any, str]) -> str:
    for name, value in shape.attributes().items():
        if found.get(name) != value and name != "SqsManagedSseEnabled":
            return f"has {name} {found.get(name)} and not {value}"
    target = json.loads(found.get("RedrivePolicy", "{}")).get("deadLetterTargetArn", "")
    if shape.dead_letters and target.rpartition(":")[2] != shape.dead_letters:
        return f"does not give up to {shape.dead_letters}"
    return ""


def _bucket(clients: Clients, name: str, *, versions: bool) -> CheckResult:
    try:
        clients.s3.head_bucket(Bucket=name)
        block = clients.s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"]
        kept = clients.s3.get_bucket_versioning(Bucket=name).get("Status") == "Enabled"
    except ClientError as problem:
        return _absent(problem, f"bucket {name}, closed to the public,", DEPLOY)
    if not all(block.values()):
        return broken(f"bucket {name} may be opened to the public", f"{DEPLOY} as it should be")
    if versions and not kept:
        return broken(f"bucket {name} does not keep what is replaced", f"{DEPLOY} as it should be")
    return good(f"bucket {name}")


def _absent(problem: ClientError, what: str, maker: str) -> CheckResult:
    if code_of(problem) in _GONE:
        return broken(f"{what} is not there", maker)
    with translated(f"looking at {what}"):
        raise problem


UPDATE = "`webordinary aws deploy` brings it up to date"
_FLOW_GONE = NOT_THERE | {"StateMachineDoesNotExist"}


def flow_checks(clients: Clients, tools: Tools, machine_arn: str, raw_bucket: str) -> Iterator[Check]:
    """From a mail in the bucket to the end of its workflow."""
    yield Check("intake", lambda: _intake(clients, raw_bucket))
    yield Check("lambdas", lambda: _lambdas(tools))
    yield Check("workflow", lambda: _workflow(clients, tools, machine_arn))


def _intake(clients: Clients, raw_bucket: str) -> CheckResult:
    with translated(f"looking what happens with mails in {raw_bucket}"):
        found = clients.s3.get_bucket_notification_configuration(Bucket=raw_bucket)
    called = [one["LambdaFunctionArn"] for one in found.get("LambdaFunctionConfigurations", [])]
    if not any(arn.endswith(f":function:{names.INTAKE}") for arn in called):
        return broken(f"mails in {raw_bucket}/{RAW_PREFIX} start nothing", UPDATE)
    return good(f"mails in {raw_bucket}/{RAW_PREFIX} start {names.INTAKE}")


def _lambdas(tools: Tools) -> CheckResult:
    for one in FUNCTIONS:
        try:
            found = tools.functions.get_function_configuration(FunctionName=one.name)
        except ClientError as problem:
            return _flow_absent(problem, f"lambda {one.name}")
        state, update = found.get("State", "Active"), found.get("LastUpdateStatus", "Successful")
        if state not in ("Active", "Inactive") or update == "Failed":
            reason = found.get("LastUpdateStatusReason") or found.get("StateReason") or "no reason given"
            return broken(f"lambda {one.name} is {state}, its update {update}: {reason}", UPDATE)
    return good(f"{len(FUNCTIONS)} lambdas")


def _workflow(clients: Clients, tools: Tools, machine_arn: str) -> CheckResult:
    try:
        deployed = clients.stepfunctions.describe_state_machine(stateMachineArn=machine_arn)["definition"]
        arns = {
            one: tools.functions.get_function_configuration(FunctionName=one.name)["FunctionArn"]
            for one in STEP_FUNCTIONS
        }
    except ClientError as problem:
        return _flow_absent(problem, f"workflow {names.STATE_MACHINE}, or a lambda of it,")
    if json.loads(deployed) != json.loads(for_aws({step: arn for one, arn in arns.items() for step in one.steps})):
        return broken(f"workflow {names.STATE_MACHINE} is not this version's", UPDATE)
    return good(f"workflow {names.STATE_MACHINE} is this version's")


def _flow_absent(problem: ClientError, what: str) -> CheckResult:
    if code_of(problem) in _FLOW_GONE:
        return broken(f"{what} is not there", UPDATE)
    with translated(f"looking at {what}"):
        raise problem


IMAGE = "`webordinary aws image` builds and pushes it"
_BAD_NEWS = ("unable to", "failed", "not met", "unhealthy")
_RECENT = 5
_PENDING = "PendingConfirmation"


class WorkerChecks:
    """Read-only. `intent` names region and mailbox; the number of workers is asked for."""

    def __init__(self, client_of: ClientOf, intent: DeploymentIntent) -> None:
        self._client_of, self._intent = client_of, intent

    def checks(self) -> Iterator[Check]:
        """All of them."""
        limits = Preflight(self._client_of, self._intent)
        yield Check("workers", self.service)
        yield Check("image", self.image)
        yield Check("lambda quota", limits.lambda_quota)
        yield Check("machine quota", self.machines)
        yield Check("operator", self.operator)

    def service(self) -> CheckResult:
        """Does ECS start the workers that are wanted?"""
        service = self._service()
        if service is None:
            return broken(f"the service {names.SERVICE} is not there", DEPLOY)
        desired, running = service.get("desiredCount", 0), service.get("runningCount", 0)
        words = f"{running} of {desired} workers run"
        news = [event["message"] for event in service.get("events", [])[:_RECENT]]
        problem = next((one for one in news if any(bad in one for bad in _BAD_NEWS)), "")
        failed = any(one.get("rolloutState") == "FAILED" for one in service.get("deployments", []))
        if failed or (problem and running < desired):
            return broken(
                f"{words}; ECS says: {problem or 'the deployment failed'}", "docs/aws.md, Runbook, unclaimed-depth"
            )
        if running < desired:
            return doubtful(words, "a machine takes about four minutes to start: look again then")
        return good(words)

    def image(self) -> CheckResult:
        """Is what the service runs in the repository?"""
        service = self._service()
        if service is None:
            return broken("no service runs an image", DEPLOY)
        newest = newest_tag(self._client_of("ecr"))
        if not newest:
            return broken("there is no image of the worker: mails wait", IMAGE)
        with translated("looking at the workers' task"):
            found = self._client_of("ecs").describe_task_definition(taskDefinition=service["taskDefinition"])
        tag = found["taskDefinition"]["containerDefinitions"][0]["image"].rpartition(":")[2]
        with translated(f"looking for the image {tag}"):
            try:
                self._client_of("ecr").describe_images(repositoryName=names.REPOSITORY, imageIds=[{"imageTag": tag}])
            except ClientError as problem:
                if code_of(problem) != "ImageNotFoundException":
                    raise
                return broken(f"workers shall run the image {tag}, which is not there", "`webordinary aws image`")
        return good(f"workers run the image {tag}")

    def machines(self) -> CheckResult:
        """Does the account's quota hold as many workers as scaling may start?"""
        with translated("asking how many workers scaling may start"):
            found = self._client_of("application-autoscaling").describe_scalable_targets(
                ServiceNamespace="ecs", ResourceIds=[WORKERS]
            )["ScalableTargets"]
        most = found[0]["MaxCapacity"] if found else self._intent.max_workers
        intent = DeploymentIntent(region=self._intent.region, mailbox=self._intent.mailbox, max_workers=most)
        return Preflight(self._client_of, intent).quota("machine quota")

    def operator(self) -> CheckResult:
        """Do the alarms reach an operator?"""
        topic = f"{names.PREFIX}-operator"
        arn = f"arn:aws:sns:{self._intent.region}:{self._intent.account}:{topic}"
        try:
            found = self._client_of("sns").list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
        except ClientError as problem:
            if code_of(problem) not in ("NotFound", "NotFoundException"):
                raise
            return broken(f"the topic {topic} is not there", DEPLOY)
        waiting = [one["Endpoint"] for one in found if one["SubscriptionArn"] == _PENDING]
        if waiting:
            todo = "click the link in the mail of AWS Notifications; deploying again sends a new one after three days"
            words = f"{', '.join(waiting)} did not confirm the alarms' subscription: alarms reach no operator"
            return broken(words, todo)
        if not found:
            return doubtful("alarms are mailed to no operator", "`webordinary aws deploy -c operator=ADDRESS`")
        return good(f"alarms go to {', '.join(one['Endpoint'] for one in found)}")

    def _service(self) -> Mapping[str, Any] | None:
        with translated(f"looking at the service {names.SERVICE}"):
            try:
                found: Sequence[Mapping[str, Any]] = self._client_of("ecs").describe_services(
                    cluster=names.CLUSTER, services=[names.SERVICE]
                )["services"]
            except ClientError as problem:
                if code_of(problem) not in NO_SERVICE:
                    raise
                return None
        return next((one for one in found if one.get("status") != "INACTIVE"), None)
