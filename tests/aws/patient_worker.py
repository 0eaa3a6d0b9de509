"""A real worker with one slot on tables of the emulator, for which hours pass in a moment; each call is counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.aws.faulty_proxy import FaultyProxy, faulty_proxy
from tests.aws.pool_tables import PoolTables
from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import LONG_POLL_SECONDS
from webordinary.adapters.aws.dynamo import Dynamo
from webordinary.adapters.aws.pool.claim_requests import ReconcilerProgress
from webordinary.adapters.aws.pool.claim_table import Presence, RemoteLiveness
from webordinary.adapters.aws.pool.queues import AwsInterrupts, Queues, SqsNotifier
from webordinary.compose.aws_worker import BEAT_SECONDS, RECONCILE_SECONDS
from webordinary.compose.worker import settings_of
from webordinary.config import Config
from webordinary.model.claims import CancelToken, ClaimRequest, StartedJob
from webordinary.model.events import Event
from webordinary.model.jobs import Job, JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import WorkerSummary
from webordinary.pool.ports import Pool
from webordinary.worker.claims import ClaimSet, LeaseRenewer
from webordinary.worker.ports import StopEvent, WorkerDeps
from webordinary.worker.slot import Slot
from webordinary.worker.worker import Worker

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = ProjectUser("kiln", "scott")


class Times:
    """A clock that moves when somebody waits."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


class After:
    """A bell that rings when so much time was waited for."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def set(self) -> None:
        self._left = 0.0

    def wait(self, seconds: float) -> bool:
        self._left -= seconds
        return self._left <= 0


class PatientWorker:
    """One that has done a job, or has one that `lasts`. What it does beside its loop is done after it, for as long.

    Its polls are only counted: one for each queue that it attends to, each time that a long poll takes. The reconciler
    has passed a moment ago each time that it looks.
    """

    def __init__(self, world: PoolTables, proxy: FaultyProxy, reconciler: Dynamo, *, lasts: bool) -> None:
        self._world, self._proxy, self._lasts = world, proxy, lasts
        self._clock, self._heartbeats, self._polled_seconds, self._attended = Times(), 0, 0.0, 0
        self._hints, one, queues = world.with_hints([KEY]), world.one_process(), Queues(world.clients.sqs)
        self._pool = Pool(
            jobs=one.jobs, pending_callbacks=one.pending_callbacks,
            claims=one.claims, hints=self._hints, tickets=SqsNotifier(queues),
            interrupts=AwsInterrupts(queues), callbacks=self, liveness=RemoteLiveness(),
        )  # fmt: skip
        settings = replace(settings_of(Config(), 1, RECONCILE_SECONDS), idle_release=float("inf"))
        table, rng = names.CLAIM_REQUESTS + world.suffix, random.Random(1)
        self._passed, seen = ReconcilerProgress(reconciler, table), ReconcilerProgress(world.dynamo, table)

        def fresh(now: datetime) -> bool:
            self._passed.passed(None, now)
            return seen.is_fresh(now)

        self._deps = WorkerDeps(
            "w1", settings, self._pool, self, self, self._clock, self, self, rng, reconciled_elsewhere=fresh
        )
        self._worker = Worker(self._deps)

    def calls_in(self, hours: float) -> Counter[str]:
        """All that it asks of AWS, once it has its job or has done it."""
        begun = self._begin()
        self._proxy.forget_calls()
        self._heartbeats, self._polled_seconds = 0, 0.0
        self._work_for(hours * 3600)
        self._keep_for(hours * 3600, begun)
        made = self._proxy.calls.copy()
        made["sqs:ReceiveMessage"] += round(self._polled_seconds / LONG_POLL_SECONDS)
        made["states:SendTaskHeartbeat"] += self._heartbeats
        return made

    def _begin(self) -> StartedJob:
        self._pool.jobs.record(NewJob("a", KEY, "thread", "mail", Command.EDIT), self._clock.now(), ready=True)
        job = self._pool.jobs.bind_token("a", "token")
        self._pool.hints.send(ClaimRequest.for_job(job), self._clock.now())
        self._hints.collect(1)
        self._work_for(RECONCILE_SECONDS)
        claim, begun = self._pool.claims.look(KEY), self._pool.jobs.get("a")
        assert claim
        assert begun
        assert begun.open is self._lasts
        return StartedJob(claim, begun)

    def _work_for(self, seconds: float) -> None:
        until = self._clock.seconds + seconds
        while self._clock.seconds < until:
            self._worker.run_once()

    def _keep_for(self, seconds: float, begun: StartedJob) -> None:
        """As the threads do that renew its claim and tell that it is there."""
        claim_set = ClaimSet()
        renewer = LeaseRenewer(self._deps, claim_set)
        Slot(self._deps, claim_set, renewer, self.stop_event()).begin(begun)
        renewer.run(After(seconds))
        me = WorkerSummary("w1", "w1", 1, 1, NOON)
        presence = Presence(self._world.dynamo, names.OWNERSHIP + self._world.suffix)
        presence.keep(me, lambda: True, self._clock.now, After(seconds).wait, lambda: None)

    def wait(self, seconds: float, held: Mapping[ProjectUser, Job | None], free: int) -> Sequence[str]:
        self._attended = len(held) + (free > 0)
        self._hints.use_up(held)
        passed = min(seconds, BEAT_SECONDS)
        self._clock.seconds += passed
        self._polled_seconds += passed * self._attended
        self._hints.listened = True
        return ()

    def poke(self) -> None: ...

    def keys_changed(self) -> None: ...

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        if not self._lasts:
            run()

    def stop_event(self) -> StopEvent:
        return After(float("inf"))

    def emit(self, event: Event) -> None: ...

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        return Settlement(JobOutcome.SUCCEEDED, JobResult("done"))

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None: ...

    def save(self, started: StartedJob, token: CancelToken) -> None: ...

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        return True

    def fail(self, token: str, error: str, cause: str) -> bool:
        return True

    def heartbeat(self, token: str) -> bool:
        self._heartbeats += 1
        return True


@contextmanager
def patient_worker(endpoint: str, *, lasts: bool) -> Iterator[PatientWorker]:
    """Behind a proxy that counts."""
    with faulty_proxy(endpoint) as proxy:
        calm = PoolTables(endpoint)
        yield PatientWorker(calm.through(proxy.endpoint), proxy, calm.dynamo, lasts=lasts)
