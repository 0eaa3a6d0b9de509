"""The lambdas, brought up without CDK: for emulators and small set-ups.

Every call is one that may be repeated: what is there already is brought up to date.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

from webordinary.adapters.aws import functions, names
from webordinary.adapters.aws.clients import Clients, code_of, config_of, translated
from webordinary.adapters.aws.functions import (
    ABANDONED,
    BOUNCES,
    FUNCTIONS,
    INTAKE,
    RECONCILE,
    STEP_FUNCTIONS,
    Function,
)
from webordinary.adapters.aws.pool.step_functions import ensure_state_machine
from webordinary.adapters.aws.provision.shapes import (
    RAW_PREFIX,
    create_shared_queues,
    create_tables,
    make_private_bucket,
    make_site_bucket,
)
from webordinary.workflow.definition import for_aws

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient
    from types_boto3_lambda.type_defs import FunctionConfigurationResponseTypeDef, WaiterConfigTypeDef
    from types_boto3_sns import SNSClient


UNFINISHED = ("FAILED", "TIMED_OUT", "ABORTED")
RECONCILE_RATE = "rate(1 minute)"
MAX_EVENT_AGE_SECONDS = 60
"""A reconciliation that could not begin within its minute is followed by the next one anyhow."""


def pattern_of_unfinished(state_machine_arn: str) -> dict[str, object]:
    """The events of executions that ended badly."""
    return {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {"status": list(UNFINISHED), "stateMachineArn": [state_machine_arn]},
    }


def ensure_async_rules(tools: Tools, dead_letters_arn: str) -> None:
    """How often events are tried again, and where one goes that could not be handled."""
    with translated("saying what becomes of failed events"):
        failed: Any = {"OnFailure": {"Destination": dead_letters_arn}}
        for one in (INTAKE, ABANDONED, BOUNCES):
            tools.functions.put_function_event_invoke_config(
                FunctionName=one.name, MaximumRetryAttempts=one.retries, DestinationConfig=failed
            )
        tools.functions.put_function_event_invoke_config(
            FunctionName=RECONCILE.name,
            MaximumRetryAttempts=RECONCILE.retries,
            MaximumEventAgeInSeconds=MAX_EVENT_AGE_SECONDS,
        )


def ensure_mail_starts_intake(clients: Clients, tools: Tools, intake_arn: str, bucket: str, prefix: str) -> None:
    """A raw mail in the bucket calls the intake."""
    _allow(tools, INTAKE, "s3.amazonaws.com", f"arn:aws:s3:::{bucket}")
    with translated(f"letting {bucket} call {INTAKE.name}"):
        clients.s3.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={
                "LambdaFunctionConfigurations": [
                    {
                        "Id": INTAKE.name,
                        "LambdaFunctionArn": intake_arn,
                        "Events": ["s3:ObjectCreated:*"],
                        "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": prefix}]}},
                    }
                ]
            },
        )


def ensure_rules(tools: Tools, arns: Mapping[str, str], state_machine_arn: str) -> None:
    """The reconciler runs each minute; an execution that ends badly is taken care of."""
    pattern = pattern_of_unfinished(state_machine_arn)
    _rule(tools, RECONCILE, arns[RECONCILE.name], ScheduleExpression=RECONCILE_RATE)
    _rule(tools, ABANDONED, arns[ABANDONED.name], EventPattern=json.dumps(pattern))


def _rule(tools: Tools, one: Function, arn: str, **when: str) -> None:
    with translated(f"making the rule that calls {one.name}"):
        rule = tools.events.put_rule(Name=one.name, State="ENABLED", **when)["RuleArn"]
        _allow(tools, one, "events.amazonaws.com", rule)
        tools.events.put_targets(Rule=one.name, Targets=[{"Id": one.name, "Arn": arn}])


def ensure_bounces(tools: Tools, arns: Mapping[str, str]) -> None:
    """Make the topic of SES's bounces and complaints."""
    with translated("making the topic for bounces"):
        topic = tools.sns.create_topic(Name=names.BOUNCES)["TopicArn"]
        _allow(tools, BOUNCES, "sns.amazonaws.com", topic)
        tools.sns.subscribe(TopicArn=topic, Protocol="lambda", Endpoint=arns[BOUNCES.name])


def _allow(tools: Tools, one: Function, principal: str, source_arn: str) -> None:
    with translated(f"letting {principal} call {one.name}"):
        try:
            tools.functions.add_permission(
                FunctionName=one.name,
                StatementId=principal.partition(".")[0],
                Action="lambda:InvokeFunction",
                Principal=principal,
                SourceArn=source_arn,
            )
        except ClientError as problem:
            if code_of(problem) != "ResourceConflictException":  # it is allowed already
                raise


Report = Callable[[str], None]
OWN_RUNTIME = "provided.al2023"
"""The zip brings what speaks Lambda's runtime API; see package.Target."""
_WAIT: WaiterConfigTypeDef = {"Delay": 1, "MaxAttempts": 120}


@dataclass(frozen=True, slots=True)
class Tools:
    """Clients that only provisioning needs."""

    functions: LambdaClient
    events: Any
    sns: SNSClient


def connect_tools(region: str, endpoint: str | None = None, session: boto3.Session | None = None) -> Tools:
    """The tools for a region; `endpoint` is an emulator's address."""
    session, config = session or boto3.Session(), config_of(region, endpoint)
    return Tools(
        functions=session.client("lambda", config=config, endpoint_url=endpoint),
        events=session.client("events", config=config, endpoint_url=endpoint),
        sns=session.client("sns", config=config, endpoint_url=endpoint),
    )


@dataclass(frozen=True, slots=True)
class Code:
    """The zip of the functions in the store bucket."""

    bucket: str
    key: str
    sha256: str
    runtime: str = functions.RUNTIME

    @property
    def architecture(self) -> str:
        """Of the machines that run it; an emulator runs it on its own."""
        return "x86_64" if self.runtime == OWN_RUNTIME else functions.ARCHITECTURE


def upload_code(clients: Clients, package: Path, bucket: str, runtime: str = functions.RUNTIME) -> Code:
    """Put the zip where Lambda fetches it; its name is its content's."""
    digest = hashlib.sha256(package.read_bytes())
    key = f"packages/{digest.hexdigest()}.zip"
    with translated(f"uploading {package.name}"):
        clients.s3.upload_file(str(package), bucket, key)
    return Code(bucket, key, base64.b64encode(digest.digest()).decode(), runtime)


def ensure_functions(
    tools: Tools, code: Code, role_arn: str, environment: Mapping[str, str], report: Report
) -> dict[str, str]:
    """Deploy every lambda; their ARNs by name. Each change takes a moment to settle: they settle side by side."""
    client, arns = tools.functions, {}
    with translated("deploying the lambdas"):
        old = {one.name: _look(client, one.name) for one in FUNCTIONS}
        for one in FUNCTIONS:
            desired = _desired(one, code, role_arn, environment)
            arns[one.name] = _settle_settings(client, one.name, old[one.name], code, desired)
        made = [name for name, there in old.items() if there is None]
        if made:
            report(f"{len(made)} lambdas are made")
        if len(made) < len(FUNCTIONS):
            report(f"{len(FUNCTIONS) - len(made)} lambdas are there")
        _wait(client)
        stale = [name for name, there in old.items() if there and there["CodeSha256"] != code.sha256]
        for name in stale:
            client.update_function_code(FunctionName=name, S3Bucket=code.bucket, S3Key=code.key)
        if stale:
            _wait(client)
            report(f"{len(stale)} lambdas got new code")
    return arns


def _desired(one: Function, code: Code, role_arn: str, environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        "Runtime": code.runtime,
        "Role": role_arn,
        "Handler": one.handler,
        "MemorySize": one.memory_mb,
        "Timeout": one.timeout_seconds,
        "Environment": {"Variables": dict(environment)},
    }


def _look(client: LambdaClient, name: str) -> FunctionConfigurationResponseTypeDef | None:
    try:
        return client.get_function_configuration(FunctionName=name)
    except ClientError as problem:
        if code_of(problem) != "ResourceNotFoundException":
            raise
        return None


def _settle_settings(
    client: LambdaClient,
    name: str,
    there: FunctionConfigurationResponseTypeDef | None,
    code: Code,
    desired: dict[str, Any],
) -> str:
    if there is None:
        place: Any = {"S3Bucket": code.bucket, "S3Key": code.key}
        machines: Any = [code.architecture]
        made = client.create_function(FunctionName=name, Code=place, Architectures=machines, **desired)
        return made["FunctionArn"]
    if any(there.get(field) != value for field, value in desired.items()):
        client.update_function_configuration(FunctionName=name, **desired)
    return there["FunctionArn"]


def _wait(client: LambdaClient) -> None:
    for one in FUNCTIONS:
        client.get_waiter("function_active_v2").wait(FunctionName=one.name, WaiterConfig=_WAIT)
        client.get_waiter("function_updated_v2").wait(FunctionName=one.name, WaiterConfig=_WAIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentPlan:
    """The wanted state of a deployment."""

    account_id: str
    package: Path
    role_arn: str
    """The role of the lambdas and of the workflow; an emulator does not look at it."""
    environment: Mapping[str, str]
    """What every lambda finds in its environment."""
    runtime: str = functions.RUNTIME
    retention_days: int = 30


@dataclass(frozen=True, slots=True)
class DeploymentState:
    """The present state of a deployment."""

    state_machine_arn: str
    functions: Mapping[str, str]
    raw_bucket: str
    store_bucket: str


def provision_all(
    clients: Clients, tools: Tools, plan: DeploymentPlan, report: Report = lambda line: None
) -> DeploymentState:
    """Make all resources in the order of their dependencies. Idempotent. `report` gets one line for each."""
    raw_bucket, store_bucket = names.raw_bucket(plan.account_id), names.store_bucket(plan.account_id)
    create_tables(clients)
    create_shared_queues(clients)
    report("tables and queues are there")
    make_private_bucket(clients.s3, raw_bucket, plan.retention_days)
    make_private_bucket(clients.s3, store_bucket)
    make_site_bucket(clients.s3, names.sites_bucket(plan.account_id))
    report(f"buckets {raw_bucket}, {store_bucket} and {names.sites_bucket(plan.account_id)} are there")
    code = upload_code(clients, plan.package, store_bucket, plan.runtime)
    arns = ensure_functions(tools, code, plan.role_arn, plan.environment, report)
    step_arns = {step: arns[one.name] for one in STEP_FUNCTIONS for step in one.steps}
    machine, made = ensure_state_machine(clients.stepfunctions, for_aws(step_arns), plan.role_arn)
    report(f"workflow {names.STATE_MACHINE} is {'made' if made else 'there'}")
    ensure_async_rules(tools, _queue_arn(clients, names.DEAD_LETTERS))
    ensure_rules(tools, arns, machine)
    ensure_bounces(tools, arns)
    # Last: from here on a mail is taken.
    ensure_mail_starts_intake(clients, tools, arns[names.INTAKE], raw_bucket, RAW_PREFIX)
    report(f"mails under {raw_bucket}/{RAW_PREFIX} are taken")
    return DeploymentState(machine, arns, raw_bucket, store_bucket)


def _queue_arn(clients: Clients, name: str) -> str:
    with translated(f"looking for queue {name}"):
        url = clients.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
