"""What an operator sees: records of a look at the whole system. Read by the page and the `status` command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from webordinary.model.claims import ClaimStatus
from webordinary.model.events import Event
from webordinary.model.jobs import NOT_UNDERSTOOD, JobOutcome, JobResult, JobState
from webordinary.model.mail import Attachment, Command, RefusedAttachment
from webordinary.model.names import ProjectUser


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A mail's job as far as it has come; `worker` is the name that people know it by."""

    job_id: str
    key: ProjectUser
    thread_id: str
    command: Command
    state: JobState
    attempts: int = 0
    interruptions: int = 0
    worker: str | None = None
    outcome: JobOutcome | None = None
    result: JobResult | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    settled_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MailSummary:
    """One accepted mail with its progress. `milestones` has the last time of each kind of event."""

    email_id: str
    received_at: datetime
    sender: str
    recipient: str
    subject: str | None
    job: JobSummary | None = None
    milestones: Mapping[str, datetime] = field(default_factory=dict)
    answered_at: datetime | None = None
    ended: bool = False
    """Its workflow is over and no reply waits to be sent."""
    dead_reason: str | None = None
    stopped: str = ""
    """`held`, `refused` or `dropped`, where it goes no further."""
    stopped_because: str | None = None
    """Why it was held or refused, where its summary knows; its timeline always does."""


class MailState(StrEnum):
    """How a mail stands, in one word."""

    OPEN = "open"
    DONE = "done"
    ASKED = "asked"
    """The customer was asked back."""
    NOT_UNDERSTOOD = "not-understood"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    """An operator answered it, or saw that nothing is to be done."""
    HELD = "held"
    REFUSED = "refused"
    DROPPED = "dropped"
    DEAD = "dead"


def state_of(mail: MailSummary) -> MailState:
    """The state of a mail, by its records."""
    if mail.dead_reason is not None:
        return MailState.DEAD
    if mail.stopped:
        return MailState.CLOSED if "MailClosed" in mail.milestones else MailState(mail.stopped)
    end = _end_of(mail.job, mail.milestones) if mail.job else MailState.DONE
    needs_person = end in (MailState.NOT_UNDERSTOOD, MailState.FAILED, MailState.CLOSED)
    return end if needs_person or mail.answered_at or mail.ended else MailState.OPEN


def _end_of(job: JobSummary, milestones: Mapping[str, datetime]) -> MailState:
    result, looked = (
        job.result,
        max(filter(None, map(milestones.get, ("MailClosed", "OperatorAnswered"))), default=None),
    )
    failed = job.outcome not in (None, JobOutcome.SUCCEEDED, JobOutcome.CANCELLED)
    unclear = result is not None and result.error == NOT_UNDERSTOOD
    if (failed or unclear) and looked and job.settled_at and looked >= job.settled_at:
        return MailState.CLOSED
    if unclear:
        return MailState.NOT_UNDERSTOOD
    if failed:
        return MailState.FAILED
    if job.outcome is JobOutcome.CANCELLED:
        return MailState.CANCELLED
    return MailState.ASKED if result is not None and result.question else MailState.DONE


@dataclass(frozen=True, slots=True)
class MailFilter:
    """Which mails are meant; what is empty does not matter."""

    state: str = ""
    sender: str = ""
    """The beginnings of words of the sender's address."""
    project_id: str = ""
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    """Words that sender, subject or text contain."""
    user_id: str = ""


@dataclass(frozen=True, slots=True)
class MailPage:
    """Some of the mails that fit a filter. `counted` is False where there are at least `total`."""

    mails: tuple[MailSummary, ...]
    total: int
    counted: bool = True


@dataclass(frozen=True, slots=True)
class MailText:
    """The text of a parsed mail."""

    message_id: str
    sender_name: str
    text: str
    elided: str
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SentReply:
    """A reply as it stands in the outbox; unsent while `sent_at` is None."""

    kind: str
    recipient: str
    message_id: str
    raw: bytes
    created_at: datetime
    sent_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An event as it was stored: `seq` only grows."""

    seq: int
    at: datetime
    kind: str
    email_id: str | None
    key: str | None
    worker: str | None
    data: Mapping[str, Any]


OTHER_WORKER = ("previous", "to")
"""The small values of an event that name another worker than the one it happened to."""


def workers_in(entries: Iterable[TimelineEntry]) -> set[str]:
    """The ids of all workers that these speak of."""
    ids = (one for entry in entries for one in (entry.worker, *map(entry.data.get, OTHER_WORKER)))
    return {one for one in ids if isinstance(one, str)}


def with_names(entry: TimelineEntry, names: Mapping[str, str]) -> TimelineEntry:
    """The same, with workers called as people know them; one whose name is forgotten keeps its id."""
    data = entry.data
    others = {name: names.get(data[name], data[name]) for name in OTHER_WORKER if isinstance(data.get(name), str)}
    worker = names.get(entry.worker, entry.worker) if entry.worker else None
    return replace(entry, worker=worker, data={**data, **others})


class StateVisit(NamedTuple):
    """A state of the workflow that a mail came through; its work was tried again `retries` times."""

    state: str
    retries: int = 0


@dataclass(frozen=True, slots=True)
class MailDetail:
    """One mail with everything that belongs to it; `text` is None until it could be parsed."""

    summary: MailSummary
    text: MailText | None
    attachments: tuple[Attachment | RefusedAttachment, ...]
    replies: tuple[SentReply, ...]
    timeline: tuple[TimelineEntry, ...]
    path: tuple[StateVisit, ...] = ()
    """The states of the newest execution of its workflow, in the order that it entered them."""


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """A worker that lives."""

    worker: str
    name: str
    pid: int
    slots: int
    started_at: datetime
    drains: bool = False
    """It was asked to end once its running jobs are done, where that is written down."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """What a worker does now."""

    worker: str
    key: ProjectUser
    email_id: str
    subject: str | None
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class ClaimSummary:
    """A claim that is held or being released; `worker` is the name that people know it by."""

    key: ProjectUser
    worker: str
    fence: int
    claimed_at: datetime
    lease_expires_at: datetime
    worker_id: str = ""
    status: ClaimStatus = ClaimStatus.HELD
    busy: bool = False
    """A job runs under it; else it is only kept warm."""
    dead: bool = False
    """The process of its worker has ended; another worker may take the key at once."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """One entry of the audit: a job that made way for another thread, or used up its time."""

    email_id: str
    job_id: str
    worker: str
    reason: str
    new_thread_id: str
    """The thread whose mail interrupted it; empty if it is not known."""
    at: datetime


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """The open jobs of a key; `unowned_since` is set where no live worker owns the oldest one that could run."""

    key: ProjectUser
    open: int
    running: int
    waiting_since: datetime | None
    unowned_since: datetime | None
    preparing: int = 0
    queued: int = 0
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class UnclaimedQueue:
    """The hints that wait for a worker: how many keys, and since when the oldest."""

    depth: int = 0
    oldest_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterSummary:
    """A mail that was given up."""

    email_id: str
    subject: str | None
    reason: str
    died_at: datetime
    letter_id: int = 0


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """Who works for whom, and what waits, at one instant."""

    workers: tuple[WorkerSummary, ...]
    running: tuple[RunningJob, ...]
    claims: tuple[ClaimSummary, ...]
    queues: tuple[QueueSummary, ...]
    dead_letters: tuple[DeadLetterSummary, ...]
    dead_letter_count: int
    unclaimed: UnclaimedQueue = UnclaimedQueue()


@dataclass(frozen=True, slots=True)
class Levels:
    """How much of everything there is at one instant; nothing here is cut short. None is not known."""

    unclaimed: UnclaimedQueue
    claims_held: int
    workers_alive: int
    jobs: Mapping[JobState, int]
    oldest_queued_at: datetime | None
    dead_letters: int
    mails_in_flight: int | None = None
    replies_unsent: int | None = None
    replies_given_up: int | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What a thread of a project cost on a day."""

    project_id: str
    day: str
    thread_id: str
    jobs: int
    usd: float


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """A worker as it introduces itself."""

    worker: str
    name: str
    pid: int
    slots: int


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event with its place in the log."""

    seq: int
    at: datetime
    event: Event
