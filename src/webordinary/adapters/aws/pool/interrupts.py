"""Interrupts on SQS: one standard queue a key, read when a ticket made its owner look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.pool.queues import BATCH, Queues
from webordinary.model.claims import Interrupt
from webordinary.model.names import ProjectUser

INTERRUPT = "INTERRUPT"
_MOST_ROUNDS = 10


class AwsInterrupts:
    """Requests to look at a key's queue."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def send(self, interrupt: Interrupt, now: datetime) -> None:
        """Ask; who asks twice is heard once."""
        body = {
            "type": INTERRUPT,
            "projectId": interrupt.key.project_id,
            "userId": interrupt.key.user_id,
            "jobId": interrupt.job_id,
            "newThreadId": interrupt.new_thread_id,
            "reason": interrupt.reason,
        }
        self._queues.send(names.queues_of(interrupt.key).interrupts, body)

    def take(self, key: ProjectUser) -> Sequence[Interrupt]:
        """Receive and delete what was asked for this key; what nobody of us wrote goes with it."""
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
