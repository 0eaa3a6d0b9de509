"""What workers tell of a job rides on its record: bounded, once, and kept when the job goes on elsewhere."""
# ruff: noqa: E402

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tests.extras import needs_extra

needs_extra("boto3", "aws")

from webordinary.adapters.aws.pool import job_table
from webordinary.adapters.aws.pool.job_table import JobTimeline, TimelineEvent, from_text, merged, to_text
from webordinary.model.events import Event, EventKind

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Heard:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    def emit(self, event: Event) -> None:
        self.kinds.append(event.kind)


def told(minute: int, kind: str = "SiteBuilt", data: str = "{}") -> TimelineEvent:
    return TimelineEvent(NOON + timedelta(minutes=minute), kind, "w1", data)


def test_events_are_passed_on_and_those_of_a_job_remembered() -> None:
    heard = Heard()
    book = JobTimeline(heard, lambda: NOON)
    book.emit(Event(EventKind.CLAIM_RELEASED))
    book.emit(Event(EventKind.SITE_BUILT, "e1", "j1", worker="w1", data={"files": 3}))
    assert heard.kinds == ["ClaimReleased", "SiteBuilt"]
    [entry] = book.of("j1")
    assert (entry.kind, entry.worker, entry.values) == ("SiteBuilt", "w1", {"files": 3})
    assert from_text(to_text(book.of("j1"))) == book.of("j1")
    assert (to_text(()), from_text(None)) == (None, ())


def test_what_was_written_before_is_not_written_twice() -> None:
    first, second = told(1), told(2)
    assert merged([first], [first, second]) == (first, second)


def test_half_a_character_of_an_agents_words_does_not_keep_a_job_from_being_written() -> None:
    book = JobTimeline(Heard(), lambda: NOON)
    book.emit(Event(EventKind.AGENT_PROGRESS, "e1", "j1", data={"words": json.loads(r'"caf\u00e9 \ud83d"')}))
    [entry] = book.of("j1")
    assert entry.values == {"words": "café ?"}
    assert (to_text([entry]) or "").encode()


def test_it_is_bounded_and_progress_goes_first() -> None:
    book = JobTimeline(Heard(), lambda: NOON)
    book.emit(Event(EventKind.JOB_STARTED, "e1", "j1"))
    for number in range(500):
        book.emit(Event(EventKind.AGENT_PROGRESS, "e1", "j1", data={"words": f"{number} " + "x" * 300}))
    book.emit(Event(EventKind.SITE_BUILT, "e1", "j1", data={"log": "x" * 5000}))
    kept = book.of("j1")
    assert (kept[0].kind, kept[-1].kind, kept[-1].values) == ("JobStarted", "SiteBuilt", {})
    assert len(to_text(kept) or "") < 2 * job_table.MOST_BYTES
    for number in range(job_table.MOST_JOBS):
        book.emit(Event(EventKind.JOB_STARTED, "e2", f"other-{number}"))
    assert book.of("j1") == ()
    many = merged([told(n, "JobRequeued", json.dumps({"why": n})) for n in range(100)], ())
    assert len(many) == job_table.MOST_ENTRIES
    assert many[-1].values == {"why": 99}
