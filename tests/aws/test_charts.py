"""The charts of the pool on AWS: what workers print goes into CloudWatch, and one call brings it back."""
# ruff: noqa: E402

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from botocore.stub import Stubber

from tests.aws.accounts import session_of
from tests.aws.emulator import REGION, RunningEmulator
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import config_of
from webordinary.adapters.aws.events import (
    DOLLARS,
    KEPT_SECONDS,
    LINES,
    WHOLE,
    CloudWatchHistory,
    EventLines,
    put_embedded,
)
from webordinary.entrypoints.dashboard.pool_view import SPANS, charts_of
from webordinary.model.events import Event, EventKind
from webordinary.operations.capacity.costs import CHART_LINES

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDatumTypeDef

DAY = SPANS["24h"]


@pytest.fixture
def cloudwatch(ministack: RunningEmulator) -> CloudWatchClient:
    """Of an account that no other test uses."""
    session = session_of("112233445566")
    return session.client("cloudwatch", config=config_of(REGION, ministack.endpoint), endpoint_url=ministack.endpoint)


def start_of(seconds: int, count: int) -> datetime:
    return datetime.fromtimestamp((int(datetime.now(UTC).timestamp()) // seconds - count + 1) * seconds, UTC)


def printed(*events: Event, usd: float = 0.0) -> list[str]:
    out = io.StringIO()
    lines = EventLines("w1", out)
    for event in events:
        lines.emit(event)
    if usd:
        lines.level(DOLLARS, usd)
    return out.getvalue().splitlines()


def settled(outcome: str, ms: int) -> Event:
    return Event(EventKind.JOB_SETTLED, data={"outcome": outcome, "latency_ms": ms})


def test_what_workers_print_is_drawn_as_on_one_machine(cloudwatch: CloudWatchClient) -> None:
    jobs = [settled("succeeded", 4000) for _ in range(8)] + [settled("timed-out", 60_000), settled("dead", 60_000)]
    taken = [Event(EventKind.CLAIM_TAKEN, data={"waited_ms": 250}) for _ in range(4)]
    for line in printed(*jobs, *taken, usd=0.75):
        put_embedded(cloudwatch, line)
    queue: list[DimensionTypeDef] = [{"Name": "QueueName", "Value": names.UNCLAIMED}]
    depth: MetricDatumTypeDef = {"MetricName": "ApproximateNumberOfMessagesVisible", "Dimensions": queue, "Value": 7.0}
    cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=[depth])
    for seconds, count in SPANS.values():
        history = CloudWatchHistory(cloudwatch).history(start_of(seconds, count), seconds, count)
        said = {chart.name: chart.words for chart in charts_of(history)}
        assert said["waiting"] == "Keys that wait for a worker, at most: 7 at most in one bar."
        assert said["claim"] == "Time to claim: half of them under 250 ms, 95 of 100 under 250 ms."
        assert said["latency"] == "Queued to done: half of them under 4 s, 95 of 100 under 60 s."
        assert "succeeded 8, cancelled 0, failed 0, timed-out 1, dead 1 in all" in said["outcomes"]
        assert said["cost"] == "Costs of agents: $0.75 at most in one bar; dollars $0.75 in all."


class MonotonicSeconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_page_costs_one_call_and_the_next_ones_within_a_minute_none(cloudwatch: CloudWatchClient) -> None:
    calls: list[int] = []
    cloudwatch.meta.events.register(
        "before-parameter-build.cloudwatch.GetMetricData",
        lambda params, **_: calls.append(len(params["MetricDataQueries"])),
    )
    clock = MonotonicSeconds()
    charts = CloudWatchHistory(cloudwatch, clock)
    for clock.now in (0.0, 1.0, KEPT_SECONDS - 1):
        charts.history(start_of(*DAY), *DAY)
    assert calls == [len(LINES) + len(WHOLE)] == [CHART_LINES], "as the price list counts it"
    charts.history(start_of(*SPANS["30d"]), *SPANS["30d"])
    clock.now = KEPT_SECONDS
    charts.history(start_of(*DAY), *DAY)
    assert len(calls) == 3


def test_without_the_right_to_read_metrics_the_reason_is_kept_and_told(cloudwatch: CloudWatchClient) -> None:
    charts = CloudWatchHistory(cloudwatch)
    with Stubber(cloudwatch) as refusing:
        refusing.add_client_error("get_metric_data", "AccessDenied")
        for _ in range(2):  # a second call would find no answer
            history = charts.history(start_of(*DAY), *DAY)
            assert history.problem.startswith("asking CloudWatch for the charts: AWS does not allow it")
            assert history.spans == ()


def test_no_more_metrics_are_paid_for_than_jobs_that_did_not_end_well() -> None:
    [line] = map(json.loads, printed(settled("succeeded", 5)))
    assert {one["Name"] for one in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]} == {"JobSettled", "JobLatency"}
    [line] = map(json.loads, printed(settled("timed-out", 5)))
    assert line["JobTimedOut"] == 1.0
