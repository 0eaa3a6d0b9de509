"""What a person must look at. Each alarm is called as the section of docs/aws.md that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra import metrics
from infra.metrics import ours
from webordinary.adapters.aws import names
from webordinary.adapters.aws.events import MACHINE_FAULTS

Comparison = cloudwatch.ComparisonOperator
Missing = cloudwatch.TreatMissingData


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One alarm: over `threshold` for so many periods in a row."""

    name: str
    what: str
    metric: cloudwatch.IMetric
    threshold: float
    periods: int = 1
    comparison: cloudwatch.ComparisonOperator = Comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
    missing: cloudwatch.TreatMissingData = Missing.NOT_BREACHING


def all_watches() -> Iterator[Watch]:
    """Every alarm there is."""
    yield from _waiting()
    yield from _claims()
    yield from _claim_times()
    yield from _work()
    yield from _given_up()
    yield from _running()


def _waiting() -> Iterator[Watch]:
    yield Watch(
        name="unclaimed-depth",
        what="keys wait for a worker, and scaling did not help",
        metric=metrics.unclaimed_depth(),
        threshold=20,
        periods=10,
    )
    yield Watch(
        name="unclaimed-age",
        what="a key has waited for a worker for ten minutes",
        metric=metrics.unclaimed_age(),
        threshold=600,
        periods=3,
    )


def _claims() -> Iterator[Watch]:
    yield Watch(
        name="claims-held",
        what="keys wait, and no worker holds any claim",
        metric=_math(
            "IF(waiting > 0 AND FILL(held, 0) < 1, 1, 0)",
            waiting=metrics.unclaimed_depth(metrics.PERIOD_MINUTES),
            held=ours(metrics.CLAIMS_HELD, "Maximum"),
        ),
        threshold=1,
        periods=3,
    )
    yield Watch(
        name="claim-failures",
        what="workers cannot renew their claims",
        metric=ours("ClaimRenewalFailed"),
        threshold=3,
    )
    yield Watch(
        name="claim-success",
        what="workers lose nearly every race for a claim",
        metric=_math(
            "IF(FILL(lost, 0) > 100, 100 * FILL(lost, 0) / (FILL(lost, 0) + FILL(won, 0)), 0)",
            lost=ours("ClaimRaceLost"),
            won=ours("ClaimTaken"),
        ),
        threshold=95,
        periods=2,
    )


def _claim_times() -> Iterator[Watch]:
    yield Watch(
        name="time-to-claim",
        what="keys wait long before a worker takes them",
        metric=ours(metrics.TIME_TO_CLAIM, "p95"),
        threshold=600_000,
        periods=2,
    )
    yield Watch(
        name="idle-before-release",
        what="claims stay with idle workers longer than they should",
        metric=ours(metrics.IDLE_BEFORE_RELEASE, "p95", 60),
        threshold=40 * 60_000,
    )


def _work() -> Iterator[Watch]:
    yield Watch(
        name="job-latency",
        what="customers wait more than an hour for an answer",
        metric=ours(metrics.JOB_LATENCY, "p95", 15),
        threshold=3_600_000,
    )
    yield Watch(
        name="machine-faults",
        what="jobs wait, as a fault of a worker's machine keeps them from being done",
        metric=ours(MACHINE_FAULTS),
        threshold=1,
        periods=2,
    )
    yield Watch(
        name="interrupts",
        what="jobs interrupt one another all the time",
        metric=ours("JobInterrupted", minutes=60),
        threshold=50,
    )


def _given_up() -> Iterator[Watch]:
    yield Watch(name="dead-letters", what="mails were given up", metric=ours("DeadLettered"), threshold=1)
    yield Watch(
        name="held-mails",
        what="mails of known senders are held: SES proves hardly any of them",
        metric=ours("MailHeld", minutes=60),
        threshold=10,
    )
    yield Watch(
        name="dead-letter-queue",
        what="events that no function could take",
        metric=metrics.queue_depth(names.DEAD_LETTERS),
        threshold=1,
    )
    yield Watch(
        name="unclaimed-dead-letters",
        what="hints that no worker could use",
        metric=metrics.queue_depth(names.UNCLAIMED_DLQ),
        threshold=1,
    )
    yield Watch(
        name="input-dead-letters",
        what="tickets of customers that no worker could use",
        metric=metrics.queue_depth(names.INPUT_DLQ),
        threshold=1,
    )
    yield Watch(
        name="broken-workflows",
        what="executions failed, timed out or were aborted",
        metric=_math(
            "FILL(failed, 0) + FILL(late, 0) + FILL(stopped, 0)",
            failed=metrics.workflow("ExecutionsFailed"),
            late=metrics.workflow("ExecutionsTimedOut"),
            stopped=metrics.workflow("ExecutionsAborted"),
        ),
        threshold=1,
    )


def _running() -> Iterator[Watch]:
    yield Watch(
        name="intake-errors",
        what="mails come in and cannot be taken",
        metric=metrics.function(names.INTAKE, "Errors"),
        threshold=1,
    )
    yield Watch(
        name="reconcile-silent",
        what="the reconciler has not run to its end for ten minutes",
        metric=_math(
            "FILL(runs, 0) - FILL(errors, 0)",
            runs=metrics.function(names.RECONCILE, "Invocations"),
            errors=metrics.function(names.RECONCILE, "Errors"),
        ),
        threshold=0,
        periods=2,
        comparison=Comparison.LESS_THAN_OR_EQUAL_TO_THRESHOLD,
        missing=Missing.BREACHING,
    )
    yield Watch(
        name="bounces",
        what="more than 4 % of our mail bounces; SES reviews an account at 5 %",
        metric=metrics.reputation("BounceRate"),
        threshold=0.04,
    )
    yield Watch(
        name="complaints",
        what="people complain about our mail; SES reviews an account at 0.1 %",
        metric=metrics.reputation("ComplaintRate"),
        threshold=0.0008,
    )


def _math(expression: str, **using: cloudwatch.IMetric) -> cloudwatch.MathExpression:
    return cloudwatch.MathExpression(
        expression=expression, using_metrics=using, period=Duration.minutes(metrics.PERIOD_MINUTES)
    )
