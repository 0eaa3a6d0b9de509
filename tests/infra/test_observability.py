"""What an operator sees, and what tells him."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import Resource, StackTemplates, plain
from webordinary.adapters.aws import names
from webordinary.adapters.aws.events import MACHINE_FAULTS, metric_name
from webordinary.adapters.aws.provision import preflight
from webordinary.adapters.aws.provision.shapes import SHARED_QUEUES, key_queues
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity import costs
from webordinary.pool.metrics import MEASURES

pytestmark = pytest.mark.xdist_group("infra")

LISTED = {
    "ApproximateNumberOfMessagesVisible": "unclaimed depth",
    "ApproximateAgeOfOldestMessage": "unclaimed age",
    "ClaimsHeld": "claims held",
    "ClaimTaken": "claim success",
    "ClaimRaceLost": "claim failure",
    "ClaimRenewalFailed": "claim failure",
    "TimeToClaim": "time to claim",
    "IdleBeforeRelease": "idle time before release",
    "JobLatency": "job latency",
    "JobInterrupted": "interrupts",
    "DeadLettered": "dead letters",
    MACHINE_FAULTS: "faults of machines",
}


@pytest.mark.parametrize("metric", LISTED, ids=LISTED.get)
def test_it_is_drawn(cloud: StackTemplates, metric: str) -> None:
    assert metric in json.dumps(plain(cloud.observability.only("AWS::CloudWatch::Dashboard")["DashboardBody"]))


@pytest.mark.parametrize("metric", LISTED, ids=LISTED.get)
def test_an_alarm_looks_at_it(cloud: StackTemplates, metric: str) -> None:
    assert metric in {seen["MetricName"] for alarm in _alarms(cloud).values() for seen in _metrics(alarm)}


def test_every_alarm_names_a_section_of_the_runbook_that_exists(cloud: StackTemplates, repository_root: Path) -> None:
    runbook = (repository_root / "docs" / "aws.md").read_text()
    sections = set(re.findall(r"^### ([a-z-]+)$", runbook, re.MULTILINE))
    links = {re.search(r"docs/aws\.md#([a-z-]+)$", alarm["AlarmDescription"]) for alarm in _alarms(cloud).values()}
    assert {link[1] if link else None for link in links} == sections


def test_every_alarm_tells_the_operator_when_it_begins_and_when_it_ends(cloud: StackTemplates) -> None:
    [topic] = cloud.observability.of_type("AWS::SNS::Topic")
    for name, alarm in _alarms(cloud).items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}], name
    told = cloud.observability.only("AWS::SNS::Subscription")
    assert (told["Protocol"], told["Endpoint"]) == ("email", "op@example.com")


def test_every_queue_of_dead_letters_has_an_alarm(cloud: StackTemplates) -> None:
    watched = {
        dimension["Value"]
        for alarm in _alarms(cloud).values()
        for seen in _metrics(alarm)
        if seen["MetricName"] == "ApproximateNumberOfMessagesVisible"
        for dimension in seen["Dimensions"]
    }
    ends = {shape.name for shape in SHARED_QUEUES if not shape.dead_letters}
    of_a_customer = {shape.dead_letters for shape in key_queues(ProjectUser("amelia", "scott"))} - {""}
    assert ends | of_a_customer <= watched


def test_broken_executions_alarm_whatever_broke_them(cloud: StackTemplates) -> None:
    seen = {one["MetricName"] for one in _metrics(_alarms(cloud)["webordinary-broken-workflows"])}
    assert seen == {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}


def test_the_costs_count_the_alarms_that_there_are(cloud: StackTemplates) -> None:
    alarms = [one for stack in cloud.stacks.values() for one in stack.of_type("AWS::CloudWatch::Alarm").values()]
    metrics = sum(len(_metrics(alarm)) for alarm in alarms)
    assert (len(alarms), metrics, metrics) == (preflight.ALARMS, preflight.ALARM_METRICS, costs.ALARM_METRICS)


def test_our_metrics_are_those_that_are_told(cloud: StackTemplates) -> None:
    told = {metric_name(measure) for measure in MEASURES.values()} | {"ClaimsHeld", MACHINE_FAULTS}
    for alarm in _alarms(cloud).values():
        for seen in _metrics(alarm):
            if seen["Namespace"] == names.METRICS:
                assert seen["Dimensions"] == [{"Name": "service", "Value": names.METRICS_SERVICE}]
                assert seen["MetricName"] in told or seen["MetricName"] in _glossary()


def _alarms(cloud: StackTemplates) -> dict[str, Resource]:
    return cloud.observability.named("AWS::CloudWatch::Alarm", "AlarmName")


def _metrics(alarm: Resource) -> list[dict[str, Any]]:
    if "MetricName" in alarm:
        return [alarm]
    return [one["MetricStat"]["Metric"] for one in alarm["Metrics"] if "MetricStat" in one]


def _glossary() -> str:
    return (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
