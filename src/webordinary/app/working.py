"""One generic worker, put together."""

from __future__ import annotations

import os
import random
import secrets
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from webordinary.adapters.local.git import GitRepository, WorkspaceCache
from webordinary.adapters.local.homes import take_home
from webordinary.adapters.local.jail.limits import MEGABYTE
from webordinary.adapters.local.liveness import DeathWatch
from webordinary.adapters.local.pictures import ChromiumPictures, find_browser
from webordinary.adapters.local.system import SystemThreads
from webordinary.adapters.local.wakeups import WORKERS, WorkerWakeups, ear_of
from webordinary.adapters.sqlite.workers import WorkerEntry
from webordinary.app.agents import agents_of, limits_of
from webordinary.app.embedded import open_embedded
from webordinary.app.services import Services
from webordinary.app.sites import project_of, site_url
from webordinary.app.workshop import builders_of, jail_of
from webordinary.config import Config
from webordinary.mail.commands import named_change
from webordinary.mail.ports import Threads
from webordinary.mail.subjects import own_words
from webordinary.model.errors import NameTaken, Permanent
from webordinary.model.jobs import Job, JobState
from webordinary.model.mail import Attachment, Command, Instruction, ParsedMail
from webordinary.model.names import ProjectUser, job_id_of
from webordinary.site.kit import SiteKit
from webordinary.site.ports import SessionFiles
from webordinary.site.studio import Studio
from webordinary.worker.job import SiteWork
from webordinary.worker.settings import Settings
from webordinary.worker.surroundings import Surroundings
from webordinary.worker.worker import Worker

SAVING_SECONDS = 10.0
"""What a stopping worker needs, after its agents' grace, to keep what they did; less than its parent's patience."""


def run_embedded_worker(
    config: Config,
    name: str,
    slots: int,
    stop: threading.Event,
    *,
    sole: bool = False,
    began: Callable[[str], None] = lambda _: None,
) -> None:
    """Run one generic worker until `stop` is set; what runs is finished or saved, and every claim released.

    Raises NameTaken where it must be the `sole` one of its name; `began` is called once it is there, with what
    keeps it from work, if anything does.
    """
    with ExitStack() as closing:
        services = closing.enter_context(open_embedded(config))
        worker_id = _worker_id(services.clock.now())
        home = take_home(config.data / "workspaces")
        closing.callback(home.close)
        services.lock_files.enter(worker_id)
        closing.callback(services.lock_files.leave, worker_id)
        introduced = WorkerEntry(worker_id, name, os.getpid(), slots)
        other = services.workers.enter(
            introduced, services.clock.now(), lambda one: sole and not services.lock_files.is_dead(one.worker)
        )
        if other:
            raise NameTaken(other.name, other.pid)
        began("")
        listener = services.bus.listen(ear_of(worker_id))
        closing.callback(listener.close)
        deaths = DeathWatch(services.lock_files)
        closing.callback(deaths.close)
        services.bus.notify(WORKERS, "peer")
        around = Surroundings(
            worker_id=worker_id,
            settings=settings_of(config, slots, min(20.0, config.lease_seconds / 3)),
            pool=services.pool,
            work=site_work(services, worker_id, home.path),
            events=services.events,
            clock=services.clock,
            threads=SystemThreads(),
            wakeups=WorkerWakeups(listener, deaths, lambda: services.lock_files.beat(worker_id)),
            dice=random.Random(),  # noqa: S311  jitter needs no secrecy
        )
        worker = Worker(around)
        threading.Thread(target=stop_when, args=(stop, worker), name="stop", daemon=True).start()
        worker.run()
        services.workers.leave(worker_id, services.clock.now())


def stop_when(told: threading.Event, worker: Worker) -> None:
    """Wait to be told, then tell the worker."""
    told.wait()
    worker.stop()


def _worker_id(now: datetime) -> str:
    return f"container-{now:%Y%m%d%H%M%S}-{secrets.token_hex(4)}"


def settings_of(config: Config, slots: int, reconcile_seconds: float) -> Settings:
    """A worker's settings."""
    return Settings(
        slots=slots,
        lease=config.lease_seconds,
        renew=config.renew_seconds,
        idle_release=config.idle_release_seconds,
        job_limit=config.job_limit_seconds,
        stop_grace=config.interrupt_grace_seconds + SAVING_SECONDS,
        reconcile=reconcile_seconds,
        retry_base=config.retry_seconds,
    )


def site_work(services: Services, worker_id: str, home: Path, sessions: SessionFiles | None = None) -> SiteWork:
    """What a worker does for a customer."""
    kit = site_kit(services, worker_id, home, sessions)
    return SiteWork(kit, lambda job: instruction_of(services, job), services.events, services.clock.now)


def site_kit(services: Services, worker_id: str, home: Path, sessions: SessionFiles | None = None) -> SiteKit:
    """All that one worker needs to turn instructions into sites."""
    config = services.config
    cache = WorkspaceCache(home, config.workspace_cache_mb * MEGABYTE, lambda key: is_in_work(services, key))
    repository = GitRepository(config.data / "mirrors", home, worker_id, services.credentials, cache)
    jail = jail_of(config, worker_id, home)
    return SiteKit(
        workspaces=repository,
        main=repository,
        leases=services.leases,
        releases=services.releases,
        agents=agents_of(config, jail, home, os.environ, sessions),
        builders=builders_of(config, jail, home),
        project_of=lambda project_id: project_of(services, project_id),
        attachment_path=services.attachment_path,
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


class ThreadSessions:
    """An agent's session is kept with the mail thread it belongs to."""

    def __init__(self, threads: Threads) -> None:
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
    lines = room.manifest.of(job.email_id) if mail.attachment_count else ()
    files = tuple(line for line in lines if isinstance(line, Attachment))
    named, answers = _change_meant(room.threads, mail) if job.command is Command.UNDO else ("", "")
    return Instruction(mail.text, own_words(mail.subject), mail.sender, job.command, files, named, answers)


def _change_meant(threads: Threads, mail: ParsedMail) -> tuple[str, str]:
    """What an `undo` says about the change that it takes back, in words and by what it answers."""
    answered = threads.mail_of((*mail.in_reply_to, *mail.references[-1:]))  # the other references are the whole thread
    return named_change(mail.text, mail.subject), job_id_of(answered) if answered else ""
