"""What an operator sees of an account, told from its records."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.dynamo import at, moment
from webordinary.adapters.aws.mail.mails import MAIL, MailItems
from webordinary.adapters.aws.pool.job_table import JobTable, Record
from webordinary.adapters.aws.pool.pool_snapshot import PoolSnapshotReader
from webordinary.mail.ports import (
    AttachmentManifest,
    Directory,
    Outbox,
    OutboxEntry,
    ParsedMails,
    RawMails,
    UnknownMail,
)
from webordinary.mail.replies.compose import answer_kind
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.events import EventKind
from webordinary.model.jobs import Job, JobOutcome
from webordinary.model.mail import ParsedMail
from webordinary.model.names import job_id_of
from webordinary.model.projects import Sender
from webordinary.model.snapshot import (
    JobSummary,
    MailDetail,
    MailSummary,
    MailText,
    PoolSnapshot,
    SentReply,
    StateVisit,
    TimelineEntry,
    with_names,
    workers_in,
)
from webordinary.pool.ports import DeadLetters
from webordinary.workflow.start import RELEASED

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
class TimelineItem:
    """Something that happened to a mail."""

    at: datetime
    kind: str
    worker: str | None = None
    data: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class WorkflowSteps:
    """The steps of an execution from Step Functions' history: one call for each mail that is shown."""

    client: SFNClient
    state_machine_arn: str

    def of(self, name: str) -> tuple[list[TimelineItem], tuple[StateVisit, ...]]:
        """Timeline and states of an execution; empty if its history cannot be read."""
        from webordinary.asl.ports import HistoryEvent, states_entered  # noqa: PLC0415 - a lambda starts without it

        arn = f"{self.state_machine_arn.replace(':stateMachine:', ':execution:')}:{name}"
        try:
            with translated(f"looking at the workflow {name}"):
                recorded = self.client.get_execution_history(
                    executionArn=arn, maxResults=MOST_STEPS, includeExecutionData=False
                )
        except WebOrdinaryError as problem:
            _log.info("%s", problem)
            return [], ()
        left = ((event["timestamp"], event["stateExitedEventDetails"]["name"]) for event in recorded["events"]
                if event["type"] == LEFT)  # fmt: skip
        events = (
            HistoryEvent(event["type"], "", 0.0, {"name": event.get("stateEnteredEventDetails", {}).get("name", "")})
            for event in recorded["events"]
        )
        path = tuple(StateVisit(*one) for one in states_entered(events))
        return [TimelineItem(at, KINDS[state]) for at, state in left if state in KINDS], path


def timeline(
    mail: MailSummary, record: Record | None, replies: Sequence[SentReply], steps: Iterable[TimelineItem]
) -> tuple[TimelineEntry, ...]:
    """All of it in the order of time; clocks of several machines made it."""
    moments = [*_of_mail(mail), *steps]
    if record:
        moments += _of_job(record)
        moments += [TimelineItem(entry.at, entry.kind, entry.worker, entry.values) for entry in record.events]
    moments += [TimelineItem(reply.created_at, "ReplyWritten") for reply in replies]
    moments += [TimelineItem(reply.sent_at, "ReplySent") for reply in replies if reply.sent_at]
    key = str(mail.job.key) if mail.job else None
    return tuple(
        TimelineEntry(number, one.at, one.kind, mail.email_id, key, one.worker, one.data or {})
        for number, one in enumerate(sorted(moments, key=lambda one: one.at), start=1)
    )


def _of_mail(mail: MailSummary) -> Iterator[TimelineItem]:
    yield TimelineItem(mail.received_at, "MailReceived")
    for kind in ("MailRefused", "MailHeld", "MailDropped"):
        if at := mail.milestones.get(kind):
            yield TimelineItem(at, kind, data={"reason": mail.stopped_because})


def _of_job(record: Record) -> Iterator[TimelineItem]:
    job, recorded = record.job, {entry.kind for entry in record.events}
    yield TimelineItem(job.recorded_at, "JobRecorded")
    if job.queued_at:
        yield TimelineItem(job.queued_at, "JobQueued")
    if job.started_at and "JobStarted" not in recorded:
        yield TimelineItem(job.started_at, "JobStarted", job.worker)
    if job.settled_at:
        yield TimelineItem(job.settled_at, "JobSettled", job.worker, {"outcome": str(job.outcome)})


DAYS_BACK = 30
OF_DAY = "#receivedDay = :day"
BEFORE = "#receivedDay = :day AND #receivedAt < :before"
MAX_ROWS, MOST_REDRIVES = 200, 20
STOPPED = {"refused": "MailRefused", "held": "MailHeld", "dropped": "MailDropped"}
LOOK_SECONDS = 5
LOOKS_AT_ONCE = 8
"""Fewer than the connections that a client keeps."""


@dataclass(frozen=True, slots=True)
class AwsOverview:
    """See Overview. Costs calls for each mail that it shows: for people, not for loops."""

    items: MailItems
    raw_mails: RawMails
    parsed_mails: ParsedMails
    manifest: AttachmentManifest
    outbox: Outbox
    jobs: JobTable
    letters: DeadLetters
    directory: Directory
    pool_look: PoolSnapshotReader
    steps: WorkflowSteps

    def recent_mails(self, before: str | None, limit: int) -> Sequence[MailSummary]:
        until = self.raw_mails.envelope(before).received_at if before else None
        day, ids = (until or datetime.now(UTC)).date(), list[str]()
        for back in range(DAYS_BACK + 1):
            where, values = OF_DAY, {"day": (day - timedelta(days=back)).isoformat()}
            if until and not back:
                where, values = BEFORE, {**values, "before": moment(until)}
            found = self.items.dynamo.query(
                "listing mails",
                self.items.table,
                where,
                values,
                limit - len(ids),
                index=names.RECENT_INDEX,
                newest=True,
            )
            ids += [item["emailId"] for item in found if item["part"] == MAIL]
            if len(ids) >= limit:
                break
        dead = self._dead()
        return self._named(self._looks(ids, dead))

    def mails_in_flight(self, limit: int) -> Sequence[MailSummary]:
        """See Overview: those with an open job."""
        dead = self._dead()
        jobs = {job.email_id: Record(job, 0) for job in self.pool_look.open_jobs(limit)}
        mails = self._named(self._looks([*jobs], dead, jobs))
        return sorted(mails, key=lambda mail: mail.received_at, reverse=True)

    def mail(self, email_id: str) -> MailDetail | None:
        try:
            looked = self._look(email_id, self._dead())
        except UnknownMail:
            return None
        mail = self.parsed_mails.load(email_id)
        replies = tuple(_reply(entry) for entry in self.outbox.of(email_id))
        steps, path = self.steps.of(f"{email_id}{self._run_of(email_id, looked.redrives)}")
        recorded = timeline(looked.summary, looked.record, replies, steps)
        called = self.pool_look.names(workers_in(recorded))
        return MailDetail(
            summary=_with_name(looked.summary, called),
            text=_text(mail) if mail else None,
            attachments=self.manifest.of(email_id),
            replies=replies,
            timeline=tuple(with_names(entry, called) for entry in recorded),
            path=path,
        )

    def pool(self, now: datetime, limit: int = MAX_ROWS) -> PoolSnapshot:
        return self.pool_look.snapshot(now, limit, self.letters)

    def senders(self) -> Sequence[Sender]:
        return self.directory.senders()

    def events_after(self, seq: int, limit: int) -> Sequence[TimelineEntry]:
        """Events go to the logs on AWS; a watcher is woken by time alone."""
        newest = self.last_seq()
        return (
            [TimelineEntry(newest, datetime.now(UTC), EventKind.LOOK_AGAIN, None, None, None, {})]
            if newest > seq
            else []
        )

    def last_seq(self) -> int:
        return int(time.time() // LOOK_SECONDS)

    def _named(self, mails: Sequence[MailSummary]) -> list[MailSummary]:
        called = self.pool_look.names({mail.job.worker for mail in mails if mail.job and mail.job.worker})
        return [_with_name(mail, called) for mail in mails]

    def _looks(
        self, email_ids: Sequence[str], dead: Mapping[str, str], known: Mapping[str, Record] = MappingProxyType({})
    ) -> list[MailSummary]:
        """Reads several mails at once: a page of them, one after another, takes seconds from an operator's machine."""
        with ThreadPoolExecutor(LOOKS_AT_ONCE) as threads:
            looks = threads.map(lambda email_id: self._look(email_id, dead, known.get(email_id)), email_ids)
            return [look.summary for look in looks]

    def _run_of(self, email_id: str, redrives: int) -> str:
        """How the name of a mail's last execution ends, after the mail's own."""
        if redrives:
            return f"-r{redrives}"
        return RELEASED if self.raw_mails.is_released(email_id) else ""

    def _last_run(self, email_id: str) -> tuple[Record | None, int]:
        """A redriven mail has several jobs: the last of them, and after how many redrives that is."""
        found, redrives = self.jobs.find(job_id_of(email_id)), 0
        while redrives < MOST_REDRIVES and (again := self.jobs.find(job_id_of(email_id, redrives + 1))):
            found, redrives = again, redrives + 1
        return found, redrives

    def _look(self, email_id: str, dead: Mapping[str, str], record: Record | None = None) -> _CachedMail:
        envelope = self.raw_mails.envelope(email_id)
        mail = self.parsed_mails.load(email_id)
        record, redrives = (record, 0) if record else self._last_run(email_id)
        job = record.job if record else None
        replies = self.outbox.of(email_id)
        answered = None if job and job.open else _answered_at(replies, redrives)
        noted = self._noted(email_id) if (job is None and answered is None) or _ended_without_success(job) else {}
        stopped = noted.get("stopped", {}) if job is None else {}
        recorded = record.events if record else ()
        summary = MailSummary(
            email_id=email_id,
            received_at=envelope.received_at,
            sender=(mail.sender if mail else "") or envelope.mail_from,
            recipient=envelope.recipient,
            subject=mail.subject if mail else None,
            job=_job(job) if job else None,
            milestones={entry.kind: entry.at for entry in recorded} | _milestones(noted, stopped) | _answers(replies),
            answered_at=answered,
            ended=answered is not None,
            dead_reason=dead.get(email_id),
            stopped=stopped.get("verdict", ""),
            stopped_because=stopped.get("reason"),
        )
        return _CachedMail(summary, record, redrives)

    def _noted(self, email_id: str) -> Mapping[str, Any]:
        """Why the mail was stopped, and when it was closed. Not cached: that may come after it was first shown."""
        place = self.items.table, self.items.key(email_id, MAIL)
        return self.items.dynamo.get(f"looking what became of mail {email_id}", place) or {}

    def _dead(self) -> Mapping[str, str]:
        return {letter.email_id: letter.reason for letter in reversed(self.letters.all(MAX_ROWS))}


@dataclass(frozen=True, slots=True)
class _CachedMail:
    """A mail's summary, and its job as it is stored."""

    summary: MailSummary
    record: Record | None
    redrives: int


def _with_name(mail: MailSummary, called: Mapping[str, str]) -> MailSummary:
    """With its worker called as people know it."""
    job = mail.job
    return replace(mail, job=replace(job, worker=called.get(job.worker, job.worker))) if job and job.worker else mail


def _answered_at(replies: Sequence[OutboxEntry], redrives: int) -> datetime | None:
    """When its last run was answered; a notice that it has to wait is no answer."""
    sent = (entry.sent_at for entry in replies if entry.reply.kind == answer_kind(redrives))
    return max((when for when in sent if when), default=None)


def _answers(replies: Sequence[OutboxEntry]) -> dict[str, datetime]:
    """When an operator wrote to the customer last."""
    written = [entry.created_at for entry in replies if entry.reply.kind.startswith("operator")]
    return {EventKind.OPERATOR_ANSWERED.value: max(written)} if written else {}


def _milestones(noted: Mapping[str, Any], stopped: Mapping[str, str]) -> dict[str, datetime]:
    reached = {STOPPED[stopped["verdict"]]: at(stopped["at"])} if stopped else {}
    return reached | ({EventKind.MAIL_CLOSED.value: at(noted["closedAt"])} if "closedAt" in noted else {})


def _ended_without_success(job: Job | None) -> bool:
    """Only mails of such jobs can be closed by an operator."""
    failed = job is not None and job.outcome not in (None, JobOutcome.SUCCEEDED, JobOutcome.CANCELLED)
    return failed or bool(job and job.result and job.result.error)


def _job(job: Job) -> JobSummary:
    return JobSummary(
        job_id=job.job_id,
        key=job.key,
        thread_id=job.thread_id,
        command=job.command,
        state=job.state,
        attempts=job.attempts,
        interruptions=job.interruptions,
        worker=job.worker,
        outcome=job.outcome,
        result=job.result,
        queued_at=job.queued_at,
        started_at=job.started_at,
        settled_at=job.settled_at,
    )


def _text(mail: ParsedMail) -> MailText:
    return MailText(mail.message_id, mail.sender_name, mail.text, mail.elided, mail.references)


def _reply(entry: OutboxEntry) -> SentReply:
    reply = entry.reply
    return SentReply(
        reply.kind, reply.recipient, reply.message_id, reply.raw, entry.created_at, entry.sent_at, entry.last_error
    )
