"""From calls to dollars."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from benchmarks.parts.aws_calls import usage_of

from webordinary.operations.capacity.costs import (
    BESIDES_CALLS,
    COMPUTE,
    EC2,
    FARGATE,
    MEETING_THE_BARS,
    MONTH_DAYS,
    NETWORK,
    PER_MAIL,
    PRICES,
    SERVICES,
    WATCHING,
    DayOfWork,
    monthly_bill,
    price,
    usage_of_day,
    worker_hour,
)
from webordinary.operations.capacity.demand import OutOfBounds
from webordinary.workflow import definition

QUIET = DayOfWork(mails=0, job_minutes=0.0, worker_hours=24.0, slots=4)


def test_a_million_of_everything_costs_what_the_list_says() -> None:
    bill = price({"sqs.standard": 1e6, "sqs.fifo": 1e6, "states.transition": 1e6, "ses.in": 1000})
    assert bill == {"SES in": pytest.approx(0.10), "Step Functions": 25.0, "SQS": pytest.approx(0.90)}


def test_what_is_not_on_the_list_is_free() -> None:
    assert price({"states.call": 1e9}) == {}


def test_every_price_is_on_the_bill_of_a_service_that_is_reported() -> None:
    assert {known.service for known in PRICES.values()} == set(SERVICES)
    assert all(known.usd > 0 and known.per > 0 for known in PRICES.values())


def test_every_habit_is_priced() -> None:
    habits = MEETING_THE_BARS
    for usage in (habits.mail.usage, habits.job_minute.usage, habits.idle_hour.usage, BESIDES_CALLS):
        assert set(usage) <= set(PRICES)


def test_the_transitions_of_a_mail_are_those_of_the_workflow_file() -> None:
    workflow = json.loads(definition.text())
    states, at, entered = workflow["States"], workflow["StartAt"], 1
    turns = {"Admission": "ParseEmail", "CommandOrEdit": "ProcessAttachments"}
    turns |= {"CheckIfClaimed": "SendClaimRequest", "MustInterrupt": "AwaitResult"}
    while not states[at].get("End") and states[at]["Type"] not in ("Succeed", "Fail"):
        at, entered = turns.get(at) or states[at]["Next"], entered + 1
    assert BESIDES_CALLS["states.transition"] == pytest.approx(entered, abs=1.5)


def test_more_calls_cost_more_of_every_kind() -> None:
    doubled = PER_MAIL.with_calls(PER_MAIL.calls * 2)
    assert doubled.usage == {meter: units * 2 for meter, units in PER_MAIL.usage.items()}
    with pytest.raises(OutOfBounds, match="calls -1"):
        PER_MAIL.with_calls(-1)


def test_an_idle_worker_costs_its_machine_and_its_polls() -> None:
    bill = monthly_bill(QUIET, FARGATE, MEETING_THE_BARS)
    assert bill[COMPUTE] == pytest.approx(24 * MONTH_DAYS * (2 * 0.03238 + 7 * 0.00356))
    assert usage_of_day(QUIET, EC2, MEETING_THE_BARS)["sqs.fifo"] == 24 * 180
    assert "SES in" not in {service for service, usd in bill.items() if usd}


def test_a_deployment_to_which_nobody_writes_costs_its_network_and_its_alarms() -> None:
    """NAT 32.85, its address 3.65, 30 metrics of alarms 3.00, charts 0.24, a zone 0.50, the reconciler: about 40."""
    nothing = DayOfWork(mails=0, job_minutes=0.0, worker_hours=0.0, slots=4)
    bill = monthly_bill(nothing, EC2, MEETING_THE_BARS)
    assert bill[NETWORK] == pytest.approx(32.85 + 3.65 + 0.50)
    assert bill[WATCHING] == pytest.approx(3.00 + 0.2376)
    assert 36 <= sum(bill.values()) <= 44
    assert monthly_bill(nothing, FARGATE, MEETING_THE_BARS)[NETWORK] == pytest.approx(0.50)


def test_the_console_behind_a_load_balancer_costs_the_same_on_any_day() -> None:
    """A load balancer 16.43, its two addresses 7.30; 0.25 vCPU 5.91 and 1 GB 2.60."""
    asked = monthly_bill(replace(QUIET, console=True), EC2, MEETING_THE_BARS)
    without = monthly_bill(QUIET, EC2, MEETING_THE_BARS)
    assert asked[NETWORK] - without[NETWORK] == pytest.approx(16.43 + 7.30, abs=0.01)
    assert asked[COMPUTE] - without[COMPUTE] == pytest.approx(5.91 + 2.60, abs=0.01)


def test_a_mail_brings_data_through_the_nat_logs_and_a_trace() -> None:
    """5 MB, 66 KB and one: 1,000 mails a day are 7, 1 and 0.15 dollars a month, and 45 metrics 13.5."""
    day = DayOfWork(mails=1000, job_minutes=0.0, worker_hours=0.0, slots=4)
    nothing = DayOfWork(mails=0, job_minutes=0.0, worker_hours=0.0, slots=4)
    more, less = (monthly_bill(one, EC2, MEETING_THE_BARS) for one in (day, nothing))
    assert more[NETWORK] - less[NETWORK] == pytest.approx(6.84, abs=0.05)
    assert more[WATCHING] - less[WATCHING] == pytest.approx(13.5 + 1.0 + 0.15, abs=0.05)


@pytest.mark.parametrize(
    ("day", "by_hand"),
    [
        (DayOfWork(mails=0, job_minutes=0.0, worker_hours=0.0, slots=4), 40),
        (DayOfWork(mails=1_000, job_minutes=5_000.0, worker_hours=46.5 * 1.35, slots=4), 255),
        (DayOfWork(mails=50_000, job_minutes=250_000.0, worker_hours=1_220 * 1.20, slots=4), 5_500),
    ],
    ids=["idle", "200 projects", "10,000 projects"],
)
def test_the_bill_agrees_with_one_that_was_counted_by_hand(day: DayOfWork, by_hand: float) -> None:
    """Line by line from the services' price pages, with 5 MB through the NAT and 66 KB of logs for a mail.

    The machines' boot and tail, which the simulation plays out, are 35 % and 20 % of their hours there.
    """
    assert sum(monthly_bill(day, EC2, MEETING_THE_BARS).values()) == pytest.approx(by_hand, rel=0.10)


def test_credentials_beyond_the_free_ones_are_on_the_bill() -> None:
    """Systems Manager: 10,000 standard parameters are free, an advanced one is 0.05 dollars a month."""

    def systems(projects: int) -> float:
        day = DayOfWork(mails=0, job_minutes=0.0, worker_hours=0.0, slots=4, projects=projects)
        return monthly_bill(day, EC2, MEETING_THE_BARS)["Systems Manager"]

    assert systems(10_000) == 0
    assert systems(100_000) == pytest.approx(4_500)


def test_hours_of_work_are_not_idle() -> None:
    assert DayOfWork(mails=10, job_minutes=4 * 60.0, worker_hours=24.0, slots=4).idle_hours == 23.0
    assert DayOfWork(mails=10, job_minutes=1e9, worker_hours=24.0, slots=4).idle_hours == 0.0


def test_a_worker_is_as_large_as_its_slots_ask_for() -> None:
    assert worker_hour(1, FARGATE) == {"fargate.vcpu-hour": 0.5, "fargate.gb-hour": 1.75}
    assert worker_hour(4, EC2)["ec2.vcpu-hour"] == 2.0


@pytest.mark.parametrize(
    ("service", "operation", "params", "usage"),
    [
        ("dynamodb", "PutItem", {}, {"dynamodb.write": 1}),
        ("dynamodb", "TransactWriteItems", {"TransactItems": [{}, {}, {}]}, {"dynamodb.write": 6}),
        ("dynamodb", "TransactGetItems", {"TransactItems": [{}]}, {"dynamodb.read": 2}),
        ("dynamodb", "GetItem", {"ConsistentRead": True}, {"dynamodb.read": 1}),
        ("dynamodb", "Query", {}, {"dynamodb.read": 0.5}),
        ("dynamodb", "BatchGetItem", {"RequestItems": {"t": {"Keys": [1, 2, 3]}}}, {"dynamodb.read": 1.5}),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {"t": [1, 2, 3]}}, {"dynamodb.write": 3}),
        ("dynamodb", "DescribeTable", {}, {}),
        ("sqs", "ReceiveMessage", {"QueueUrl": "http://x/1/webordinary-unclaimed"}, {"sqs.standard": 1}),
        ("sqs", "ReceiveMessage", {"QueueUrl": "http://x/1/webordinary-input-a-b.fifo"}, {"sqs.fifo": 1}),
        ("s3", "PutObject", {}, {"s3.put": 1}),
        ("s3", "GetObject", {}, {"s3.get": 1}),
        ("s3", "DeleteObject", {}, {}),
        ("sesv2", "SendEmail", {}, {"ses.out": 1}),
        ("sesv2", "GetAccount", {}, {}),
        ("lambda", "Invoke", {}, {"lambda.request": 1}),
        ("stepfunctions", "SendTaskSuccess", {}, {}),
    ],
)  # fmt: skip
def test_a_call_uses_what_aws_bills_for_it(
    service: str, operation: str, params: dict[str, object], usage: dict[str, float]
) -> None:
    assert usage_of(service, operation, params) == usage


def test_the_list_is_plain_enough_to_print() -> None:
    assert json.dumps({meter: known.usd for meter, known in PRICES.items()})
