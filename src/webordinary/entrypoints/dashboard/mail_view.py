"""View model of one mail's page: progress, text, difference, replies, timeline."""

from __future__ import annotations

import base64
import email
import email.policy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage

from webordinary.entrypoints.dashboard.graph import GraphView, graph_view
from webordinary.entrypoints.dashboard.text import (
    FormattedTime,
    Piece,
    duration,
    moment,
    pieces,
    size,
    told,
    tone_of,
)
from webordinary.entrypoints.dashboard.views import ActionView, MailLine, finished, mail_line
from webordinary.jobs.site_files import Stage
from webordinary.mail.confirm import without_token
from webordinary.model.events import EventKind
from webordinary.model.jobs import JobState
from webordinary.model.mail import Attachment, Command, RefusedAttachment
from webordinary.model.snapshot import Interruption, MailDetail, MailSummary, SentReply, TimelineEntry
from webordinary.operations.console import Rehearsal
from webordinary.operations.mails import may_retry

MAX_LINES = 600


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line: added, removed, context, hunk or note."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What changed in one file."""

    path: str
    added: int
    removed: int
    lines: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class DiffView:
    """A change, file by file; `cut` when it was too long to show whole."""

    files: tuple[FileDiff, ...] = ()
    cut: bool = False


_KINDS = {"+": "added", "-": "removed", " ": "context", "@": "hunk"}
_NOTES = ("new file", "deleted file", "rename ", "Binary files")


def diff_view(diff: str) -> DiffView:
    """Parse the output of `git diff` or `git show`; text before the first file is left out."""
    lines = diff.splitlines()
    files = []
    path, kept = "", list[DiffLine]()
    for line in lines[:MAX_LINES]:
        if line.startswith("diff --git "):
            files += _file(path, kept)
            path, kept = _path(line), []
        elif path and (shown := _shown(line, in_hunk=any(k.kind == "hunk" for k in kept))):
            kept.append(shown)
    return DiffView((*files, *_file(path, kept)), cut=len(lines) > MAX_LINES)


def _shown(line: str, *, in_hunk: bool) -> DiffLine | None:
    if in_hunk or line.startswith("@@"):
        kind = _KINDS.get(line[:1], "note")
        return DiffLine(kind, line if kind in ("hunk", "note") else line[1:])
    return DiffLine("note", line) if line.startswith(_NOTES) else None


def _path(header: str) -> str:
    return header.rpartition(" b/")[2].strip('"')


def _file(path: str, lines: list[DiffLine]) -> list[FileDiff]:
    if not path:
        return []
    added = sum(line.kind == "added" for line in lines)
    removed = sum(line.kind == "removed" for line in lines)
    return [FileDiff(path, added, removed, tuple(lines))]


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
    sent: FormattedTime | None
    problem: str
    has_html: bool


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One event in words, with the time since the one before."""

    at: FormattedTime
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
    graph: GraphView | None
    progress: tuple[TimelineRow, ...]
    """What the agent said of its work since its last start, as long as it works."""
    actions: tuple[ActionView, ...]
    rehearsal: Rehearsal | None
    rehearsed: DiffView
    interruptions: tuple[TimelineRow, ...]
    """Which threads its job made way for, and whether its time was over; the newest first."""


def mail_view(
    seq: int,
    detail: MailDetail,
    now: datetime,
    *,
    diff: DiffView,
    raw_head: str = "",
    build_log: str = "",
    rehearsal: Rehearsal | None = None,
    audit: Sequence[Interruption] = (),
) -> MailView:
    """The view of one mail; `raw_head` is given only if the mail could not be parsed."""
    summary = detail.summary
    result = summary.job.result if summary.job else None
    return MailView(
        seq=seq,
        line=mail_line(summary, now),
        recipient=without_token(summary.recipient.encode()).decode(),
        finished=finished(summary),
        text=detail.text.text[:MAX_TEXT] if detail.text else "",
        elided=detail.text.elided[:MAX_TEXT] if detail.text else "",
        raw_head=raw_head,
        attachments=tuple(_attachment(i, file) for i, file in enumerate(detail.attachments)),
        diff=diff,
        commit=(result and result.commit) or "",
        changed_files=result.changed_files if result else (),
        site_url=_web_address((result and result.url) or ""),
        site=(Stage.PUBLIC if summary.job and summary.job.command is Command.PUBLISH else Stage.EDIT).value,
        summary=result.summary if result else "",
        operator_note=summary.dead_reason or summary.stopped_because or (result and result.error) or "",
        redrive=f"webordinary dlq redrive {summary.email_id[:12]}" if summary.dead_reason else "",
        replies=tuple(_reply(reply, now) for reply in detail.replies),
        timeline=_timeline(detail.timeline, now),
        total=_total(detail),
        build_log=build_log,
        pictures=PICTURES[-len(result.pictures) :] if result and result.pictures else (),
        graph=graph_view(detail.path, finished=finished(summary)),
        progress=_progress(detail, now),
        actions=_actions(summary, rehearses=rehearsal is not None and not rehearsal.done),
        rehearsal=rehearsal,
        rehearsed=diff_view(rehearsal.diff) if rehearsal else DiffView(),
        interruptions=tuple(_interruption(one, now) for one in audit),
    )


def _interruption(one: Interruption, now: datetime) -> TimelineRow:
    thread = f"thread {one.new_thread_id}" if one.new_thread_id else ""
    return TimelineRow(moment(one.at, now), one.worker, one.reason, thread, "plain")


def _progress(detail: MailDetail, now: datetime) -> tuple[TimelineRow, ...]:
    job = detail.summary.job
    if job is None or job.state is not JobState.RUNNING:
        return ()
    starts = [entry.seq for entry in detail.timeline if entry.kind == EventKind.JOB_STARTED]
    progress = [
        entry
        for entry in detail.timeline
        if entry.kind == EventKind.AGENT_PROGRESS and entry.seq > max(starts, default=0)
    ]
    return tuple(
        TimelineRow(moment(entry.at, now), "", str(entry.data.get("words", "")), "", "plain") for entry in progress
    )


def _actions(mail: MailSummary, *, rehearses: bool) -> tuple[ActionView, ...]:
    """What an operator can do with this mail now."""
    base, job, back = f"/mails/{mail.email_id}", mail.job, (("back", f"/mails/{mail.email_id}"),)
    actions = []
    if job and job.state is JobState.RUNNING:
        actions.append(ActionView("Interrupt: go on later", f"{base}/interrupts", fields=back))
    if job and job.state is not JobState.SETTLED:
        actions.append(ActionView("Cancel", f"{base}/cancellations", fields=back))
    if may_retry(mail):
        actions.append(ActionView("Try it again", f"{base}/retries", fields=back))
    if job and job.state is JobState.SETTLED and job.command in (Command.EDIT, Command.UNDO) and not rehearses:
        actions.append(ActionView("Rehearse on copies", f"{base}/replays", fields=back))
    return tuple(actions)


def _web_address(url: str) -> str:
    return url if url.startswith(("http://", "https://")) else ""  # never a javascript: link


def _total(detail: MailDetail) -> str:
    mail = detail.summary
    return f"answered in {duration(mail.answered_at - mail.received_at)}" if mail.answered_at else ""


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
        has_html=message.get_body(preferencelist=("html",)) is not None,
    )


MAX_INLINE_BYTES = 5_000_000


def reply_html(reply: SentReply) -> str | None:
    """The HTML that the customer sees, with its own pictures inside; None if there is none."""
    message = reply_message(reply)
    body = message.get_body(preferencelist=("html",))
    if body is None:
        return None
    html, left = str(body.get_content())[:MAX_TEXT], MAX_INLINE_BYTES
    for part in message.walk():
        name, kind = str(part.get("Content-ID", "")).strip("<> "), part.get_content_type()
        if not name or kind not in SHOWN_TYPES:
            continue
        content = part.get_payload(decode=True)
        left -= len(content) if isinstance(content, bytes) else 0
        if isinstance(content, bytes) and left >= 0:
            html = html.replace(f"cid:{name}", f"data:{kind};base64,{base64.b64encode(content).decode()}")
    return html


def reply_message(reply: SentReply) -> EmailMessage:
    """Our own mail, read back from the bytes that were sent; a question never shows here what answers it."""
    return email.message_from_bytes(without_token(reply.raw), policy=email.policy.default)


def _timeline(entries: Sequence[TimelineEntry], now: datetime) -> tuple[TimelineRow, ...]:
    rows, before = [], None
    for entry in entries:
        after = f"+{duration(entry.at - before)}" if before else ""
        rows.append(TimelineRow(moment(entry.at, now), after, *told(entry), tone_of(entry)))
        before = entry.at
    return tuple(rows)
