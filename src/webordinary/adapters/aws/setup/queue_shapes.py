"""The queues as they must be, and making them where nobody did; infrastructure makes the shared ones alike."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import LONG_POLL_SECONDS, NOT_THERE, Clients, code_of, translated
from webordinary.adapters.aws.pool.queues import VISIBILITY_SECONDS
from webordinary.model.errors import InvalidName
from webordinary.model.names import ProjectUser

if TYPE_CHECKING:
    from types_boto3_sqs.literals import QueueAttributeNameType

    Attributes = dict[QueueAttributeNameType, str]

RETENTION_SECONDS = 14 * 24 * 3600
MAX_RECEIVES = 100
_EXISTS = frozenset({"QueueAlreadyExists", "QueueNameExists"})


@dataclass(frozen=True, slots=True)
class QueueShape:
    """A queue; what is received from it too often goes to the queue `dead_letters`."""

    name: str
    dead_letters: str = ""
    receives: int = 0

    @property
    def fifo(self) -> bool:
        """FIFO queues are told by their names."""
        return self.name.endswith(".fifo")

    def attributes(self) -> Attributes:
        """As SQS wants them, but for the redrive policy."""
        attributes: Attributes = {
            "MessageRetentionPeriod": str(RETENTION_SECONDS),
            "VisibilityTimeout": str(VISIBILITY_SECONDS),
            "ReceiveMessageWaitTimeSeconds": str(LONG_POLL_SECONDS),
            "SqsManagedSseEnabled": "true",
        }
        return {**attributes, "FifoQueue": "true"} if self.fifo else attributes


SHARED_QUEUES = (
    QueueShape(names.UNCLAIMED_DLQ),
    QueueShape(names.UNCLAIMED, names.UNCLAIMED_DLQ, MAX_RECEIVES),
    QueueShape(names.DEAD_LETTERS),
)


def key_queues(key: ProjectUser) -> tuple[QueueShape, ...]:
    """One customer's own, each after the one that it needs."""
    queues = names.queues_of(key)
    return (
        QueueShape(queues.dead_letters),
        QueueShape(queues.input, queues.dead_letters, MAX_RECEIVES),
        QueueShape(queues.interrupts),
        QueueShape(queues.output),
    )


def create_key_queues(clients: Clients, key: ProjectUser) -> None:
    """Make a customer's queues, or make them as they should be. Idempotent."""
    for shape in key_queues(key):
        _create(clients, shape)


def create_shared_queues(clients: Clients, suffix: str = "") -> None:
    """Make the queues of everybody. Idempotent; `suffix` keeps tests apart from one another."""
    for shape in SHARED_QUEUES:
        dead_letters = shape.dead_letters and shape.dead_letters + suffix
        _create(clients, QueueShape(shape.name + suffix, dead_letters, shape.receives))


def keys_with_queues(clients: Clients, project_id: str) -> tuple[ProjectUser, ...]:
    """Everybody of a project for whom queues were made, also those who may not change it any more."""
    prefix = names.queues_of(ProjectUser(project_id, "x")).output.removesuffix("x")
    keys = []
    with translated(f"looking for queues of {project_id}"):
        for page in clients.sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix):
            for url in page.get("QueueUrls", []):
                with suppress(InvalidName):  # of a project whose name begins like this one's
                    keys.append(ProjectUser(project_id, url.rpartition("/")[2].removeprefix(prefix)))
    return tuple(keys)


def remove_key_queues(clients: Clients, key: ProjectUser) -> None:
    """Remove a customer's queues with all that is in them, and last the one that they are found by. Idempotent."""
    for shape in key_queues(key):
        with translated(f"removing queue {shape.name}"):
            try:
                url = clients.sqs.get_queue_url(QueueName=shape.name)["QueueUrl"]
                clients.sqs.delete_queue(QueueUrl=url)
            except ClientError as problem:
                if code_of(problem) not in NOT_THERE:
                    raise


def _create(clients: Clients, shape: QueueShape) -> None:
    with translated(f"making queue {shape.name}"):
        attributes: Attributes = {**shape.attributes(), **_redrive(clients, shape)}
        try:
            clients.sqs.create_queue(QueueName=shape.name, Attributes=attributes)
        except ClientError as problem:
            if code_of(problem) not in _EXISTS:
                raise
            changeable = attributes.copy()
            changeable.pop("FifoQueue", None)
            clients.sqs.set_queue_attributes(QueueUrl=_url(clients, shape.name), Attributes=changeable)


def _redrive(clients: Clients, shape: QueueShape) -> Attributes:
    if not shape.dead_letters:
        return {}
    url = _url(clients, shape.dead_letters)
    arn = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": shape.receives})}


def _url(clients: Clients, name: str) -> str:
    return clients.sqs.get_queue_url(QueueName=name)["QueueUrl"]
