"""The whole answer, and how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from webordinary.operations.capacity.costs import (
    COMPUTE,
    DYNAMODB,
    EACH_MINUTE,
    EC2,
    LAMBDA,
    MONTH_DAYS,
    NETWORK,
    S3,
    SERVICES,
    SES_IN,
    SES_OUT,
    SQS,
    STATES,
    WATCHING,
    price,
    worker_hour,
)
from webordinary.operations.capacity.demand import Demand, OutOfBounds
from webordinary.operations.capacity.forecast import (
    HEIGHT,
    NARROW,
    PROMISED,
    WIDE,
    Forecast,
    Question,
    chart,
    columns_for,
    forecast,
    plain_data,
    svg,
    text,
)

DEMAND = Demand(projects=100, mails=600, seed=3)


@pytest.fixture(scope="module")
def found() -> Forecast:
    return forecast(Question(DEMAND, slots=1, target_seconds=30.0))


@pytest.mark.slow
def test_the_fewest_workers_keep_the_promise_and_one_less_does_not(found: Forecast) -> None:
    assert found.promise_kept
    assert found.claim_waits[PROMISED] <= 30.0
    fewer = forecast(Question(DEMAND, workers=found.workers - 1, slots=1, target_seconds=30.0))
    assert not fewer.promise_kept


def test_the_same_question_has_the_same_answer(found: Forecast) -> None:
    assert plain_data(forecast(found.question)) == plain_data(found)


def test_a_looser_target_needs_fewer_workers(found: Forecast) -> None:
    assert forecast(replace(found.question, target_seconds=1200.0)).workers < found.workers


def test_scaling_with_the_day_needs_no_more_than_all_workers_all_day(found: Forecast) -> None:
    assert max(found.scaling.workers) <= found.workers
    assert min(found.scaling.workers) < max(found.scaling.workers)
    assert 0 < found.scaling.worker_hours < found.workers * 24
    assert sum(found.scaling.monthly_usd.values()) < sum(found.monthly_usd.values())


def test_a_played_month_agrees_line_by_line_with_a_count_by_hand_but_for_two_lines_that_are_named() -> None:
    """1,000 mails a day for 200 projects, 259 dollars by hand; two lines differ in their model.

    The count by hand adds 35 % of their hours for machines that leave, where the forecast plays the day out; and its
    reconciler asks each minute for the notes of 1,000 raw mails, now each ten minutes.
    """
    scaling = forecast(Question(Demand(projects=200, mails=1_000))).scaling
    bill, machine_hour = scaling.monthly_usd, sum(price(worker_hour(4, EC2)).values())
    tail = scaling.tail_hours * machine_hour * MONTH_DAYS
    reconciler = sum(price(EACH_MINUTE).values()) * 24 * 60 * MONTH_DAYS
    calls = sum(bill[service] for service in (SES_IN, SES_OUT, S3, LAMBDA, STATES, SQS, DYNAMODB)) - reconciler
    charts = 5 * 0.30 + 0.24  # five metrics of ours and the looks at them, later than the count
    by_hand = {"calls": 149 - 46.5 * machine_hour * MONTH_DAYS, "machines": 46.5 * machine_hour * MONTH_DAYS}
    by_hand |= {"network": 36.5 + 0.5 + 7, "CloudWatch": 1 + 12 + 3 + charts}
    played = {"calls": calls, "machines": bill[COMPUTE] - tail, "network": bill[NETWORK], "CloudWatch": bill[WATCHING]}
    assert played == pytest.approx(by_hand, rel=0.10)
    tail_by_hand, reconciler_by_hand = 44, 6
    total_by_hand = sum(by_hand.values()) + tail_by_hand + reconciler_by_hand
    assert total_by_hand == pytest.approx(259 + charts, abs=1)
    expected = total_by_hand - (tail_by_hand - tail) - (reconciler_by_hand - reconciler)
    assert sum(bill.values()) == pytest.approx(expected, rel=0.10)


def test_progress_is_told() -> None:
    told: list[str] = []
    forecast(Question(DEMAND, workers=8), told.append)
    assert "day with 8 workers" in told[0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [({"workers": 0}, "workers 0"), ({"slots": 0}, "slots"), ({"target_seconds": 0.0}, "target"),
     ({"compute": "abacus"}, "use ec2 or fargate")],
)  # fmt: skip
def test_an_impossible_question_is_refused_in_words(asked: dict[str, object], words: str) -> None:
    with pytest.raises(OutOfBounds, match=words):
        Question(DEMAND, **asked)  # type: ignore[arg-type]


def test_the_report_names_workers_waits_utilisation_and_every_service(found: Forecast) -> None:
    told = text(found)
    for words in ("workers of 1 slots", "time to claim", "95%", "utilisation", "Left out: CloudFront", *SERVICES):
        assert words in told
    assert max(map(len, told.splitlines())) <= 120


def test_a_promise_that_is_not_kept_is_not_hidden() -> None:
    told = text(forecast(Question(DEMAND, workers=1, slots=1)))
    assert "1 worker of 1 slots cannot keep 95% of claims within 60 s" in told
    assert "mails were not begun" in told


def test_the_json_is_json_and_adds_up(found: Forecast) -> None:
    told = json.loads(json.dumps(plain_data(found)))
    assert told["workers"] == found.workers
    assert told["monthly_usd_total"] == pytest.approx(sum(told["monthly_usd"].values()), abs=0.05)
    assert set(told["time_to_claim_seconds"]) == {"p50", "p90", "p95", "p99", "max"}
    assert sum(told["mails_by_quarter_hour"]) == 600


def test_the_picture_is_well_formed_and_fetches_nothing(found: Forecast) -> None:
    picture = svg(found)
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "600 mails a day" in picture
    assert "href" not in picture
    assert "script" not in picture


def test_a_chart_is_as_high_as_its_highest_value_and_has_the_hours_below() -> None:
    lines = chart("mails", [0.0] * 48 + [8.0] * 48, columns=48, top=16.0).splitlines()
    assert lines[0] == "mails"
    assert len(lines) == HEIGHT + 2
    assert lines[1].split() == ["16"]
    assert lines[-2].endswith("█" * 24)
    assert lines[-1].split() == ["0", "3", "6", "9", "12", "15", "18", "21"]
    assert chart("mails", [1.0] * 96, columns=96, plain=True).isascii()


def test_a_chart_of_nothing_is_empty_not_broken() -> None:
    assert chart("mails", [0.0] * 96, columns=48).splitlines()[1].split() == ["1"]


def test_a_wide_terminal_gets_a_wide_chart() -> None:
    assert (columns_for(200), columns_for(80), columns_for(20)) == (WIDE, NARROW, NARROW)
