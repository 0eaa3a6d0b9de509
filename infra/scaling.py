"""How many workers: more while keys wait unclaimed, fewer while none does, none in the end. Busy ones are protected."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ecs as ecs
from aws_cdk.aws_applicationautoscaling import AdjustmentType as Adjust
from aws_cdk.aws_applicationautoscaling import ScalingInterval as Step

from infra import metrics
from infra.settings import Settings

QUIET_MINUTES = 15


def scale(service: ecs.BaseService, settings: Settings) -> None:
    """Steps, because a target per worker has no meaning at none."""
    count = service.auto_scale_task_count(min_capacity=0, max_capacity=settings.max_workers)
    depth = (Step(lower=3, upper=10, change=1), Step(lower=10, upper=50, change=3), Step(lower=50, change=10))
    age = (Step(lower=600, upper=1200, change=1), Step(lower=1200, change=2))
    wake = (Step(lower=1, upper=2, change=1), Step(lower=2, change=1))  # the CDK wants two
    quiet = (Step(upper=0, change=-1), Step(lower=1, change=0))
    # The first worker takes five minutes to come; the other rules wait as long, or one mail would start several.
    _follow(count, "wake", metrics.asked_in_vain(), wake, rest_minutes=5, to=Adjust.EXACT_CAPACITY)
    _follow(count, "depth", metrics.unclaimed_depth(), depth, rest_minutes=5)
    _follow(count, "age", metrics.unclaimed_age(), age, rest_minutes=5)
    _follow(count, "quiet", metrics.unclaimed_depth(), quiet, rest_minutes=5, for_minutes=QUIET_MINUTES)


def _follow(
    count: ecs.ScalableTaskCount,
    called: str,
    metric: cloudwatch.IMetric,
    steps: tuple[Step, ...],
    *,
    rest_minutes: int,
    for_minutes: int = 1,
    to: Adjust = Adjust.CHANGE_IN_CAPACITY,
) -> None:
    """Change the count by the step that the metric has stood on for so long, then rest."""
    count.scale_on_metric(
        called,
        metric=metric,
        adjustment_type=to,
        scaling_steps=list(steps),
        cooldown=Duration.minutes(rest_minutes),
        evaluation_periods=for_minutes,
        datapoints_to_alarm=for_minutes,
    )
