"""What survives every crash: one world's stores, as memory adapters; and the same seen from one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from tests.simulation.origin import Origin
from tests.simulation.process import EPOCH, Port, Process
from tests.simulation.releases import SimulatedReleases
from tests.simulation.scenario import PEOPLE
from webordinary.adapters.memory.blobs import MemoryBlobs
from webordinary.adapters.memory.directory import MemoryDirectory
from webordinary.adapters.memory.executions import MemoryExecutions
from webordinary.adapters.memory.letters import MemoryDeadLetters, MemoryInterruptions
from webordinary.adapters.memory.mails import (
    MemoryAttachmentManifest,
    MemoryConfirmations,
    MemoryParsedMails,
    MemoryRawMails,
)
from webordinary.adapters.memory.outbox import MemoryOutbox
from webordinary.adapters.memory.parser import InProcessParser
from webordinary.adapters.memory.pool import (
    MemoryClaims,
    MemoryHints,
    MemoryInterrupts,
    MemoryJobs,
    MemoryPoolState,
)
from webordinary.adapters.memory.project_leases import MemoryProjectLeases
from webordinary.adapters.memory.threads import MemoryThreads
from webordinary.jobs.ports import Ledger
from webordinary.jobs.run import NoLedger
from webordinary.mail.addresses import Mailbox
from webordinary.mail.auth import TrustedPeers
from webordinary.model.jobs import JobState
from webordinary.model.mail import Reply
from webordinary.model.projects import Project, Sender
from webordinary.workflow.answering import Uptime
from webordinary.workflow.reading import Mailroom

MAILBOX = Mailbox.parse("edit@localhost")


@dataclass
class Sent:
    """Replies as the customers' mail servers hold them; the same Message-ID is filed once."""

    replies: dict[str, Reply] = field(default_factory=dict)

    def send(self, reply: Reply) -> None:
        """See Transport."""
        self.replies[reply.message_id] = reply


@dataclass
class Durable:
    """All stores. A test may put a wrapped adapter in the place of any of them before the world begins."""

    is_dead: Callable[[str], bool]
    state: MemoryPoolState = field(default_factory=MemoryPoolState)
    executions: MemoryExecutions = field(default_factory=MemoryExecutions)
    raw_mails: MemoryRawMails = field(default_factory=MemoryRawMails)
    parsed_mails: MemoryParsedMails = field(default_factory=MemoryParsedMails)
    manifest: MemoryAttachmentManifest = field(default_factory=MemoryAttachmentManifest)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    threads: MemoryThreads = field(default_factory=MemoryThreads)
    directory: MemoryDirectory = field(default_factory=MemoryDirectory)
    outbox: MemoryOutbox = field(default_factory=MemoryOutbox)
    dead_letters: MemoryDeadLetters = field(default_factory=MemoryDeadLetters)
    interruptions: MemoryInterruptions = field(default_factory=MemoryInterruptions)
    sent: Sent = field(default_factory=Sent)
    ledger: Ledger = field(default_factory=NoLedger)
    releases: SimulatedReleases = field(default_factory=SimulatedReleases)
    origins: dict[str, Origin] = field(default_factory=dict)
    uptime: Callable[[Process], Callable[[], timedelta]] = lambda process: Uptime(process.now, process.monotonic)

    def __post_init__(self) -> None:
        self.jobs = MemoryJobs(self.state)
        self.claims = MemoryClaims(self.state)
        self.hints = MemoryHints(self.state)
        self.interrupts = MemoryInterrupts(self.state)
        self.leases = MemoryProjectLeases(self._runs, self.is_dead)
        self.remotes = self.origins
        for address, key in PEOPLE.items():
            self.origins.setdefault(key.project_id, Origin(key.project_id))
            project = Project(key.project_id, f"/{key.project_id}.git", builder="simulated", agent="simulated")
            self.directory.add_project(project, EPOCH)
            self.directory.add_sender(Sender(address, key), EPOCH)

    def mailroom(self, process: Process) -> Mailroom:
        """The mail room's ports as a process sees them."""
        return Mailroom(
            raw_mails=Port(self.raw_mails, "raw_mails", process),
            parsed_mails=Port(self.parsed_mails, "parsed_mails", process),
            manifest=Port(self.manifest, "manifest", process),
            blobs=Port(self.blobs, "blobs", process),
            threads=Port(self.threads, "threads", process),
            directory=self.directory,
            parser=InProcessParser(),
            policy=TrustedPeers(["127.0.0.1"]),
            mailbox=MAILBOX,
            confirmations=MemoryConfirmations(),
        )

    def _runs(self, job_id: str, fence: int) -> bool:
        job = self.state.jobs.get(job_id)
        return job is not None and job.state is JobState.RUNNING and job.fence == fence
