"""What happened, as lines of JSON on standard output for the log driver, with counts that CloudWatch reads.

CloudWatch keeps lines for a month and shows them to every reader of logs: addresses of people and hosts are masked.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, TextIO

from webordinary.adapters.aws.names import METRICS, METRICS_SERVICE
from webordinary.model.events import Event
from webordinary.model.text import masked
from webordinary.pool.metrics import MEASURES, HistogramSpec

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
        """Tell how much of something there is now."""
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
        """Rewrite the record; it always passes."""
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


def _figures(event: Event) -> dict[str, tuple[str, float]]:
    if event.data.get("machine_fault"):
        return {MACHINE_FAULTS: ("Count", 1.0)}
    measure = MEASURES.get(event.kind)
    if measure is None or measure.value not in event.data:
        return {}
    return {metric_name(measure): ("Milliseconds", float(event.data[measure.value]))}


def _bounded(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line that the log would cut is no JSON any more."""
    return data if len(json.dumps(dict(data), default=str)) <= _MOST_CHARACTERS else {"cut": sorted(data)[:50]}
