"""What an operator sees of an account: told from the records, since nobody keeps a timeline there but the logs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from webordinary.adapters.aws import names
from webordinary.adapters.aws.items import moment
from webordinary.adapters.aws.mail.mail_items import MAIL, MailItems
from webordinary.adapters.aws.pool.pool_look import PoolLook
from webordinary.mail.errors import UnknownMail
from webordinary.mail.ports import AttachmentManifest, Directory, Outbox, OutboxEntry, ParsedMails, RawMails
from webordinary.model.jobs import Job
from webordinary.model.mail import ParsedMail
from webordinary.model.names import job_id_of
from webordinary.model.overview import (
    JobSummary,
    MailDetail,
    MailSummary,
    MailText,
    PoolSnapshot,
    SentReply,
    TimelineEntry,
)
from webordinary.model.projects import Sender
from webordinary.pool.ports import DeadLetters, Jobs

DAYS_BACK = 30
OF_DAY = "#receivedDay = :day"
BEFORE = "#receivedDay = :day AND #receivedAt < :before"
MAX_ROWS = 200
LOOK_AGAIN, LOOK_SECONDS = "LookAgain", 5


@dataclass(frozen=True, slots=True)
class AwsOverview:
    """See Overview. Costs calls for each mail that it shows: for people, not for loops."""

    items: MailItems
    raw_mails: RawMails
    parsed_mails: ParsedMails
    manifest: AttachmentManifest
    outbox: Outbox
    jobs: Jobs
    letters: DeadLetters
    directory: Directory
    pool_look: PoolLook

    def recent_mails(self, before: str | None, limit: int) -> Sequence[MailSummary]:
        """See Overview."""
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
        return [self._summary(email_id) for email_id in ids]

    def mails_in_flight(self, limit: int) -> Sequence[MailSummary]:
        """See Overview: those with an open job."""
        jobs = self.pool_look.open_jobs(limit)
        mails = (self._summary(job.email_id, job) for job in jobs)
        return sorted(mails, key=lambda mail: mail.received_at, reverse=True)

    def mail(self, email_id: str) -> MailDetail | None:
        """See Overview."""
        try:
            summary = self._summary(email_id)
        except UnknownMail:
            return None
        mail = self.parsed_mails.load(email_id)
        replies = tuple(_reply(entry) for entry in self.outbox.of(email_id))
        return MailDetail(
            summary=summary,
            text=_text(mail) if mail else None,
            attachments=self.manifest.of(email_id),
            replies=replies,
            timeline=_timeline(summary, replies),
        )

    def pool(self, now: datetime, limit: int = MAX_ROWS) -> PoolSnapshot:
        """See Overview."""
        return self.pool_look.snapshot(now, limit, self.letters)

    def senders(self) -> Sequence[Sender]:
        """See Overview."""
        return self.directory.senders()

    def events_after(self, seq: int, limit: int) -> Sequence[TimelineEntry]:
        """What happens is told to the logs. Here time passing is the one event: whoever watches looks again."""
        newest = self.last_seq()
        return [TimelineEntry(newest, datetime.now(UTC), LOOK_AGAIN, None, None, None, {})] if newest > seq else []

    def last_seq(self) -> int:
        """See events_after."""
        return int(time.time() // LOOK_SECONDS)

    def _summary(self, email_id: str, job: Job | None = None) -> MailSummary:
        envelope = self.raw_mails.envelope(email_id)
        mail = self.parsed_mails.load(email_id)
        job = job or self.jobs.get(job_id_of(email_id))
        replies = self.outbox.of(email_id)
        answered = max((reply.sent_at for reply in replies if reply.sent_at), default=None)
        return MailSummary(
            email_id=email_id,
            received_at=envelope.received_at,
            sender=(mail.sender if mail else "") or envelope.mail_from,
            recipient=envelope.recipient,
            subject=mail.subject if mail else None,
            job=_job(job) if job else None,
            answered_at=answered,
            ended=answered is not None and not (job and job.open),
        )


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


def _timeline(mail: MailSummary, replies: Sequence[SentReply]) -> tuple[TimelineEntry, ...]:
    job = mail.job
    moments: list[tuple[str, datetime | None, str | None]] = [("MailReceived", mail.received_at, None)]
    if job:
        moments += [
            ("JobQueued", job.queued_at, None),
            ("JobStarted", job.started_at, job.worker),
            ("JobSettled", job.settled_at, job.worker),
        ]
    moments += [("ReplySent", reply.sent_at, None) for reply in replies]
    key = str(job.key) if job else None
    told = sorted(((at, kind, worker) for kind, at, worker in moments if at), key=lambda told: told[0])
    return tuple(
        TimelineEntry(number, at, kind, mail.email_id, key, worker, {})
        for number, (at, kind, worker) in enumerate(told, start=1)
    )
