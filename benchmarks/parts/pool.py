"""The real pool and the real worker, with work that does nothing but write down when it began and ended."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from webordinary.adapters.files.liveness import DeathWatch, LockFiles
from webordinary.adapters.files.system import SystemClock, SystemThreadSpawner
from webordinary.adapters.files.wake import WORKERS, SocketNotifier, WakeBus, WorkerWakeups, listener_name
from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.events import SqliteEvents
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterrupts, SqliteJobs
from webordinary.model.claims import CancelToken, ClaimRequest, StartedJob
from webordinary.model.jobs import Job, JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Pool
from webordinary.worker.ports import WorkerDeps, WorkerSettings
from webordinary.worker.worker import Worker

DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("nothing was asked", commit="0" * 40, changed_files=("index.html",)))
_SPAWN = get_context("spawn")


@dataclass(frozen=True, slots=True)
class Start:
    """A job that a worker has begun."""

    job_id: str
    worker: str
    attempt: int
    began: float


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One job as the work saw it, on the machine's monotonic clock and its time of day."""

    key: str
    job_id: str
    recorded_at: datetime
    began: float
    ended: float
    began_at: float


class NoWork:
    """Work that takes `seconds` and changes nothing."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.runs: list[TimedRun] = []
        self.last_start: Start | None = None

    def perform(self, started: StartedJob, hold: CancelToken) -> Settlement:
        """Write down that the job ran."""
        began, job = time.monotonic(), started.job
        if self._seconds:
            self.last_start = Start(job.job_id, started.claim.worker, job.attempts, began)
            time.sleep(self._seconds)
        self.runs.append(TimedRun(str(job.key), job.job_id, job.recorded_at, began, time.monotonic(), time.time()))
        return DONE

    def save(self, started: StartedJob, hold: CancelToken) -> None:
        """There is nothing to keep."""

    def find_done(self, started: StartedJob, hold: CancelToken) -> Settlement | None:
        """Nothing was ever published."""
        return None


class NobodyWaits:
    """No workflow: no job has a task token."""

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        """Nobody is told."""
        return False

    def fail(self, token: str, error: str, cause: str) -> bool:
        """Nobody is told."""
        return False

    def heartbeat(self, token: str) -> bool:
        """Nobody asks."""
        return True


class World:
    """One data folder with the embedded pool in it, as one process sees it."""

    def __init__(self, folder: Path) -> None:
        self.bus = WakeBus(folder / "run" / "wake")
        self.lock_files = LockFiles(folder / "run" / "locks")
        self.database = Database(folder / "webordinary.db")
        self.database.migrate()
        self.jobs = SqliteJobs(self.database)
        claims, hints = SqliteClaims(self.database), SqliteClaimRequests(self.database)
        self.pool = Pool(
            self.jobs,
            self.jobs,
            claims,
            hints,
            SocketNotifier(self.bus, claims, hints),
            SqliteInterrupts(self.database),
            NobodyWaits(),
            self.lock_files,
        )
        self.events = SqliteEvents(self.database, self.bus.notify)
        self._clock = SystemClock()

    def record(self, job: NewJob) -> Job:
        """Put a job into its queue."""
        return self.pool.jobs.record(job, self._clock.now(), ready=True)

    def enqueue(self, job: NewJob) -> None:
        """What the workflow's steps do for a mail without attachments: record, look for the owner, wake."""
        queued, now = self.record(job), self._clock.now()
        if self.pool.claims.look(job.key):
            self.pool.tickets.notify_owner(queued)
        else:
            self.pool.hints.send(ClaimRequest.for_job(queued), now)
            self.pool.tickets.notify_unclaimed(job.key)

    def is_drained(self) -> bool:
        """Nothing is open any more."""
        with self.database.read() as conn:
            return not conn.execute("SELECT 1 FROM jobs WHERE state <> 'settled' LIMIT 1").fetchone()

    def last_settled_at(self, jobs: Iterable[NewJob]) -> float:
        """When the last of these jobs ended."""
        settled = (self.pool.jobs.get(job.job_id) for job in jobs)
        return max(job.settled_at.timestamp() for job in settled if job and job.settled_at)

    def close(self) -> None:
        """Let go of the files."""
        self.events.close()
        self.database.close()


def jobs_for(keys: int, each: int, *, interleaved: bool, prefix: str = "m") -> list[NewJob]:
    """`each` messages for each of `keys`: key by key, or one for everybody and round again."""
    names = [ProjectUser(f"site-{number}", "owner") for number in range(keys)]
    places = ((n, i) for i in range(each) for n in range(keys)) if interleaved else (
        (n, i) for n in range(keys) for i in range(each)
    )  # fmt: skip
    return [
        NewJob(f"job-{prefix}-{n}-{i}", names[n], f"thread-{n}", f"mail-{prefix}-{n}-{i}", Command.EDIT)
        for n, i in places
    ]


class WorkerProcess:
    """A real worker in a process of its own, as seen from the benchmark."""

    def __init__(self, folder: Path, name: str, *, slots: int, work_seconds: float = 0.0) -> None:
        self.name = name
        self._here, there = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_worker, args=(folder, name, slots, work_seconds, there), daemon=True)
        self._process.start()
        there.close()
        self._used_before: float = self._here.recv()  # it is ready

    def go(self) -> None:
        """Begin to serve."""
        self._here.send("go")

    def cpu_seconds(self) -> float:
        """What the process used since it was ready."""
        self._here.send("cpu")
        seconds: float = self._here.recv()
        return seconds - self._used_before

    def runs(self) -> list[TimedRun]:
        """What it did so far."""
        self._here.send("runs")
        runs: list[TimedRun] = self._here.recv()
        return runs

    def last_start(self) -> Start | None:
        """The job it began last."""
        self._here.send("last start")
        start: Start | None = self._here.recv()
        return start

    def stop(self) -> None:
        """End in good order."""
        self._here.send("stop")
        self._process.join(timeout=30)

    def kill(self) -> float:
        """End at once, like a crash; the moment it happened."""
        self._process.kill()
        return time.monotonic()


def _worker(folder: Path, name: str, slots: int, work_seconds: float, orders: Connection) -> None:
    world, work = World(folder), NoWork(work_seconds)
    world.lock_files.enter(name)
    around = WorkerDeps(
        worker_id=name,
        settings=WorkerSettings(slots=slots),
        pool=world.pool,
        work=work,
        events=world.events,
        clock=SystemClock(),
        threads=SystemThreadSpawner(),
        wakeups=WorkerWakeups(world.bus.listen(listener_name(name)), DeathWatch(world.lock_files)),
        rng=random.Random(name),
    )
    world.bus.notify(WORKERS, "peer")
    worker = Worker(around)
    orders.send(time.process_time())
    if orders.recv() == "go":
        threading.Thread(target=_obey, args=(worker, work, orders), daemon=True).start()
        worker.run()
    world.close()
    world.lock_files.leave(name)


def _obey(worker: Worker, work: NoWork, orders: Connection) -> None:
    answers: dict[str, Callable[[], object]] = {
        "cpu": time.process_time,
        "runs": lambda: list(work.runs),
        "last start": lambda: work.last_start,
    }
    while (order := orders.recv()) != "stop":
        orders.send(answers[order]())
    worker.stop()


def violations(runs: Iterable[TimedRun]) -> dict[str, int]:
    """How often a key's jobs ran out of order, at the same time, or twice."""
    by_key: dict[str, list[TimedRun]] = defaultdict(list)
    for run in runs:
        by_key[run.key].append(run)
    return {
        "order": sum(_count(of_key, lambda a, b: a.recorded_at > b.recorded_at) for of_key in by_key.values()),
        "overlap": sum(_count(of_key, lambda a, b: a.ended > b.began) for of_key in by_key.values()),
        "repeated": sum(len(of_key) - len({run.job_id for run in of_key}) for of_key in by_key.values()),
    }


def _count(runs: Sequence[TimedRun], wrong: Callable[[TimedRun, TimedRun], bool]) -> int:
    ordered = sorted(runs, key=lambda run: run.began)
    return sum(wrong(earlier, later) for earlier, later in itertools.pairwise(ordered))


@dataclass(frozen=True, slots=True)
class Rates:
    """Messages per second of one run, CPU microseconds for each, and how often something went wrong in it."""

    enqueue: float
    drain: float
    enqueue_cpu: float
    drain_cpu: float
    wrong: int


def fill_and_drain(folder: Path, jobs: Sequence[NewJob], *, workers: int, slots: int) -> Rates:
    """Record all jobs, then let real workers serve them."""
    world = World(folder)
    processes = [WorkerProcess(folder, f"container-{number}", slots=slots) for number in range(workers)]
    began, used = time.time(), time.process_time()
    for job in jobs:
        world.record(job)
    filled, used = time.time(), time.process_time() - used
    for process in processes:
        process.go()
    wait_until_drained(world)
    used_by_workers = sum(process.cpu_seconds() for process in processes)
    seconds = world.last_settled_at(jobs) - filled
    runs = [run for process in processes for run in process.runs()]
    for process in processes:
        process.stop()
    world.close()
    missing, count = len(jobs) - len({run.job_id for run in runs}), len(jobs)
    return Rates(
        enqueue=count / (filled - began),
        drain=count / seconds,
        enqueue_cpu=used * 1e6 / count,
        drain_cpu=used_by_workers * 1e6 / count,
        wrong=missing + sum(violations(runs).values()),
    )


def wait_for_start(workers: Mapping[str, WorkerProcess], job_id: str, attempt: int) -> Start:
    """Ask the workers until one of them has begun that job for the `attempt`th time."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        for worker in workers.values():
            start = worker.last_start()
            if start and (start.job_id, start.attempt) == (job_id, attempt):
                return start
        time.sleep(0.01)
    raise TimeoutError(f"{job_id} was not begun for the {attempt}. time")


def wait_until_drained(world: World, seconds: float = 300.0) -> None:
    """Look now and then; a benchmark that hangs says so."""
    deadline = time.monotonic() + seconds
    while not world.is_drained():
        if time.monotonic() > deadline:
            raise TimeoutError(f"jobs are still open after {seconds:.0f} s")
        time.sleep(0.01)
