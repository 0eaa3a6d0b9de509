"""Who calls the lambdas that no workflow calls: the mail bucket, the clock, failed executions and SES.

Every call may be repeated: what is there already stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import Clients, code_of, translated
from webordinary.adapters.aws.setup.deployment import Tools
from webordinary.adapters.aws.setup.functions import ABANDONED, BOUNCES, INTAKE, RECONCILE, Function

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


def ensure_bounces(tools: Tools, arns: Mapping[str, str]) -> str:
    """The topic to which SES tells bounces and complaints; returns its ARN."""
    with translated("making the topic for bounces"):
        topic = tools.sns.create_topic(Name=names.BOUNCES)["TopicArn"]
        _allow(tools, BOUNCES, "sns.amazonaws.com", topic)
        tools.sns.subscribe(TopicArn=topic, Protocol="lambda", Endpoint=arns[BOUNCES.name])
        return topic


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
