"""Queues and tables on the emulator that no other test knows."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.aws.accounts import clients_of
from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo, to_item
from webordinary.adapters.aws.pool.claim_requests import ClaimRequestDedup, SqsClaimRequests
from webordinary.adapters.aws.pool.queues import AwsInterrupts, Queues, SqsNotifier
from webordinary.adapters.aws.provision.shapes import create_key_queues, create_shared_queues, create_tables
from webordinary.model.jobs import Job, JobOutcome, JobResult, JobState, NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser

_TIMEOUT_SECONDS = 60.0
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


@dataclass
class PoolQueues:
    """One account's queues, as one process sees them; `beside` it another may look at the same."""

    endpoint: str
    suffix: str = ""

    def __post_init__(self) -> None:
        self.clients = clients_of(self.endpoint)
        self.queues = Queues(self.clients.sqs)
        if not self.suffix:
            self.suffix = f"-{secrets.token_hex(4)}"
            create_shared_queues(self.clients, self.suffix)
            create_tables(self.clients, (names.CLAIM_REQUESTS, names.OWNERSHIP), self.suffix, expiring=False)
        self.unclaimed = names.UNCLAIMED + self.suffix
        self.hints = self.hints_of(self.unclaimed)
        self.tickets, self.interrupts = SqsNotifier(self.queues), AwsInterrupts(self.queues)

    def beside(self, endpoint: str = "") -> PoolQueues:
        """Another process that sees the same, perhaps through a proxy."""
        return PoolQueues(endpoint or self.endpoint, self.suffix)

    def hints_of(self, queue: str) -> SqsClaimRequests:
        table, ownership = names.CLAIM_REQUESTS + self.suffix, names.OWNERSHIP + self.suffix
        return SqsClaimRequests(self.queues, ClaimRequestDedup(Dynamo(self.clients.dynamodb), table, ownership), queue)

    def key(self, queues: bool = True) -> ProjectUser:
        """A customer that nobody else has, onboarded."""
        key = ProjectUser(f"p{secrets.token_hex(6)}", "scott")
        if queues:
            create_key_queues(self.clients, key)
        return key

    def own(self, key: ProjectUser, fence: int, status: str = "free") -> None:
        """A worker has, or had, this key."""
        row = to_item({"projectKey": str(key), "fence": fence, "status": status})
        self.clients.dynamodb.put_item(TableName=names.OWNERSHIP + self.suffix, Item=row)

    def attributes(self, queue: str) -> Mapping[str, str]:
        """As SQS tells them."""
        url = self.queues.url_of(queue)
        found = self.clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return {str(name): value for name, value in found["Attributes"].items()}

    def lying(self, queue: str) -> int:
        """How many messages there are, whoever has them."""
        found = self.attributes(queue)
        counted = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(found[name]) for name in counted)

    def wait_empty(self, queue: str) -> None:
        """Return once nothing is left."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while self.lying(queue):
            assert time.monotonic() < deadline, f"{queue} does not get empty"
            time.sleep(0.05)  # asking again and again: it tells nobody that it is empty

    def put(self, queue: str, text: str) -> None:
        """What somebody else may write."""
        self.clients.sqs.send_message(QueueUrl=self.queues.url_of(queue), MessageBody=text)

    def read(self, queue: str) -> list[dict[str, Any]]:
        """The bodies that are visible now, as any program reads them; they are gone then."""
        found = self.clients.sqs.receive_message(
            QueueUrl=self.queues.url_of(queue), MaxNumberOfMessages=10, WaitTimeSeconds=0
        ).get("Messages", [])
        for message in found:
            self.clients.sqs.delete_message(QueueUrl=self.queues.url_of(queue), ReceiptHandle=message["ReceiptHandle"])
        return [json.loads(message["Body"]) for message in found]


def queued(key: ProjectUser, job_id: str = "job-1", thread: str = "t1") -> Job:
    """A job that waits for a worker."""
    return NewJob(job_id, key, thread, f"mail of {job_id}", Command.EDIT).recorded(1, NOON, ready=True)


def running(job: Job) -> Job:
    """The same job, once a worker has started it."""
    return job._replace(state=JobState.RUNNING, attempts=job.attempts + 1, worker="container-1", fence=7)


def settled(job: Job) -> Job:
    """The same job, when all is done."""
    result = JobResult("The title is Spring Sale now.", commit="abc", url="http://edit.amelia.example/")
    return job._replace(state=JobState.SETTLED, outcome=JobOutcome.SUCCEEDED, result=result, task_token="token")
