"""SQS as the adapters use it: small JSON messages, sent, received, deleted and given back in batches."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import NOT_THERE, code_of, translated
from webordinary.model.claims import Interrupt
from webordinary.model.errors import Permanent
from webordinary.model.jobs import Job, output_message
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import DRAIN, QUEUED, RESUMED

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageAttributeValueTypeDef, MessageTypeDef


class QueueUrls:
    """Names to addresses. Thread-safe: two threads that look at the same time learn the same."""

    def __init__(self, sqs: SQSClient, beside: str = "") -> None:
        """`beside` is the address of any queue of the same account and region: then nothing is looked up."""
        self._sqs, self._beside = sqs, beside

    def of(self, name: str) -> str:
        """The URL of a queue; raises Permanent if a look-up does not find it. Known URLs are not checked."""
        if not self._beside:
            with at_queue("looking for", name):
                self._beside = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return beside(self._beside, name)


def beside(url: str, name: str) -> str:
    """The address of another queue of the same account and region."""
    return f"{url.rpartition('/')[0]}/{name}"


@contextmanager
def at_queue(what: str, name: str) -> Iterator[None]:
    """Failures at a queue in our own words; of a missing one: what makes it."""
    with translated(f"{what} queue {name}"):
        try:
            yield
        except ClientError as problem:
            if code_of(problem) not in NOT_THERE:
                raise
            raise Permanent(
                f"queue {name} is not there: `webordinary project add … --backend aws` makes those of a customer, "
                "`webordinary aws deploy` the others"
            ) from problem


BATCH = 10
TICKET, INTERRUPT, OUTPUT = "TICKET", "INTERRUPT", "OUTPUT"
VISIBILITY_SECONDS = 10
"""Longer than deleting a ticket or claiming a hint's key takes; a dead worker's messages come again after it."""
LONGEST_DELAY_SECONDS = 900  # what SQS allows


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was received. A body that is no JSON object is read as empty."""

    message_id: str
    receipt: str
    receives: int
    body: Mapping[str, Any]


class Queues:
    """All queues of an account by their names. Thread-safe."""

    def __init__(self, sqs: SQSClient, urls: QueueUrls | None = None) -> None:
        self._sqs, self._urls = sqs, urls or QueueUrls(sqs)

    def url_of(self, name: str) -> str:
        """The address of the queue."""
        return self._urls.of(name)

    def depth(self, name: str) -> int:
        """About how many messages wait."""
        with at_queue("looking at", name):
            asked = self._sqs.get_queue_attributes(
                QueueUrl=self._urls.of(name), AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(asked["Attributes"]["ApproximateNumberOfMessages"])

    def send(self, name: str, body: Mapping[str, object], kind: str, key: ProjectUser, after_seconds: int = 0) -> None:
        """Send one message to a standard queue, delivered after the delay."""
        delay = min(after_seconds, LONGEST_DELAY_SECONDS)
        with at_queue("sending to", name):
            self._sqs.send_message(
                QueueUrl=self._urls.of(name),
                MessageBody=_text(body),
                DelaySeconds=delay,
                MessageAttributes=_attributes(kind, key),
            )

    def send_once(self, name: str, body: Mapping[str, object], kind: str, key: ProjectUser, once: str) -> None:
        """One message to a FIFO queue; of those with the same `once`, within five minutes, only the first."""
        with at_queue("sending to", name):
            self._sqs.send_message(
                QueueUrl=self._urls.of(name),
                MessageBody=_text(body),
                MessageAttributes=_attributes(kind, key),
                MessageGroupId=str(key),
                MessageDeduplicationId=once,
            )

    def receive(
        self, name: str, limit: int = BATCH, wait_seconds: int = 0, hidden_seconds: int = VISIBILITY_SECONDS
    ) -> list[Message]:
        """Up to `limit` messages, with a long poll. Others do not see them for the visibility timeout."""
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
        """Delete handled messages. One whose deletion fails is received again."""
        for some in _batches(messages):
            with at_queue("deleting from", name):
                self._sqs.delete_message_batch(
                    QueueUrl=self._urls.of(name),
                    Entries=[{"Id": str(n), "ReceiptHandle": one.receipt} for n, one in enumerate(some)],
                )

    def give_back(self, name: str, messages: Sequence[Message]) -> None:
        """Make messages visible to other receivers at once."""
        for some in _batches(messages):
            with at_queue("giving back to", name):
                self._sqs.change_message_visibility_batch(
                    QueueUrl=self._urls.of(name),
                    Entries=[
                        {"Id": str(n), "ReceiptHandle": one.receipt, "VisibilityTimeout": 0}
                        for n, one in enumerate(some)
                    ],
                )


def _attributes(kind: str, key: ProjectUser) -> dict[str, MessageAttributeValueTypeDef]:
    """For consumers that filter without reading bodies."""
    values = {"type": kind, "projectId": key.project_id, "userId": key.user_id}
    return {name: {"DataType": "String", "StringValue": value} for name, value in values.items()}


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


class SqsNotifier:
    """Sends notifications to the input queue of the job's key, which the key's owner polls."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def notify_owner(self, job: Job, news: str = QUEUED) -> None:
        body = {
            "jobId": job.job_id,
            "messageId": job.email_id,
            "threadId": job.thread_id,
            "projectId": job.key.project_id,
            "userId": job.key.user_id,
            "attempt": job.attempts,
            "interruptions": job.interruptions,
            "news": news,
        }
        self._queues.send_once(names.queues_of(job.key).input, body, TICKET, job.key, ticket_id(job, news))

    def ask_to_end(self, key: ProjectUser, worker: str) -> None:
        """Wake the worker that holds this key: it reads the request in the ticket, and others are only woken."""
        body = {"projectId": key.project_id, "userId": key.user_id, "news": DRAIN, "worker": worker}
        self._queues.send_once(names.queues_of(key).input, body, TICKET, key, f"{DRAIN}-{secrets.token_hex(16)}")

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None:
        """The hint in the unclaimed queue is the message."""


def ticket_id(job: Job, news: str = QUEUED) -> str:
    """Names one reason to look: a start of a job is announced once, however often its step is retried.

    A site that is resumed twice within the minutes for which SQS knows a name is a reason each time.
    """
    start = f"{job.job_id}-{job.attempts}-{job.interruptions}"
    if news == RESUMED:
        return f"{start}-{news}-{secrets.token_hex(8)}"
    return start if news == QUEUED else f"{start}-{news}"


def asks_to_end(ticket: Mapping[str, object], worker: str) -> bool:
    """Whether it asks this worker to end once its running jobs are done."""
    return ticket.get("news") == DRAIN and ticket.get("worker") == worker


def is_old(ticket: Mapping[str, object], started: Job | None) -> bool:
    """Whether it announces a job that has been started meanwhile."""
    if started is None or ticket.get("news", QUEUED) != QUEUED:
        return False
    announced = (ticket.get("jobId"), ticket.get("interruptions"), ticket.get("attempt"))
    return announced == (started.job_id, started.interruptions, started.attempts - 1)


_MOST_ROUNDS = 10


class AwsInterrupts:
    """Requests to look at a key's queue."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def send(self, interrupt: Interrupt, now: datetime) -> None:
        """Request an interrupt; duplicates are dropped."""
        body = {
            "type": INTERRUPT,
            "projectId": interrupt.key.project_id,
            "userId": interrupt.key.user_id,
            "jobId": interrupt.job_id,
            "newThreadId": interrupt.new_thread_id,
            "reason": interrupt.reason,
        }
        self._queues.send(names.queues_of(interrupt.key).interrupts, body, INTERRUPT, interrupt.key)

    def take(self, key: ProjectUser) -> Sequence[Interrupt]:
        """Receive and delete the interrupts for this key, with messages that cannot be read."""
        queue, asked = names.queues_of(key).interrupts, dict[str, Interrupt]()
        for _ in range(_MOST_ROUNDS):
            messages = self._queues.receive(queue)
            self._queues.delete(queue, messages)
            for body in (message.body for message in messages if message.body.get("type") == INTERRUPT):
                asked.setdefault(str(body.get("jobId", "")), _interrupt(key, body))
            if len(messages) < BATCH:
                break
        return list(asked.values())


def _interrupt(key: ProjectUser, body: Mapping[str, Any]) -> Interrupt:
    return Interrupt(key, str(body.get("jobId", "")), str(body.get("newThreadId", "")), str(body.get("reason", "")))


_log = logging.getLogger(__name__)


class AwsOutputs:
    """One queue a key, written where the project wants it."""

    def __init__(self, queues: Queues, applies: Callable[[str], bool]) -> None:
        """`applies` tells whether a project has such queues."""
        self._queues, self._applies = queues, applies

    def send(self, job: Job) -> None:
        """Send the result of this job. A missing queue does not delay the reply."""
        if not self._applies(job.key.project_id):
            return
        try:
            self._queues.send(names.queues_of(job.key).output, output_message(job), OUTPUT, job.key)
        except Permanent as problem:
            _log.warning("job %s: its output message is not sent: %s", job.job_id, problem)
