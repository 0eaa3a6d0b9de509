"""The container over one data folder: SQLite, folders and wake sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webordinary.adapters.git.command import clear_leftovers, harden_origins
from webordinary.adapters.sqlite.jobs import SqliteOutages
from webordinary.compose.container import Runnable
from webordinary.mail.intake import Accepted, UnadmittedQuota, accept, envelopes_of_delivery
from webordinary.model.events import Event, EventKind
from webordinary.model.snapshot import Levels
from webordinary.pool.metrics import MetricsRecorder, MetricsState

if TYPE_CHECKING:
    from webordinary.asl.engine import Engine
    from webordinary.operations.access import Access
    from webordinary.services.loop import Loop, Service

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path

from webordinary.adapters.durable import make_folder
from webordinary.adapters.files import transports
from webordinary.adapters.files.liveness import LockFiles
from webordinary.adapters.files.parser import ProcessParser, ProcessVerifier
from webordinary.adapters.files.releases import FolderReleases
from webordinary.adapters.files.screenshots import read_local
from webordinary.adapters.files.stores import SESSIONS, FolderBuildLogs, FolderSessionFiles, LocalBlobs
from webordinary.adapters.files.system import SystemClock, addresses_of
from webordinary.adapters.files.transports import MaildirTransport, RelaySettings, RelayTransport, SigningTransport
from webordinary.adapters.files.wake import ENGINE, EngineCallbacks, SocketNotifier, WakeBus, listener_name
from webordinary.adapters.git import Credentials, GitHistory
from webordinary.adapters.sqlite.access import SqliteActionLog, SqliteConsoleSecrets, SqliteConsoleUsers
from webordinary.adapters.sqlite.claims import SqliteClaims, SqliteProjectLeases, SqliteWorkers
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.dead_letters import SqliteDeadLetters
from webordinary.adapters.sqlite.events import SqliteEventLog, SqliteEvents, SqliteLevels, SqliteMetrics, SqliteSamples
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterruptions, SqliteInterrupts, SqliteJobs
from webordinary.adapters.sqlite.ledger import SqliteLedger
from webordinary.adapters.sqlite.mail_index import SqliteMailIndex
from webordinary.adapters.sqlite.mails import (
    SqliteAttachmentManifest,
    SqliteConfirmations,
    SqliteDirectory,
    SqliteHourlyRates,
    SqliteParsedMails,
    SqliteRawMails,
    SqliteRetention,
    SqliteThreads,
)
from webordinary.adapters.sqlite.outbox import SqliteAlerts, SqliteOutbox, SqliteUndelivered
from webordinary.adapters.sqlite.overview import SqliteOverview
from webordinary.adapters.sqlite.recovery import HighWaterMark
from webordinary.compose.container import EMBEDDED, AcceptedMail, BackendProfile, profile_of
from webordinary.compose.mailboxes import relay_password
from webordinary.config import Config
from webordinary.jobs.site_files import Stage
from webordinary.mail import intake
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import ProofChain, TrustedPeers
from webordinary.mail.dmarc import AlignedSignature, Dns, PinnedProvider
from webordinary.mail.ports import Transport
from webordinary.model.errors import Permanent
from webordinary.model.jobs import Job
from webordinary.model.mail import Delivery, TransportVerdicts
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import WorkerEntry
from webordinary.pool.ports import DRAIN, Pool
from webordinary.workflow.reading import MailDeps

SITES, MIRRORS, SECRETS, ORIGINS = "sites", "mirrors", "secrets", "origins"


OUTBOX_SECONDS = 30.0
MAX_SIGNED_DAYS = 7
"""A signed mail that is older proves nothing: mail servers give up after five days."""


class RegisteredWorkers(LockFiles):
    """The workers that the database knows, with the heartbeats of their lock files."""

    def __init__(self, folder: Path, rows: SqliteWorkers) -> None:
        super().__init__(folder)
        self._rows = rows

    def present(self) -> list[WorkerEntry]:
        return self._rows.present()

    def names(self, workers: Iterable[str]) -> dict[str, str]:
        return self._rows.names(workers)


class EmbeddedContainer:
    """Container over a data folder. `db`, `bus` and the Sqlite ports beyond the interface are for `compose` only."""

    def __init__(self, config: Config, closing: ExitStack) -> None:
        self.config, self.clock = config, SystemClock()
        make_folder(config.data)
        self.db = Database(config.data / "webordinary.db")
        closing.callback(self.db.close)
        self.bus = WakeBus(config.data / "run" / "wake")
        closing.callback(self.bus.close)
        self.mark = HighWaterMark(self.db.path)
        self.events = SqliteEvents(self.db, self.bus.notify, self.mark.raise_to)
        closing.callback(self.events.close)
        self._closing = closing
        self.db.migrate()
        self.mark.check(self.db)

    @cached_property
    def profile(self) -> BackendProfile:
        return profile_of(self.config)

    @cached_property
    def event_log(self) -> SqliteEventLog:
        return SqliteEventLog(self.db)

    @cached_property
    def overview(self) -> SqliteOverview:
        return SqliteOverview(self.db, self.workers.is_dead)

    @cached_property
    def mail_index(self) -> SqliteMailIndex:
        return SqliteMailIndex(self.db)

    @cached_property
    def workers(self) -> RegisteredWorkers:
        return RegisteredWorkers(self.config.data / "run" / "workers", self.worker_rows)

    @cached_property
    def worker_rows(self) -> SqliteWorkers:
        return SqliteWorkers(self.db)

    @cached_property
    def access(self) -> Access:
        from webordinary.operations.access import Access  # noqa: PLC0415 - only the page and `user` need it

        stores = (SqliteConsoleUsers(self.db), SqliteConsoleSecrets(self.db), SqliteActionLog(self.db))
        return Access(*stores, self.clock.now, self.clock.monotonic, always=self.config.needs_login)

    @cached_property
    def alerts(self) -> SqliteAlerts:
        return SqliteAlerts(self.db)

    @cached_property
    def levels(self) -> SqliteLevels:
        return SqliteLevels(self.db)

    @cached_property
    def metrics_store(self) -> SqliteMetrics:
        return SqliteMetrics(self.db)

    @cached_property
    def retention(self) -> SqliteRetention:
        return SqliteRetention(self.db, self.config.data)

    @cached_property
    def mail_deps(self) -> MailDeps:
        parser = ProcessParser()
        self._closing.callback(parser.close)
        return MailDeps(
            raw_mails=self.raw_mails,
            parsed_mails=SqliteParsedMails(self.db),
            manifest=SqliteAttachmentManifest(self.db),
            blobs=self.blobs,
            threads=self.threads,
            directory=self.directory,
            parser=parser,
            policy=ProofChain(TrustedPeers(self.config.trusted_peers), self._own_check),
            mailbox=Mailbox.parse(self.config.mailbox),
            confirmations=SqliteConfirmations(self.db),
            rates=SqliteHourlyRates(self.db),
            atomically=self.db.transaction,
        )

    @cached_property
    def _own_check(self) -> AlignedSignature:
        verifier = ProcessVerifier()
        self._closing.callback(verifier.close)
        remembered = timedelta(days=min(MAX_SIGNED_DAYS, self.config.retention_days))
        return AlignedSignature(self.dns, verifier, remembered)

    @cached_property
    def dns(self) -> Dns:
        from webordinary.adapters.resolver import DnsResolver  # noqa: PLC0415 - slow to import, few commands need it

        return DnsResolver(self.config.dns_servers)

    @cached_property
    def raw_mails(self) -> SqliteRawMails:
        return SqliteRawMails(self.db, self.config.data)

    @cached_property
    def blobs(self) -> LocalBlobs:
        return LocalBlobs(self.config.data / "blobs")

    @cached_property
    def directory(self) -> SqliteDirectory:
        return SqliteDirectory(self.db)

    @cached_property
    def threads(self) -> SqliteThreads:
        return SqliteThreads(self.db)

    @cached_property
    def outbox(self) -> SqliteOutbox:
        return SqliteOutbox(self.db)

    @cached_property
    def undelivered(self) -> SqliteUndelivered:
        return SqliteUndelivered(self.db)

    @cached_property
    def transport(self) -> Transport:
        config = self.config
        if not config.dkim_key_file:
            return self._unsigned_transport()
        domain = config.mailbox.rpartition("@")[2]
        return SigningTransport(self._unsigned_transport(), Path(config.dkim_key_file), config.dkim_selector, domain)

    def _unsigned_transport(self) -> Transport:
        config = self.config
        if not config.relay_host:
            return MaildirTransport(config.data / "outbox")
        return RelayTransport(
            RelaySettings(
                host=config.relay_host,
                port=config.relay_port,
                sender=config.mailbox,
                starttls=config.relay_starttls,
                user=config.relay_user,
                password=relay_password(config),
            )
        )

    @cached_property
    def executions(self) -> SqliteExecutions:
        return SqliteExecutions(self.db, keep_histories=False)

    @cached_property
    def engine(self) -> Engine:
        from webordinary.compose.background import engine  # noqa: PLC0415 - few commands need it, and slow to import

        return engine(self, self.outbox_loop.wake)

    @cached_property
    def workflows(self) -> WokenEngine:
        return WokenEngine(self)

    @cached_property
    def outbox_loop(self) -> Loop:
        from webordinary.mail.outbox import OutboxSender  # noqa: PLC0415 - only `up` needs them
        from webordinary.services.loop import Loop  # noqa: PLC0415

        sender = OutboxSender(self.outbox, self.transport, self.events)
        return Loop(sender, OUTBOX_SECONDS, self.clock.now)

    def accept_mail(
        self, raw: bytes, delivery: Delivery, verdicts: TransportVerdicts | None = None
    ) -> Sequence[Accepted]:
        config = self.config
        if verdicts is None and config.trusted_authserv_id:
            verdicts = PinnedProvider(config.trusted_authserv_id, config.authserv_peers).verdicts(raw, delivery)
        self._quota.require_room(raw, envelopes_of_delivery(delivery, verdicts))
        return accept(raw, delivery, verdicts, mails=self.raw_mails, events=self.events)

    @cached_property
    def _quota(self) -> UnadmittedQuota:
        limit = self.config.unadmitted_mail_mb * 1_000_000
        return UnadmittedQuota(limit, self.raw_mails.unadmitted_bytes, self.mail_deps.judge)

    @property
    def intake_description(self) -> str:
        return f"on port {self.config.smtp_port} of this machine"

    def send_mail(self, raw: bytes, mail_from: str, recipient: str) -> AcceptedMail:
        return send_by_smtp(self.config, raw, mail_from, recipient)

    @cached_property
    def pool(self) -> Pool:
        return Pool(
            jobs=self.jobs,
            pending_callbacks=self.jobs,
            claims=self.claims,
            hints=self.hints,
            tickets=self.notifier,
            interrupts=SqliteInterrupts(self.db),
            callbacks=EngineCallbacks(self.executions, partial(self.bus.notify, ENGINE), self.clock.now),
            liveness=self.workers,
        )

    @cached_property
    def claims(self) -> SqliteClaims:
        return SqliteClaims(self.db, self.config.lease_seconds, self.workers.is_dead)

    @cached_property
    def hints(self) -> SqliteClaimRequests:
        return SqliteClaimRequests(self.db)

    @cached_property
    def notifier(self) -> SocketNotifier:
        return SocketNotifier(self.bus, self.claims, self.hints, self._offered)

    def _offered(self) -> None:
        self.offers_loop.wake()

    @cached_property
    def offers_loop(self) -> Loop:
        from webordinary.services.loop import Loop  # noqa: PLC0415 - only `up` needs it

        return Loop(self.notifier, None, self.clock.now)

    @cached_property
    def jobs(self) -> SqliteJobs:
        return SqliteJobs(self.db)

    @cached_property
    def dead_letters(self) -> SqliteDeadLetters:
        return SqliteDeadLetters(self.db, self.bus.notify)

    @cached_property
    def interruptions(self) -> SqliteInterruptions:
        return SqliteInterruptions(self.db)

    @property
    def own_domains(self) -> None:
        return None

    addresses_of = staticmethod(addresses_of)

    @cached_property
    def releases(self) -> FolderReleases:
        return FolderReleases(self.config.data / SITES, self.config.releases_kept)

    @cached_property
    def leases(self) -> SqliteProjectLeases:
        return SqliteProjectLeases(self.db, self.workers.is_dead)

    @cached_property
    def ledger(self) -> SqliteLedger:
        return SqliteLedger(self.db)

    @cached_property
    def build_logs(self) -> FolderBuildLogs:
        return FolderBuildLogs(self.config.data / "builds")

    @cached_property
    def session_files(self) -> FolderSessionFiles:
        return FolderSessionFiles(self.config.data / SESSIONS)

    @cached_property
    def history(self) -> GitHistory:
        return GitHistory(self.config.data / MIRRORS, self.credentials)

    @cached_property
    def credentials(self) -> Credentials:
        return Credentials(self.config.data / SECRETS)

    def attachment_path(self, digest: str) -> Path:
        return self.blobs.path(digest)

    def read_release(self, release: Path, name: str) -> bytes:
        return read_local(release, name)

    def current_site(self, project_id: str, stage: Stage) -> Path | None:
        return self.releases.current(project_id, stage)

    def settled_since(self, since: datetime, limit: int) -> Sequence[Job]:
        return self.jobs.settled_since(since, limit)

    @cached_property
    def pool_history(self) -> SqliteSamples:
        return SqliteSamples(self.db)

    def drain_worker(self, worker: str) -> None:
        self.bus.send(listener_name(worker), DRAIN)

    def provision(self, key: ProjectUser) -> None:
        """Nothing beside records is needed."""

    def deprovision(self, project_id: str, keys: Sequence[ProjectUser]) -> None:
        """Remove the releases, the mirror and the agents' sessions of a project."""
        data = self.config.data
        for folder in (data / SITES / project_id, data / MIRRORS / f"{project_id}.git", data / SESSIONS / project_id):
            if folder.exists():
                shutil.rmtree(folder)

    @cached_property
    def meter(self) -> MetricsRecorder:
        return MetricsRecorder(self.metrics_store)

    def metrics(self) -> tuple[Levels, MetricsState | None]:
        alive = [worker for worker in self.workers.present() if not self.workers.is_dead(worker.worker)]
        return self.levels.look(len(alive)), self.meter.read()

    def prepare(self) -> None:
        """Make origins durable, clear what killed processes left, and blame no job for an outage of everything."""
        remove_copies(self.config.data, self.clock.now())
        harden_origins(self.config.data / ORIGINS)
        for folder in (ORIGINS, MIRRORS):
            clear_leftovers(self.config.data / folder, self.clock.now())
        if count := SqliteOutages(self.db).excuse(self.workers.is_dead):
            self.events.emit(Event(EventKind.OUTAGE_EXCUSED, data={"jobs": count}))

    def background(self, closing: ExitStack, page: Service) -> Sequence[Runnable]:
        from webordinary.compose.background import background_services  # noqa: PLC0415 - only `up` needs it

        return background_services(self, closing, page)

    @contextmanager
    def registered(self, operator: str) -> Iterator[None]:
        self.workers.enter(operator)
        try:
            yield
        finally:
            self.workers.leave(operator)


COPIES = {"rehearsal-*": timedelta(0), "replay-*": timedelta(hours=1), "upgrade-*": timedelta(hours=1)}
"""Folders of the data folder in which a mail or an upgrade is tried; commands that make the last two may run now."""


def remove_copies(data: Path, now: datetime) -> None:
    """Remove the copies that a killed process left in the data folder."""
    for pattern, age in COPIES.items():
        for folder in data.glob(pattern):
            with suppress(OSError):  # its command has just ended and removed it
                if not age or folder.stat().st_mtime < (now - age).timestamp():
                    shutil.rmtree(folder)


@contextmanager
def open_embedded(config: Config) -> Iterator[EmbeddedContainer]:
    """Open the data folder and bring its schema up to date."""
    if config.backend != EMBEDDED:
        raise Permanent("this works on a data folder; on AWS there are CloudWatch's logs and DynamoDB's backups for it")
    with ExitStack() as closing:
        yield EmbeddedContainer(config, closing)


class WokenEngine:
    """The workflows of a data folder: starts an execution and wakes the `up` that runs the engine."""

    def __init__(self, container: EmbeddedContainer) -> None:
        self._container = container

    def start(self, name: str, input: dict[str, Any]) -> bool:
        started = self._container.engine.start(name, input)
        self._container.bus.notify(ENGINE)
        return started


def send_by_smtp(config: Config, raw: bytes, mail_from: str, recipient: str) -> AcceptedMail:
    """Hand a mail to the SMTP intake that the settings name."""
    answer = transports.send(raw, mail_from, recipient, config.smtp_reachable, config.smtp_port)
    return AcceptedMail(transports.email_id_in(answer), intake.HERE_ALREADY not in answer, answer)
