"""One generic worker on AWS, put together, and the git credentials that it fetches from SSM; lambdas have none."""

from __future__ import annotations

import logging
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import outage_behind
from webordinary.adapters.aws.ecs import ProtectedWork, TaskProtection, container_id
from webordinary.adapters.aws.events import DOLLARS, EventLines, MaskingFilter
from webordinary.adapters.aws.pool.claim_table import Presence
from webordinary.adapters.aws.pool.job_table import JobTimeline
from webordinary.adapters.aws.pool.wakeups import PollingWakeups
from webordinary.adapters.aws.site.credentials import Broker, GitSecret, GitSecrets
from webordinary.adapters.files.liveness import LockFiles, lock_worker_home
from webordinary.adapters.files.system import SystemThreadSpawner
from webordinary.adapters.git import Credentials
from webordinary.adapters.git.credentials import CredentialKind
from webordinary.compose.aws import AwsContainer, with_account
from webordinary.compose.worker import settings_of, site_work, stop_on
from webordinary.config import Config
from webordinary.model.claims import StartedJob
from webordinary.model.errors import NameTaken, WebOrdinaryError
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import WorkerSummary
from webordinary.worker.ports import Wakeups, WorkerDeps
from webordinary.worker.worker import Worker

BEAT_SECONDS = 15.0
CLAIMS_HELD, REPORT_SECONDS = "ClaimsHeld", 60.0
RECONCILE_SECONDS = 300.0
"""A lambda reconciles each minute; a worker looks so often whether it does, and does so itself if not."""


def run_cloud_worker(
    config: Config,
    slots: int,
    stop: threading.Event,
    name: str = "",
    *,
    sole: bool = False,
    began: Callable[[str], None] = lambda _: None,
) -> None:
    """Run one generic worker until `stop` is set; what runs is finished or saved, and every claim released.

    On ECS people know it by its task's id, elsewhere by its name: see `run_embedded_worker` for that. Where AWS does
    not answer, `began` is told so: the worker goes on asking, less and less often, down to twice a minute.
    """
    config = with_account(config)
    for handler in logging.getLogger().handlers:
        handler.addFilter(MaskingFilter())
    task = os.environ.get("ECS_CONTAINER_METADATA_URI_V4", "")
    worker_id = container_id(task, datetime.now(UTC))
    name = name if name and not task else worker_id
    with ExitStack() as closing:
        home = lock_worker_home(config.data / "workspaces")
        closing.callback(home.close)
        lock_files = lock_files_of(config)
        lock_files.enter(worker_id, name)
        closing.callback(lock_files.leave, worker_id)
        if sole:
            _refuse_namesakes(lock_files, name)
        lines = EventLines(worker_id)
        events = JobTimeline(lines, lambda: datetime.now(UTC))
        services = AwsContainer(
            config,
            process=worker_id,
            scratch=home.path,
            events=events,
            events_of=events.of,
            spent=partial(lines.level, DOLLARS),
        )
        protection = TaskProtection(os.environ.get("ECS_AGENT_URI", ""))
        closing.callback(protection.close)
        wakeups = PollingWakeups(
            services.queues,
            services.hints,
            slots,
            config.aws_poll_seconds,
            lambda words: lock_files.note(worker_id, words),
            worker_id,
        )
        closing.callback(wakeups.close)
        began(_trouble(services))
        worker = Worker(
            WorkerDeps(
                worker_id=worker_id,
                settings=settings_of(config, slots, RECONCILE_SECONDS),
                pool=services.pool,
                work=ProtectedWork(
                    site_work(services, worker_id, home.path),
                    protection,
                    partial(_acting, services.broker),
                ),
                events=events,
                clock=services.clock,
                threads=SystemThreadSpawner(),
                wakeups=ReportingWakeups(wakeups, lines, services.clock.monotonic, lambda: lock_files.beat(worker_id)),
                rng=random.Random(),  # noqa: S311  jitter needs no secrecy
                reconciled_elsewhere=services.reconciler_progress.is_fresh,
            )
        )

        def goes_round() -> bool:
            return time.time() - (lock_files.last_beat(worker_id) or 0.0) < config.lease_seconds

        threading.Thread(target=stop_on, args=(stop, worker), name="stop", daemon=True).start()
        me = WorkerSummary(worker_id, name, os.getpid(), slots, services.clock.now())
        presence = Presence(services.dynamo, services.claim_table.name)
        closing.enter_context(presence.kept(me, goes_round, services.clock.now, wakeups.drain))
        worker.run()


def _acting(broker: Broker | None, started: StartedJob) -> AbstractContextManager[None]:
    """Give the credentials of the project while its job runs."""
    return broker.acting(started.claim.key) if broker else nullcontext()


def _trouble(services: AwsContainer) -> str:
    """What keeps us from AWS, in words; the first question that a worker has anyway."""
    try:
        services.queues.url_of(names.UNCLAIMED)
    except WebOrdinaryError as problem:
        outage = outage_behind(problem)
        return f"{outage.what}; {outage.todo}" if outage else str(problem)
    return ""


def _refuse_namesakes(lock_files: LockFiles, name: str) -> None:
    """Workers of other machines are other tasks, with names of their own."""
    for worker, pid in lock_files.peers().items():
        if lock_files.name_of(worker) == name:
            raise NameTaken(name, pid)


def lock_files_of(config: Config) -> LockFiles:
    """How `worker health` knows the workers of its own container."""
    return LockFiles(config.data / "run" / "workers")


class ReportingWakeups:
    """The wake-ups of a worker, with a metric of its claims now and then. Each wait is a heartbeat."""

    def __init__(
        self, inside: Wakeups, events: EventLines, monotonic: Callable[[], float], beat: Callable[[], None]
    ) -> None:
        self._inside, self._events, self._monotonic, self._beat = inside, events, monotonic, beat
        self._reported, self._reported_at = -1, 0.0

    def wait(self, seconds: float, held: Mapping[ProjectUser, Job | None], free: int) -> Sequence[str]:
        """Waits at most one beat: a worker without a beat for a lease counts as hung."""
        now = self._monotonic()
        if len(held) != self._reported or now - self._reported_at >= REPORT_SECONDS:
            self._reported, self._reported_at = len(held), now
            self._events.level(CLAIMS_HELD, len(held))
        self._beat()
        return self._inside.wait(min(seconds, BEAT_SECONDS), held, free)

    def poke(self) -> None:
        self._inside.poke()

    def keys_changed(self) -> None:
        self._inside.keys_changed()


FRESH_SECONDS = 600.0
"""So long a worker goes on with a credential that was replaced."""


class FetchedCredentials(Credentials):
    """Credentials copied from SSM into a folder of this process. Thread-safe."""

    def __init__(self, folder: Path, secrets: GitSecrets, monotonic: Callable[[], float]) -> None:
        super().__init__(folder)
        shutil.rmtree(folder, ignore_errors=True)
        self._secrets, self._monotonic = secrets, monotonic
        self._fetched_at: dict[str, float] = {}
        self._guard = threading.RLock()

    def kind(self, project_id: str) -> CredentialKind:
        with self._guard:
            self._fetch(project_id)
            return super().kind(project_id)

    def env(self, project_id: str) -> Mapping[str, str]:
        with self._guard:
            self._fetch(project_id)
            return super().env(project_id)

    @contextmanager
    def on_trial(self, project_id: str, repo: str, content: bytes) -> Iterator[None]:
        """A trial whose credential is kept for all workers once the block ended well."""
        self._fetched_at[project_id] = self._monotonic()
        with super().on_trial(project_id, repo, content):
            yield
            self._secrets.keep(project_id, GitSecret(repo, content.decode()))

    def forget(self, project_id: str) -> bool:
        super().forget(project_id)
        return self._secrets.forget(project_id)

    def _fetch(self, project_id: str) -> None:
        now = self._monotonic()
        if now - self._fetched_at.get(project_id, -FRESH_SECONDS) < FRESH_SECONDS:
            return
        secret = self._secrets.fetch(project_id)
        self._fetched_at[project_id] = now
        if secret is None:
            super().forget(project_id)
            return
        with super().on_trial(project_id, secret.repo, secret.credential.encode()):
            pass
