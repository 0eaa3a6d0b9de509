"""One slot: runs a job from start to settle, then the next the pool gives it, until there is none."""

from __future__ import annotations

import logging

from webordinary.model.claims import Claim, Started, Turn
from webordinary.model.errors import ClaimLost, Interrupted, Transient, WebOrdinaryError
from webordinary.model.jobs import Ending, Job, Requeue, Settlement, Why
from webordinary.pool.effects import pay
from webordinary.worker.endings import ending_of, may_look, refusal_to_start
from webordinary.worker.hold import RunningHold, SavingHold
from webordinary.worker.holdings import Holdings
from webordinary.worker.keeper import LeaseKeeper
from webordinary.worker.ports import Bell
from webordinary.worker.surroundings import Surroundings

_log = logging.getLogger(__name__)
_PERSIST_PAUSE_SECONDS = 0.25


class Slot:
    """Serves one key at a time. All its writes carry the claim's fence."""

    def __init__(self, around: Surroundings, holdings: Holdings, keeper: LeaseKeeper, stopping: Bell) -> None:
        self._around, self._holdings, self._keeper, self._stopping = around, holdings, keeper, stopping

    def begin(self, started: Started, yielded: Claim | None = None) -> RunningHold:
        """Take the slot for this job, from `yielded` if that had it; at once, so that no slot is given twice."""
        clock, claim = self._around.clock, started.claim
        now = clock.monotonic()
        deadline = now + self._around.settings.job_limit
        hold = RunningHold(started, clock, deadline, lambda: self._keeper.trusted_until(claim.key, claim.fence))
        self._holdings.begin(hold, now, yielded)
        self._around.tell("JobStarted", job=started.job, attempt=started.job.attempts, fence=claim.fence)
        return hold

    def serve(self, hold: RunningHold) -> None:
        """Run this job and all that follow from it."""
        following: RunningHold | None = hold
        while following is not None:
            following = self.run_one(following)

    def run_one(self, hold: RunningHold) -> RunningHold | None:
        """Run this job to its end; the one that the pool gave for it has the slot then."""
        started = hold.started
        try:
            ending, turn, asked_at = self._end(started, self._run(hold))
        except ClaimLost as lost:
            self._stand_down(started, lost)
            return None
        except Exception as problem:
            # The job starts again, here or elsewhere, and this start counts as an attempt.
            self._log_unforeseen(started.job, problem)
            _log.warning("%s: could not save the end of %s: %s", started.claim.key, started.job.job_id, problem)
            self._holdings.abandon(started.claim)
            return None
        self._tell(started, ending)
        self._call_back(turn.owed)
        return self._go_on(started.claim, turn, asked_at, last=_waits(ending))

    def _run(self, hold: RunningHold) -> Ending:
        started = hold.started
        if refusal := refusal_to_start(started.job):
            return self._unless_done(hold, refusal)
        try:
            hold.check()
            return self._around.work.perform(started, hold)
        except ClaimLost:
            raise
        except Exception as problem:
            reason = hold.reason or problem
            return self._unless_done(hold, self._ending(hold, reason), failed=problem is not reason)

    def _ending(self, hold: RunningHold, problem: Exception) -> Ending:
        """Decide by why the job had to end, if it had to; else by what went wrong."""
        if isinstance(problem, ClaimLost):
            raise problem
        if isinstance(problem, Interrupted):
            self._save_work(hold)
        return self._ending_of(problem, hold.started.job)

    def _save_work(self, hold: RunningHold) -> None:
        """What cannot be saved is done again when the job goes on."""
        job = hold.started.job
        try:
            self._around.work.save(hold.started, SavingHold(hold))
        except ClaimLost:
            raise
        except Exception as problem:
            self._log_unforeseen(job, problem)
            _log.warning("%s: unfinished work of %s is not saved: %s", job.key, job.job_id, problem)

    def _ending_of(self, problem: Exception, job: Job) -> Ending:
        around = self._around
        self._log_unforeseen(job, problem)
        return ending_of(problem, job, around.clock.now(), around.settings.retry_base, around.dice)

    def _log_unforeseen(self, job: Job, problem: Exception) -> None:
        if not isinstance(problem, WebOrdinaryError):
            _log.error("job %s failed in a way nobody foresaw", job.job_id, exc_info=problem)

    def _unless_done(self, hold: RunningHold, ending: Ending, *, failed: bool = False) -> Ending:
        """Nobody is told that nothing was published before somebody looked, and shut out earlier attempts.

        A start that is given back says so, too: one that `failed` while it was told to end is looked at.
        """
        job, around = hold.started.job, self._around
        if (isinstance(ending, Requeue) and not failed) or not may_look(job):
            return ending
        try:
            return around.work.found(hold.started, SavingHold(hold)) or ending
        except ClaimLost:
            raise
        except Exception as problem:
            return self._ending_of(problem, job)

    def _end(self, started: Started, ending: Ending) -> tuple[Ending, Turn, float]:
        """Save this end, or, of one that the store cannot hold, that the job failed so."""
        try:
            return ending, *self._save_ending(started, ending)
        except (ClaimLost, Transient):
            raise
        except Exception as problem:
            failed = self._ending_of(problem, started.job)
            return failed, *self._save_ending(started, failed)

    def _save_ending(self, started: Started, ending: Ending) -> tuple[Turn, float]:
        """Try again while the claim is ours: a full disk must not lose what was done.

        Also says when it asked: a lease that comes with the turn is not younger than that.
        """
        around, claim = self._around, started.claim
        while True:
            more, asked_at = not _waits(ending) and not self._stopping.wait(0), around.clock.monotonic()
            try:
                turn = around.pool.claims.end_and_take_next(started, ending, around.clock.now(), more=more)
                return turn, asked_at
            except Transient:
                expired = around.clock.monotonic() > self._keeper.trusted_until(claim.key, claim.fence)
                if expired or self._stopping.wait(_PERSIST_PAUSE_SECONDS):
                    raise

    def _tell(self, started: Started, ending: Ending) -> None:
        if isinstance(ending, Settlement):
            self._around.tell(
                "JobSettled",
                job=started.job,
                outcome=str(ending.outcome),
                error=(ending.result.error or "")[:500],
                latency_ms=self._around.ms_since_queued(started.job),
            )
        elif ending.why is Why.HELD:
            if ending.held is not started.job.held:  # else it only looked again
                self._around.tell("JobHeld", job=started.job, by=str(ending.held), looks_again=str(ending.not_before))
        elif ending.why is Why.INTERRUPTED:
            self._around.tell("JobInterrupted", job=started.job, times=started.job.interruptions + 1)
        elif ending.why is Why.WAITING:
            self._around.tell("JobWaits", job=started.job, reason=ending.words[:500])
        elif ending.why is Why.RETRY:
            self._around.tell("JobRequeued", job=started.job, why=str(ending.why), reason=ending.words[:500])
        else:
            self._around.tell("JobRequeued", job=started.job, why=str(ending.why))

    def _call_back(self, owed: Job | None) -> None:
        """Tell the workflow now; if that fails, the reconciler does it."""
        if owed is None:
            return
        try:
            pay(owed, self._around.pool)
        except Exception as problem:
            self._log_unforeseen(owed, problem)
            _log.warning("job %s: its callback is owed: %s", owed.job_id, problem)

    def _go_on(self, claim: Claim, turn: Turn, asked_at: float, *, last: bool) -> RunningHold | None:
        if turn.kept is None:
            return self._change_keys(claim, turn.started, asked_at)
        if turn.started is None:
            self._holdings.rest(claim, self._around.clock.monotonic(), look=not turn.empty, last=last)
            return None
        return self.begin(turn.started)

    def _change_keys(self, yielded: Claim, following: Started | None, asked_at: float) -> RunningHold | None:
        self._around.tell("ClaimYielded", key=yielded.key, fence=yielded.fence)
        if following is None:
            self._holdings.drop(yielded)
            return None
        taken, waited_ms = following.claim, self._around.ms_since_queued(following.job)
        self._keeper.trust(taken.key, taken.fence, asked_at)
        self._around.tell("ClaimTaken", job=following.job, fence=taken.fence, waited_ms=waited_ms)
        hold = self.begin(following, yielded)
        self._around.wakeups.keys_changed()
        return hold

    def _stand_down(self, started: Started, lost: ClaimLost) -> None:
        _log.warning("%s", lost)
        self._holdings.drop(started.claim)
        self._around.tell("ClaimLost", job=started.job, fence=started.claim.fence)


def _waits(ending: Ending) -> bool:
    """It waits for somebody else, who may be waiting for this slot: nobody but the loop gives that away then."""
    return isinstance(ending, Requeue) and ending.why is Why.WAITING
