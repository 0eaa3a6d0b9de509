"""The counter that hooks boto3: every call by service and operation, retries billed again. No network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.extras import needs_extra

needs_extra("boto3", "aws")

import boto3  # noqa: E402
from botocore.awsrequest import AWSRequest, AWSResponse  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError, EndpointConnectionError  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.parts.aws_calls import CallCounter

ITEM = {"id": {"S": "a"}}
QUICK = Config(retries={"mode": "standard", "total_max_attempts": 3})


class Body:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self) -> Iterator[bytes]:
        yield self.content

    def read(self) -> bytes:
        return self.content


@pytest.fixture
def counter() -> CallCounter:
    from benchmarks.parts.aws_calls import CallCounter

    return CallCounter()


def answering(status: int, body: bytes = b"{}") -> boto3.Session:
    """A session whose requests never leave the process."""

    def answer(request: AWSRequest, **_: object) -> AWSResponse:
        return AWSResponse(request.url, status, {"content-type": "application/x-amz-json-1.0"}, Body(body))  # type: ignore[arg-type]

    session = boto3.Session("key", "secret", region_name="us-east-1")
    session.events.register("before-send", answer)  # type: ignore[arg-type]
    return session


def test_calls_are_counted_by_service_and_operation(counter: CallCounter) -> None:
    session = answering(200)
    counter.watch(session)
    dynamodb, sqs = session.client("dynamodb"), session.client("sqs")
    dynamodb.put_item(TableName="jobs", Item=ITEM)
    dynamodb.transact_write_items(TransactItems=[{"Put": {"TableName": "jobs", "Item": ITEM}}] * 2)
    for queue in ("a.fifo", "b"):
        sqs.receive_message(QueueUrl=f"https://sqs.us-east-1.amazonaws.com/1/{queue}")
    session.client("stepfunctions").send_task_success(taskToken="t", output="{}")
    assert counter.calls == {
        ("dynamodb", "PutItem"): 1,
        ("dynamodb", "TransactWriteItems"): 1,
        ("sqs", "ReceiveMessage"): 2,
        ("stepfunctions", "SendTaskSuccess"): 1,
    }
    assert counter.total == 5
    assert dict(counter.usage) == {"dynamodb.write": 5, "sqs.fifo": 1, "sqs.standard": 1}
    assert counter.failures == 0


def test_a_client_that_exists_already_can_be_watched(counter: CallCounter) -> None:
    client = answering(200).client("dynamodb")
    counter.watch(client)
    client.put_item(TableName="jobs", Item=ITEM)
    assert counter.total == 1


def test_retries_are_billed_and_failures_counted(counter: CallCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)
    session = answering(500, b'{"__type": "InternalServerError"}')
    counter.watch(session)
    with pytest.raises(ClientError):
        session.client("dynamodb", config=QUICK).put_item(TableName="jobs", Item=ITEM)
    assert (counter.total, counter.retries, counter.failures) == (1, 2, 1)
    assert counter.usage["dynamodb.write"] == 3


def test_a_call_that_never_arrives_is_counted_as_failed(counter: CallCounter) -> None:
    def unreachable(request: AWSRequest, **_: object) -> None:
        raise EndpointConnectionError(endpoint_url=request.url)  # type: ignore[arg-type]

    session = boto3.Session("key", "secret", region_name="us-east-1")
    session.events.register("before-send", unreachable)
    counter.watch(session)
    once = Config(retries={"mode": "standard", "total_max_attempts": 1})
    with pytest.raises(EndpointConnectionError):
        session.client("sqs", config=once).list_queues()
    assert (counter.total, counter.failures) == (1, 1)


def test_what_a_proxy_saw_is_added_under_boto3s_names(counter: CallCounter) -> None:
    counter.add("states", "SendTaskSuccess")
    counter.add("ses", "SendEmail", times=2)
    assert counter.calls == {("stepfunctions", "SendTaskSuccess"): 1, ("sesv2", "SendEmail"): 2}
    assert counter.usage["ses.out"] == 2


def test_only_what_came_since_a_moment_is_told(counter: CallCounter) -> None:
    counter.add("dynamodb", "PutItem", times=3)
    before = counter.copy()
    counter.add("dynamodb", "PutItem", times=4)
    counter.add_usage({"states.transition": 16.0})
    habit = counter.since(before).per(2)
    assert habit.calls == 2.0
    assert habit.usage == {"dynamodb.write": 2.0, "states.transition": 8.0}


def test_transitions_and_invocations_are_read_from_the_history(counter: CallCounter) -> None:
    from benchmarks.parts.aws_calls import workflow_usage

    usage = workflow_usage(
        [
            {"type": "ExecutionStarted"},
            {"type": "TaskStateEntered"},
            {"type": "TaskScheduled", "taskScheduledEventDetails": {"resourceType": "lambda"}},
            {"type": "TaskStateExited"},
            {"type": "ChoiceStateEntered"},
            {"type": "TaskStateEntered"},
            {"type": "LambdaFunctionScheduled"},
            {"type": "TaskScheduled", "taskScheduledEventDetails": {"resourceType": "sqs"}},
            {"type": "SucceedStateEntered"},
        ]
    )
    assert (usage["states.transition"], usage["lambda.request"]) == (5.0, 2.0)
