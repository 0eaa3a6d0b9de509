"""The rooms' ports over one data folder: SQLite, folders and wake sockets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.local.blobs import LocalBlobs
from webordinary.adapters.local.build_logs import FolderBuildLogs
from webordinary.adapters.local.callbacks import EngineCallbacks
from webordinary.adapters.local.git import Credentials, GitHistory
from webordinary.adapters.local.liveness import LockFiles
from webordinary.adapters.local.releases import FolderReleases
from webordinary.adapters.local.system import SystemClock
from webordinary.adapters.local.wake import WakeBus
from webordinary.adapters.local.wakeups import ENGINE, WakeTickets
from webordinary.adapters.sqlite.alarms import SqliteAlarms
from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.directory import SqliteDirectory
from webordinary.adapters.sqlite.events import SqliteEventLog, SqliteEvents
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.adapters.sqlite.hints import SqliteHints, SqliteInterrupts
from webordinary.adapters.sqlite.jobs import SqliteJobs
from webordinary.adapters.sqlite.ledger import SqliteLedger
from webordinary.adapters.sqlite.letters import SqliteDeadLetters, SqliteInterruptions
from webordinary.adapters.sqlite.levels import SqliteLevels
from webordinary.adapters.sqlite.mails import SqliteAttachmentManifest, SqliteParsedMails, SqliteRawMails
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.adapters.sqlite.overview import SqliteOverview
from webordinary.adapters.sqlite.project_leases import SqliteProjectLeases
from webordinary.adapters.sqlite.tallies import SqliteTallies
from webordinary.adapters.sqlite.threads import SqliteThreads
from webordinary.adapters.sqlite.undelivered import SqliteUndelivered
from webordinary.adapters.sqlite.workers import SqliteWorkers
from webordinary.app.services import Services
from webordinary.config import Config
from webordinary.mail.addresses import Mailbox
from webordinary.mail.authenticate import TrustedPeers
from webordinary.model.errors import Permanent
from webordinary.pool.ports import Pool
from webordinary.workflow.reading import Mailroom


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded(Services):
    """Everything one process needs of a data folder."""

    db: Database
    bus: WakeBus
    events: SqliteEvents
    event_log: SqliteEventLog
    overview: SqliteOverview
    raw_mails: SqliteRawMails
    blobs: LocalBlobs
    jobs: SqliteJobs
    dead_letters: SqliteDeadLetters
    interruptions: SqliteInterruptions
    executions: SqliteExecutions
    ledger: SqliteLedger
    releases: FolderReleases
    workers: SqliteWorkers
    lock_files: LockFiles
    alarms: SqliteAlarms
    levels: SqliteLevels
    tallies: SqliteTallies
    build_logs: FolderBuildLogs


@contextmanager
def open_embedded(config: Config) -> Iterator[Embedded]:
    """Open the data folder, bringing its schema up to date; closed again at the end of the block."""
    if config.backend != "embedded":
        raise Permanent("this works on a data folder; on AWS there are CloudWatch's logs and DynamoDB's backups for it")
    config.data.mkdir(parents=True, exist_ok=True)
    db = Database(config.data / "webordinary.db")
    bus = WakeBus(config.data / "run" / "wake")
    events = SqliteEvents(db, bus.notify)
    try:
        db.migrate()
        yield _services(config, db, bus, events)
    finally:
        events.close()
        bus.close()
        db.close()


def _services(config: Config, db: Database, bus: WakeBus, events: SqliteEvents) -> Embedded:
    clock, data = SystemClock(), config.data
    raw_mails, blobs, directory = SqliteRawMails(db, data), LocalBlobs(data / "blobs"), SqliteDirectory(db)
    threads, executions, jobs = SqliteThreads(db), SqliteExecutions(db), SqliteJobs(db)
    lock_files, credentials = LockFiles(data / "run" / "workers"), Credentials(data / "secrets")
    mailroom = Mailroom(
        raw_mails=raw_mails,
        parsed_mails=SqliteParsedMails(db),
        manifest=SqliteAttachmentManifest(db),
        blobs=blobs,
        threads=threads,
        directory=directory,
        policy=TrustedPeers(config.trusted_peers),
        mailbox=Mailbox.parse(config.mailbox),
    )
    claims = SqliteClaims(db, config.lease_seconds)
    pool = Pool(
        jobs=jobs,
        owed=jobs,
        claims=claims,
        hints=SqliteHints(db),
        tickets=WakeTickets(bus, claims.look),
        interrupts=SqliteInterrupts(db),
        callbacks=EngineCallbacks(executions, lambda: bus.notify(ENGINE), clock.now),
        liveness=lock_files,
    )
    return Embedded(
        config=config,
        clock=clock,
        db=db,
        bus=bus,
        events=events,
        event_log=SqliteEventLog(db),
        overview=SqliteOverview(db, lock_files.is_dead),
        mailroom=mailroom,
        raw_mails=raw_mails,
        blobs=blobs,
        directory=directory,
        threads=threads,
        outbox=SqliteOutbox(db),
        pool=pool,
        jobs=jobs,
        dead_letters=SqliteDeadLetters(db, bus.notify),
        interruptions=SqliteInterruptions(db),
        executions=executions,
        releases=FolderReleases(data / "sites", config.releases_kept),
        history=GitHistory(data / "mirrors", credentials),
        credentials=credentials,
        undelivered=SqliteUndelivered(db),
        workers=SqliteWorkers(db),
        lock_files=lock_files,
        ledger=SqliteLedger(db),
        leases=SqliteProjectLeases(db, lock_files.is_dead),
        attachment_path=lambda attachment: blobs.path(attachment.digest),
        make_room=lambda key: None,
        clear_room=lambda project_id, keys: _clear_folders(data, project_id),
        alarms=SqliteAlarms(db),
        levels=SqliteLevels(db),
        tallies=SqliteTallies(db),
        build_logs=FolderBuildLogs(data / "builds"),
    )


def _clear_folders(data: Path, project_id: str) -> None:
    """Of a site that is gone: what it showed, the copy of its repository, what its agents remembered."""
    for folder in (
        data / "sites" / project_id,
        data / "mirrors" / f"{project_id}.git",
        data / "agent-sessions" / project_id,
    ):
        if folder.exists():
            shutil.rmtree(folder)
