"""How many workers: more while keys wait unclaimed, fewer while none does, none in the end. Busy ones are protected."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_ecs as ecs

from infra import metrics
from infra.settings import Settings

QUIET_MINUTES = 15


def scale(service: ecs.BaseService, settings: Settings) -> None:
    """Steps, because a target per worker has no meaning at none."""
    count = service.auto_scale_task_count(min_capacity=0, max_capacity=settings.max_workers)
    count.scale_on_metric(
        "depth",
        metric=metrics.unclaimed_depth(),
        adjustment_type=appscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        scaling_steps=[
            appscaling.ScalingInterval(lower=1, upper=10, change=1),
            appscaling.ScalingInterval(lower=10, upper=50, change=3),
            appscaling.ScalingInterval(lower=50, change=10),
        ],
        cooldown=Duration.minutes(2),
        evaluation_periods=1,
    )
    count.scale_on_metric(
        "age",
        metric=metrics.unclaimed_age(),
        adjustment_type=appscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        scaling_steps=[
            appscaling.ScalingInterval(lower=60, upper=300, change=1),
            appscaling.ScalingInterval(lower=300, change=2),
        ],
        cooldown=Duration.minutes(2),
        evaluation_periods=1,
    )
    count.scale_on_metric(
        "wake",
        metric=metrics.asked_in_vain(),
        adjustment_type=appscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        scaling_steps=[appscaling.ScalingInterval(lower=1, change=1), appscaling.ScalingInterval(upper=0, change=0)],
        cooldown=Duration.minutes(5),
        evaluation_periods=1,
    )
    count.scale_on_metric(
        "quiet",
        metric=metrics.unclaimed_depth(),
        adjustment_type=appscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        scaling_steps=[
            appscaling.ScalingInterval(upper=0, change=-1),
            appscaling.ScalingInterval(lower=1, change=0),
        ],
        cooldown=Duration.minutes(5),
        evaluation_periods=QUIET_MINUTES,
        datapoints_to_alarm=QUIET_MINUTES,
    )
