"""A whole worker on queues and tables: woken by hints and tickets alone, as it looks around every few minutes only."""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import SimpleQueue

import pytest

from tests.aws.accounts import clients_of
from tests.aws.emulator import RunningEmulator
from tests.aws.pool_tables import PoolTables
from webordinary.adapters.aws.pool.claim_table import RemoteLiveness
from webordinary.adapters.aws.pool.queues import AwsInterrupts, Queues, SqsNotifier
from webordinary.adapters.aws.pool.step_functions import StepFunctionsCallbacks
from webordinary.adapters.aws.pool.wakeups import PollingWakeups
from webordinary.adapters.files.system import SystemClock, SystemThreadSpawner
from webordinary.model.claims import CancelToken, ClaimRequest, StartedJob
from webordinary.model.events import Event
from webordinary.model.jobs import Job, JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import STOP, Pool
from webordinary.worker.ports import WorkerDeps, WorkerSettings
from webordinary.worker.worker import Worker

LONG = 120.0  # nobody waits for so long unless something is broken
STOPPED = Settlement(JobOutcome.CANCELLED, JobResult("Stopped, as asked."))


@dataclass
class ScriptedWork:
    """Work that is done at once, or lasts until it must end; what happens is heard in order."""

    lasting: set[str] = field(default_factory=set)
    begun: SimpleQueue[tuple[str, int]] = field(default_factory=SimpleQueue)
    told: SimpleQueue[tuple[str, str]] = field(default_factory=SimpleQueue)

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        self.begun.put((started.job.job_id, started.claim.fence))
        if started.job.job_id in self.lasting:
            self.lasting.discard(started.job.job_id)
            must_end = threading.Event()
            with token.on_stop(must_end.set):
                assert must_end.wait(LONG)
            token.check()
        return Settlement(JobOutcome.SUCCEEDED, JobResult("done"))

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None:
        return None

    def save(self, started: StartedJob, token: CancelToken) -> None: ...

    def emit(self, event: Event) -> None:
        if event.kind in ("JobSettled", "JobInterrupted", "ClaimYielded"):
            self.told.put((event.kind, str(event.data.get("outcome") or event.key)))


class PoolWithWorker:
    """A pool with one worker in it."""

    def __init__(self, endpoint: str) -> None:
        self.keys = [ProjectUser(f"p{secrets.token_hex(6)}", "scott") for _ in range(2)]
        world = PoolTables(endpoint)
        hints = world.with_hints(self.keys)
        queues, one = Queues(world.clients.sqs), world.one_process()
        self.pool = Pool(
            jobs=one.jobs,
            pending_callbacks=one.pending_callbacks,
            claims=one.claims,
            hints=hints,
            tickets=SqsNotifier(queues),
            interrupts=AwsInterrupts(queues),
            callbacks=StepFunctionsCallbacks(clients_of(endpoint).stepfunctions),
            liveness=RemoteLiveness(),
        )
        self.context = ScriptedWork()
        self.wakeups = PollingWakeups(queues, hints, slots=1, poll_seconds=1)
        self.worker = Worker(
            WorkerDeps(
                worker_id="container-1",
                settings=WorkerSettings(slots=1, reconcile=300.0),
                pool=self.pool,
                work=self.context,
                events=self.context,
                clock=SystemClock(),
                threads=SystemThreadSpawner(),
                wakeups=self.wakeups,
                rng=random.Random(1),
            )
        )

    def queue(self, job_id: str, thread: str = "t1", key: int = 0, *, owned: bool = True) -> Job:
        """What the workflow's steps do for a mail."""
        now = datetime.now(UTC)
        job = self.pool.jobs.record(NewJob(job_id, self.keys[key], thread, "mail", Command.EDIT), now, ready=True)
        self.pool.tickets.notify_owner(job)
        if not owned:
            self.pool.hints.send(ClaimRequest.for_job(job), now)
        return job

    def run(self, closing: ExitStack) -> None:
        thread = threading.Thread(target=self.worker.run, daemon=True)
        thread.start()
        closing.callback(self.wakeups.close)
        closing.callback(thread.join, LONG)
        closing.callback(self.worker.stop)


@pytest.fixture
def house(ministack: RunningEmulator) -> Iterator[PoolWithWorker]:
    with ExitStack() as closing:
        house = PoolWithWorker(ministack.endpoint)
        house.run(closing)
        yield house


def test_a_hint_brings_the_first_job_and_a_ticket_the_next(house: PoolWithWorker) -> None:
    house.queue("a", owned=False)
    first, fence = house.context.begun.get(timeout=LONG)
    assert house.context.told.get(timeout=LONG) == ("JobSettled", "succeeded")
    house.queue("b")
    assert (first, house.context.begun.get(timeout=LONG)) == ("a", ("b", fence))


def test_a_stop_ends_the_running_job(house: PoolWithWorker) -> None:
    house.context.lasting.add("a")
    house.queue("a", owned=False)
    house.context.begun.get(timeout=LONG)
    stopping = house.pool.jobs.settle_waiting("a", STOPPED, datetime.now(UTC))
    house.pool.tickets.notify_owner(stopping, STOP)
    assert house.context.told.get(timeout=LONG) == ("JobSettled", "cancelled")


def test_a_mail_of_another_thread_goes_first_and_the_interrupted_one_goes_on(house: PoolWithWorker) -> None:
    house.context.lasting.add("a")
    house.queue("a", owned=False)
    assert house.context.begun.get(timeout=LONG)[0] == "a"
    house.queue("b", thread="t2")
    assert [house.context.begun.get(timeout=LONG)[0] for _ in range(2)] == ["b", "a"]


def test_an_idle_owner_gives_way_to_a_key_that_waits(house: PoolWithWorker) -> None:
    house.queue("a", owned=False)
    assert house.context.told.get(timeout=LONG) == ("JobSettled", "succeeded")
    house.queue("b", key=1, owned=False)
    assert sorted(house.context.told.get(timeout=LONG) for _ in range(2)) == [
        ("ClaimYielded", str(house.keys[0])),
        ("JobSettled", "succeeded"),
    ]
    assert house.pool.claims.look(house.keys[0]) is None
