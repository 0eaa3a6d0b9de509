"""The metrics that dashboard, alarms and scaling look at. Ours are called as the events that they count."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra import arns
from webordinary.adapters.aws import names

CLAIMS_HELD = "ClaimsHeld"
TIME_TO_CLAIM, IDLE_BEFORE_RELEASE, JOB_LATENCY = "TimeToClaim", "IdleBeforeRelease", "JobLatency"
"""Told in milliseconds."""
PERIOD_MINUTES = 5


def unclaimed_depth(minutes: int = 1) -> cloudwatch.Metric:
    """Keys that wait for a worker."""
    return queue_depth(names.UNCLAIMED, minutes)


def unclaimed_age() -> cloudwatch.Metric:
    """How many seconds the first of them has waited."""
    return _metric("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", {"QueueName": names.UNCLAIMED}, 1)


def asked_in_vain() -> cloudwatch.MathExpression:
    """One while somebody asks for a worker and none is there to tell how many claims it holds.

    SQS measures a queue that was quiet for hours only after a quarter of an hour; this is told at once. Metrics of
    logs come late and are asked for again each five minutes: shorter periods would miss them, and a filled `asked`
    would read as "nobody asks" for as long as the newest minute has no data.
    """
    return cloudwatch.MathExpression(
        expression="IF(asked > 0 AND FILL(told, 0) < 1, 1, 0)",
        using_metrics={"asked": ours("ClaimRequested", "Sum"), "told": ours(CLAIMS_HELD, "SampleCount")},
        period=Duration.minutes(PERIOD_MINUTES),
    )


def queue_depth(name: str, minutes: int = PERIOD_MINUTES) -> cloudwatch.Metric:
    """What lies in a queue."""
    return _metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", {"QueueName": name}, minutes)


def ours(name: str, statistic: str = "Sum", minutes: int = PERIOD_MINUTES) -> cloudwatch.Metric:
    """How often something happened, or a value that workers tell."""
    return _metric(names.METRICS, name, statistic, {"service": names.METRICS_SERVICE}, minutes)


def workflow(name: str) -> cloudwatch.Metric:
    """Over all executions."""
    return _metric("AWS/States", name, "Sum", {"StateMachineArn": arns.state_machine()})


def function(name: str, metric: str) -> cloudwatch.Metric:
    """Of one lambda."""
    return _metric("AWS/Lambda", metric, "Sum", {"FunctionName": name})


def reputation(name: str) -> cloudwatch.Metric:
    """How the world takes our mail; SES stops an account that annoys."""
    return _metric("AWS/SES", f"Reputation.{name}", "Average", {}, 60)


def _metric(
    namespace: str, name: str, statistic: str, dimensions: dict[str, str], minutes: int = PERIOD_MINUTES
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        statistic=statistic,
        dimensions_map=dimensions,
        period=Duration.minutes(minutes),
    )
