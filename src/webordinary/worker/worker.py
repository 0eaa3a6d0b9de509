"""The generic worker: claims keys with work, runs their jobs in order, keeps idle claims, releases them."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence

from webordinary.model.claims import Claim, Interrupt, StartedJob
from webordinary.model.errors import Backoff, Cancelled, ClaimLost, Interrupted, InvalidName, JobTimedOut, Stopped
from webordinary.model.events import EventKind
from webordinary.model.names import ProjectUser
from webordinary.model.text import clean
from webordinary.pool.ports import DRAIN
from webordinary.pool.reconciler import Reconciler
from webordinary.pool.transitions import asked_by_operator, interrupting_job, next_due_at
from webordinary.worker.claims import Claiming, ClaimSet, HeldClaim, JobCancelToken, LeaseRenewer, release
from webordinary.worker.ports import WorkerDeps
from webordinary.worker.slot import Slot

_BREAKER_THRESHOLD = 5
_BREAKER_BACKOFF = Backoff(0.2, cap=30.0, jitter=0.5)


class CircuitBreaker:
    """Counts consecutive errors of the worker's loop. A lost claim race is not an error."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.failures = 0

    def failed(self) -> bool:
        """Count an error; True when it opens the breaker."""
        self.failures += 1
        return self.failures == _BREAKER_THRESHOLD

    def succeeded(self) -> bool:
        """Reset the count; True when this closes an open breaker."""
        was_open = self.failures >= _BREAKER_THRESHOLD
        self.failures = 0
        return was_open

    def pause_seconds(self) -> float:
        """How long the loop leaves the backend alone."""
        return _BREAKER_BACKOFF.delay(self.failures - 1, self._rng)


class CancellationPolicy:
    """Ends running jobs that are overdue, cancelled, interrupted or no longer awaited."""

    def __init__(self, deps: WorkerDeps, claim_set: ClaimSet) -> None:
        self._deps, self._claim_set = deps, claim_set
        self._heartbeat_at = deps.clock.monotonic() + deps.settings.heartbeat
        self._awaited: dict[str, str] = {}
        """Task tokens of running jobs whose workflow waited at the last heartbeat, by job."""
        self._lost: dict[str, str] = {}

    def next_check_at(self) -> float | None:
        """When, on the monotonic clock, a running job may have to end."""
        running = self._claim_set.running()
        # A job that is ending has its grace period; further checks do not end it sooner.
        deadlines = (token.deadline for token in running if token.reason is None)
        return min([self._heartbeat_at, *deadlines]) if running else None

    def enforce(self) -> None:
        """End jobs past their deadline, cancelled jobs, and jobs interrupted by a mail of another thread."""
        now = self._deps.clock.monotonic()
        for token in self._claim_set.running():
            if now >= token.deadline:
                token.end(JobTimedOut(f"ran longer than {self._deps.settings.job_limit:.0f} seconds"))
        for token, heard in self._claim_set.busy_notified():
            asked = self._deps.pool.interrupts.take(token.started.claim.key) if heard else ()
            self._check_queue(token, asked)
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self._deps.settings.heartbeat
            running = {token.job_id: token for token in self._claim_set.running()}
            self._lost = {job_id: task_token for job_id, task_token in self._lost.items() if job_id in running}
            self._awaited = {job_id: task_token for job_id, task_token in self._awaited.items() if job_id in running}
            for token in running.values():
                self._check_awaited(token)

    def _check_queue(self, token: JobCancelToken, asked: Sequence[Interrupt]) -> None:
        """Level-triggered: the job records decide, not the message; only an operator's interrupt counts by itself."""
        running = token.started.job
        if any(one.job_id == running.job_id and one.reason == asked_by_operator(running) for one in asked):
            token.end(Interrupted("interrupted by the operator"))
            return
        open_jobs = self._deps.pool.jobs.open_jobs(running.key)
        current = next((job for job in open_jobs if job.job_id == running.job_id), None)
        if current is None:  # beyond the limit of the list
            current = self._deps.pool.jobs.get(running.job_id)
        if current and current.cancel_requested:
            token.end(Cancelled("stopped by the customer or the operator"))
        elif newcomer := interrupting_job(running, open_jobs, self._deps.clock.now()):
            token.end(Interrupted(f"a mail of thread {newcomer.thread_id} came in"))

    def _check_awaited(self, token: JobCancelToken) -> None:
        """Cancel the job if its workflow was stopped: two heartbeats in a row find the same task token lost.

        One is not enough: the workflow may be about to bind the next token. The job's record is read only if the
        last known token is not awaited.
        """
        heartbeat, awaited = self._deps.pool.callbacks.heartbeat, self._awaited.pop(token.job_id, None)
        if awaited and heartbeat(awaited):
            self._awaited[token.job_id] = awaited
            return
        job = self._deps.pool.jobs.get(token.job_id)
        task_token = job.task_token if job else None
        lost_before = self._lost.pop(token.job_id, None)
        if not task_token:
            return
        if task_token != awaited and heartbeat(task_token):
            self._awaited[token.job_id] = task_token
        elif lost_before == task_token:
            token.end(Cancelled("its workflow was stopped"))
        else:
            self._lost[token.job_id] = task_token


_log = logging.getLogger(__name__)
_QUICK_SECONDS = 2.5
_RETRY_SECONDS = 1.0
Carry = Callable[[Slot, JobCancelToken], None]
"""Serves a slot from its first job on, outside the worker's loop; wakes the loop when the slot is free."""


class Worker:
    """One worker process. `run` repeats `run_once`."""

    def __init__(self, deps: WorkerDeps, carry: Carry | None = None) -> None:
        """`carry` runs the slots; by default each in its own thread."""
        self._deps = deps
        self._carry = carry or self._spawn_slot
        self._claim_set = ClaimSet()
        self._renewer = LeaseRenewer(deps, self._claim_set)
        self._limits = CancellationPolicy(deps, self._claim_set)
        self._claiming = Claiming(deps, self._free_slots, self._begin_claimed, self._notify_own)
        self._stopping, self._ended = deps.threads.stop_event(), deps.threads.stop_event()
        self._draining = False
        self._breaker = CircuitBreaker(deps.rng)
        self._reconciler = Reconciler(deps.pool, deps.events, self._claiming.is_over, self._is_held)
        self._reconcile_at, self._has_reconciled = 0.0, False
        self._retry_at: dict[ProjectUser, float] = {}

    def run(self) -> None:
        """Serve until `stop`; then finish or save running jobs and release all claims."""
        self._deps.threads.spawn("lease-renewer", lambda: self._renewer.run(self._ended))
        self._deps.emit(EventKind.WORKER_STARTED, slots=self._deps.settings.slots)
        while not self._stopping.wait(0) and not (self._draining and not self._claim_set.running()):
            self._run_once_guarded()
        self._shut_down()
        self._ended.set()
        self._deps.emit(EventKind.WORKER_STOPPED)

    def stop(self) -> None:
        """Take no more jobs; called from a signal handler or another thread."""
        self._stopping.set()
        self._deps.wakeups.poke()

    def run_once(self) -> None:
        """Wait for work, then do it."""
        heard = self._deps.wakeups.wait(self.seconds_to_wait(), self._claim_set.jobs(), self._free_slots())
        self.react(heard)

    def react(self, heard: Sequence[str]) -> None:
        """Do the work that is due now; does not wait."""
        self._handle_messages(heard)
        self._release_abandoned_keys()
        self._limits.enforce()
        self._serve_held_keys()
        self._serve_waiting_keys()
        if self._claim_set.queue_late():
            self._deps.wakeups.poke()
        self._release_idle_keys()
        self._reconcile()

    def _run_once_guarded(self) -> None:
        try:
            self.run_once()
        except Exception as problem:
            if self._breaker.failed():
                self._deps.emit(EventKind.BREAKER_OPENED, error=clean(f"{type(problem).__name__}: {problem}")[:500])
            _log.warning("worker %s: %s: %s", self._deps.worker_id, type(problem).__name__, problem)
            self._stopping.wait(self._breaker.pause_seconds())
            self._claim_set.notify_all()  # the failed round may have lost messages
            self._deps.wakeups.poke()
        else:
            if self._breaker.succeeded():
                self._deps.emit(EventKind.BREAKER_CLOSED)

    def _handle_messages(self, heard: Sequence[str]) -> None:
        for message in heard:
            word, _, rest = message.partition(" ")
            if word == "ticket":
                self._notify_key(rest)
            elif word == DRAIN:
                self._draining = True
            elif word == "died":
                self._reconcile_at = 0.0

    def _notify_key(self, key: str) -> None:
        try:
            self._claim_set.notify([ProjectUser.parse(key)])
        except InvalidName:
            _log.warning("ignored a ticket for %r", key)

    def knows(self, claim: Claim) -> bool:
        """Whether this worker serves, keeps or releases this claim."""
        return self._claim_set.knows(claim)

    def _is_held(self, key: ProjectUser) -> bool:
        return self._claim_set.get(key) is not None

    def _notify_own(self, claim: Claim) -> bool:
        """Notify a claim of this worker; False if the ClaimSet does not hold it."""
        held = self._claim_set.get(claim.key)
        if held is None or held.claim.fence != claim.fence:
            return False
        self._claim_set.notify([claim.key])
        return True

    def seconds_to_wait(self) -> float:
        """Seconds until the next work is due, unless a message comes."""
        moments = [self._reconcile_at, *self._retry_at.values()]
        if idle := self._claim_set.idle():
            moments.append(idle[0].used_at + self._deps.settings.idle_release)
        if limit := self._limits.next_check_at():
            moments.append(limit)
        if self._free_slots() > 0 and (look := self._claiming.next_check_at()):
            moments.append(look)
        return max(0.0, min(moments) - self._deps.clock.monotonic())

    def _free_slots(self) -> int:
        return 0 if self._draining else self._deps.settings.slots - len(self._claim_set.running())

    def _serve_held_keys(self) -> None:
        """Start the next job of idle keys with news, or whose retry is due."""
        now = self._deps.clock.monotonic()
        for key, at in list(self._retry_at.items()):
            if at <= now:
                del self._retry_at[key]
                self._claim_set.notify([key])
        for held in self._claim_set.idle_notified():
            if self._free_slots() > 0:
                self._serve_next(held)
            else:
                self._claim_set.notify([held.claim.key])

    def _serve_waiting_keys(self) -> None:
        try:
            self._claiming.serve_waiting_keys()
        except Exception:
            self._renewer.expect_unknown_claims()
            raise

    def _serve_next(self, held: HeldClaim) -> None:
        deps, claim = self._deps, held.claim
        try:
            begun = deps.pool.claims.start_next(claim, deps.clock.now())
        except ClaimLost:
            self._claim_set.remove(claim)
            return
        except Exception:
            # The store may have started a job and only its answer is lost: no slot would run it under this fence.
            self._claim_set.abandon(claim)
            raise
        if begun:
            self._run_in_slot(begun)
        elif due := next_due_at(deps.pool.jobs.open_jobs(claim.key)):
            pause = max(0.05, (due - deps.clock.now()).total_seconds())
            self._retry_at[claim.key] = deps.clock.monotonic() + pause

    def _begin_claimed(self, started: StartedJob, claimed_at: float) -> None:
        self._renewer.confirm(started.claim.key, started.claim.fence, claimed_at)
        self._run_in_slot(started)
        surplus = len(self._claim_set.claims()) - self._deps.settings.slots
        for held in self._claim_set.idle()[: max(0, surplus)]:  # the least recently used first
            self._release(held.claim, EventKind.CLAIM_YIELDED)

    def _run_in_slot(self, started: StartedJob) -> None:
        slot = Slot(self._deps, self._claim_set, self._renewer, self._stopping, self._gives_slots_back)
        try:
            self._carry(slot, slot.begin(started))
        except BaseException:
            self._claim_set.abandon(started.claim)  # else its lease is renewed while no slot runs its job
            raise

    def _gives_slots_back(self) -> bool:
        return self._draining or self._claiming.wants_slot()

    def _spawn_slot(self, slot: Slot, token: JobCancelToken) -> None:
        def serve() -> None:
            try:
                slot.serve(token)
            finally:
                self._deps.wakeups.poke()

        self._deps.threads.spawn(f"slot {token.started.claim.key.text}", serve)

    def _release_abandoned_keys(self) -> None:
        """Release abandoned claims; retry failed releases."""
        for claim in self._claim_set.abandoned():
            if not self._try_to_release(claim):
                self._retry_at[claim.key] = self._deps.clock.monotonic() + _RETRY_SECONDS

    def _release_idle_keys(self) -> None:
        now = self._deps.clock.monotonic()
        for held in self._claim_set.idle():
            if now - held.used_at >= self._deps.settings.idle_release:
                self._release(held.claim, EventKind.CLAIM_RELEASED)

    def _try_to_release(self, claim: Claim) -> bool:
        try:
            self._release(claim, EventKind.CLAIM_RELEASED)
        except Exception as problem:
            _log.warning("%s: not released yet: %s", claim.key, problem)
            return False
        return True

    def _release(self, claim: Claim, kind: EventKind) -> None:
        deps = self._deps
        held = self._claim_set.get(claim.key)
        idle_ms = round((deps.clock.monotonic() - held.used_at) * 1000, 1) if held else 0.0
        self._claim_set.abandon(claim)  # until the store confirms: a failed release is retried
        self._retry_at.pop(claim.key, None)
        release(claim, deps.pool, deps.clock.now())
        self._claim_set.released(claim)
        deps.emit(kind, key=claim.key, fence=claim.fence, idle_ms=idle_ms)

    def _reconcile(self) -> None:
        now = self._deps.clock.monotonic()
        if now < self._reconcile_at:
            return
        self._reconcile_at = now + self._deps.settings.reconcile
        self._claim_set.notify_all()
        if not (self._has_reconciled and self._deps.reconciled_elsewhere(self._deps.clock.now())):
            self._reconciler.run_once(self._deps.clock.now())
            self._has_reconciled = True
        self._claiming.end_round()

    def _shut_down(self) -> None:
        """Let quick jobs finish, save the others, release every claim."""
        clock, settings = self._deps.clock, self._deps.settings
        self._deps.wakeups.wait(0.0, {}, 0)  # what comes from now on is for others
        self._wait_for_slots(clock.monotonic() + min(_QUICK_SECONDS, settings.stop_grace / 4))
        for token in self._claim_set.running():
            token.end(Stopped("the worker is stopping"))
        self._wait_for_slots(clock.monotonic() + settings.stop_grace)
        self._release_abandoned_keys()
        for held in self._claim_set.idle():
            self._try_to_release(held.claim)

    def _wait_for_slots(self, deadline: float) -> None:
        while self._claim_set.running() and self._deps.clock.monotonic() < deadline:
            self._deps.wakeups.wait(deadline - self._deps.clock.monotonic(), {}, 0)
