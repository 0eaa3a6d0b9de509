"""What every process has at hand, whatever the backend: the rooms' ports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Protocol

from webordinary.adapters.local.git import Credentials, GitHistory
from webordinary.adapters.local.system import SystemClock
from webordinary.config import Config
from webordinary.mail.ports import Blobs, Directory, Outbox, RawMails, Threads, UndeliveredReplies
from webordinary.model.events import Events
from webordinary.model.jobs import DeadLetter
from webordinary.model.mail import Attachment
from webordinary.model.names import ProjectUser
from webordinary.model.overview import MailDetail, MailSummary, PoolSnapshot, Spent, TimelineEntry
from webordinary.model.projects import Sender
from webordinary.pool.ports import DeadLetters, Interruptions, Jobs, Pool
from webordinary.site.ports import BuildLogs, Ledger, ProjectLeases, Releases
from webordinary.workflow.reading import Mailroom

MAX_ROWS = 200


class Overview(Protocol):
    """A look at the whole system. Every answer is bounded and taken at one instant."""

    def recent_mails(self, before: str | None, limit: int) -> Sequence[MailSummary]:
        """Accepted mails, newest first; `before` names the last mail of the previous page."""

    def mails_in_flight(self, limit: int) -> Sequence[MailSummary]:
        """Mails that somebody still has to do something about, newest first."""

    def mail(self, email_id: str) -> MailDetail | None:
        """One mail with all that belongs to it."""

    def pool(self, now: datetime, limit: int = MAX_ROWS) -> PoolSnapshot:
        """Workers that live, claims, queues and dead letters."""

    def senders(self) -> Sequence[Sender]:
        """The addresses that may change a site."""

    def events_after(self, seq: int, limit: int) -> Sequence[TimelineEntry]:
        """What happened after the event `seq`, oldest first."""

    def last_seq(self) -> int:
        """The newest event's number; 0 before the first."""


class WaitingJobs(Jobs, Protocol):
    """Jobs, as an operator sees them who pauses, resumes or removes."""

    def keys_of(self, project_id: str) -> Sequence[ProjectUser]:
        """Every key of a project that has open jobs, in key order."""

    def let_go(self, project_id: str) -> Sequence[ProjectUser]:
        """Jobs of a project that were put off may start now; the keys that have such jobs."""


class Accounts(Ledger, Protocol):
    """What agents cost, as an operator reads it."""

    def listing(self, project_id: str | None, since: date, limit: int = 1000) -> Sequence[Spent]:
        """By day, project and thread, the newest first."""


class Letters(DeadLetters, Protocol):
    """Dead letters, as an operator looks for them."""

    def of_mail(self, prefix: str, limit: int) -> Sequence[DeadLetter]:
        """Those of the mails whose id begins like this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The ports of all rooms, over one backend."""

    config: Config
    clock: SystemClock
    events: Events
    overview: Overview
    mailroom: Mailroom
    raw_mails: RawMails
    blobs: Blobs
    directory: Directory
    threads: Threads
    outbox: Outbox
    undelivered: UndeliveredReplies
    pool: Pool
    jobs: WaitingJobs
    dead_letters: Letters
    interruptions: Interruptions
    releases: Releases
    leases: ProjectLeases
    ledger: Accounts
    build_logs: BuildLogs
    history: GitHistory
    credentials: Credentials
    attachment_path: Callable[[Attachment], Path]
    """Where the bytes of a customer's file lie on this machine."""
    make_room: Callable[[ProjectUser], None]
    """Make what a customer needs beside records: on AWS queues and buckets. Again is harmless."""
    clear_room: Callable[[str, Sequence[ProjectUser]], None]
    """Remove what was made for a project and its customers; its repository stays. Again is harmless."""
