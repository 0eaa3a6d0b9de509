"""One simulated day with a fixed number of workers: mails go through the real steps to the real pool and workers."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

from webordinary.adapters.sqlite.claims import SqliteClaims
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests, SqliteInterrupts, SqliteJobs
from webordinary.model.claims import JOB_LIMIT_SECONDS, CancelToken, ClaimStatus, StartedJob
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.jobs import Job, JobOutcome, JobResult, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.demand import BIN_SECONDS, BINS, DAY_SECONDS, MAX_WORKERS, Mail, bin_of, within
from webordinary.pool.ports import QUEUED, ClaimRequestQueue, Claims, Pool
from webordinary.pool.reconciler import PREEMPTED, Reconciler
from webordinary.worker.claims import JobCancelToken
from webordinary.worker.ports import Clock, WorkerDeps, WorkerSettings
from webordinary.worker.slot import Slot
from webordinary.worker.worker import Worker
from webordinary.workflow.queueing import Queueing


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by `share` of them; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else 0.0


class Measures:
    """Listens to the events that workers and pool emit; the driver adds what slots do."""

    def __init__(self, clock: Clock, has_work: Callable[[ProjectUser], bool], late_after: float = math.inf) -> None:
        self.kinds: Counter[str] = Counter()
        self.claim_waits: list[float] = []
        """From when work had no owner until a worker claimed it."""
        self.start_waits: list[float] = []
        """From when a mail was queued until its job first began, behind its writer's own earlier mails too."""
        self.unstarted = 0
        self.arrivals = [0] * BINS
        self.busy_seconds = [0.0] * BINS
        self.busiest = [0] * BINS
        """The most jobs at a time, by quarters of an hour."""
        self._clock, self._has_work, self._late_after = clock, has_work, late_after
        self._claimed_late = 0
        self._ownerless: dict[ProjectUser, float] = {}
        self._queued: dict[str, float] = {}
        self._begun: set[str] = set()
        self._busy, self._since = 0, 0.0

    def emit(self, event: Event) -> None:
        self.kinds[event.kind] += 1
        now = self._clock.monotonic()
        match event.kind:
            case EventKind.JOB_QUEUED if event.job_id and event.job_id not in self._begun:
                self._queued.setdefault(event.job_id, now)
            case EventKind.JOB_STARTED if event.job_id and event.job_id in self._queued:
                self._begun.add(event.job_id)
                self.start_waits.append(now - self._queued.pop(event.job_id))
            case EventKind.CLAIM_REQUESTED if event.key:
                self._ownerless.setdefault(event.key, now)
            case EventKind.CLAIM_YIELDED | EventKind.CLAIM_RELEASED if event.key and self._has_work(event.key):
                self._ownerless.setdefault(event.key, now)
            case EventKind.CLAIM_TAKEN if event.key:
                self._claimed(now - self._ownerless.pop(event.key, now))

    def arrived(self) -> None:
        """Count the arrival of a mail."""
        self.arrivals[bin_of(self._clock.monotonic())] += 1

    def busy(self, change: int) -> None:
        """So many slots more, or fewer, are busy from now on."""
        now = self._clock.monotonic()
        self._fill(min(now, DAY_SECONDS))
        self._busy += change
        if now < DAY_SECONDS:
            quarter = bin_of(now)
            self.busiest[quarter] = max(self.busiest[quarter], self._busy)

    def late(self) -> int:
        """How many claims came late, and how much work without an owner is late already."""
        now = self._clock.monotonic()
        return self._claimed_late + sum(1 for since in self._ownerless.values() if now - since > self._late_after)

    def close(self) -> None:
        """The day is over; what still waits has waited so long at least."""
        now = self._clock.monotonic()
        for since in self._ownerless.values():
            self._claimed(now - since)
        self.start_waits += [now - since for since in self._queued.values()]
        self.unstarted = len(self._queued)
        self._ownerless.clear()
        self._queued.clear()

    def utilisation(self, slots: int) -> float:
        """How much of all slots' day was work."""
        return sum(self.busy_seconds) / (slots * DAY_SECONDS)

    def _claimed(self, waited: float) -> None:
        self.claim_waits.append(waited)
        self._claimed_late += waited > self._late_after

    def _fill(self, until: float) -> None:
        while self._since < until:
            quarter = bin_of(self._since)
            end = min(until, (quarter + 1) * BIN_SECONDS)
            self.busy_seconds[quarter] += self._busy * (end - self._since)
            self.busiest[quarter] = max(self.busiest[quarter], self._busy)
            self._since = end


MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)


class Timer:
    """A callback at a moment of the virtual clock."""

    __slots__ = ("_do",)

    def __init__(self, do: Callable[[], None]) -> None:
        self._do: Callable[[], None] | None = do

    def call_off(self) -> None:
        """Cancel the callback."""
        self._do = None

    def go_off(self) -> None:
        """Run the callback, unless it was cancelled."""
        if self._do:
            self._do()


class VirtualClock:
    """The Clock of everything in a simulated day, which begins at midnight. One seed, one course of events."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._now = MIDNIGHT
        self._due: list[tuple[float, int, Timer]] = []
        self._numbers = count()

    def now(self) -> datetime:
        """The time of day."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since midnight."""
        return self._seconds

    def after(self, seconds: float, do: Callable[[], None]) -> Timer:
        """Do it so many seconds from now; what is due at the same moment keeps its order."""
        alarm = Timer(do)
        heapq.heappush(self._due, (self._seconds + max(0.0, seconds), next(self._numbers), alarm))
        return alarm

    def run(self, until: float, done: Callable[[], bool]) -> None:
        """Let time pass until it is over or everything is `done`."""
        while self._due and self._due[0][0] <= until and not done():
            at, _, alarm = heapq.heappop(self._due)
            if at > self._seconds:
                self._seconds, self._now = at, MIDNIGHT + timedelta(seconds=at)
            alarm.go_off()


SAVING_SECONDS = 3.0
"""What an interrupted agent takes to end and its work to be saved."""
_SHORTEST_SLEEP = 0.001
_DONE = Settlement(JobOutcome.SUCCEEDED, JobResult("done"))


@dataclass(frozen=True, slots=True)
class SimulationState:
    """What the workers of one simulated day share. `left` is how long each job still has to run, by its id."""

    settings: WorkerSettings
    pool: Pool
    events: Events
    time: VirtualClock
    left: dict[str, float]
    busy: Callable[[SimulatedWorker, int], None]
    """A worker has a busy slot more or less."""


class SimulatedWorker:
    """The product's Worker, stepped by the virtual clock instead of waiting."""

    def __init__(self, name: str, world: SimulationState) -> None:
        self._world = world
        self._heard: list[str] = []
        self._alarm: Timer | None = None
        self._stopped = NeverStops()
        deps = WorkerDeps(
            worker_id=name,
            settings=world.settings,
            pool=world.pool,
            work=SimulatedJobs(),
            events=world.events,
            clock=world.time,
            threads=self,
            wakeups=self,
            rng=random.Random(name),  # noqa: S311  jitter that repeats
        )
        self._worker = Worker(deps, self._carry)
        self.busy = 0
        """How many jobs it runs."""

    def hear(self, message: str) -> None:
        """Deliver a message and wake the loop."""
        self._heard.append(message)
        self._sleep(0.0)

    def poke(self) -> None:
        self.hear("poke")

    def wait(self, seconds: float, held: Mapping[ProjectUser, Job | None], free: int) -> Sequence[str]:
        """Only the loop of a real worker waits; this one is stepped."""
        raise NotImplementedError("this worker is stepped")

    def keys_changed(self) -> None:
        self.poke()

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        raise NotImplementedError("this worker has no threads")

    def stop_event(self) -> NeverStops:
        return self._stopped

    def _sleep(self, seconds: float) -> None:
        if self._alarm:
            self._alarm.call_off()
        self._alarm = self._world.time.after(seconds, self._step)

    def _step(self) -> None:
        heard, self._heard = self._heard, []
        self._worker.react(heard)
        if not self._heard:
            self._sleep(max(_SHORTEST_SLEEP, self._worker.seconds_to_wait()))

    def _carry(self, slot: Slot, token: JobCancelToken) -> None:
        """The job's time passes first, and it is run to its end when that is over."""
        world, began = self._world, self._world.time.monotonic()
        seconds = world.left[token.job_id]
        listening = ExitStack()

        def end() -> None:
            listening.close()
            world.left[token.job_id] = max(0.0, seconds - (world.time.monotonic() - began))
            self._end(slot, token)

        def stop_early() -> None:
            alarm.call_off()
            left = seconds - (world.time.monotonic() - began)
            world.time.after(min(left, SAVING_SECONDS), end)

        alarm = world.time.after(seconds, end)
        listening.enter_context(token.on_stop(stop_early))
        self._count(1)

    def _end(self, slot: Slot, token: JobCancelToken) -> None:
        following = slot.run_one(token)
        self._count(-1)
        if following:
            self._carry(slot, following)
        else:
            self.poke()

    def _count(self, change: int) -> None:
        self.busy += change
        self._world.busy(self, change)


class SimulatedJobs:
    """A job runner that succeeds at once: the virtual clock has let the job's time pass."""

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        return _DONE

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None:
        return None

    def save(self, started: StartedJob, token: CancelToken) -> None:
        """A simulated job leaves nothing to save."""


class NeverStops:
    """A stop event that is never set: workers run through the simulated day."""

    def set(self) -> None:
        """Does nothing: simulated workers run through the day."""

    def wait(self, seconds: float) -> bool:
        return False


MESSAGE_SECONDS = 0.05
"""From sending a message until a long poll returns it."""


class SimulatedQueues:
    """The pool's Tickets. A worker polls the unclaimed queue while it has a free slot."""

    def __init__(
        self, time: VirtualClock, claims: Claims, hints: ClaimRequestQueue, slots: int, rng: random.Random
    ) -> None:
        self._time, self._claims, self._hints, self._slots, self._rng = time, claims, hints, slots, rng
        self._workers: dict[str, SimulatedWorker] = {}
        self._polling: list[SimulatedWorker] = []
        self._places: dict[SimulatedWorker, int] = {}

    def add_worker(self, name: str, worker: SimulatedWorker) -> None:
        """A worker begins to poll."""
        self._workers[name] = worker
        self._poll(worker)
        self._time.after(0.0, worker.poke)

    def notify_owner(self, job: Job, news: str = QUEUED) -> None:
        claim = self._claims.look(job.key)
        if claim and claim.status is ClaimStatus.HELD:
            self._send(self._workers[claim.worker], f"ticket {job.key}")

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None:
        """Wake one polling worker; without one, the message waits for a free slot."""
        if self._polling:
            self._send(self._rng.choice(self._polling), "unclaimed")

    def busy(self, worker: SimulatedWorker) -> None:
        """A worker runs a job more or less. A claim request that it did not take is offered to other pollers."""
        if worker.busy < self._slots:
            self._poll(worker)
        else:
            self._leave(worker)
        if self._polling and self._hints.receive(self._time.now(), (), 1):
            self.notify_unclaimed()

    def _send(self, worker: SimulatedWorker, message: str) -> None:
        self._time.after(MESSAGE_SECONDS, lambda: worker.hear(message))

    def _poll(self, worker: SimulatedWorker) -> None:
        if worker not in self._places:
            self._places[worker] = len(self._polling)
            self._polling.append(worker)

    def _leave(self, worker: SimulatedWorker) -> None:
        place = self._places.pop(worker, None)
        if place is not None:
            last = self._polling.pop()
            if last is not worker:
                self._polling[place], self._places[last] = last, place


class AlwaysAlive:
    """Liveness of workers that all live through the day."""

    def is_dead(self, worker: str) -> bool:
        return False

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """Does nothing: no simulated worker dies."""


class CallbackRecorder:
    """The workflow's side of task tokens, and its audit of interruptions."""

    def __init__(self, settled: Callable[[], None], interrupted: Callable[[str], None]) -> None:
        self._settled, self._interrupted = settled, interrupted

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        self._settled()
        return True

    def fail(self, token: str, error: str, cause: str) -> bool:
        if error == PREEMPTED:
            self._interrupted(token)
        else:
            self._settled()
        return True

    def heartbeat(self, token: str) -> bool:
        return True

    def record(self, job: Job, reason: str, now: datetime, new_thread_id: str = "") -> None:
        """See Interruptions; the events count them already."""


RECONCILE_SECONDS = 300.0
_WHOLE = DAY_SECONDS + JOB_LIMIT_SECONDS
"""The day and the end of its last jobs; what waits even then is counted as waiting."""
_PROGRESS_MAILS = 500


@dataclass(frozen=True, slots=True)
class WaitTarget:
    """When a trial has shown enough: more than `late` claims took longer than `seconds`."""

    seconds: float = math.inf
    late: int = 0


ENDLESS = WaitTarget()


class SimulatedDay:
    """Build it, then `run` it once."""

    def __init__(self, mails: Sequence[Mail], workers: int, slots: int, target: WaitTarget = ENDLESS) -> None:
        within("workers", workers, 1, MAX_WORKERS)
        self._mails, self._target = mails, target
        self._time, db = VirtualClock(), MemoryDatabase()
        self._jobs = SqliteJobs(db)
        self.measures = Measures(self._time, lambda key: bool(self._jobs.open_jobs(key, 1)), target.seconds)
        self.settled, self.gave_up = 0, False
        rng = random.Random(workers)  # noqa: S311  a repeatable choice of the worker that gets a request
        claims, hints = SqliteClaims(db, _WHOLE * 2), SqliteClaimRequests(db)
        self._post = SimulatedQueues(self._time, claims, hints, slots, rng)
        self._answers = CallbackRecorder(self._note_settled, self._note_interrupted)
        self._pool = Pool(
            jobs=self._jobs,
            pending_callbacks=self._jobs,
            claims=claims,
            hints=hints,
            tickets=self._post,
            interrupts=SqliteInterrupts(db),
            callbacks=self._answers,
            liveness=AlwaysAlive(),
        )
        self._queueing = Queueing(self._pool, self._answers, self.measures, self._time.now, lambda job: None)
        self._left: dict[str, float] = {}
        self._bindings = 0
        # Workers do not die and messages are not lost, so leases need no renewal; one function reconciles, as on AWS.
        settings = WorkerSettings(slots=slots, lease=_WHOLE * 2, reconcile=_WHOLE, heartbeat=_WHOLE)
        world = SimulationState(settings, self._pool, self.measures, self._time, self._left, self._note_busy)
        for number in range(workers):
            name = f"worker-{number}"
            self._post.add_worker(name, SimulatedWorker(name, world))

    def run(self, tell: Callable[[str], None] = lambda words: None) -> Measures:
        """Play the day, and on until every mail is settled."""
        self._next_arrival(0, tell)
        self._time.after(RECONCILE_SECONDS, self._reconcile)
        self._time.run(_WHOLE, lambda: self.gave_up or self.settled == len(self._mails))
        self.measures.close()
        return self.measures

    # -- the mails ------------------------------------------------------------------------------------

    def _next_arrival(self, number: int, tell: Callable[[str], None]) -> None:
        if number == len(self._mails):
            return
        if number % _PROGRESS_MAILS == 0:
            tell(f"{number:,} of {len(self._mails):,} mails")
        mail = self._mails[number]

        def arrive() -> None:
            self._arrive(mail)
            self._next_arrival(number + 1, tell)

        self._time.after(mail.at - self._time.monotonic(), arrive)

    def _arrive(self, mail: Mail) -> None:
        self.measures.arrived()
        job_id = f"job-{mail.number}"
        self._left[job_id] = mail.seconds
        new = NewJob(job_id, mail.key, mail.thread_id, f"mail-{mail.number}", Command.EDIT)
        self._pool.jobs.record(new, self._time.now())
        self._queue(job_id)

    def _queue(self, job_id: str) -> None:
        """The states of the workflow from SendToContainer to AwaitResult."""
        steps, about = self._queueing, {"jobId": job_id}
        steps.send_to_container(about)
        if not steps.check_ownership(about)["owned"]:
            steps.send_claim_request(about)
        active = steps.check_active_job(about)
        if active["mustInterrupt"]:
            steps.send_interrupt({**about, "activeJobId": active["jobId"]})
        self._bindings += 1
        steps.await_result({**about, "taskToken": f"{job_id} {self._bindings}"})

    # -- what is noticed ------------------------------------------------------------------------------

    def _note_settled(self) -> None:
        self.settled += 1

    def _note_interrupted(self, token: str) -> None:
        job_id = token.partition(" ")[0]

        def go_on() -> None:
            self._queueing.record_interruption({"jobId": job_id})
            self._queue(job_id)

        self._time.after(0.0, go_on)

    def _note_busy(self, worker: SimulatedWorker, change: int) -> None:
        self.measures.busy(change)
        self._post.busy(worker)

    def _reconcile(self) -> None:
        Reconciler(self._pool, self.measures).run_once(self._time.now())
        self._time.after(RECONCILE_SECONDS, self._reconcile)
        self.gave_up = self.measures.late() > self._target.late
