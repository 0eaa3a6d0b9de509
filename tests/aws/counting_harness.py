"""A mail's whole way in this process: the workflow file, every lambda's handler and a worker, each call counted.

Import it after `needs_extra`: without boto3 there is nothing to count.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.harness.chaos import until
from tests.infra.calls import Recorder
from tests.infra.rights_harness import MAILBOX, RightsHarness
from webordinary.adapters.aws import names
from webordinary.adapters.aws.pool import claim_table
from webordinary.adapters.aws.provision.shapes import create_key_queues
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.asl.engine import Engine
from webordinary.asl.ports import send_task_success
from webordinary.compose import aws_worker
from webordinary.compose.aws import AwsContainer
from webordinary.model.claims import StartedJob
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.operations import sample
from webordinary.workflow.definition import STEPS, embedded

LONG = 120.0  # nobody waits for so long unless something is broken
RARELY = 1200.0  # not within a test
NOT_UNDERSTOOD = "Please make the whole site feel more like a summer evening"


class Counting:
    """Every call of lambdas and workers by service and operation, counted before it is made.

    A poll that brings nothing is the waiting worker's and not a mail's. A job ends once its ticket is used up: to a
    worker whose loop was slower than the job the ticket would be news, and worth a look.
    """

    def __init__(self, recorder: Recorder, patch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        self.called_back: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._changed = threading.Condition()
        self._polls, self._held_up, self._ticket_used = 0, False, False
        self._recorder, self._test = recorder, threading.get_ident()
        self._make = BaseClient._make_api_call  # type: ignore[attr-defined]
        counting = self

        def counted(client: BaseClient, operation: str, params: dict[str, Any]) -> Any:  # noqa: ANN401 - as AWS answers
            return counting._counted(client, operation, params)

        patch.setattr(BaseClient, "_make_api_call", counted)

    def hold_up_polls(self) -> None:
        """Let no worker hear of anything until `let_poll`."""
        with self._changed:
            self._held_up, self._ticket_used = True, False
            assert self._changed.wait_for(lambda: self._polls == 0, LONG)

    def let_poll(self) -> None:
        with self._changed:
            self._held_up = False
            self._changed.notify_all()

    def _counted(self, client: BaseClient, operation: str, params: dict[str, Any]) -> Any:  # noqa: ANN401
        name, by_worker = f"{client.meta.service_model.service_name}:{operation}", threading.get_ident() != self._test
        if by_worker and operation == "ReceiveMessage":
            return self._poll(name, client, params)
        if by_worker or self._recorder.actor:
            with self._changed:
                self.calls[name] += 1
        if operation == "SendTaskSuccess":
            self.called_back.put((params["taskToken"], json.loads(params["output"])))
        if operation == "TransactWriteItems" and threading.current_thread().name.startswith("slot "):
            with self._changed:
                assert self._changed.wait_for(lambda: self._ticket_used, LONG), "no ticket came"
        answer = self._make(client, operation, params)
        if operation == "DeleteMessageBatch" and params["QueueUrl"].endswith(".fifo"):
            with self._changed:
                self._ticket_used = True
                self._changed.notify_all()
        return answer

    def _poll(self, name: str, client: BaseClient, params: dict[str, Any]) -> Any:  # noqa: ANN401
        with self._changed:
            assert self._changed.wait_for(lambda: not self._held_up, LONG)
            self._polls += 1
        try:
            answer = self._make(client, "ReceiveMessage", params)
            with self._changed:
                self.calls[name] += bool(answer.get("Messages"))
            return answer
        finally:
            with self._changed:
                self._polls -= 1
                self._changed.notify_all()


class CountingHarness(RightsHarness):
    """An account with customers whose mails nobody understands, so that nothing is published."""

    def __init__(self, endpoint: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        # Names of buckets are the whole emulator's.
        super().__init__(endpoint, folder, patch, domain=f"t{secrets.token_hex(4)}.example")
        self.clients.ses.create_email_identity(EmailIdentity=MAILBOX)
        self._origin = sample.ensure_sample_origin(folder / "of-all.git")
        self._ports = AwsContainer(self.config, clients=self.clients)
        self._store = SqliteExecutions(MemoryDatabase())
        steps = {step: partial(self.invoke, names.function_of(step)) for step in STEPS}
        self._engine = Engine(self._store, embedded(), steps)
        self.counting = Counting(self.recorder, patch)
        patch.setattr(claim_table, "EACH_SECONDS", RARELY)
        patch.setattr(aws_worker, "RECONCILE_SECONDS", RARELY)

    def onboard(self, key: ProjectUser) -> None:
        create_key_queues(self.clients, key)
        project = Project(key.project_id, str(self._origin), agent="builtin")
        self._ports.directory.add_project(project, datetime.now(UTC))
        self._ports.directory.add_sender(Sender(_address(key), key), datetime.now(UTC))

    @contextmanager
    def working(self, slots: int) -> Iterator[None]:
        """A worker runs beside the block. What time alone makes it do, it does not do meanwhile."""
        stop = threading.Event()
        config = replace(self.config, lease_seconds=3 * RARELY, renew_seconds=RARELY, aws_poll_seconds=1)
        thread = threading.Thread(target=aws_worker.run_cloud_worker, args=(config, slots, stop))
        thread.start()
        try:
            yield
        finally:
            self.counting.let_poll()
            stop.set()
            thread.join(LONG)

    def calls_of_a_mail(self, key: ProjectUser, slots: int) -> Counter[str]:
        """Everything that was asked of AWS from the bucket's event to the sent reply.

        The worker hears of it once its workflow awaits the result: who comes second calls back, and is always the same.
        """
        counting = self.counting
        counting.hold_up_polls()
        counting.calls.clear()
        email_id = self.mail(NOT_UNDERSTOOD, sender=_address(key))
        self._engine.start(email_id, {"emailId": email_id, "redrive": 0})
        self._engine.run_ready()
        counting.let_poll()
        token, output = counting.called_back.get(timeout=LONG)
        assert send_task_success(self._store, token, output)
        self._engine.run_ready()
        until(lambda: self._is_over(key, email_id, slots), "all that follows from the mail", LONG)
        return Counter(counting.calls)

    def calls_of_the_broker(self, key: ProjectUser) -> Counter[str]:
        """What it asks to hand out the rights to the project of a mail in work."""
        email_id = self.mail(NOT_UNDERSTOOD, sender=_address(key))
        self._engine.start(email_id, {"emailId": email_id, "redrive": 0})
        self._engine.run_ready()
        assert isinstance(self._claims.claim_and_start(key, "container-1", datetime.now(UTC)), StartedJob)
        self.counting.calls.clear()
        assert self.invoke(names.BROKER, {"key": str(key), "worker": "container-1"})
        return Counter(self.counting.calls)

    def _is_over(self, key: ProjectUser, email_id: str, slots: int) -> bool:
        """Replied and called back, its ticket and hint gone, and no key held for which there is no slot."""
        rows = self.clients.dynamodb.scan(TableName=names.OWNERSHIP, ConsistentRead=True)["Items"]
        held = [row for row in rows if row.get("status", {}).get("S", "free") != "free"]
        sent = [entry.sent_at for entry in self._ports.outbox.of(email_id)]
        lying = any(self._lying(queue) for queue in (names.queues_of(key).input, names.UNCLAIMED))
        return (
            bool(sent)
            and all(sent)
            and not (self._ports.pool.pending_callbacks.pending(1) or lying or len(held) > slots)
        )

    def _lying(self, queue: str) -> bool:
        counted = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        url = self._ports.queues.url_of(queue)
        told = self.clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return any(int(told[name]) for name in counted)


def _address(key: ProjectUser) -> str:
    return f"{key.user_id}@{key.project_id}.example"
