"""What happened, as lines of JSON on standard output for the log driver, with counts that CloudWatch reads.

CloudWatch keeps lines for a month and shows them to every reader of logs: addresses of people and hosts are masked.
The counts come back from it as the charts of the pool.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.names import METRICS, METRICS_SERVICE, UNCLAIMED
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.events import Event
from webordinary.model.jobs import JobOutcome
from webordinary.model.text import masked
from webordinary.pool.metrics import MEASURES, NONE_YET, Durations, HistogramSpec, PoolHistory, PoolSpan

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.type_defs import DimensionTypeDef, MetricDataQueryTypeDef, MetricTypeDef

_MOST_CHARACTERS = 8000


class EventLines:
    """See Events. CloudWatch reads the embedded metrics out of the same line."""

    def __init__(self, worker: str = "", out: TextIO | None = None) -> None:
        self._worker, self._out, self._guard = worker, out or sys.stdout, threading.Lock()

    def emit(self, event: Event) -> None:
        """Write one line; never fails its caller."""
        known = {
            "email_id": event.email_id,
            "job_id": event.job_id,
            "key": str(event.key) if event.key else None,
            "worker": event.worker or self._worker or None,
        }
        entry = {"event": event.kind, **{name: value for name, value in known.items() if value}}
        self._write({**entry, "data": _bounded(event.data)}, {event.kind: ("Count", 1.0), **_figures(event)})

    def level(self, name: str, value: float) -> None:
        """Write a gauge: the present value of a metric."""
        self._write({"worker": self._worker}, {name: ("Count", value)})

    def _write(self, entry: Mapping[str, Any], metrics: Mapping[str, tuple[str, float]]) -> None:
        line = json.dumps({**_embedded(metrics), **masked(entry)}, default=str)
        with self._guard:
            try:
                print(line, file=self._out, flush=True)
            except (OSError, ValueError):
                return


class MaskingFilter(logging.Filter):
    """Masks addresses in what the code logs with `logging`, also in tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the record; always True."""
        record.msg, record.args = masked(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = masked(logging.Formatter().formatException(record.exc_info))
        return True


def _embedded(metrics: Mapping[str, tuple[str, float]]) -> dict[str, Any]:
    """CloudWatch's embedded metric format."""
    metric = {
        "Namespace": METRICS,
        "Dimensions": [["service"]],
        "Metrics": [{"Name": name, "Unit": unit} for name, (unit, _) in metrics.items()],
    }
    values = {name: value for name, (_, value) in metrics.items()}
    at = int(time.time() * 1000)
    return {"_aws": {"Timestamp": at, "CloudWatchMetrics": [metric]}, "service": METRICS_SERVICE, **values}


def metric_name(measure: HistogramSpec) -> str:
    """The name of a measure in CloudWatch: `time_to_claim` is TimeToClaim."""
    return measure.histogram.title().replace("_", "")


MACHINE_FAULTS = "MachineFaults"
"""How often a job was put off because of a full disk, too little memory or a killed program."""
DOLLARS = "AgentDollars"
"""What runs of agents cost, told as each is written down."""
TIME_TO_CLAIM, JOB_LATENCY = (metric_name(MEASURES[kind]) for kind in ("ClaimTaken", "JobSettled"))
OUTCOMES = {str(one): f"Job{one.title().replace('-', '')}" for one in JobOutcome if one is not JobOutcome.SUCCEEDED}
"""Jobs that ended otherwise than well: each metric is paid for, and the others are what JobLatency counts beside."""


def _figures(event: Event) -> dict[str, tuple[str, float]]:
    if event.data.get("machine_fault"):
        return {MACHINE_FAULTS: ("Count", 1.0)}
    measure = MEASURES.get(event.kind)
    if measure is None or measure.value not in event.data:
        return {}
    figures = {metric_name(measure): ("Milliseconds", float(event.data[measure.value]))}
    ended = OUTCOMES.get(str(event.data.get(measure.label)))
    return {**figures, ended: ("Count", 1.0)} if ended else figures


def _bounded(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line that the log would cut is no JSON any more."""
    return data if len(json.dumps(dict(data), default=str)) <= _MOST_CHARACTERS else {"cut": sorted(data)[:50]}


def put_embedded(client: CloudWatchClient, line: str) -> None:
    """Bring the charts' metrics of a printed line to an emulator, which reads none out of logs. Raises Transient."""
    record = json.loads(line)
    [told] = record["_aws"]["CloudWatchMetrics"]
    drawn = {TIME_TO_CLAIM, JOB_LATENCY, DOLLARS, *OUTCOMES.values()}
    values = {one["Name"]: float(record[one["Name"]]) for one in told["Metrics"] if one["Name"] in drawn}
    if values:
        with translated("telling an emulator what happened"):
            client.put_metric_data(
                Namespace=told["Namespace"],
                MetricData=[
                    {"MetricName": name, "Value": value, "Dimensions": [_SERVICE]} for name, value in values.items()
                ],
            )


_SERVICE: DimensionTypeDef = {"Name": "service", "Value": METRICS_SERVICE}
KEPT_SECONDS, MOST_KEPT = 60.0, 4
MOST_PAGES = 5
_CLAIM, _LATENCY = "claim", "latency"


class _Asked(NamedTuple):
    """One line of a chart."""

    namespace: str
    metric: str
    statistic: str
    dimension: DimensionTypeDef = _SERVICE


_DURATIONS = (("count", "SampleCount"), ("half", "p50"), ("most", "p95"))
LINES = {
    "waiting": _Asked(
        "AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", {"Name": "QueueName", "Value": UNCLAIMED}
    ),
    "dollars": _Asked(METRICS, DOLLARS, "Sum"),
    **{f"ended_{metric}": _Asked(METRICS, metric, "Sum") for metric in OUTCOMES.values()},
    **{
        f"{name}_{value}": _Asked(METRICS, metric, statistic)
        for name, metric in ((_CLAIM, TIME_TO_CLAIM), (_LATENCY, JOB_LATENCY))
        for value, statistic in _DURATIONS
    },
}
WHOLE = {f"whole_{name}": asked for name, asked in LINES.items() if name.startswith((_CLAIM, _LATENCY))}
"""Asked for once more over all bars: percentiles do not add up."""
Row = Mapping[int, float]
"""Values by the second in which their bar begins."""


class CloudWatchHistory:
    """See History. One call for all charts of a page, kept for a minute, because each costs money.

    CloudWatch keeps values of a minute for 15 days and of five minutes for 63, so bars are multiples of five minutes.
    """

    def __init__(self, client: CloudWatchClient, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client, self._monotonic, self._guard = client, monotonic, threading.Lock()
        self._kept: dict[tuple[int, int], tuple[float, PoolHistory]] = {}

    def history(self, start: datetime, seconds: int, count: int) -> PoolHistory:
        """What it cannot tell is kept as well: pages that are looked at do not ask again and again."""
        with self._guard:
            kept = self._kept.get((seconds, count))
            if kept and self._monotonic() - kept[0] < KEPT_SECONDS:
                return kept[1]
            try:
                found = self._ask(start, seconds, count)
            except WebOrdinaryError as problem:
                found = PoolHistory(problem=str(problem))
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[seconds, count] = self._monotonic(), found
            return found

    def _ask(self, start: datetime, seconds: int, count: int) -> PoolHistory:
        queries = [_query(name, asked, seconds) for name, asked in LINES.items()]
        queries += [_query(name, asked, seconds * count) for name, asked in WHOLE.items()]
        rows: dict[str, dict[int, float]] = {query["Id"]: {} for query in queries}
        pages = self._client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries, StartTime=start, EndTime=start + timedelta(seconds=seconds * count)
        )
        with translated("asking CloudWatch for the charts"):
            for result in chain.from_iterable(page["MetricDataResults"] for page in islice(pages, MOST_PAGES)):
                at = (int(moment.timestamp()) for moment in result["Timestamps"])
                rows[result["Id"]].update(zip(at, result["Values"], strict=False))
        begins = [int(start.timestamp()) + number * seconds for number in range(count)]
        return PoolHistory(
            tuple(_span(at, rows) for at in begins),
            _whole(rows, _CLAIM),
            _whole(rows, _LATENCY),
            waits="Keys that wait for a worker",
        )


def _query(name: str, asked: _Asked, seconds: int) -> MetricDataQueryTypeDef:
    metric: MetricTypeDef = {
        "Namespace": asked.namespace,
        "MetricName": asked.metric,
        "Dimensions": [asked.dimension],
    }
    return {"Id": name, "MetricStat": {"Metric": metric, "Period": seconds, "Stat": asked.statistic}}


def _span(at: int, rows: Mapping[str, Row]) -> PoolSpan:
    latencies = _durations(rows, _LATENCY, at)
    others = {outcome: round(rows[f"ended_{metric}"].get(at, 0.0)) for outcome, metric in OUTCOMES.items()}
    well = max(0, latencies.count - sum(others.values()))
    return PoolSpan(
        at,
        round(rows["waiting"].get(at, 0.0)),
        _durations(rows, _CLAIM, at),
        latencies,
        {str(JobOutcome.SUCCEEDED): well, **others},
        rows["dollars"].get(at, 0.0),
        known=any(at in row for row in rows.values()),
    )


def _durations(rows: Mapping[str, Row], name: str, at: int) -> Durations:
    count, half, most = (rows[f"{name}_{value}"].get(at, 0.0) for value, _ in _DURATIONS)
    return Durations(round(count), half / 1000, most / 1000)


def _whole(rows: Mapping[str, Row], name: str) -> Durations:
    """CloudWatch may cut so long a time in two: then their mean by how much happened in each."""
    parts = [_durations(rows, f"whole_{name}", at) for at in rows[f"whole_{name}_count"]]
    count = sum(part.count for part in parts)
    if not count:
        return NONE_YET
    half = sum(part.half * part.count for part in parts) / count
    return Durations(count, half, sum(part.most * part.count for part in parts) / count)
