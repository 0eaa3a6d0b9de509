"""The workflow: the one file with the lambdas' ARNs filled in, and what happens when an execution itself breaks."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import arns
from infra.nag import accept
from infra.rights import grant
from infra.settings import Settings
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.deployment import pattern_of_unfinished
from webordinary.workflow import definition
from webordinary.workflow.definition import STEPS


class WorkflowStack(Stack):
    """The state machine `email-processor`."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(
            scope, "workflow", stack_name=f"{names.PREFIX}-workflow", description="WebOrdinary: from mail to answer"
        )
        steps = {step: arns.function(names.function_of(step)) for step in STEPS}
        role = iam.Role(
            self,
            "role",
            role_name=names.STATE_MACHINE,
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            description="The workflow calls its steps",
        )
        grant(
            role, iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=list(dict.fromkeys(steps.values())))
        )
        machine = sfn.StateMachine(
            self,
            "workflow",
            state_machine_name=names.STATE_MACHINE,
            definition_body=sfn.DefinitionBody.from_string(definition.text()),
            definition_substitutions=steps,
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=self._log(), level=sfn.LogLevel.ALL, include_execution_data=False),
            removal_policy=RemovalPolicy.DESTROY,  # one left behind could not be adopted again
        )
        accept(role, "AwsSolutions-IAM5[Resource::*]", "Traces and the delivery of logs know no narrower resource.")
        self._on_broken(machine)

    def _log(self) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            "log",
            log_group_name=names.WORKFLOW_LOG,
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _on_broken(self, machine: sfn.StateMachine) -> None:
        """States.ALL does not catch everything: what ends badly is dead-lettered, and its sender told."""
        abandoned = lambda_.Function.from_function_attributes(
            self, "abandoned", function_arn=arns.function(names.ABANDONED), same_environment=True
        )
        dead_letters = sqs.Queue.from_queue_arn(self, "dead-letters", arns.queue(names.DEAD_LETTERS))
        pattern = pattern_of_unfinished(machine.state_machine_arn)
        rule = events.Rule(
            self,
            "broken",
            description="Executions that failed, timed out or were aborted",
            event_pattern=events.EventPattern(
                source=pattern["source"], detail_type=pattern["detail-type"], detail=pattern["detail"]
            ),
        )
        rule.add_target(
            targets.LambdaFunction(
                abandoned, dead_letter_queue=dead_letters, retry_attempts=185, max_event_age=Duration.hours(24)
            )
        )
