"""One mail's page as plain values: its way, its words, what changed, and the reply."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage

from webordinary.entrypoints.dashboard.diffs import DiffView
from webordinary.entrypoints.dashboard.formats import Moment, Piece, duration, moment, pieces, size
from webordinary.entrypoints.dashboard.steps import finished
from webordinary.entrypoints.dashboard.views import MailLine, mail_line
from webordinary.entrypoints.dashboard.wording import details_of, tone_of, words_for
from webordinary.model.mail import Attachment, Command, RefusedAttachment
from webordinary.model.overview import MailDetail, SentReply, TimelineEntry
from webordinary.site.releases import Stage

SHOWN_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
MAX_TEXT = 100_000
PICTURES = ("before", "after")


@dataclass(frozen=True, slots=True)
class AttachmentView:
    """A file of the customer's; `position` names it in its address, if it can be shown as a picture."""

    name: str
    about: str
    position: int
    shown: bool
    refused: str = ""


@dataclass(frozen=True, slots=True)
class ReplyView:
    """A reply as the customer reads it."""

    sender: str
    recipient: str
    subject: str
    text: tuple[Piece, ...]
    sent: Moment | None
    problem: str


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One event in words, with the time since the one before."""

    at: Moment
    after: str
    words: str
    details: str
    tone: str


@dataclass(frozen=True, slots=True)
class MailView:
    """Everything about one mail."""

    seq: int
    line: MailLine
    recipient: str
    finished: bool
    text: str
    elided: str
    raw_head: str
    attachments: tuple[AttachmentView, ...]
    diff: DiffView
    commit: str
    changed_files: tuple[str, ...]
    site_url: str
    site: str
    """Which of the two sites that is."""
    summary: str
    operator_note: str
    redrive: str
    replies: tuple[ReplyView, ...]
    timeline: tuple[TimelineRow, ...]
    total: str
    build_log: str
    pictures: tuple[str, ...]
    """Captions of the pictures of the changed page, in order."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look at a mail brought; `raw_head` only where the mail could not be read."""

    seq: int
    detail: MailDetail
    diff: DiffView = field(default_factory=DiffView)
    raw_head: str = ""
    build_log: str = ""


def mail_view(looked: Looked, now: datetime) -> MailView:
    """Make the values of a mail's page."""
    detail, summary = looked.detail, looked.detail.summary
    result = summary.job.result if summary.job else None
    return MailView(
        seq=looked.seq,
        line=mail_line(summary, now),
        recipient=summary.recipient,
        finished=finished(summary),
        text=detail.text.text[:MAX_TEXT] if detail.text else "",
        elided=detail.text.elided[:MAX_TEXT] if detail.text else "",
        raw_head=looked.raw_head,
        attachments=tuple(_attachment(i, file) for i, file in enumerate(detail.attachments)),
        diff=looked.diff,
        commit=(result and result.commit) or "",
        changed_files=result.changed_files if result else (),
        site_url=_web_address((result and result.url) or ""),
        site=(Stage.PUBLIC if summary.job and summary.job.command is Command.PUBLISH else Stage.EDIT).value,
        summary=result.summary if result else "",
        operator_note=summary.dead_reason or summary.stopped_because or (result and result.error) or "",
        redrive=f"webordinary dlq redrive {summary.email_id[:12]}" if summary.dead_reason else "",
        replies=tuple(_reply(reply, now) for reply in detail.replies),
        timeline=_timeline(detail.timeline, now),
        total=_total(detail, now),
        build_log=looked.build_log,
        pictures=PICTURES[-len(result.pictures) :] if result and result.pictures else (),
    )


def _web_address(url: str) -> str:
    return url if url.startswith(("http://", "https://")) else ""  # never a javascript: link


def _total(detail: MailDetail, now: datetime) -> str:
    mail = detail.summary
    if mail.answered_at:
        return f"answered in {duration(mail.answered_at - mail.received_at)}"
    return "" if finished(mail) else f"under way for {duration(now - mail.received_at)}"


def _attachment(position: int, file: Attachment | RefusedAttachment) -> AttachmentView:
    if isinstance(file, RefusedAttachment):
        return AttachmentView(file.name, "refused", position, shown=False, refused=file.reason)
    shown = file.media_type in SHOWN_TYPES
    return AttachmentView(file.name, f"{file.media_type}, {size(file.size)}", position, shown)


def _reply(reply: SentReply, now: datetime) -> ReplyView:
    message = reply_message(reply)
    body = message.get_body(preferencelist=("plain",))
    text = body.get_content() if body is not None else ""
    return ReplyView(
        sender=str(message.get("From", "")),
        recipient=reply.recipient,
        subject=str(message.get("Subject", "")),
        text=pieces(text[:MAX_TEXT].rstrip()),
        sent=moment(reply.sent_at, now) if reply.sent_at else None,
        problem=reply.last_error or "" if reply.sent_at is None else "",
    )


def reply_message(reply: SentReply) -> EmailMessage:
    """Our own mail, read back from the bytes that were sent."""
    return email.message_from_bytes(reply.raw, policy=email.policy.default)


def _timeline(entries: Sequence[TimelineEntry], now: datetime) -> tuple[TimelineRow, ...]:
    rows, before = [], None
    for entry in entries:
        after = f"+{duration(entry.at - before)}" if before else ""
        rows.append(TimelineRow(moment(entry.at, now), after, words_for(entry), details_of(entry), tone_of(entry)))
        before = entry.at
    return tuple(rows)
