"""Output messages on SQS: what became of each job, for programs of a customer that want to hear it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from webordinary.adapters.aws import names
from webordinary.adapters.aws.pool.queues import Queues
from webordinary.model.errors import Permanent
from webordinary.model.jobs import Job

_log = logging.getLogger(__name__)


class AwsOutputs:
    """One queue a key, written where the project wants it."""

    def __init__(self, queues: Queues, wanted: Callable[[str], bool]) -> None:
        """`wanted` says it of a project's id."""
        self._queues, self._wanted = queues, wanted

    def send(self, job: Job) -> None:
        """Tell what became of this job. A queue that is not there holds up nobody's reply."""
        if not self._wanted(job.key.project_id):
            return
        result = job.result
        body = {
            "messageId": job.email_id,
            "threadId": job.thread_id,
            "status": str(job.outcome) if job.outcome else None,
            "summary": result.summary if result else None,
            "commit": result.commit if result else None,
            "url": result.url if result else None,
            "error": result.error if result else None,
        }
        try:
            self._queues.send(names.queues_of(job.key).output, body)
        except Permanent as problem:
            _log.warning("job %s: its output message is not sent: %s", job.job_id, problem)
