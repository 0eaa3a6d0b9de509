"""SQS as the adapters use it: small JSON messages, sent, received, deleted and given back in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws.pool.queue_urls import QueueUrls, at_queue

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

BATCH = 10
VISIBILITY_SECONDS = 10
"""Longer than deleting a ticket or claiming a hint's key takes; a dead worker's messages come again after it."""
LONGEST_DELAY_SECONDS = 900  # what SQS allows


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was received. A body that is no JSON object is an empty one: nobody of us wrote it."""

    message_id: str
    receipt: str
    receives: int
    body: Mapping[str, Any]


class Queues:
    """All queues of an account by their names. Thread-safe."""

    def __init__(self, sqs: SQSClient, urls: QueueUrls | None = None) -> None:
        self._sqs, self._urls = sqs, urls or QueueUrls(sqs)

    def url_of(self, name: str) -> str:
        """Where it is."""
        return self._urls.of(name)

    def depth(self, name: str) -> int:
        """About how many messages wait."""
        with at_queue("looking at", name):
            asked = self._sqs.get_queue_attributes(
                QueueUrl=self._urls.of(name), AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(asked["Attributes"]["ApproximateNumberOfMessages"])

    def send(self, name: str, body: Mapping[str, object], after_seconds: int = 0) -> None:
        """One message to a standard queue; nobody sees it before."""
        delay = min(after_seconds, LONGEST_DELAY_SECONDS)
        with at_queue("sending to", name):
            self._sqs.send_message(QueueUrl=self._urls.of(name), MessageBody=_text(body), DelaySeconds=delay)

    def send_once(self, name: str, body: Mapping[str, object], group: str, once: str) -> None:
        """One message to a FIFO queue; of those with the same `once`, within five minutes, only the first."""
        with at_queue("sending to", name):
            self._sqs.send_message(
                QueueUrl=self._urls.of(name),
                MessageBody=_text(body),
                MessageGroupId=group,
                MessageDeduplicationId=once,
            )

    def receive(
        self, name: str, limit: int = BATCH, wait_seconds: int = 0, hidden_seconds: int = VISIBILITY_SECONDS
    ) -> list[Message]:
        """Up to `limit` messages; waits for the first so long. Others do not see them for a while."""
        with at_queue("receiving from", name):
            answer = self._sqs.receive_message(
                QueueUrl=self._urls.of(name),
                MaxNumberOfMessages=max(1, min(limit, BATCH)),
                WaitTimeSeconds=wait_seconds,
                VisibilityTimeout=hidden_seconds,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
        return [_message(one) for one in answer.get("Messages", [])]

    def delete(self, name: str, messages: Sequence[Message]) -> None:
        """They have told what they had to tell. One that is not deleted after all comes again."""
        for some in _batches(messages):
            with at_queue("deleting from", name):
                self._sqs.delete_message_batch(
                    QueueUrl=self._urls.of(name),
                    Entries=[{"Id": str(n), "ReceiptHandle": one.receipt} for n, one in enumerate(some)],
                )

    def give_back(self, name: str, messages: Sequence[Message]) -> None:
        """Let others have them at once."""
        for some in _batches(messages):
            with at_queue("giving back to", name):
                self._sqs.change_message_visibility_batch(
                    QueueUrl=self._urls.of(name),
                    Entries=[
                        {"Id": str(n), "ReceiptHandle": one.receipt, "VisibilityTimeout": 0}
                        for n, one in enumerate(some)
                    ],
                )


def _text(body: Mapping[str, object]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _message(received: MessageTypeDef) -> Message:
    receives = int(received.get("Attributes", {}).get("ApproximateReceiveCount", "1"))
    return Message(received["MessageId"], received["ReceiptHandle"], receives, _body(received["Body"]))


def _body(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _batches(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    for start in range(0, len(messages), BATCH):
        yield messages[start : start + BATCH]
