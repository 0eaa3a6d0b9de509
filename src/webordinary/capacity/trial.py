"""One simulated day with a fixed number of workers: mails go through the real steps to the real pool and workers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webordinary.adapters.memory.pool import MemoryClaims, MemoryHints, MemoryInterrupts, MemoryJobs
from webordinary.adapters.memory.pool_state import MemoryPoolState
from webordinary.capacity.bounds import MAX_WORKERS, within
from webordinary.capacity.clockwork import VirtualTime
from webordinary.capacity.day import DAY_SECONDS
from webordinary.capacity.demand import Mail
from webordinary.capacity.measures import Measures
from webordinary.capacity.post import Answers, NobodyDies, Post
from webordinary.capacity.stepped import SteppedWorker, World
from webordinary.model.claims import JOB_LIMIT_SECONDS
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.pool.ports import Pool
from webordinary.pool.reconciler import Reconciler
from webordinary.worker.settings import Settings
from webordinary.workflow.queueing import Queueing

RECONCILE_SECONDS = 300.0
_WHOLE = DAY_SECONDS + JOB_LIMIT_SECONDS
"""The day and the end of its last jobs; what waits even then is counted as waiting."""
_PROGRESS_MAILS = 500


@dataclass(frozen=True, slots=True)
class Patience:
    """When a trial has shown enough: more than `late` claims took longer than `seconds`."""

    seconds: float = math.inf
    late: int = 0


ENDLESS = Patience()


class Trial:
    """Build it, then `run` it once."""

    def __init__(self, mails: Sequence[Mail], workers: int, slots: int, patience: Patience = ENDLESS) -> None:
        within("workers", workers, 1, MAX_WORKERS)
        self._mails, self._patience = mails, patience
        self._time, self._state = VirtualTime(), MemoryPoolState()
        self.measures = Measures(self._time, lambda key: bool(self._state.open_of(key)), patience.seconds)
        self.settled, self.gave_up = 0, False
        dice = random.Random(workers)  # noqa: S311  who gets a hint is chance that repeats
        self._post = Post(self._time, self._state, slots, dice)
        self._answers = Answers(self._note_settled, self._note_interrupted)
        self._pool = self._make_pool()
        self._queueing = Queueing(self._pool, self._answers, self.measures, self._time.now, lambda job: None)
        self._left: dict[str, float] = {}
        self._bindings = 0
        # Nobody dies and nothing is lost, so leases need no renewal; a function reconciles for all, as on AWS.
        settings = Settings(slots=slots, lease=_WHOLE * 2, reconcile=_WHOLE, heartbeat=_WHOLE)
        world = World(settings, self._pool, self.measures, self._time, self._left, self._note_busy)
        for number in range(workers):
            name = f"worker-{number}"
            self._post.employ(name, SteppedWorker(name, world))

    def run(self, tell: Callable[[str], None] = lambda words: None) -> Measures:
        """Play the day, and on until every mail is settled."""
        self._next_arrival(0, tell)
        self._time.after(RECONCILE_SECONDS, self._reconcile)
        self._time.run(_WHOLE, lambda: self.gave_up or self.settled == len(self._mails))
        self.measures.close()
        return self.measures

    def _make_pool(self) -> Pool:
        jobs = MemoryJobs(self._state)
        return Pool(
            jobs=jobs,
            owed=jobs,
            claims=MemoryClaims(self._state, _WHOLE * 2),
            hints=MemoryHints(self._state),
            tickets=self._post,
            interrupts=MemoryInterrupts(self._state),
            callbacks=self._answers,
            liveness=NobodyDies(),
        )

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

    def _note_busy(self, worker: SteppedWorker, change: int) -> None:
        self.measures.busy(change)
        self._post.busy(worker)

    def _reconcile(self) -> None:
        Reconciler(self._pool, self.measures).run_once(self._time.now())
        self._time.after(RECONCILE_SECONDS, self._reconcile)
        self.gave_up = self.measures.late() > self._patience.late
