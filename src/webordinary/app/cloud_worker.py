"""One generic worker on AWS, put together."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from webordinary.adapters.aws.events import EventLines
from webordinary.adapters.aws.pool.wakeups import PollingWakeups
from webordinary.adapters.aws.site.ecs import container_id
from webordinary.adapters.aws.site.protection import ProtectedWork, TaskProtection
from webordinary.adapters.local.homes import take_home
from webordinary.adapters.local.liveness import LockFiles
from webordinary.adapters.local.system import SystemThreads
from webordinary.app.cloud import cloud_of, with_account
from webordinary.app.working import settings_of, site_work, stop_when
from webordinary.config import Config
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.worker.ports import Wakeups
from webordinary.worker.surroundings import Surroundings
from webordinary.worker.worker import Worker

BEAT_SECONDS = 15.0
CLAIMS_HELD, TOLD_EACH_SECONDS = "ClaimsHeld", 60.0
RECONCILE_SECONDS = 300.0
"""A lambda reconciles each minute; a worker does so in case that has stopped."""


def run_cloud_worker(config: Config, slots: int, stop: threading.Event) -> None:
    """Run one generic worker until `stop` is set; what runs is finished or saved, and every claim released."""
    config = with_account(config)
    worker_id = container_id(os.environ.get("ECS_CONTAINER_METADATA_URI_V4", ""), datetime.now(UTC))
    with ExitStack() as closing:
        home = take_home(config.data / "workspaces")
        closing.callback(home.close)
        lock_files = lock_files_of(config)
        lock_files.enter(worker_id)
        closing.callback(lock_files.leave, worker_id)
        events = EventLines(worker_id)
        services = cloud_of(config, worker_id, home.path, events)
        protection = TaskProtection(os.environ.get("ECS_AGENT_URI", ""))
        closing.callback(protection.close)
        wakeups = PollingWakeups(services.ports.queues, services.ports.hints, slots, config.aws_poll_seconds)
        closing.callback(wakeups.close)
        worker = Worker(
            Surroundings(
                worker_id=worker_id,
                settings=settings_of(config, slots, RECONCILE_SECONDS),
                pool=services.pool,
                work=ProtectedWork(site_work(services, worker_id, home.path, services.session_files), protection),
                events=events,
                clock=services.clock,
                threads=SystemThreads(),
                wakeups=TellingWakeups(wakeups, events, services.clock.monotonic, lambda: lock_files.beat(worker_id)),
                dice=random.Random(),  # noqa: S311  jitter needs no secrecy
            )
        )
        threading.Thread(target=stop_when, args=(stop, worker), name="stop", daemon=True).start()
        worker.run()


def lock_files_of(config: Config) -> LockFiles:
    """How `worker health` knows the workers of its own container."""
    return LockFiles(config.data / "run" / "workers")


class TellingWakeups:
    """The wake-ups of a worker that also tells, now and then, how many claims it holds; every wait is a beat."""

    def __init__(
        self, inside: Wakeups, events: EventLines, monotonic: Callable[[], float], beat: Callable[[], None]
    ) -> None:
        self._inside, self._events, self._monotonic, self._beat = inside, events, monotonic, beat
        self._told, self._told_at = -1, 0.0

    def wait(self, seconds: float) -> Sequence[str]:
        """See Wakeups. Never longer than a beat: who is not heard of for a lease is taken for hung."""
        self._beat()
        return self._inside.wait(min(seconds, BEAT_SECONDS))

    def poke(self) -> None:
        """See Wakeups."""
        self._inside.poke()

    def keys_changed(self) -> None:
        """See Wakeups."""
        self._inside.keys_changed()

    def attend(self, held: Mapping[ProjectUser, Job | None], free: int) -> None:
        """See Wakeups."""
        self._inside.attend(held, free)
        now = self._monotonic()
        if len(held) != self._told or now - self._told_at >= TOLD_EACH_SECONDS:
            self._told, self._told_at = len(held), now
            self._events.level(CLAIMS_HELD, len(held))
