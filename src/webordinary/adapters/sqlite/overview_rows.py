"""Rows become the records of a look at the system."""

from __future__ import annotations

import json
import sqlite3

from webordinary.adapters.sqlite.rows import at, at_or_none, result_of
from webordinary.mail.records import mail_from_json
from webordinary.model.claims import ClaimStatus
from webordinary.model.jobs import JobState, Outcome
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.overview import (
    ClaimSummary,
    DeadLetterSummary,
    JobSummary,
    MailText,
    QueueSummary,
    RunningJob,
    SentReply,
    TimelineEntry,
    UnclaimedQueue,
    WorkerSummary,
)


def job_of(row: sqlite3.Row) -> JobSummary:
    """A job, with its worker's name."""
    return JobSummary(
        job_id=row["job_id"],
        key=ProjectUser.parse(row["key"]),
        thread_id=row["thread_id"],
        command=Command(row["command"]),
        state=JobState(row["state"]),
        attempts=row["attempts"],
        interruptions=row["interruptions"],
        worker=row["worker_name"],
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        result=result_of(row["result"]),
        queued_at=at_or_none(row["queued_at"]),
        started_at=at_or_none(row["started_at"]),
        settled_at=at_or_none(row["settled_at"]),
    )


def text_of(row: sqlite3.Row) -> MailText:
    """The words of a parsed mail."""
    mail = mail_from_json(row["record"])
    return MailText(
        message_id=mail.message_id,
        sender_name=mail.sender_name,
        text=mail.text,
        elided=mail.elided,
        references=tuple(dict.fromkeys((*mail.references, *mail.in_reply_to))),
    )


def reply_of(row: sqlite3.Row) -> SentReply:
    """A row of the outbox."""
    return SentReply(
        kind=row["kind"],
        recipient=row["recipient"],
        message_id=row["message_id"],
        raw=row["raw"],
        created_at=at(row["created_at"]),
        sent_at=at_or_none(row["sent_at"]),
        last_error=row["last_error"],
    )


def entry_of(row: sqlite3.Row) -> TimelineEntry:
    """A stored event."""
    return TimelineEntry(
        seq=row["seq"],
        at=at(row["at"]),
        kind=row["kind"],
        email_id=row["email_id"],
        key=row["key"],
        worker=row["worker"],
        data=json.loads(row["data"]),
    )


def worker_of(row: sqlite3.Row) -> WorkerSummary:
    """A worker that has not ended."""
    return WorkerSummary(row["worker"], row["name"], row["pid"], row["slots"], at(row["started_at"]))


def running_of(row: sqlite3.Row) -> RunningJob:
    """A job under way."""
    return RunningJob(
        row["worker"],
        ProjectUser.parse(row["key"]),
        row["email_id"],
        row["subject"],
        at_or_none(row["started_at"]),
    )


def claim_of(row: sqlite3.Row) -> ClaimSummary:
    """A claim, with its worker's name."""
    return ClaimSummary(
        key=ProjectUser.parse(row["key"]),
        worker=row["worker_name"],
        fence=row["fence"],
        claimed_at=at(row["claimed_at"]),
        lease_expires_at=at(row["lease_expires_at"]),
        worker_id=row["worker"],
        status=ClaimStatus(row["status"]),
        busy=bool(row["busy"]),
    )


def queue_of(row: sqlite3.Row) -> QueueSummary:
    """The open jobs of a key."""
    return QueueSummary(
        key=ProjectUser.parse(row["key"]),
        open=row["open"],
        running=row["running"],
        waiting_since=at_or_none(row["waiting_since"]),
        unowned_since=at_or_none(row["unowned_since"]),
        preparing=row["preparing"],
        queued=row["queued"],
        owner=row["owner"],
    )


def unclaimed_of(row: sqlite3.Row) -> UnclaimedQueue:
    """The hints, counted."""
    return UnclaimedQueue(row["depth"], at_or_none(row["oldest_since"]))


def dead_letter_of(row: sqlite3.Row) -> DeadLetterSummary:
    """A mail given up."""
    return DeadLetterSummary(row["email_id"], row["subject"], row["reason"], at(row["died_at"]), row["letter_id"])
