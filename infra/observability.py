"""One dashboard, an alarm on everything that matters, and one topic that tells the operator."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra import metrics
from infra.alarms import Watch, all_watches
from infra.metrics import ours
from infra.settings import Settings
from webordinary.adapters.aws import names
from webordinary.adapters.aws.events import MACHINE_FAULTS

WIDTH = 8


class ObservabilityStack(Stack):
    """What an operator looks at, and what looks for the operator."""

    def __init__(self, scope: Construct, settings: Settings) -> None:
        super().__init__(
            scope, "observability", stack_name=f"{names.PREFIX}-observability", description="WebOrdinary: alarms"
        )
        topic = self._topic(settings.operator)
        alarms = [self._alarm(watch, settings.runbook, topic) for watch in all_watches()]
        cloudwatch.Dashboard(
            self,
            "dashboard",
            dashboard_name=names.PREFIX,
            default_interval=Duration.hours(12),
            widgets=[[cloudwatch.AlarmStatusWidget(alarms=alarms, width=3 * WIDTH)], list(_graphs())],
        )

    def _topic(self, operator: str) -> sns.Topic:
        topic = sns.Topic(self, "operator", topic_name=f"{names.PREFIX}-operator", enforce_ssl=True)
        ours_only = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        topic.grant_publish(iam.ServicePrincipal("cloudwatch.amazonaws.com", conditions=ours_only))
        if operator:
            topic.add_subscription(subscriptions.EmailSubscription(operator))
        CfnOutput(self, "OperatorTopic", value=topic.topic_arn)
        return topic

    def _alarm(self, watch: Watch, runbook: str, topic: sns.Topic) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            watch.name,
            alarm_name=f"{names.PREFIX}-{watch.name}",
            alarm_description=f"{watch.what}. What to do: {runbook}#{watch.name}",
            metric=watch.metric,
            threshold=watch.threshold,
            evaluation_periods=watch.periods,
            comparison_operator=watch.comparison,
            treat_missing_data=watch.missing,
        )
        alarm.add_alarm_action(actions.SnsAction(topic))
        alarm.add_ok_action(actions.SnsAction(topic))
        return alarm


def _graphs() -> Iterator[cloudwatch.GraphWidget]:
    yield _graph("Keys that wait", metrics.unclaimed_depth())
    yield _graph("The longest wait, seconds", metrics.unclaimed_age())
    yield _graph("Claims held by a worker", *(ours(metrics.CLAIMS_HELD, of) for of in ("Average", "Maximum")))
    yield _graph("Claims won, lost, failed", ours("ClaimTaken"), ours("ClaimRaceLost"), ours("ClaimRenewalFailed"))
    yield _graph("Time to claim, ms", *_percentiles(metrics.TIME_TO_CLAIM))
    yield _graph("Idle before release, ms", *_percentiles(metrics.IDLE_BEFORE_RELEASE))
    yield _graph("From mail to answer, ms", *_percentiles(metrics.JOB_LATENCY))
    yield _graph("Interrupts and faults of machines", ours("JobInterrupted"), ours(MACHINE_FAULTS))
    yield _graph(
        "Given up",
        ours("DeadLettered"),
        metrics.queue_depth(names.DEAD_LETTERS),
        metrics.queue_depth(names.UNCLAIMED_DLQ),
        metrics.queue_depth(names.INPUT_DLQ),
    )
    broken = ("ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted")
    yield _graph("Workflows", metrics.workflow("ExecutionsStarted"), *map(metrics.workflow, broken))


def _graph(title: str, *lines: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(lines), width=WIDTH)


def _percentiles(name: str) -> list[cloudwatch.IMetric]:
    return [ours(name, statistic) for statistic in ("p50", "p95", "p99")]
