"""Tickets on SQS: one FIFO queue a key. They only wake; the job records are the truth."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from webordinary.adapters.aws import names
from webordinary.adapters.aws.pool.queues import Queues
from webordinary.model.jobs import Job
from webordinary.pool.ports import QUEUED, RESUMED


class AwsTickets:
    """Sends them to the input queue of the job's key; who owns the key reads it."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def ticket(self, job: Job, news: str = QUEUED) -> None:
        """The owner of this job's key, now or later, should look at its queue."""
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
        self._queues.send_once(names.queues_of(job.key).input, body, str(job.key), ticket_id(job, news))

    def unclaimed(self) -> None:
        """The hint in the unclaimed queue is the message."""


def ticket_id(job: Job, news: str = QUEUED) -> str:
    """Names one reason to look: a start of a job is announced once, however often its step is retried.

    A site that is resumed twice within the minutes for which SQS knows a name is a reason each time.
    """
    start = f"{job.job_id}-{job.attempts}-{job.interruptions}"
    if news == RESUMED:
        return f"{start}-{news}-{secrets.token_hex(8)}"
    return start if news == QUEUED else f"{start}-{news}"


def is_old(ticket: Mapping[str, object], started: Job | None) -> bool:
    """Whether it announces a job that has been started meanwhile."""
    if started is None or ticket.get("news", QUEUED) != QUEUED:
        return False
    announced = (ticket.get("jobId"), ticket.get("interruptions"), ticket.get("attempt"))
    return announced == (started.job_id, started.interruptions, started.attempts - 1)
