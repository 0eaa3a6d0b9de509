"""A data folder with one customer and no processes: mails, workflow and pool are driven by hand, step by step."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from webordinary.adapters.durable import make_folder
from webordinary.adapters.files.parser import ProcessParser
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.asl.engine import Engine
from webordinary.compose import background
from webordinary.compose.embedded import EmbeddedContainer, open_embedded
from webordinary.config import Config
from webordinary.mail.intake import accept
from webordinary.mail.ports import OutboxEntry
from webordinary.mail.write import CustomerMail, OutgoingFile, write_mail
from webordinary.model.claims import StartedJob
from webordinary.model.jobs import JobOutcome, JobResult, Settlement
from webordinary.model.mail import Delivery, TransportKind
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.model.snapshot import WorkerEntry
from webordinary.pool.reconciler import deliver_callback
from webordinary.workflow.start import start

AMELIA_SCOTT = ProjectUser("amelia", "scott")
SCOTT = "scott@example.com"
WORKER = "container-by-hand"
DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("The title is now Spring Sale.", commit="c" * 40))
DEAD = Settlement(JobOutcome.DEAD, JobResult("", error="the kiln exploded"))


@dataclass
class EmbeddedHarness:
    services: EmbeddedContainer
    engine: Engine
    _mails: int = 0

    def receive(
        self,
        text: str = "Change the title to Spring Sale",
        message_id: str = "",
        sender: str = SCOTT,
        answers: str = "",
        files: Sequence[OutgoingFile] = (),
    ) -> str:
        """A mail arrives and goes as far as it can without a worker."""
        email_id = self.accept(text, message_id, sender, answers, files)
        start(email_id, self.engine, self.services.raw_mails)
        self.engine.run_ready()
        return email_id

    def accept(
        self,
        text: str,
        message_id: str = "",
        sender: str = SCOTT,
        answers: str = "",
        files: Sequence[OutgoingFile] = (),
    ) -> str:
        """A mail is safely stored, and nothing more; `answers` is the Message-ID that it goes on from."""
        self._mails += 1
        message_id = message_id or f"<{self._mails}@example.com>"
        now = self.services.clock.now()
        subject = f"Mail {self._mails}"
        letter = CustomerMail(sender, "edit@localhost", subject, text, files, message_id, in_reply_to=answers)
        delivery = Delivery(TransportKind.SMTP, "127.0.0.1", sender, ("edit@localhost",), now)
        mails, events = self.services.raw_mails, self.services.events
        [mail] = accept(write_mail(letter, now), delivery, mails=mails, events=events)
        return mail.email_id

    def start_job(self) -> StartedJob:
        """A worker of this process, which the pool knows, takes the customer's next job."""
        services, now = self.services, self.services.clock.now()
        services.workers.enter(WORKER)
        services.worker_rows.enter(WorkerEntry(WORKER, "worker 7", os.getpid(), 4), now)
        started = services.pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, now)
        assert isinstance(started, StartedJob)
        return started

    def work(self, settlement: Settlement = DONE) -> StartedJob:
        """A worker takes the customer's next job and settles it; the workflow goes on."""
        started, pool = self.settle(settlement), self.services.pool
        job = pool.jobs.get(started.job.job_id)
        assert job
        deliver_callback(job, pool)
        self.engine.run_ready()
        return started

    def settle(self, settlement: Settlement = DONE) -> StartedJob:
        """A worker takes the customer's next job and settles it; the workflow is not told yet."""
        pool, now = self.services.pool, self.services.clock.now()
        started = pool.claims.claim_and_start(AMELIA_SCOTT, WORKER, now)
        assert isinstance(started, StartedJob)
        pool.claims.end_and_take_next(started, settlement, now, more=False)
        assert pool.claims.begin_release(started.claim)
        pool.claims.end_release(started.claim)
        return started

    def give_up(self, text: str = "Change the title to Spring Sale") -> str:
        """A mail whose job dies."""
        email_id = self.receive(text)
        self.work(DEAD)
        return email_id

    def replies(self, email_id: str) -> list[OutboxEntry]:
        return list(self.services.outbox.of(email_id))


@cache
def migrated() -> bytes:
    """The file of a database with the newest schema and no rows: to take all migrations each time takes longer."""
    return MemoryDatabase().conn.serialize()


@cache
def parser() -> ProcessParser:
    """One for all tests of this process, which keeps its child processes warm."""
    return ProcessParser()


@contextmanager
def open_harness(data: Path, **settings: object) -> Iterator[EmbeddedHarness]:
    if not (data / "webordinary.db").exists():
        make_folder(data)
        (data / "webordinary.db").write_bytes(migrated())
    settings = {"trusted_peers": ("127.0.0.1",), "hourly_mails": 0} | settings
    config = Config(data=data, **({"pictures": "off"} | settings))  # type: ignore[arg-type]
    with open_embedded(config) as services:
        services.mail_deps = replace(services.mail_deps, parser=parser())
        now = services.clock.now()
        services.directory.add_project(Project("amelia", str(data / "amelia.git")), now)
        services.directory.add_sender(Sender(SCOTT, AMELIA_SCOTT), now)
        yield EmbeddedHarness(services, background.engine(services, lambda: None))
