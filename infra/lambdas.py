"""The lambdas, each with a role of its own; what they do is packaged, who they are stands in adapters/aws/functions."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import arns
from infra.duties import duties_of
from infra.environment import common_environment
from infra.nag import accept
from infra.rights import grant
from infra.settings import Settings
from webordinary.adapters.aws import functions, names
from webordinary.adapters.aws.provision.deployment import MAX_EVENT_AGE_SECONDS, RECONCILE_RATE

LOGS_KEPT = logs.RetentionDays.ONE_MONTH
EVENT_HOURS = 6
"""How long Lambda tries to deliver an event before it goes to the dead letters."""


class LambdasStack(Stack):
    """Intake, one function per step of the workflow, reconcile and those who listen to events."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(
            scope, "lambdas", stack_name=f"{names.PREFIX}-lambdas", description="WebOrdinary: the workflow's steps"
        )
        self._settings = settings
        self._code = lambda_.Code.from_asset(settings.lambda_code)
        dead_letters = sqs.Queue.from_queue_arn(self, "dead-letters", arns.queue(names.DEAD_LETTERS))
        self._failed = destinations.SqsDestination(dead_letters)
        of = settings.reconcilers
        made = {function.name: self._function(function) for function in functions.FUNCTIONS}
        events.Rule(
            self,
            "each-minute",
            description="Hints, unfinished effects, mails without an execution",
            schedule=events.Schedule.expression(RECONCILE_RATE),
            targets=[
                targets.LambdaFunction(
                    made[names.RECONCILE],
                    retry_attempts=0,
                    event=events.RuleTargetInput.from_object({"time": events.EventField.time, "share": n, "of": of}),
                )
                for n in range(of)
            ],
        )

    def _function(self, function: functions.Function) -> lambda_.Function:
        log_group = logs.LogGroup(
            self,
            f"{function.name}-log",
            log_group_name=names.log_group(function.name),
            retention=LOGS_KEPT,
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = iam.Role(
            self,
            f"{function.name}-role",
            role_name=function.name,
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"What {function.name} may do",
        )
        log_group.grant_write(role)
        grant(role, *duties_of(function, self._settings))
        made = lambda_.Function(
            self,
            function.name,
            function_name=function.name,
            handler=function.handler,
            code=self._code,
            runtime=lambda_.Runtime(functions.RUNTIME, lambda_.RuntimeFamily.PYTHON),
            architecture=lambda_.Architecture.ARM_64,
            memory_size=function.memory_mb,
            timeout=Duration.seconds(function.timeout_seconds),
            retry_attempts=function.retries,
            max_event_age=_event_age(function),
            on_failure=self._failed if function.retries else None,
            role=role,
            log_group=log_group,
            environment=self._environment(function),
        )
        accept(made, "AwsSolutions-L1", "The zip is packed for this version; functions.RUNTIME moves both together.")
        return made

    def _environment(self, function: functions.Function) -> dict[str, str]:
        return {
            **common_environment(self._settings),
            "POWERTOOLS_SERVICE_NAME": function.name,
        }


def _event_age(function: functions.Function) -> Duration:
    if function is functions.RECONCILE:
        return Duration.seconds(MAX_EVENT_AGE_SECONDS)
    return Duration.hours(EVENT_HOURS)
