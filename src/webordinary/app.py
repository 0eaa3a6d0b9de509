"""The composition root: the only place where ports meet adapters."""

from __future__ import annotations

import logging
import os
import random
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from webordinary import sample
from webordinary.adapters.local.agents.homes import forget_homes
from webordinary.adapters.local.blobs import LocalBlobs
from webordinary.adapters.local.build_logs import FolderBuildLogs
from webordinary.adapters.local.builders import Dependencies, Workshop, builders
from webordinary.adapters.local.callbacks import EngineCallbacks
from webordinary.adapters.local.git import Credentials, GitHistory, GitRepository, WorkspaceCache
from webordinary.adapters.local.git.origins import Origins
from webordinary.adapters.local.git.upkeep import tend_mirrors
from webordinary.adapters.local.homes import take_home
from webordinary.adapters.local.jail.cells import BubblewrapJail
from webordinary.adapters.local.jail.limits import MEGABYTE, JailLimits
from webordinary.adapters.local.jail.open_cells import OpenJail
from webordinary.adapters.local.jail.programs import JailedPrograms
from webordinary.adapters.local.liveness import DeathWatch, LockFiles
from webordinary.adapters.local.maildir import MaildirTransport
from webordinary.adapters.local.pictures import ChromiumPictures, find_browser
from webordinary.adapters.local.relay import RelaySettings, RelayTransport
from webordinary.adapters.local.releases import FolderReleases
from webordinary.adapters.local.system import SystemClock, SystemThreads
from webordinary.adapters.local.wake import WakeBus
from webordinary.adapters.local.wakeups import ENGINE, WORKERS, WakeTickets, WorkerWakeups, ear_of
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
from webordinary.adapters.sqlite.workers import SqliteWorkers, WorkerEntry
from webordinary.app_agents import agents_of, kept_homes, limits_of
from webordinary.asl.engine import Engine
from webordinary.asl.ports import Execution
from webordinary.config import Config
from webordinary.mail.addresses import Mailbox
from webordinary.mail.authenticate import TrustedPeers
from webordinary.mail.ports import Transport
from webordinary.model.errors import Permanent
from webordinary.model.events import Event
from webordinary.model.jobs import Job, JobState
from webordinary.model.mail import Attachment, Instruction
from webordinary.model.names import ProjectUser
from webordinary.model.overview import Levels
from webordinary.model.projects import Project, Sender
from webordinary.pool.ports import Pool
from webordinary.pool.reconciler import Reconciler
from webordinary.site.first_release import show_first
from webordinary.site.kit import SiteKit
from webordinary.site.ports import Builder, Jail
from webordinary.site.releases import Stage
from webordinary.site.studio import Studio
from webordinary.worker.job import SiteWork
from webordinary.worker.settings import Settings
from webordinary.worker.surroundings import Surroundings
from webordinary.worker.worker import Worker
from webordinary.workflow.answering import Answering
from webordinary.workflow.definition import embedded
from webordinary.workflow.queueing import Queueing
from webordinary.workflow.reading import Mailroom, Reading
from webordinary.workflow.steps import steps

BUILDER_NAMES = ("plain", "npm", "hugo", "mkdocs", "command")
DETECTED = "auto"
"""What an operator says for: the builder that fits the source."""
SAVING_SECONDS = 2.0
"""What a stopping worker needs, after its agents' grace, to keep what they did; less than its parent's patience."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """Everything one process needs of a data folder."""

    config: Config
    clock: SystemClock
    db: Database
    bus: WakeBus
    events: SqliteEvents
    event_log: SqliteEventLog
    overview: SqliteOverview
    mailroom: Mailroom
    raw_mails: SqliteRawMails
    blobs: LocalBlobs
    directory: SqliteDirectory
    threads: SqliteThreads
    outbox: SqliteOutbox
    pool: Pool
    jobs: SqliteJobs
    dead_letters: SqliteDeadLetters
    interruptions: SqliteInterruptions
    executions: SqliteExecutions
    releases: FolderReleases
    history: GitHistory
    credentials: Credentials
    workers: SqliteWorkers
    lock_files: LockFiles
    ledger: SqliteLedger
    alarms: SqliteAlarms
    levels: SqliteLevels
    tallies: SqliteTallies
    build_logs: FolderBuildLogs


@contextmanager
def open_services(config: Config) -> Iterator[Services]:
    """Open the data folder, bringing its schema up to date; closed again at the end of the block."""
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


def _services(config: Config, db: Database, bus: WakeBus, events: SqliteEvents) -> Services:
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
    pool = Pool(
        jobs=jobs,
        owed=jobs,
        claims=SqliteClaims(db, config.lease_seconds),
        hints=SqliteHints(db),
        tickets=WakeTickets(bus),
        interrupts=SqliteInterrupts(db),
        callbacks=EngineCallbacks(executions, lambda: bus.notify(ENGINE), clock.now),
        liveness=lock_files,
    )
    return Services(
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
        workers=SqliteWorkers(db),
        lock_files=lock_files,
        ledger=SqliteLedger(db),
        alarms=SqliteAlarms(db),
        levels=SqliteLevels(db),
        tallies=SqliteTallies(db),
        build_logs=FolderBuildLogs(data / "builds"),
    )


def engine(services: Services, wake_outbox: Callable[[], None]) -> Engine:
    """The workflow engine on the one workflow file; one process of a data folder runs it."""
    now = services.clock.now
    answering = Answering(
        services.mailroom, services.outbox, services.pool, services.dead_letters, services.events, now, wake_outbox
    )
    handlers = steps(
        Reading(services.mailroom, services.jobs, services.events, now),
        Queueing(services.pool, services.interruptions, services.events, now, answering.tell_held),
        answering,
    )

    def abandon(execution: Execution) -> None:
        started_with = execution.input if isinstance(execution.input, dict) else {"emailId": execution.name}
        error = f"workflow {execution.status}: {execution.error}"
        answering.abandon(started_with, error, execution.cause or "")

    return Engine(services.executions, embedded(), handlers, clock=services.clock, on_finished=abandon)


def transport(config: Config) -> Transport:
    """How replies leave: through the operator's relay, or into the Maildir outbox."""
    if not config.relay_host:
        return MaildirTransport(config.data / "outbox")
    return RelayTransport(
        RelaySettings(
            host=config.relay_host,
            port=config.relay_port,
            sender=config.mailbox,
            starttls=config.relay_starttls,
            user=config.relay_user,
            password=config.relay_password,
        )
    )


def run_worker(config: Config, name: str, slots: int, stop: threading.Event) -> None:
    """Run one generic worker until `stop` is set; what runs is finished or saved, and every claim released."""
    with ExitStack() as closing:
        services = closing.enter_context(open_services(config))
        worker_id = _worker_id(services.clock.now())
        home = take_home(config.data / "workspaces")
        closing.callback(home.close)
        services.lock_files.enter(worker_id)
        closing.callback(services.lock_files.leave, worker_id)
        services.workers.enter(WorkerEntry(worker_id, name, os.getpid(), slots), services.clock.now())
        listener = services.bus.listen(ear_of(worker_id))
        closing.callback(listener.close)
        deaths = DeathWatch(services.lock_files)
        closing.callback(deaths.close)
        services.bus.notify(WORKERS, "peer")
        around = Surroundings(
            worker_id=worker_id,
            settings=_settings(config, slots),
            pool=services.pool,
            work=_site_work(services, worker_id, home.path),
            events=services.events,
            clock=services.clock,
            threads=SystemThreads(),
            wakeups=WorkerWakeups(listener, deaths, lambda: services.lock_files.beat(worker_id)),
            dice=random.Random(),  # noqa: S311  jitter needs no secrecy
        )
        worker = Worker(around)
        threading.Thread(target=_stop_when, args=(stop, worker), name="stop", daemon=True).start()
        worker.run()
        services.workers.leave(worker_id, services.clock.now())


def _stop_when(told: threading.Event, worker: Worker) -> None:
    told.wait()
    worker.stop()


def _worker_id(now: datetime) -> str:
    return f"container-{now:%Y%m%d%H%M%S}-{secrets.token_hex(4)}"


def _settings(config: Config, slots: int) -> Settings:
    return Settings(
        slots=slots,
        lease=config.lease_seconds,
        renew=config.renew_seconds,
        idle_release=config.idle_release_seconds,
        job_limit=config.job_limit_seconds,
        stop_grace=config.interrupt_grace_seconds + SAVING_SECONDS,
        reconcile=min(20.0, config.lease_seconds / 3),
    )


def _site_work(services: Services, worker_id: str, home: Path) -> SiteWork:
    kit = site_kit(services, worker_id, home)
    return SiteWork(kit, lambda job: instruction_of(services, job), services.events, services.clock.now)


def site_kit(services: Services, worker_id: str, home: Path) -> SiteKit:
    """All that one worker needs to turn instructions into sites."""
    config = services.config
    cache = WorkspaceCache(home, config.workspace_cache_mb * MEGABYTE, lambda key: is_in_work(services, key))
    repository = GitRepository(config.data / "mirrors", home, worker_id, services.credentials, cache)
    jail = jail_of(config, worker_id, home)
    return SiteKit(
        workspaces=repository,
        main=repository,
        leases=SqliteProjectLeases(services.db, services.lock_files.is_dead),
        releases=services.releases,
        agents=agents_of(config, jail, home, os.environ),
        builders=builders_of(config, jail, home),
        project_of=lambda project_id: project_of(services, project_id),
        attachment_path=lambda attachment: services.blobs.path(attachment.digest),
        site_url=lambda project_id, stage: site_url(config, project_id, stage),
        sessions=ThreadSessions(services.threads),
        build_logs=services.build_logs,
        studio=studio_of(services, worker_id),
        ledger=services.ledger,
        limits=limits_of(config),
        daily_cap_usd=config.daily_cap_usd,
    )


def is_in_work(services: Services, key: ProjectUser) -> bool:
    """Whether a job of this key runs, here or elsewhere."""
    return any(job.state is JobState.RUNNING for job in services.jobs.open_jobs(key))


def studio_of(services: Services, worker_id: str) -> Studio | None:
    """Who takes pictures of changed pages: a browser, if the machine has one and the settings want it."""
    config = services.config
    browser = find_browser() if config.pictures != "off" else None
    if browser is None:
        return None
    photographer = ChromiumPictures(browser, worker_id)
    return Studio(photographer, services.blobs.put, config.picture_seconds, always=config.pictures == "on")


def jail_of(config: Config, worker_id: str, home: Path) -> Jail:
    """Where a worker's outside programs run; without walls only where none stand and the operator said so."""
    limits = JailLimits(
        processes=config.jail_processes,
        memory_bytes=config.jail_memory_mb * MEGABYTE,
        disk_bytes=config.jail_disk_mb * MEGABYTE,
    )
    jail = BubblewrapJail(worker_id, home / ".jail", limits, [Path(path) for path in config.jail_readable])
    if config.allow_unjailed_agents and (reason := jail.why_not()):
        _log.warning("outside agents and builds run without a jail, as the settings allow: %s", reason)
        return OpenJail(worker_id, limits)
    return jail  # where none works, it refuses every program by itself


def builders_of(config: Config, jail: Jail, home: Path) -> dict[str, Builder]:
    """All builders; those that run outside programs do so in the jail, or say why they cannot."""
    workshop = Workshop(
        JailedPrograms(jail, config.interrupt_grace_seconds),
        home / ".builds",
        jail.why_not if isinstance(jail, BubblewrapJail) else str,
        config.build_seconds,
    )
    return builders(workshop, Dependencies(config.data / "cache" / "npm", config.install_scripts), config.build_command)


def why_no_jail() -> str:
    """Why outside agents and builds cannot run in a jail on this machine, tried for real; empty if they can."""
    with tempfile.TemporaryDirectory(prefix="webordinary-") as folder:
        return BubblewrapJail("trial", Path(folder) / "jail").why_not()


class ThreadSessions:
    """An agent's session is kept with the mail thread it belongs to."""

    def __init__(self, threads: SqliteThreads) -> None:
        self._threads = threads

    def session_of(self, thread_id: str) -> str:
        """The agent's session, empty for a new thread."""
        thread = self._threads.get(thread_id)
        return thread.agent_session if thread else ""

    def keep_session(self, thread_id: str, session: str) -> None:
        """Remember it."""
        self._threads.save_session(thread_id, session)


def instruction_of(services: Services, job: Job) -> Instruction:
    """What the customer asked for, with the files that were accepted."""
    room = services.mailroom
    mail = room.parsed_mails.load(job.email_id)
    if mail is None:
        raise Permanent(f"job {job.job_id}: its mail {job.email_id} was never parsed; was a backup restored?")
    files = tuple(line for line in room.manifest.of(job.email_id) if isinstance(line, Attachment))
    return Instruction(mail.text, mail.subject, mail.sender, job.command, files)


def project_of(services: Services, project_id: str) -> Project:
    """The settings of a project that exists."""
    if project := services.directory.project(project_id):
        return project
    raise Permanent(f"project {project_id} is gone: add it again with `webordinary project add`")


def site_url(config: Config, project_id: str, stage: Stage) -> str:
    """Where a site can be seen."""
    host = f"{project_id}.{config.domain}" if stage is Stage.PUBLIC else f"edit.{project_id}.{config.domain}"
    return f"http://{host}:{config.port}/"


def diff_of(services: Services, project_id: str, commit: str) -> str:
    """What a commit changed, bounded; empty if its project or the commit is gone."""
    project = services.directory.project(project_id)
    return (services.history.diff(project, commit) or "") if project else ""


def onboard(
    services: Services,
    project_id: str,
    repo: str,
    user_id: str,
    sender: str,
    progress: Callable[[str], None],
    agent: str = "",
    credential: bytes | None = None,
    builder: str = "",
) -> None:
    """Add a site and one person who may change it; doing it again changes only what differs.

    Without `agent` a new site gets the one of the settings, and a known one keeps its own.
    """
    key = ProjectUser(project_id, user_id)
    origins = origins_of(services)
    progress("looking at its repository")
    known = services.directory.project(project_id)
    address = origins.settle(project_id, repo)
    if known and known.repo != address:
        raise Permanent(f"{project_id} lives in {known.repo} already: use that as --repo, or another name")
    project = known or Project(project_id, address, agent=services.config.agent)
    if agent:
        project = replace(project, agent=agent)
    if builder:
        project = replace(project, builder="" if builder == DETECTED else builder)
    with services.credentials.on_trial(project_id, address, credential) if credential else nullcontext():
        origins.check(project)
    services.directory.add_project(project, services.clock.now())
    services.directory.add_sender(Sender(sender, key), services.clock.now())
    progress("showing it on the edit site")
    with tempfile.TemporaryDirectory(prefix="webordinary-", dir=services.config.data) as name:
        jail = jail_of(services.config, "onboarding", Path(name))
        known_builders = builders_of(services.config, jail, Path(name))
        if problem := show_first(project, origins.export, known_builders, services.releases):
            progress(f"it cannot be shown yet: {problem}")


def origins_of(services: Services) -> Origins:
    """The repositories that the projects live in."""
    data = services.config.data
    return Origins(data / "origins", data / "mirrors", services.credentials)


def keep_credential(services: Services, project_id: str, credential: bytes) -> None:
    """Use this credential for a project's repository from now on, if it is let in with it."""
    project = project_of(services, project_id)
    with services.credentials.on_trial(project_id, project.repo, credential):
        origins_of(services).check(project)


def ensure_sample(services: Services) -> None:
    """The sample site, its owner and its first release; again is harmless."""
    origin = sample.ensure_sample_origin(services.config.data / "origins" / f"{sample.PROJECT_ID}.git")
    onboard(services, sample.PROJECT_ID, str(origin), sample.USER_ID, sample.SENDER, lambda _: None)


def pause(services: Services, project_id: str, *, paused: bool) -> int:
    """Stop or resume the work on a site; returns how many waiting jobs a resume set free."""
    project = services.directory.project(project_id)
    if project is None:
        raise Permanent(f"there is no site {project_id!r}: see `webordinary project list`")
    services.directory.add_project(replace(project, paused=paused), services.clock.now())
    if paused:
        return 0
    keys = services.jobs.let_go(project_id)
    for key in keys:
        owner = services.pool.claims.look(key)
        services.pool.tickets.ticket(key, owner.worker if owner else None)
    Reconciler(services.pool, services.events).run_once(services.clock.now())
    return len(keys)


def keep_house(services: Services) -> None:
    """Forget what is past its retention, a bounded bite at a time; events once they are counted in the tally."""
    now = services.clock.now()
    before = now - timedelta(days=services.config.retention_days)
    services.jobs.forget(before)
    services.event_log.forget(before)
    services.interruptions.forget(before)
    services.executions.prune(before)
    forget_homes(kept_homes(services.config), before)
    services.workers.forget(before)
    services.alarms.forget(before)
    services.build_logs.forget(before)
    note_dead_workers(services)
    tend_mirrors(services.config.data / "mirrors", services.config.data / "workspaces")


def note_dead_workers(services: Services) -> None:
    """Write down which workers died without goodbye."""
    for worker in services.workers.present():
        if services.lock_files.is_dead(worker.worker):
            services.workers.leave(worker.worker, services.clock.now())
            services.lock_files.clear_dead(worker.worker)
            services.events.emit(Event("WorkerDied", worker=worker.worker, data={"pid": worker.pid}))


def levels_of(services: Services) -> Levels:
    """How much of everything there is now."""
    alive = [w for w in services.workers.present() if not services.lock_files.is_dead(w.worker)]
    return services.levels.look(len(alive))
