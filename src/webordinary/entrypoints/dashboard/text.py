"""Texts of the page: times, durations, sizes, and a sentence for each event."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from webordinary.model.snapshot import OTHER_WORKER, TimelineEntry

_log = logging.getLogger(__name__)
_LINK = re.compile(r"https?://[^\s<>\"'()]{1,2000}[^\s<>\"'().,;:!?]")


@dataclass(frozen=True, slots=True)
class FormattedTime:
    """A point in time, for machines and for people."""

    iso: str
    clock: str
    ago: str
    since: str = ""
    """How long since, without the word: it ticks in the browser."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; a link where `href` is set."""

    text: str
    href: str = ""


def moment(at: datetime, now: datetime) -> FormattedTime:
    """Show the time of day here, with the date where it is not today's."""
    day, time_of_day, day_and_time, iso = _local(at)
    clock = time_of_day if day == now.astimezone().date() else day_and_time
    return FormattedTime(iso, clock, ago(now - at), duration(now - at))


@lru_cache(maxsize=2000)  # lists show the same mails again and again
def _local(at: datetime) -> tuple[date, str, str, str]:
    local = at.astimezone()
    day_and_time = f"{local.day} {local:%b %Y, %H:%M}"
    return local.date(), f"{local:%H:%M:%S}", day_and_time, at.isoformat(timespec="milliseconds")


def ago(span: timedelta) -> str:
    """How long since, roughly."""
    seconds = span.total_seconds()
    return "just now" if seconds < 5 else f"{duration(timedelta(seconds=int(seconds)))} ago"


def duration(span: timedelta) -> str:
    """How long it took, with two digits that matter."""
    seconds = max(0.0, span.total_seconds())
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10 and seconds % 1:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"


def size(count: int) -> str:
    """A file's size."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1_000_000:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1_000_000:.1f} MB"


def plural(count: int, one: str, many: str = "") -> str:
    """`1 mail`, `2 mails`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def pieces(text: str) -> tuple[Piece, ...]:
    """Cut text at its web addresses, so that the template can make links of them."""
    found: list[Piece] = []
    end = 0
    for link in _LINK.finditer(text):
        found += [Piece(text[end : link.start()]), Piece(link.group(), href=link.group())]
        end = link.end()
    return tuple(piece for piece in (*found, Piece(text[end:])) if piece.text)


_TEXTS = {
    "MailReceived": "Received and safely stored",
    "MailParsed": "Read",
    "MailRefused": "Refused",
    "MailHeld": "Held until the sender confirms",
    "MailReleased": "Confirmed and released",
    "OperatorAnswered": "The operator answered",
    "MailRetried": "Done once more, by the operator",
    "MailRehearsed": "Rehearsed on copies for the operator",
    "MailClosed": "Closed by {by}: nothing is left to be done",
    "MailDropped": "Dropped: it was not confirmed",
    "JobRecorded": "Recorded as a job of {key}",
    "AttachmentStored": "Attachment stored",
    "AttachmentRefused": "Attachment refused",
    "JobQueued": "Queued for {key}",
    "ClaimRequested": "A worker was asked for",
    "ClaimTaken": "{key} claimed by {worker}",
    "ClaimRaceLost": "{worker} came second at claiming {key}: {other} has it",
    "ClaimTakenOver": "{worker} took {key} over from {other}, which is lost",
    "ClaimRenewalFailed": "{worker} could not renew its claim",
    "ClaimYielded": "{worker} gave {key} up for another customer",
    "ClaimReleased": "{worker} released {key}",
    "JobStarted": "Started by {worker}",
    "WorkspacePrepared": "Workspace ready",
    "AgentProgress": "The agent works",
    "AgentFinished": "The agent is done",
    "ChangeCommitted": "Change committed",
    "SiteBuilt": "Site built",
    "SiteNotBuilt": "The site could not be built",
    "SitePublished": "Shown on the {stage} site",
    "SiteRolledBack": "The {stage} site was rolled back by the operator",
    "PicturesTaken": "Pictures taken",
    "JobSettled": "Job settled",
    "JobHeld": "Put off; it goes on later",
    "JobWaits": "Waits for something else to end first",
    "JobInterrupted": "Interrupted; it goes on later",
    "StopAsked": "The operator asked it to end or to make way",
    "ReplyWritten": "Reply written",
    "ReplySent": "Reply sent",
    "ReplyBounced": "The reply came back, or was not wanted",
    "DeadLettered": "Given up",
    "SiteAdded": "A site and its person were added: {key}",
    "SiteChanged": "Settings or people of {project} were changed by {by}",
    "MailsNotRead": "Mails wait where they cannot be read",
    "WorkerStarted": "{worker} started",
    "WorkerDrained": "{worker} was asked to end when its work is done",
    "WorkerStopped": "{worker} stopped",
    "WorkerDied": "{worker} died",
    "WorkerHung": "{worker} hung and was ended",
}
_NOT_ASKED = "Held; no person is asked, as its sender is not certain: it cannot be done and must be sent anew"
_BAD = frozenset(
    {"MailRefused", "SiteNotBuilt", "AttachmentRefused", "ClaimRenewalFailed", "ReplyBounced", "DeadLettered"}
)
_GOOD = frozenset({"SitePublished", "ReplySent"})
_HIDDEN_VALUES = frozenset({"stage", "url", "flipped", "asked", *OTHER_WORKER})
"""Shown elsewhere, or of no use to a reader."""
_SHOWN_VALUES = 6
_SHOWN_CHARACTERS = 160


def event_text(entry: TimelineEntry) -> str:
    """What happened, as a sentence; an unknown kind is spelled out."""
    if entry.kind == "MailHeld" and entry.data.get("asked") is False:
        return _NOT_ASKED
    words = _TEXTS.get(entry.kind) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", entry.kind).capitalize()
    other = next((entry.data[name] for name in OTHER_WORKER if entry.data.get(name)), "another worker")
    worker, stage = entry.worker or "a worker", entry.data.get("stage", "edit")
    by, project = entry.data.get("by") or "the operator", entry.data.get("project") or "a site"
    key = entry.key or "a customer"
    return words.format(key=key, worker=worker, other=other, stage=stage, by=by, project=project)


def told(entry: TimelineEntry) -> tuple[str, str]:
    """Its sentence and its values. One that cannot be told is named only: it must not hide those after it."""
    try:
        return event_text(entry), details_of(entry)
    except Exception:
        _log.exception("the event %s (%s) cannot be told in words", entry.seq, entry.kind)
        return f"{entry.kind}, which cannot be told in words", ""


def tone_of(entry: TimelineEntry) -> str:
    """How it should look: good, bad or plain."""
    if entry.kind in _BAD:
        return "bad"
    return "good" if entry.kind in _GOOD else "plain"


def details_of(entry: TimelineEntry) -> str:
    """The event's small values that say something, bounded."""
    shown = [_value_text(name, value) for name, value in entry.data.items() if value and name not in _HIDDEN_VALUES]
    text = ", ".join(shown[:_SHOWN_VALUES])
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def _value_text(name: str, value: object) -> str:
    words = name.replace("_", " ")
    if name.endswith("_ms") and isinstance(value, int | float):
        what = {"duration_ms": "took"}.get(name, name.removesuffix("_ms"))
        return f"{what} {duration(timedelta(milliseconds=value))}"
    if name == "size" and isinstance(value, int):
        return size(value)
    if value is True:
        return words
    if isinstance(value, list | tuple):
        return f"{words} {', '.join(map(str, value))}"
    return f"{words} {_short(value)}"


def _short(value: object) -> str:
    text = str(value)
    return text[:10] if re.fullmatch(r"[0-9a-f]{40,64}", text) else text
