"""The ports that operators' use cases and background services need beside those of mail, pool and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from webordinary.jobs.ports import BuildLogs, Ledger
from webordinary.model.jobs import DeadLetter
from webordinary.model.names import ProjectUser
from webordinary.model.projects import DomainFinding, Sender
from webordinary.model.snapshot import (
    LoggedEvent,
    MailDetail,
    MailFilter,
    MailPage,
    MailState,
    MailSummary,
    PoolSnapshot,
    Spent,
    TimelineEntry,
    WorkerEntry,
)
from webordinary.pool.ports import DeadLetters, Jobs

MAX_ROWS = 200


class Overview(Protocol):
    """A look at the whole system. Every answer is bounded and taken at one instant."""

    def recent_mails(self, before: str | None, limit: int) -> Sequence[MailSummary]:
        """Accepted mails, newest first; `before` names the last mail of the previous page."""

    def mails_in_flight(self, limit: int) -> Sequence[MailSummary]:
        """Mails that are not answered yet, newest first."""

    def mail(self, email_id: str) -> MailDetail | None:
        """One mail with all that belongs to it."""

    def pool(self, now: datetime, limit: int = MAX_ROWS) -> PoolSnapshot:
        """Live workers, claims, queues and dead letters."""

    def senders(self) -> Sequence[Sender]:
        """The addresses that may change a site."""

    def events_after(self, seq: int, limit: int) -> Sequence[TimelineEntry]:
        """Events after number `seq`, oldest first."""

    def last_seq(self) -> int:
        """The newest event's number; 0 before the first."""


class MailIndex(Protocol):
    """Finds and counts mails."""

    @property
    def reach(self) -> str:
        """Which mails are searched, in words; empty if all are."""

    def find(self, mail_filter: MailFilter, limit: int, offset: int = 0, before: str = "") -> MailPage:
        """A page of the mails that fit, newest first; `before` names the last mail of the previous page."""

    def counts(self, project_id: str = "") -> Mapping[MailState, int]:
        """How many mails there are in each state."""

    def counts_by_site(self, project_ids: Sequence[str]) -> Mapping[str, Mapping[MailState, int]]:
        """The same for each of these sites, in one look."""


class WaitingJobs(Jobs, Protocol):
    """Jobs with the queries that pausing, resuming and removing a site need."""

    def keys_of(self, project_id: str) -> Sequence[ProjectUser]:
        """Every key of a project that has open jobs, in key order."""

    def let_go(self, project_id: str) -> Sequence[ProjectUser]:
        """Make deferred jobs of a project ready; returns the keys that have such jobs."""


class Accounts(Ledger, Protocol):
    """The ledger with the operator's listing."""

    def listing(self, project_id: str | None, since: date, limit: int = 1000) -> Sequence[Spent]:
        """Costs by day, project and thread, the newest first."""


class SearchableDeadLetters(DeadLetters, Protocol):
    """Dead letters with the operator's search."""

    def of_mail(self, prefix: str, limit: int) -> Sequence[DeadLetter]:
        """Dead letters of the mails whose id begins with `prefix`."""


class StoredBuildLogs(BuildLogs, Protocol):
    """Build logs with the reader that the page needs."""

    def of(self, job_id: str) -> str:
        """The log of a job's build, bounded; empty if there is none."""


class EventLog(Protocol):
    """The stored events. Raises Permanent on a backend that logs elsewhere, with the place to look."""

    def after(
        self, seq: int, limit: int, email_id: str | None = None, job_id: str | None = None
    ) -> Sequence[LoggedEvent]:
        """Events after number `seq`, oldest first."""

    def start_of_last(self, limit: int) -> int:
        """The number before the last `limit` events."""


class WorkerRegistry(Protocol):
    """The workers of this machine and their heartbeats."""

    def present(self) -> Sequence[WorkerEntry]:
        """Workers that did not sign off, alive or not; the newest last."""

    def names(self, workers: Iterable[str]) -> Mapping[str, str]:
        """Names of these workers by id, alive or not; workers that ended long ago have none."""

    def is_dead(self, worker: str) -> bool:
        """Whether the worker's process is gone."""

    def last_beat(self, worker: str) -> float | None:
        """When the worker's loop went round last, as a Unix time; None if it never did."""

    def note_of(self, worker: str) -> str:
        """The problem that the worker reported about itself; empty if none."""

    def peers(self) -> Mapping[str, int]:
        """Process ids of the workers whose process lives, by worker id."""


class OwnDomains(Protocol):
    """The edge through which visitors reach sites under domains of their own. Each method is idempotent."""

    def show(self, project_id: str, domain: str) -> DomainFinding:
        """Show the public site under the domain, as far as possible now. Idempotent. Raises Permanent if taken."""

    def look(self, project_id: str, domain: str) -> DomainFinding:
        """Whether it is shown; changes nothing."""

    def hide(self, project_id: str, domain: str) -> str:
        """Show nothing under it any more; what remains to be done, in words. Raises Permanent if it is another's."""
