"""The audit of interruptions, in DynamoDB; what is past its retention expires there."""

from __future__ import annotations

from datetime import datetime

from webordinary.adapters.aws import names
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.items import epoch, moment
from webordinary.adapters.aws.writes import put
from webordinary.model.jobs import Job

RETENTION_SECONDS = 30 * 24 * 3600


class AwsInterruptions:
    """What was interrupted, as items."""

    def __init__(self, dynamo: Dynamo, table: str = names.INTERRUPTIONS) -> None:
        self._dynamo, self._table = dynamo, table

    def record(self, job: Job, reason: str, now: datetime) -> None:
        """Write down a job's last interruption, unless it is written down."""
        fields = {
            "messageId": job.email_id,
            "recordId": f"{job.job_id}#{job.interruptions}",
            "jobId": job.job_id,
            "threadId": job.thread_id,
            "projectUserId": str(job.key),
            "interruptedContainer": job.worker,
            "reason": reason,
            "timestamp": moment(now),
            "expiresAt": epoch(now, RETENTION_SECONDS),
        }
        first = put(self._table, fields, "attribute_not_exists(#recordId)")
        self._dynamo.write(f"recording that job {job.job_id} was interrupted", first)
