"""The container: the ports of one process, whatever the backend.

`compose.embedded` and `compose.aws` implement it with a cached property for each port, so that a process builds only
the ports that it uses. Callers never ask which backend it is: a difference is a value of the `profile` or a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from webordinary.adapters.aws import names
from webordinary.config import Config
from webordinary.jobs.site_files import Stage, site_host
from webordinary.mail.intake import Accepted
from webordinary.mail.ports import Blobs, Directory, Outbox, RawMails, Threads, Transport, UndeliveredReplies
from webordinary.model.events import Events
from webordinary.model.jobs import Job
from webordinary.model.mail import Delivery, TransportVerdicts
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Levels
from webordinary.pool.metrics import History, MetricsState
from webordinary.pool.ports import InterruptionAudit, Pool
from webordinary.workflow.reading import MailDeps
from webordinary.workflow.start import Workflows

if TYPE_CHECKING:  # a lambda starts without them
    from webordinary.adapters.git import Credentials, GitHistory
    from webordinary.jobs.ports import ProjectLeases, Releases, SessionFiles
    from webordinary.operations.access import Access
    from webordinary.operations.ports import (
        Accounts,
        EventLog,
        MailIndex,
        Overview,
        OwnDomains,
        SearchableDeadLetters,
        StoredBuildLogs,
        WaitingJobs,
        WorkerRegistry,
    )
    from webordinary.services.loop import Service
    from webordinary.worker.ports import Clock

AWS, EMBEDDED = "aws", "embedded"


@dataclass(frozen=True, slots=True)
class AcceptedMail:
    """A mail that the system has taken."""

    email_id: str
    """Empty where another mail server took it, on its way to the intake."""
    new: bool
    """False if the same mail had been taken before."""
    answer: str
    """The answer of the intake, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendProfile:
    """The differences between backends that callers need, as plain data."""

    name: str
    data_is_local: bool
    """The data folder holds the database; otherwise it holds only caches."""
    runs_engine: bool
    """`up` runs the workflow engine; otherwise Step Functions does."""
    is_public: bool
    """Sites, mail and replies are on the internet: visitors use https, customers write to the mailbox."""
    accepts_sample_mail: bool
    """Onboarding can send a first mail in the customer's name: only an emulator of AWS takes it."""
    ports: tuple[str, ...]
    """Settings that name the ports `up` listens on."""
    mail_bucket: str = ""
    """The bucket in which SES stores incoming mails; empty if mail comes in by SMTP."""
    worker_drain_minutes: int = 0
    """A worker that is asked to end may hear of it so much later."""
    worker_stop_seconds: float = 0.0
    """Extra time that a worker needs to stop, to finish its last poll."""
    replies_leave_at_once: bool = False
    """The step that writes a reply also sends it, and the transport replaces its Message-ID."""
    longest_awaited: timedelta = timedelta(days=350)
    """A job held longer is given up, while its mail is still stored."""


_MAIL_KEPT_ON_AWS = timedelta(days=30)
_HELD_LOOKED_AT_EVERY = timedelta(days=7)


def profile_of(config: Config) -> BackendProfile:
    """The profile of the backend that the settings name."""
    if config.backend != AWS:
        return BackendProfile(
            name=EMBEDDED,
            data_is_local=True,
            runs_engine=True,
            is_public=False,
            accepts_sample_mail=False,
            ports=("port", "preview_port", "smtp_port"),
        )
    return BackendProfile(
        name=AWS,
        data_is_local=False,
        runs_engine=False,
        is_public=not config.aws_endpoint,
        accepts_sample_mail=bool(config.aws_endpoint),
        ports=("port", "preview_port"),
        mail_bucket=names.raw_bucket(config.aws_account),
        worker_drain_minutes=5,
        worker_stop_seconds=config.aws_poll_seconds,
        replies_leave_at_once=True,
        longest_awaited=_MAIL_KEPT_ON_AWS - _HELD_LOOKED_AT_EVERY - timedelta(days=2),  # while its mail is still there
    )


class Runnable(Protocol):
    """A service that runs in a thread of its own until stopped."""

    @property
    def name(self) -> str: ...
    def run(self) -> None: ...
    def stop(self) -> None: ...


class Container(Protocol):
    """The ports of one process over one backend; each is built on first use."""

    @property
    def config(self) -> Config: ...
    @property
    def profile(self) -> BackendProfile: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def events(self) -> Events: ...
    @property
    def event_log(self) -> EventLog: ...
    @property
    def overview(self) -> Overview: ...
    @property
    def mail_index(self) -> MailIndex: ...
    @property
    def workers(self) -> WorkerRegistry: ...

    @property
    def mail_deps(self) -> MailDeps: ...
    @property
    def raw_mails(self) -> RawMails: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def directory(self) -> Directory: ...
    @property
    def threads(self) -> Threads: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def undelivered(self) -> UndeliveredReplies: ...
    @property
    def transport(self) -> Transport: ...
    @property
    def workflows(self) -> Workflows: ...
    def accept_mail(
        self, raw: bytes, delivery: Delivery, verdicts: TransportVerdicts | None = None
    ) -> Sequence[Accepted]:
        """Store a mail that a transport brought; see `mail.intake.accept`. Raises where its quota is full."""

    @property
    def intake_description(self) -> str:
        """Where mail comes in, for the page and the banner."""

    def send_mail(self, raw: bytes, mail_from: str, recipient: str) -> AcceptedMail:
        """Put a mail into the intake, as if it had come from outside; raises Permanent where only SES can."""

    @property
    def pool(self) -> Pool: ...
    @property
    def jobs(self) -> WaitingJobs: ...
    @property
    def dead_letters(self) -> SearchableDeadLetters: ...
    @property
    def interruptions(self) -> InterruptionAudit: ...

    @property
    def releases(self) -> Releases: ...
    def read_release(self, release: Path, name: str) -> bytes:
        """A file of a release that was current here. Raises OSError, Permanent or Transient."""

    @property
    def own_domains(self) -> OwnDomains | None:
        """None where visitors come to this machine: then DNS alone decides."""

    def addresses_of(self, host: str) -> frozenset[str]:
        """The addresses of a host name; empty if it has none."""

    @property
    def leases(self) -> ProjectLeases: ...
    @property
    def ledger(self) -> Accounts: ...
    @property
    def build_logs(self) -> StoredBuildLogs: ...
    @property
    def session_files(self) -> SessionFiles: ...
    @property
    def history(self) -> GitHistory: ...
    @property
    def credentials(self) -> Credentials: ...
    @property
    def access(self) -> Access | None:
        """Users of the console; None where it has no login of its own."""

    def attachment_path(self, digest: str) -> Path:
        """Path of an attachment's bytes on this machine."""

    def current_site(self, project_id: str, stage: Stage) -> Path | None:
        """Folder of the release that a site shows now; None if it shows none."""

    def provision(self, key: ProjectUser) -> None:
        """Create the resources of a customer beside records: on AWS queues and buckets. Idempotent."""

    def deprovision(self, project_id: str, keys: Sequence[ProjectUser]) -> None:
        """Remove the resources of a project and its customers; its repository stays. Idempotent."""

    def settled_since(self, since: datetime, limit: int) -> Sequence[Job]:
        """Settled jobs in the order of their ends; none on AWS, where output queues have them."""

    @property
    def pool_history(self) -> History: ...

    def drain_worker(self, worker: str) -> None:
        """Let a worker end once its running jobs are done; raises Permanent if it has ended."""

    def metrics(self) -> tuple[Levels, MetricsState | None]:
        """Levels now, and counters unless CloudWatch has them."""

    def prepare(self) -> None:
        """Bring the stored state in order before `up` starts its workers."""

    def background(self, closing: ExitStack, page: Service) -> Sequence[Runnable]:
        """The services that `up` runs, each in a thread; `page` is woken when new events are stored."""

    def registered(self, operator: str) -> AbstractContextManager[None]:
        """Register this process for the block, so that others see at once if it dies."""


def site_url(config: Config, project_id: str, stage: Stage, own_domains: Sequence[str] = ()) -> str:
    """Address of a site in a browser; the public site is shown under the customer's own domain if there is one."""
    is_public = profile_of(config).is_public
    host = f"{site_host(project_id, stage)}.{config.domain}"
    if is_public:
        host = names.site_host(project_id, stage, config.domain)
    if stage is Stage.PUBLIC and own_domains:
        host = own_domains[0]
    if config.public_url:
        public = urlsplit(config.public_url)
        return f"{public.scheme}://{host}{f':{public.port}' if public.port else ''}/"
    return f"https://{host}/" if is_public else f"http://{host}:{config.port}/"
