"""The timeline of one mail on AWS: what its records tell, what workers told, and the steps that its workflow went."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.pool.job_items import Record
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.overview import MailSummary, SentReply, TimelineEntry

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient

_log = logging.getLogger(__name__)
MOST_STEPS = 500
LEFT = "TaskStateExited"
KINDS = {
    "ParseEmail": "MailParsed",
    "StoreAttachment": "AttachmentStored",
    "SendClaimRequest": "ClaimRequested",
    "SendInterrupt": "InterruptSent",
    "GiveUp": "DeadLettered",
}
"""What it means that a step of the workflow is done, where no record tells."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to a mail."""

    at: datetime
    kind: str
    worker: str | None = None
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class WorkflowSteps:
    """The steps as Step Functions has written them down: one call for each mail that somebody looks at."""

    client: SFNClient
    state_machine_arn: str

    def of(self, email_id: str) -> list[Moment]:
        """The first run of a mail's workflow. Without it the timeline is shorter, and that is all."""
        arn = f"{self.state_machine_arn.replace(':stateMachine:', ':execution:')}:{email_id}"
        try:
            with translated(f"looking at the workflow of mail {email_id}"):
                told = self.client.get_execution_history(
                    executionArn=arn, maxResults=MOST_STEPS, includeExecutionData=False
                )
        except WebOrdinaryError as problem:
            _log.info("%s", problem)
            return []
        left = ((event["timestamp"], event["stateExitedEventDetails"]["name"]) for event in told["events"]
                if event["type"] == LEFT)  # fmt: skip
        return [Moment(at, KINDS[state]) for at, state in left if state in KINDS]


def timeline(
    mail: MailSummary, record: Record | None, replies: Sequence[SentReply], steps: Iterable[Moment]
) -> tuple[TimelineEntry, ...]:
    """All of it in the order of time; clocks of several machines made it."""
    moments = [*_of_mail(mail), *steps]
    if record:
        moments += _of_job(record)
        moments += [Moment(entry.at, entry.kind, entry.worker, entry.values) for entry in record.told]
    moments += [Moment(reply.created_at, "ReplyWritten") for reply in replies]
    moments += [Moment(reply.sent_at, "ReplySent") for reply in replies if reply.sent_at]
    key = str(mail.job.key) if mail.job else None
    return tuple(
        TimelineEntry(number, one.at, one.kind, mail.email_id, key, one.worker, one.data or {})
        for number, one in enumerate(sorted(moments, key=lambda one: one.at), start=1)
    )


def _of_mail(mail: MailSummary) -> Iterator[Moment]:
    yield Moment(mail.received_at, "MailReceived")
    for kind in ("MailRefused", "MailHeld"):
        if at := mail.milestones.get(kind):
            yield Moment(at, kind, data={"reason": mail.stopped_because})


def _of_job(record: Record) -> Iterator[Moment]:
    job, told = record.job, {entry.kind for entry in record.told}
    yield Moment(job.recorded_at, "JobRecorded")
    if job.queued_at:
        yield Moment(job.queued_at, "JobQueued")
    if job.started_at and "JobStarted" not in told:
        yield Moment(job.started_at, "JobStarted", job.worker)
    if job.settled_at:
        yield Moment(job.settled_at, "JobSettled", job.worker, {"outcome": str(job.outcome)})
