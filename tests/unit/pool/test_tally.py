from __future__ import annotations

import json
from dataclasses import dataclass, field

from webordinary.pool import metrics as counting
from webordinary.pool.metrics import BUCKETS, CountedEvent, MetricsRecorder, MetricsState


@dataclass
class StoredMetrics:
    """Events and the tally that was saved, as a database would keep them."""

    stored: list[CountedEvent] = field(default_factory=list)
    saved: str = MetricsState().to_json()

    def tell(self, kind: str, **data: object) -> None:
        seq = self.stored[-1].seq + 1 if self.stored else 1
        self.stored.append(CountedEvent(seq, kind, json.dumps(data)))

    def load(self) -> MetricsState:
        return MetricsState.from_json(self.saved)

    def save(self, tally: MetricsState) -> None:
        self.saved = tally.to_json()

    def events_after(self, seq: int, limit: int) -> list[CountedEvent]:
        return [event for event in self.stored if event.seq > seq][:limit]


def test_events_are_counted_by_kind_and_measured_where_they_carry_a_measure() -> None:
    events = StoredMetrics()
    events.tell("ClaimTaken", waited_ms=4.0)
    events.tell("ClaimTakenOver", waited_ms=90_000)
    events.tell("ClaimTaken")
    events.tell("JobSettled", outcome="succeeded", latency_ms=700)
    read = MetricsRecorder(events).read()
    assert (read.kinds["ClaimTaken"], read.kinds["ClaimTakenOver"], read.kinds["Unheard"]) == (2, 1, 0)
    waited = read.histograms["time_to_claim"][""]
    assert waited.buckets[0] == 1
    assert sum(waited.buckets) == 2, "an older version's event is counted but not measured"
    assert waited.total_seconds == 90.004
    latency = read.histograms["job_latency"]["succeeded"]
    assert latency.buckets[BUCKETS.index(1.0)] == 1


def test_a_value_on_a_bound_belongs_under_it_and_one_beyond_all_is_kept_too() -> None:
    events = StoredMetrics()
    events.tell("ClaimReleased", idle_ms=5)
    events.tell("ClaimReleased", idle_ms=9_999_999_999)
    assert MetricsRecorder(events).read().histograms["idle_before_release"][""].buckets == [
        1,
        *[0] * (len(BUCKETS) - 1),
        1,
    ]


def test_counting_goes_on_after_a_restart_and_after_events_were_forgotten() -> None:
    events = StoredMetrics()
    for _ in range(5):
        events.tell("MailReceived")
    first = MetricsRecorder(events)
    first.save()
    events.tell("MailReceived")
    del events.stored[:3]
    assert MetricsRecorder(events).read().kinds["MailReceived"] == 6


def test_killed_before_it_was_saved_it_counts_again_from_there() -> None:
    events = StoredMetrics()
    events.tell("MailReceived")
    assert [MetricsRecorder(events).read().kinds["MailReceived"] for _ in range(2)] == [1, 1]


def test_a_reading_takes_a_bounded_bite_and_the_next_goes_on() -> None:
    events = StoredMetrics(
        [CountedEvent(seq, "JobQueued", "{}") for seq in range(1, counting.PAGE * counting.MAX_PAGES + 8)]
    )
    meter = MetricsRecorder(events)
    assert meter.read().kinds["JobQueued"] == counting.PAGE * counting.MAX_PAGES
    assert meter.read().kinds["JobQueued"] == len(events.stored)


def test_a_reading_does_not_change_afterwards() -> None:
    events = StoredMetrics()
    events.tell("ClaimTaken", waited_ms=1)
    meter = MetricsRecorder(events)
    read = meter.read()
    events.tell("ClaimTaken", waited_ms=1)
    meter.read()
    assert sum(read.histograms["time_to_claim"][""].buckets) == read.kinds["ClaimTaken"] == 1


def test_kinds_are_bounded() -> None:
    tally = MetricsState()
    for seq in range(1, 1000):
        tally.count(CountedEvent(seq, f"Kind{seq}", "{}"))
    assert len(tally.kinds) == counting.MAX_KINDS
