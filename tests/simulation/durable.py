"""What survives every crash: one world's stores, in one SQLite database; and the same seen from one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from tests.fakes.blobs import MemoryBlobs
from tests.fakes.parser import InProcessParser
from tests.fakes.repositories import MemoryOrigin
from tests.harness.pool_records import PoolRecords
from tests.harness.stores import TemporaryRawMails
from tests.simulation.process import EPOCH, Port, Process
from tests.simulation.releases import SimulatedReleases
from tests.simulation.scenario import PEOPLE
from webordinary.adapters.sqlite.claims import SqliteClaims, SqliteProjectLeases
from webordinary.adapters.sqlite.dead_letters import SqliteDeadLetters
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterruptions, SqliteInterrupts, SqliteJobs
from webordinary.adapters.sqlite.mails import (
    SqliteAttachmentManifest,
    SqliteConfirmations,
    SqliteDirectory,
    SqliteHourlyRates,
    SqliteParsedMails,
    SqliteThreads,
)
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.jobs.ports import Ledger
from webordinary.jobs.run import NoLedger
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import TrustedPeers
from webordinary.model.mail import Reply
from webordinary.model.projects import Project, Sender
from webordinary.workflow.answering import Uptime
from webordinary.workflow.reading import MailDeps

MAILBOX = Mailbox.parse("edit@localhost")


@dataclass
class DeliveredReplies:
    """Replies as the customers' mail servers hold them; the same Message-ID is filed once."""

    replies: dict[str, Reply] = field(default_factory=dict)

    def send(self, reply: Reply) -> None:
        """See Transport."""
        self.replies[reply.message_id] = reply


@dataclass
class Durable:
    """All stores. A test may put a wrapped adapter in the place of any of them before the world begins.

    A transaction is whole or did not happen, so a crash keeps what was committed and loses the rest.
    """

    is_dead: Callable[[str], bool]
    state: PoolRecords = field(default_factory=PoolRecords)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    sent: DeliveredReplies = field(default_factory=DeliveredReplies)
    ledger: Ledger = field(default_factory=NoLedger)
    releases: SimulatedReleases = field(default_factory=SimulatedReleases)
    origins: dict[str, MemoryOrigin] = field(default_factory=dict)
    offers_end: bool = True
    """Whether all workers are woken for a key that the one it was offered to does not take."""
    tells_of_bad_ends: bool = True
    """Whether the engine's word that a workflow was stopped or failed arrives."""
    uptime: Callable[[Process], Callable[[], timedelta]] = lambda process: Uptime(process.now, process.monotonic)

    def __post_init__(self) -> None:
        self.db = self.state.db
        self.jobs = SqliteJobs(self.db)
        self.claims = SqliteClaims(self.db, is_dead=self.is_dead)
        self.hints = SqliteClaimRequests(self.db)
        self.interrupts = SqliteInterrupts(self.db)
        self.leases = SqliteProjectLeases(self.db, self.is_dead)
        self.executions = SqliteExecutions(self.db)
        self.raw_mails = TemporaryRawMails(self.db)
        self.parsed_mails = SqliteParsedMails(self.db)
        self.manifest = SqliteAttachmentManifest(self.db)
        self.threads = SqliteThreads(self.db)
        self.directory = SqliteDirectory(self.db)
        self.outbox = SqliteOutbox(self.db)
        self.dead_letters = SqliteDeadLetters(self.db)
        self.interruptions = SqliteInterruptions(self.db)
        self.remotes = self.origins
        for address, key in PEOPLE.items():
            self.origins.setdefault(key.project_id, MemoryOrigin(key.project_id))
            project = Project(key.project_id, f"/{key.project_id}.git", builder="simulated", agent="simulated")
            self.directory.add_project(project, EPOCH)
            self.directory.add_sender(Sender(address, key), EPOCH)

    def mail_deps(self, process: Process) -> MailDeps:
        """The ports of mail as a process sees them."""
        return MailDeps(
            raw_mails=Port(self.raw_mails, "raw_mails", process),
            parsed_mails=Port(self.parsed_mails, "parsed_mails", process),
            manifest=Port(self.manifest, "manifest", process),
            blobs=Port(self.blobs, "blobs", process),
            threads=Port(self.threads, "threads", process),
            directory=self.directory,
            parser=InProcessParser(),
            policy=TrustedPeers(["127.0.0.1"]),
            mailbox=MAILBOX,
            confirmations=SqliteConfirmations(self.db),
            rates=SqliteHourlyRates(self.db),
        )
