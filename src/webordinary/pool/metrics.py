"""Counting what happened: events in, counters and histograms out; samples of them, kept for a month, feed the charts.

Pure, and the same after every restart. `exposition` writes counts and levels in the text format of Prometheus (0.0.4).
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from webordinary.model.snapshot import Levels

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
        """The state as JSON."""
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
        """Store the counts."""

    def events_after(self, seq: int, limit: int) -> list[CountedEvent]:
        """What is to be counted next, oldest first."""


class MetricsRecorder:
    """Counts on from where it was; one process of a data folder has one."""

    def __init__(self, tallies: MetricsStore) -> None:
        self._tallies = tallies
        self._tally = tallies.load()
        self._guard = threading.Lock()

    def read(self) -> MetricsState:
        """The present counts, after a bounded number of new events: the next call continues."""
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
        """Count one page of events; True if there may be more."""
        for _ in range(pages):
            events = self._tallies.events_after(self._tally.seq, PAGE)
            for event in events:
                self._tally.count(event)
            if len(events) < PAGE:
                return False
        return True


SAMPLE_SECONDS = 600
KEPT = timedelta(days=31)


COUNTED = frozenset({"claims", "latencies", "outcomes"})


@dataclass(frozen=True, slots=True)
class Sample:
    """Ten minutes of the pool. `claims`, `latencies` and `outcomes` only grow, from the first event on."""

    at: int
    waiting: int = 0
    """The most jobs that waited at a look."""
    claims: tuple[int, ...] = ()
    """How many claims fell under each bound of BUCKETS, by the time from queue to claim."""
    latencies: tuple[int, ...] = ()
    outcomes: Mapping[str, int] = field(default_factory=dict)
    usd: float = 0.0
    """What agents cost within these minutes."""

    def to_json(self) -> str:
        """What is counted, as it is kept; the rest has columns."""
        return json.dumps({name: value for name, value in asdict(self).items() if name in COUNTED})

    @classmethod
    def read(cls, at: int, waiting: int, record: str, usd: float) -> Sample:
        """Read what was kept."""
        kept = json.loads(record)
        return cls(at, waiting, tuple(kept["claims"]), tuple(kept["latencies"]), kept["outcomes"], usd)


class Samples(Protocol):
    """The kept samples."""

    def put(self, sample: Sample) -> None:
        """Keep a sample; of the same ten minutes the newest, with the most jobs that waited. Old ones go."""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long things took, in seconds: half of them were shorter than `half`, and 95 of 100 than `most`."""

    count: int = 0
    half: float = 0.0
    most: float = 0.0


NONE_YET = Durations()


def sample_of(levels: Levels, counted: MetricsState, now: datetime) -> Sample:
    """What there is to keep of this moment."""
    latencies = counted.histograms.get("job_latency", {})
    return Sample(
        at=int(now.timestamp()) // SAMPLE_SECONDS * SAMPLE_SECONDS,
        waiting=sum(count for state, count in levels.jobs.items() if state != "running"),
        claims=_added(one.buckets for one in counted.histograms.get("time_to_claim", {}).values()),
        latencies=_added(one.buckets for one in latencies.values()),
        outcomes={outcome: sum(one.buckets) for outcome, one in latencies.items()},
    )


@dataclass(frozen=True, slots=True)
class Sampling:
    """Looks each minute: the most jobs that waited in ten minutes are kept, not only those of their last moment."""

    measure: Callable[[], tuple[Levels, MetricsState | None]]
    samples: Samples
    name: str = "samples"

    def run_once(self, now: datetime) -> int:
        levels, counted = self.measure()
        if counted is None:
            return 0
        self.samples.put(sample_of(levels, counted, now))
        return 1


@dataclass(frozen=True, slots=True)
class PoolSpan:
    """What happened within one bar of a chart."""

    at: int
    waiting: int = 0
    claims: Durations = NONE_YET
    latencies: Durations = NONE_YET
    outcomes: Mapping[str, int] = field(default_factory=dict)
    usd: float = 0.0
    known: bool = False
    """Something was looked at in this time."""


@dataclass(frozen=True, slots=True)
class PoolHistory:
    """The bars of all charts, oldest first, and what holds for all of them together."""

    spans: tuple[PoolSpan, ...] = ()
    claims: Durations = NONE_YET
    latencies: Durations = NONE_YET
    waits: str = "Jobs that wait"
    """What `waiting` of a span counts."""
    problem: str = ""
    """Why nothing can be shown, in words."""


class History(Protocol):
    """The pool's last month."""

    def history(self, start: datetime, seconds: int, count: int) -> PoolHistory:
        """`count` bars of `seconds` each from `start` on, which is a multiple of `seconds`. May raise Transient."""


def history_of(samples: Sequence[Sample], start: datetime, seconds: int, count: int) -> PoolHistory:
    """From samples in the order of time; the sample before a bar tells where its counters began."""
    begins = [int(start.timestamp()) + number * seconds for number in range(count)]
    found: dict[int, list[tuple[Sample, Sample]]] = {}
    before = [Sample(begins[0]), *samples]
    for previous, sample in zip(before, samples, strict=False):
        place = bisect_right(begins, sample.at) - 1
        if place >= 0:
            found.setdefault(place, []).append((previous, sample))
    counted = [pair for place in sorted(found) for pair in found[place]]
    return PoolHistory(
        tuple(_span(at, found.get(number, [])) for number, at in enumerate(begins)),
        _durations(_added(_grown(one.claims, other.claims) for one, other in counted if other.claims)),
        _durations(_added(_grown(one.latencies, other.latencies) for one, other in counted if other.latencies)),
    )


def _span(at: int, parts: Sequence[tuple[Sample, Sample]]) -> PoolSpan:
    if not parts:
        return PoolSpan(at)
    first, last = parts[0][0], parts[-1][1]
    return PoolSpan(
        at,
        max(sample.waiting for _, sample in parts),
        _durations(_grown(first.claims, last.claims)),
        _durations(_grown(first.latencies, last.latencies)),
        {name: _more(first.outcomes.get(name, 0), count) for name, count in last.outcomes.items()},
        sum(sample.usd for _, sample in parts),
        known=True,
    )


def _durations(buckets: Sequence[int]) -> Durations:
    return Durations(sum(buckets), quantile(buckets, 0.5), quantile(buckets, 0.95))


def quantile(buckets: Sequence[int], share: float) -> float:
    """About how many seconds this share of the values stayed under; 0 without values."""
    total, passed = sum(buckets), 0
    if not total:
        return 0.0
    bounds = [0.0, *BUCKETS, BUCKETS[-1]]
    for (low, high), count in zip(pairwise(bounds), buckets, strict=False):
        if count and passed + count >= share * total:
            return low + (high - low) * (share * total - passed) / count
        passed += count
    return BUCKETS[-1]


def _added(histograms: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(sum(counts) for counts in zip(*histograms, strict=True))


def _grown(first: Sequence[int], last: Sequence[int]) -> tuple[int, ...]:
    begun = first if len(first) == len(last) else [0] * len(last)
    return tuple(map(_more, begun, last))


def _more(first: int, last: int) -> int:
    return last - first if last >= first else last  # counting began anew


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "webordinary_"

# name, help, then the events that count for it, each with its labels
COUNTERS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("mails_received_total", "Mails accepted.", {"MailReceived": ""}),
    (
        "mails_refused_total",
        "Mails refused or held.",
        {"MailRefused": 'verdict="refused"', "MailHeld": 'verdict="held"'},
    ),
    ("jobs_queued_total", "Times that a job was queued.", {"JobQueued": ""}),
    (
        "claim_attempts_total",
        "Attempts to claim a key; a lost race is normal.",
        {"ClaimTaken": 'result="success"', "ClaimTakenOver": 'result="success"', "ClaimRaceLost": 'result="failure"'},
    ),
    ("takeovers_total", "Keys taken over from a lost worker.", {"ClaimTakenOver": ""}),
    ("yields_total", "Claims given up for another key.", {"ClaimYielded": ""}),
    ("releases_total", "Claims released because they were idle or the worker stopped.", {"ClaimReleased": ""}),
    ("renewal_failures_total", "Leases that could not be renewed.", {"ClaimRenewalFailed": ""}),
    ("claims_lost_total", "Claims that ended under a running job.", {"ClaimLost": ""}),
    ("interrupts_total", "Jobs interrupted by another thread's mail.", {"JobInterrupted": ""}),
    ("breaker_opened_total", "Times that a worker paused because of repeated errors.", {"BreakerOpened": ""}),
    ("dead_letters_total", "Items given up.", {"DeadLettered": ""}),
    ("redrives_total", "Dead letters redriven.", {"DeadLetterRedriven": ""}),
    ("replies_sent_total", "Replies sent.", {"ReplySent": ""}),
    ("workers_started_total", "Workers started.", {"WorkerStarted": ""}),
    ("workers_died_total", "Workers that ended without signing off.", {"WorkerDied": ""}),
)
HISTOGRAMS = (
    ("time_to_claim", "Seconds from queued to claimed, for jobs that found their key unclaimed.", ""),
    ("idle_before_release", "Seconds that a claim was idle before it was released or yielded.", ""),
    ("job_latency", "Seconds from queued to settled.", "outcome"),
)


def exposition(levels: Levels, tally: MetricsState | None, now: datetime) -> str:
    """Everything there is to measure; CloudWatch may have the counts instead."""
    counted = [*_counters(tally), *_histograms(tally)] if tally else ["# CloudWatch counts what happened"]
    lines = [*_levels(levels, now), *counted]
    return "\n".join(lines) + "\n"


def _levels(levels: Levels, now: datetime) -> Iterator[str]:
    yield from _gauge("unclaimed_depth", "Keys in the unclaimed queue.", levels.unclaimed.depth)
    age = _age(levels.unclaimed.oldest_since, now)
    yield from _gauge("unclaimed_oldest_age_seconds", "Age of the oldest of them.", age)
    yield from _head("jobs", "Open jobs.", "gauge")
    for state, count in levels.jobs.items():
        yield f'{PREFIX}jobs{{state="{state}"}} {count}'
    yield from _gauge("queued_oldest_age_seconds", "Age of the oldest queued job.", _age(levels.oldest_queued_at, now))
    yield from _gauge("claims_held", "Claims held.", levels.claims_held)
    yield from _gauge("workers_alive", "Workers whose process lives.", levels.workers_alive)
    yield from _gauge("mails_in_flight", "Mails not finished yet.", levels.mails_in_flight)
    yield from _gauge("replies_unsent", "Replies that wait to be delivered.", levels.replies_unsent)
    yield from _gauge("replies_given_up", "Replies that could not be delivered.", levels.replies_given_up)
    yield from _gauge("dead_letters", "Dead letters neither redriven nor dropped.", levels.dead_letters)


def _counters(tally: MetricsState) -> Iterator[str]:
    for name, about, kinds in COUNTERS:
        yield from _head(name, about, "counter")
        counts: dict[str, int] = {}
        for kind, labels in kinds.items():
            counts[labels] = counts.get(labels, 0) + tally.kinds[kind]
        for labels, count in counts.items():
            yield f"{PREFIX}{name}{{{labels}}} {count}" if labels else f"{PREFIX}{name} {count}"


def _histograms(tally: MetricsState) -> Iterator[str]:
    for name, about, label in HISTOGRAMS:
        full = f"{name}_seconds"
        yield from _head(full, about, "histogram")
        measured = tally.histograms.get(name, {})
        for value, histogram in measured.items() if measured or label else [("", Histogram())]:
            yield from _buckets(full, f'{label}="{_escaped(value)}"' if label else "", histogram)


def _buckets(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    below, comma = 0, "," if labels else ""
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), histogram.buckets, strict=True):
        below += count
        yield f'{PREFIX}{name}_bucket{{{labels}{comma}le="{bound}"}} {below}'
    suffix = f"{{{labels}}}" if labels else ""
    yield f"{PREFIX}{name}_sum{suffix} {round(histogram.total_seconds, 6)}"
    yield f"{PREFIX}{name}_count{suffix} {below}"


def _gauge(name: str, about: str, value: float | None) -> Iterator[str]:
    if value is not None:
        yield from _head(name, about, "gauge")
        yield f"{PREFIX}{name} {value}"


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {about}"
    yield f"# TYPE {PREFIX}{name} {kind}"


def _age(since: datetime | None, now: datetime) -> float:
    return round(max(0.0, (now - since).total_seconds()), 3) if since else 0


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
