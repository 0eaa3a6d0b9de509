"""The pool's last month: samples, their differences, and the charts made of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.events import SqliteSamples
from webordinary.entrypoints.dashboard.pool_view import charts_of
from webordinary.model.jobs import JobOutcome
from webordinary.pool.metrics import BUCKETS, KEPT, SAMPLE_SECONDS, PoolHistory, Sample, history_of, quantile

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
AT = int(NOON.timestamp())
NONE = (0,) * (len(BUCKETS) + 1)


def counted(fast: int, slow: int) -> tuple[int, ...]:
    """So many values under the first bound, and so many between 1 s and 2.5 s."""
    buckets = [*NONE]
    buckets[0], buckets[BUCKETS.index(2.5)] = fast, slow
    return tuple(buckets)


def sample(number: int, waiting: int = 0, fast: int = 0, slow: int = 0, done: int = 0) -> Sample:
    outcomes = {"succeeded": done}
    return Sample(AT + number * SAMPLE_SECONDS, waiting, counted(fast, slow), counted(fast, slow), outcomes)


def test_a_span_shows_what_happened_since_the_sample_before_it() -> None:
    kept = [sample(-1, fast=5, done=5), sample(0, 3, fast=7, done=6), sample(1, 1, fast=7, slow=2, done=9)]
    together = history_of(kept, NOON, SAMPLE_SECONDS, 3)
    first, second, third = together.spans
    assert [span.waiting for span in (first, second, third)] == [3, 1, 0]
    assert [span.outcomes.get("succeeded", 0) for span in (first, second, third)] == [1, 3, 0]
    assert (first.claims.count, second.claims.count, third.known, together.claims.count) == (2, 2, False, 4)
    [whole] = history_of(kept, NOON, 2 * SAMPLE_SECONDS, 1).spans
    assert (whole.waiting, whole.outcomes, whole.claims.count) == (3, {"succeeded": 4}, 4)


def test_counters_that_began_anew_are_not_negative() -> None:
    kept = [sample(-1, fast=500, done=90), sample(0, fast=2, done=1)]
    [span] = history_of(kept, NOON, SAMPLE_SECONDS, 1).spans
    assert (span.claims.count, span.outcomes) == (2, {"succeeded": 1})


@pytest.mark.parametrize(("share", "low", "high"), [(0.5, 0.0, BUCKETS[0]), (0.95, 1.0, 2.5), (1.0, 2.5, 2.5)])
def test_a_quantile_lies_within_its_bucket(share: float, low: float, high: float) -> None:
    assert low <= quantile(counted(8, 2), share) <= high


def test_samples_are_kept_for_a_month_with_the_most_that_waited_and_their_costs() -> None:
    database = MemoryDatabase()
    samples = SqliteSamples(database)
    samples.put(sample(0, waiting=9, done=1))
    samples.put(sample(0, waiting=2, done=4))
    with database.write() as conn:
        conn.execute(
            "INSERT INTO costs (project_id, day, thread_id, job_id, usd, at) VALUES ('amelia', '', '', '', 0.25, ?)",
            (AT + 5,),
        )
    [kept] = samples.since(NOON, SAMPLE_SECONDS)
    assert (kept.waiting, kept.outcomes, kept.usd) == (9, {"succeeded": 4}, 0.25)
    later = Sample(AT + int((KEPT + timedelta(minutes=10)).total_seconds()), 0, NONE, NONE, {})
    samples.put(later)
    assert [one.at for one in samples.since(NOON, SAMPLE_SECONDS)] == [later.at]
    database.close()


def test_the_charts_draw_what_there_is_and_say_it_in_words() -> None:
    kept = [sample(-1), sample(0, 3, fast=8, slow=2, done=10), sample(1, 40, fast=8, slow=2, done=10)]
    charts = {chart.name: chart for chart in charts_of(history_of(kept, NOON, SAMPLE_SECONDS, 4))}
    assert list(charts) == ["waiting", "claim", "latency", "outcomes", "cost"]
    assert charts["waiting"].top == "40"
    assert charts["waiting"].series[0].path.count("z") == 2, "a bar for each span in which jobs waited"
    assert "95 of 100 under 2.1 s" in charts["claim"].words
    assert "succeeded 10" in charts["outcomes"].words
    for chart in charts_of(PoolHistory()):
        assert not any(series.path for series in chart.series)


def test_the_chart_of_outcomes_counts_every_way_in_which_a_job_ends() -> None:
    kept = [Sample(AT, 0, NONE, NONE, {str(outcome): 1 for outcome in JobOutcome})]
    [drawn] = [one for one in charts_of(history_of(kept, NOON, SAMPLE_SECONDS, 1)) if one.name == "outcomes"]
    assert all(f"{outcome} 1" in drawn.words for outcome in JobOutcome), drawn.words
