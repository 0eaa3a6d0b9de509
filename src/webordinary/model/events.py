"""Events: the log, the counters and the timeline of a mail are made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from webordinary.model.names import ProjectUser


class EventKind(StrEnum):
    """Every kind of event. The values are stored, logged and shown; docs/glossary.md explains each."""

    MAIL_RECEIVED = "MailReceived"
    MAIL_PARSED = "MailParsed"
    MAIL_REFUSED = "MailRefused"
    MAIL_HELD = "MailHeld"
    MAIL_RELEASED = "MailReleased"
    MAIL_DROPPED = "MailDropped"
    OPERATOR_ANSWERED = "OperatorAnswered"
    MAIL_CLOSED = "MailClosed"
    MAIL_RETRIED = "MailRetried"
    MAIL_REHEARSED = "MailRehearsed"
    SITE_ADDED = "SiteAdded"
    SITE_CHANGED = "SiteChanged"
    MAILS_NOT_READ = "MailsNotRead"
    JOB_RECORDED = "JobRecorded"
    ATTACHMENT_STORED = "AttachmentStored"
    ATTACHMENT_REFUSED = "AttachmentRefused"
    JOB_QUEUED = "JobQueued"
    CLAIM_REQUESTED = "ClaimRequested"
    CLAIM_TAKEN = "ClaimTaken"
    CLAIM_RACE_LOST = "ClaimRaceLost"
    CLAIM_TAKEN_OVER = "ClaimTakenOver"
    CLAIM_RENEWAL_FAILED = "ClaimRenewalFailed"
    CLAIM_LOST = "ClaimLost"
    CLAIM_YIELDED = "ClaimYielded"
    CLAIM_RELEASED = "ClaimReleased"
    JOB_STARTED = "JobStarted"
    WORKSPACE_PREPARED = "WorkspacePrepared"
    AGENT_PROGRESS = "AgentProgress"
    AGENT_FINISHED = "AgentFinished"
    CHANGE_COMMITTED = "ChangeCommitted"
    SITE_BUILT = "SiteBuilt"
    SITE_NOT_BUILT = "SiteNotBuilt"
    SITE_PUBLISHED = "SitePublished"
    PICTURES_TAKEN = "PicturesTaken"
    SITE_ROLLED_BACK = "SiteRolledBack"
    JOB_SETTLED = "JobSettled"
    JOB_HELD = "JobHeld"
    JOB_WAITS = "JobWaits"
    JOB_INTERRUPTED = "JobInterrupted"
    JOB_REQUEUED = "JobRequeued"
    STOP_ASKED = "StopAsked"
    REPLY_WRITTEN = "ReplyWritten"
    REPLY_SENT = "ReplySent"
    REPLY_BOUNCED = "ReplyBounced"
    DEAD_LETTERED = "DeadLettered"
    DEAD_LETTER_REDRIVEN = "DeadLetterRedriven"
    DEAD_LETTER_DROPPED = "DeadLetterDropped"
    WORKER_STARTED = "WorkerStarted"
    WORKER_DRAINED = "WorkerDrained"
    WORKER_STOPPED = "WorkerStopped"
    OUTAGE_EXCUSED = "OutageExcused"
    WORKER_DIED = "WorkerDied"
    WORKER_HUNG = "WorkerHung"
    BREAKER_OPENED = "BreakerOpened"
    BREAKER_CLOSED = "BreakerClosed"
    LOOK_AGAIN = "LookAgain"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `data` holds small values."""

    kind: EventKind
    email_id: str | None = None
    job_id: str | None = None
    key: ProjectUser | None = None
    worker: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class Events(Protocol):
    """The sink of all events. It never fails its caller and never waits."""

    def emit(self, event: Event) -> None:
        """Add an event; it may reach the disk a moment later."""
