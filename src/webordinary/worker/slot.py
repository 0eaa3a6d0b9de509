"""One slot: runs a job to its end, then the next one that the pool hands over; and the outcomes of jobs."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from webordinary.model.claims import MAX_ATTEMPTS, Claim, FinishResult, StartedJob
from webordinary.model.errors import (
    Backoff,
    Cancelled,
    ClaimLost,
    Interrupted,
    JobTimedOut,
    MachineFault,
    MustWait,
    NotNow,
    Permanent,
    Stopped,
    Transient,
    WebOrdinaryError,
)
from webordinary.model.events import EventKind
from webordinary.model.jobs import Job, JobEnd, JobOutcome, JobResult, Requeue, RequeueReason, Settlement
from webordinary.model.text import clean
from webordinary.pool.reconciler import STOPPED, deliver_callback
from webordinary.worker.claims import ClaimSet, JobCancelToken, LeaseRenewer, SavingToken
from webordinary.worker.ports import StopEvent, WorkerDeps

_ERROR_CHARACTERS = 2000
_MACHINE_SECONDS, _LONGEST_MACHINE_SECONDS = 10.0, 3600.0
_KILLED_FACTOR = 10

DEAD_SUMMARY = "I tried this several times and could not finish it. A person will look at it."
TIMED_OUT_SUMMARY = (
    "The work on your mail did not end in the time it may take, so it was stopped. Your site is as it was before. "
    "Asking for less at once often helps."
)


def may_check_main(job: Job) -> bool:
    """One start beyond the attempts checks what these brought to main."""
    return job.attempts <= MAX_ATTEMPTS + 1


def refusal_to_start(job: Job) -> Settlement | None:
    """The settlement of a job that must not run again: cancelled, or started too often without an end."""
    if not may_check_main(job):
        return _dead(f"started {job.attempts - 1} times; the check of what it brought to main did not end either")
    if job.cancel_requested:
        return Settlement(JobOutcome.CANCELLED, JobResult(STOPPED))
    if job.attempts > MAX_ATTEMPTS:
        return _dead(f"started {MAX_ATTEMPTS} times without ending")
    return None


def outcome_of(
    problem: Exception, job: Job, now: datetime, retry_base_seconds: float, rng: random.Random, *, machine_fault: bool
) -> JobEnd:
    """The settlement or requeue of a job that raised `problem`; a `machine_fault` is waited out."""
    match problem:
        case Stopped():
            return Requeue(RequeueReason.STOPPED)
        case Interrupted():
            return Requeue(RequeueReason.INTERRUPTED)
        case NotNow():
            return Requeue(RequeueReason.HELD, problem.look_again_at, problem.held, problem.result)
        case MustWait():
            not_before = now + timedelta(seconds=Backoff(problem.seconds, cap=problem.seconds).delay(0, rng))
            return Requeue(RequeueReason.WAITING, not_before, words=str(problem))
        case Cancelled():
            return Settlement(JobOutcome.CANCELLED, JobResult(STOPPED, error=str(problem)))
        case JobTimedOut():
            return Settlement(JobOutcome.TIMED_OUT, JobResult(TIMED_OUT_SUMMARY, error=str(problem)))
        case _ if machine_fault:  # they do not count as attempts
            return _wait_for_machine(problem, job, now, rng)
        case Permanent():
            return _dead(_words(problem))
        case _ if job.attempts >= MAX_ATTEMPTS:
            return _dead(f"failed {job.attempts} times, at last with {_words(problem)}")
        case _:
            # A high factor: there are few attempts, and an outage of two minutes must not use them up.
            seconds = Backoff(retry_base_seconds, factor=30.0, cap=86_400.0).delay(job.attempts - 1, rng)
            again_at = now + timedelta(seconds=seconds)
            return Requeue(RequeueReason.RETRY, again_at, words=clean(_words(problem)))


def _wait_for_machine(problem: Exception, job: Job, now: datetime, rng: random.Random) -> Requeue:
    """Requeue without a counted attempt.

    Where a program was ended, the delay grows with the time that it ran: each run may cost money.
    """
    seconds = _MACHINE_SECONDS
    if isinstance(problem, MachineFault) and job.started_at:
        ran = (now - job.started_at).total_seconds()
        seconds = min(max(seconds, ran * _KILLED_FACTOR), _LONGEST_MACHINE_SECONDS)
    again_at = now + timedelta(seconds=Backoff(seconds, cap=seconds).delay(0, rng))
    return Requeue(RequeueReason.WAITING, again_at, words=clean(_words(problem)), machine_fault=True)


def _dead(reason: str) -> Settlement:
    return Settlement(JobOutcome.DEAD, JobResult(DEAD_SUMMARY, error=clean(reason)[:_ERROR_CHARACTERS]))


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"


_log = logging.getLogger(__name__)
_PERSIST_PAUSE_SECONDS = 0.25


class Slot:
    """Runs jobs of one key at a time. Every write carries the claim's fence."""

    def __init__(
        self,
        deps: WorkerDeps,
        claim_set: ClaimSet,
        renewer: LeaseRenewer,
        stopping: StopEvent,
        needs_slot: Callable[[], bool] = lambda: False,
    ) -> None:
        """`needs_slot`: the worker's loop needs a slot for a key that only the loop can take over."""
        self._deps, self._claim_set, self._renewer, self._stopping = deps, claim_set, renewer, stopping
        self._needs_slot = needs_slot

    def begin(self, started: StartedJob, yielded: Claim | None = None) -> JobCancelToken:
        """Mark the slot busy with this job, in place of the claim `yielded`; at once, so that no slot is used twice."""
        clock, claim = self._deps.clock, started.claim
        now = clock.monotonic()
        deadline = now + self._deps.settings.job_limit
        token = JobCancelToken(started, clock, deadline, lambda: self._renewer.confirmed_until(claim.key, claim.fence))
        self._claim_set.mark_busy(token, now, yielded)
        self._deps.emit(EventKind.JOB_STARTED, job=started.job, attempt=started.job.attempts, fence=claim.fence)
        return token

    def serve(self, token: JobCancelToken) -> None:
        """Run this job and the jobs that the pool hands over after it."""
        following: JobCancelToken | None = token
        while following is not None:
            following = self.run_one(following)

    def run_one(self, token: JobCancelToken) -> JobCancelToken | None:
        """Run this job to its end; returns the token of the next job, None if there is none."""
        started = token.started
        try:
            ending, finished, asked_at = self._end(started, self._run(token))
        except ClaimLost as lost:
            self._abandon_lost(started, lost)
            return None
        except Exception as problem:
            # The job starts again, on any worker; the start counts unless the claim's release gives it back.
            self._log_unexpected(started.job, problem)
            _log.warning("%s: could not save the end of %s: %s", started.claim.key, started.job.job_id, problem)
            self._claim_set.abandon(started.claim)
            return None
        self._emit_outcome(started, ending)
        if pending := finished.pending_callback:
            self._try(pending, "its callback is pending", lambda: deliver_callback(pending, self._deps.pool))
        return self._continue(started.claim, finished, asked_at, last=_waits(ending) or self._needs_slot())

    def _run(self, token: JobCancelToken) -> JobEnd:
        started = token.started
        if refusal := refusal_to_start(started.job):
            return self._or_done(token, refusal)
        try:
            token.check()
            return self._deps.work.perform(started, token)
        except ClaimLost:
            raise
        except Exception as problem:
            reason = token.reason or problem
            return self._or_done(token, self._ending(token, reason), failed=problem is not reason)

    def _ending(self, token: JobCancelToken, problem: Exception) -> JobEnd:
        """The ending for the cancel reason if there is one, else for the error. Saves interrupted work."""
        if isinstance(problem, ClaimLost):
            raise problem
        if isinstance(problem, Interrupted):
            self._save_work(token)
        return self._ending_of(problem, token.started.job)

    def _save_work(self, token: JobCancelToken) -> None:
        """Save unfinished work; after an error the job repeats it when it resumes."""
        job = token.started.job
        try:
            self._deps.work.save(token.started, SavingToken(token))
        except ClaimLost:
            raise
        except Exception as problem:
            self._log_unexpected(job, problem)
            _log.warning("%s: unfinished work of %s is not saved: %s", job.key, job.job_id, problem)

    def _ending_of(self, problem: Exception, job: Job) -> JobEnd:
        deps = self._deps
        self._log_unexpected(job, problem)
        waits = deps.machine_faults.calls_again(job.job_id, problem)
        return outcome_of(problem, job, deps.clock.now(), deps.settings.retry_base, deps.rng, machine_fault=waits)

    def _log_unexpected(self, job: Job, problem: Exception) -> None:
        if not isinstance(problem, WebOrdinaryError):
            _log.error("job %s failed with an unexpected error", job.job_id, exc_info=problem)

    def _or_done(self, token: JobCancelToken, ending: JobEnd, *, failed: bool = False) -> JobEnd:
        """The settlement if the change is on main already, else `ending`. Fences out earlier attempts first.

        Before every reply that nothing changed, and for a requeued job that also `failed` while it was ending.
        """
        job, deps = token.started.job, self._deps
        if (isinstance(ending, Requeue) and not failed) or not may_check_main(job):
            return ending
        stopped = isinstance(ending, Settlement) and ending.outcome is JobOutcome.CANCELLED
        started = replace(token.started, job=job._replace(cancel_requested=job.cancel_requested or stopped))
        try:
            return deps.work.find_done(started, SavingToken(token)) or ending
        except ClaimLost:
            raise
        except Exception as problem:
            return self._ending_of(problem, job)

    def _end(self, started: StartedJob, ending: JobEnd) -> tuple[JobEnd, FinishResult, float]:
        """Store this ending; if the store cannot hold it, store that failure."""
        try:
            return ending, *self._save_ending(started, ending)
        except (ClaimLost, Transient):
            raise
        except Exception as problem:
            failed = self._ending_of(problem, started.job)
            return failed, *self._save_ending(started, failed)

    def _save_ending(self, started: StartedJob, ending: JobEnd) -> tuple[FinishResult, float]:
        """Store the ending; retry while the claim is confirmed, so that a full disk loses no result.

        Also returns when the call began: the lease of a claim in the result counts from then.
        """
        deps, claim = self._deps, started.claim
        while True:
            more = not (_waits(ending) or self._needs_slot() or self._stopping.wait(0))
            asked_at = deps.clock.monotonic()
            try:
                finished = deps.pool.claims.end_and_take_next(started, ending, deps.clock.now(), more=more)
                return finished, asked_at
            except Exception as problem:
                self._renewer.expect_unknown_claims()  # the key that came with the answer, if only the answer is lost
                if not isinstance(problem, Transient):
                    raise
                expired = deps.clock.monotonic() > self._renewer.confirmed_until(claim.key, claim.fence)
                if expired or self._stopping.wait(_PERSIST_PAUSE_SECONDS):
                    raise

    def _emit_outcome(self, started: StartedJob, ending: JobEnd) -> None:
        if isinstance(ending, Settlement):
            self._deps.emit(
                EventKind.JOB_SETTLED,
                job=started.job,
                outcome=str(ending.outcome),
                error=(ending.result.error or "")[:500],
                latency_ms=self._deps.ms_since_queued(started.job),
            )
        elif ending.why is RequeueReason.HELD:
            if ending.held is not started.job.held:  # else it was deferred before, for the same reason
                self._deps.emit(
                    EventKind.JOB_HELD, job=started.job, by=str(ending.held), looks_again=str(ending.not_before)
                )
        elif ending.why is RequeueReason.INTERRUPTED:
            self._deps.emit(EventKind.JOB_INTERRUPTED, job=started.job, times=started.job.interruptions + 1)
        elif ending.why is RequeueReason.WAITING:
            words, fault = ending.words[:500], ending.machine_fault
            self._deps.emit(EventKind.JOB_WAITS, job=started.job, reason=words, machine_fault=fault)
        elif ending.why is RequeueReason.RETRY:
            self._deps.emit(EventKind.JOB_REQUEUED, job=started.job, why=str(ending.why), reason=ending.words[:500])
        else:
            self._deps.emit(EventKind.JOB_REQUEUED, job=started.job, why=str(ending.why))

    def _try(self, job: Job, otherwise: str, do: Callable[[], None]) -> None:
        """Do now what the reconciler does otherwise."""
        try:
            do()
        except Exception as problem:
            self._log_unexpected(job, problem)
            _log.warning("job %s: %s: %s", job.job_id, otherwise, problem)

    def _continue(self, claim: Claim, finished: FinishResult, asked_at: float, *, last: bool) -> JobCancelToken | None:
        if finished.kept is None:
            following = self._switch_keys(claim, finished.started, asked_at)
            if following and not finished.empty:  # an idle worker that looked a moment ago saw this key still held
                otherwise = "idle workers do not hear of the key that was left"
                self._try(following.started.job, otherwise, self._deps.pool.tickets.notify_unclaimed)
            return following
        if finished.started is None:
            self._claim_set.mark_idle(claim, self._deps.clock.monotonic(), look=not finished.empty, last=last)
            return None
        return self.begin(finished.started)

    def _switch_keys(self, yielded: Claim, following: StartedJob | None, asked_at: float) -> JobCancelToken | None:
        self._deps.emit(EventKind.CLAIM_YIELDED, key=yielded.key, fence=yielded.fence)
        if following is None:
            self._claim_set.remove(yielded)
            return None
        taken, waited_ms = following.claim, self._deps.ms_since_queued(following.job)
        self._renewer.confirm(taken.key, taken.fence, asked_at)
        self._deps.emit(EventKind.CLAIM_TAKEN, job=following.job, fence=taken.fence, waited_ms=waited_ms)
        token = self.begin(following, yielded)
        self._deps.wakeups.keys_changed()
        return token

    def _abandon_lost(self, started: StartedJob, lost: ClaimLost) -> None:
        _log.warning("%s", lost)
        self._claim_set.abandon(started.claim)  # if only the confirmation expired, the store still has the claim
        self._deps.emit(EventKind.CLAIM_LOST, job=started.job, fence=started.claim.fence)


def _waits(ending: JobEnd) -> bool:
    """Whether the job waits, for the project lease of another job or for the machine.

    The slot then returns to the main loop, so that the lease holder can be scheduled (avoids a deadlock).
    """
    return isinstance(ending, Requeue) and ending.why is RequeueReason.WAITING
