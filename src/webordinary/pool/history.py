"""The recent past of the pool: samples of levels and counters, kept for a month, and what charts show of them. Pure."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Protocol

from webordinary.model.snapshot import Levels
from webordinary.pool.metrics import BUCKETS, MetricsState

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

    def since(self, at: datetime, seconds: int) -> Sequence[Sample]:
        """From then on, oldest first: the last sample of each `seconds`, with the costs and the most waiting of them.

        Of a month at most. The spans begin at multiples of `seconds`.
        """


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
    claims: tuple[int, ...] = ()
    latencies: tuple[int, ...] = ()
    outcomes: Mapping[str, int] = field(default_factory=dict)
    usd: float = 0.0
    known: bool = False
    """Something was looked at in this time."""


def spans(samples: Sequence[Sample], start: datetime, seconds: int, count: int) -> tuple[PoolSpan, ...]:
    """`count` bars of `seconds` each from `start` on; the sample before a bar tells where its counters began."""
    begins = [int(start.timestamp()) + number * seconds for number in range(count)]
    found: dict[int, list[tuple[Sample | None, Sample]]] = {}
    before: list[Sample | None] = [None, *samples]
    for previous, sample in zip(before, samples, strict=False):
        place = bisect_right(begins, sample.at) - 1
        if place >= 0:
            found.setdefault(place, []).append((previous, sample))
    return tuple(_span(at, found.get(number, [])) for number, at in enumerate(begins))


def _span(at: int, parts: Sequence[tuple[Sample | None, Sample]]) -> PoolSpan:
    if not parts:
        return PoolSpan(at)
    first = parts[0][0] or Sample(at)
    last = parts[-1][1]
    return PoolSpan(
        at,
        max(sample.waiting for _, sample in parts),
        _grown(first.claims, last.claims),
        _grown(first.latencies, last.latencies),
        {name: _more(first.outcomes.get(name, 0), count) for name, count in last.outcomes.items()},
        sum(sample.usd for _, sample in parts),
        known=True,
    )


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
