"""Counting what happened: events in, counters and histograms out. Pure, and the same after every restart."""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
"""Upper bounds in seconds, from a claim in milliseconds to a job's limit."""
MAX_KINDS = 100
PAGE = 1000
MAX_PAGES = 20


class CountedEvent(NamedTuple):
    """As much of a stored event as counting needs; `data` is JSON, read only where it is measured."""

    seq: int
    kind: str
    data: str


class HistogramSpec(NamedTuple):
    """Which value of an event goes into which histogram."""

    histogram: str
    value: str
    label: str = ""


MEASURES = {
    "ClaimTaken": HistogramSpec("time_to_claim", "waited_ms"),
    "ClaimTakenOver": HistogramSpec("time_to_claim", "waited_ms"),
    "ClaimReleased": HistogramSpec("idle_before_release", "idle_ms"),
    "ClaimYielded": HistogramSpec("idle_before_release", "idle_ms"),
    "JobSettled": HistogramSpec("job_latency", "latency_ms", "outcome"),
}


@dataclass
class Histogram:
    """How many values fell under each bound; the last bucket has none."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total_seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one value."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.total_seconds += seconds


@dataclass
class MetricsState:
    """What was counted up to the event `seq`."""

    seq: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, dict[str, Histogram]] = field(default_factory=dict)
    """By name, then by label; an empty label where there is none."""

    def count(self, event: CountedEvent) -> None:
        """Add one event; what was counted already is not counted again."""
        if event.seq <= self.seq:
            return
        self.seq = event.seq
        if event.kind in self.kinds or len(self.kinds) < MAX_KINDS:
            self.kinds[event.kind] += 1
        if measure := MEASURES.get(event.kind):
            self._measure(measure, json.loads(event.data))

    def _measure(self, measure: HistogramSpec, data: dict[str, Any]) -> None:
        value = data.get(measure.value)
        if not isinstance(value, int | float):
            return  # told by a version that did not measure it yet
        label = str(data.get(measure.label, "")) if measure.label else ""
        self.histograms.setdefault(measure.histogram, {}).setdefault(label, Histogram()).add(value / 1000)

    def to_json(self) -> str:
        """As it is kept."""
        histograms = {
            name: {label: [one.buckets, one.total_seconds] for label, one in labels.items()}
            for name, labels in self.histograms.items()
        }
        return json.dumps({"seq": self.seq, "kinds": self.kinds, "bounds": BUCKETS, "histograms": histograms})

    @classmethod
    def from_json(cls, text: str) -> MetricsState:
        """Read what `to_json` wrote; histograms with other bounds begin anew."""
        record = json.loads(text)
        kept = record["histograms"] if tuple(record["bounds"]) == BUCKETS else {}
        histograms = {
            name: {label: Histogram(*values) for label, values in labels.items()} for name, labels in kept.items()
        }
        return cls(record["seq"], Counter(record["kinds"]), histograms)


class MetricsStore(Protocol):
    """Where the events are, and where their tally is kept."""

    def load(self) -> MetricsState:
        """The tally as it was saved last; an empty one before the first time."""

    def save(self, tally: MetricsState) -> None:
        """Keep it."""

    def events_after(self, seq: int, limit: int) -> list[CountedEvent]:
        """What is to be counted next, oldest first."""


class MetricsRecorder:
    """Counts on from where it was; one process of a data folder has one."""

    def __init__(self, tallies: MetricsStore) -> None:
        self._tallies = tallies
        self._tally = tallies.load()
        self._guard = threading.Lock()

    def read(self) -> MetricsState:
        """The counts now. A bounded bite of a long backlog: the next reading goes on."""
        with self._guard:
            self._count(MAX_PAGES)
            return MetricsState.from_json(self._tally.to_json())

    def save(self) -> None:
        """Count everything and keep it; before events are forgotten, and before the process ends."""
        with self._guard:
            while self._count(MAX_PAGES):
                pass
            self._tallies.save(self._tally)

    def _count(self, pages: int) -> bool:
        """True if there may be more."""
        for _ in range(pages):
            events = self._tallies.events_after(self._tally.seq, PAGE)
            for event in events:
                self._tally.count(event)
            if len(events) < PAGE:
                return False
        return True
