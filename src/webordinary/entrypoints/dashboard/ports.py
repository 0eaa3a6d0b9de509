"""What the page needs from the rest: a look at the system, and a few functions that the server hands in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from webordinary.app.services import Overview
from webordinary.entrypoints.dashboard.feed import EventFeed
from webordinary.site.releases import Stage


@dataclass(frozen=True, slots=True)
class File:
    """A file that goes with a mail."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Example:
    """A mail to try, one click away."""

    title: str
    subject: str
    text: str
    files: tuple[File, ...] = ()


def _nothing(_: str) -> None:
    return None


def _no_log(_: str) -> str:
    return ""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """All that the page is made from; it opens no file and no database by itself."""

    overview: Overview
    feed: EventFeed
    send_mail: Callable[[bytes, str, str], str]
    """Give (raw, mail_from, recipient) to our own SMTP port; return its email_id once it was accepted."""
    mail_of: Callable[[str], bytes | None]
    """The raw mail, by email_id."""
    diff_of: Callable[[str, str], str]
    """What a commit changed, by (project_id, commit); bounded."""
    current_release: Callable[[str, Stage], Path | None]
    """The release folder that a project's site shows now."""
    blob_of: Callable[[str], bytes | None] = _nothing
    """A stored attachment or picture, by digest."""
    build_log_of: Callable[[str], str] = _no_log
    """What the site's own programs said while it was built, by job; bounded."""
    port: int = 8080
    preview_port: int = 8081
    domain: str = "localhost"
    mailbox: str = "edit@localhost"
    intake: str = "on port 2525 of this machine"
    """Where mails come in, after the words "Mail to MAILBOX"."""
    examples: tuple[Example, ...] = ()
    metrics: Callable[[], str] = str
    """Everything there is to measure, as Prometheus reads it."""
    clock: Callable[[], datetime] = _now
