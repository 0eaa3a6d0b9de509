"""What must be true of claims, jobs and callbacks after every step, said apart from the code that makes it so.

The records are immutable and a record that stands keeps its object, so a change since the last step is seen by
identity. Each change is judged as a transition: who made it, from what, to what, and who owned the key just before.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tests.harness.pool_records import PoolRecords
from tests.simulation.process import EPOCH, Process
from tests.simulation.scheduler import Broken
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.asl.ports import TaskAnswer as Answer
from webordinary.model.claims import (
    MAX_INTERRUPTIONS,
    PREPARING_WAIT_SECONDS,
    YIELD_AFTER_SECONDS,
    Claim,
    ClaimRequest,
    ClaimStatus,
)
from webordinary.model.jobs import Job, JobState
from webordinary.model.names import ProjectUser
from webordinary.pool.transitions import ANY_FENCE, next_job

if TYPE_CHECKING:
    from tests.simulation.harness import SimulationHarness

A_MOMENT = timedelta(seconds=YIELD_AFTER_SECONDS)
MOST_TURNS = 2
"""One that was under way, and one of a key that had waited longer."""


class PoolRules:
    """Watches one world's claims and jobs."""

    def __init__(self, world: SimulationHarness) -> None:
        self._world, self._state = world, world.durable.state
        self._claims: dict[ProjectUser, Claim] = {}
        self._jobs: dict[str, Job] = {}
        self._beat_at: dict[ProjectUser, float] = {}
        self._passed_over: dict[tuple[ProjectUser, ProjectUser], int] = {}

    def check(self, by: Process) -> None:
        """Judge all that the last call changed."""
        claims, jobs = self._state.claims, self._state.jobs
        for key, claim in claims.items():
            if self._claims.get(key) is not claim:
                self._claim_changed(self._claims.get(key), claim, by)
        changed = [job for job_id, job in jobs.items() if self._jobs.get(job_id) is not job]
        for job in changed:
            self._job_changed(self._jobs.get(job.job_id), job, by)
        for key, claim in claims.items():
            old = self._claims.get(key)
            if old is None or (old.fence, old.beat) != (claim.fence, claim.beat):
                self._beat_at[key] = self._world.scheduler.now
        if changed or len(claims) != len(self._claims) or any(c is not self._claims[k] for k, c in claims.items()):
            self._claims, self._jobs = dict(claims), dict(jobs)

    # -- claims ---------------------------------------------------------------------------------------

    def _claim_changed(self, old: Claim | None, new: Claim, by: Process) -> None:
        if new.worker != by.name:
            raise Broken(f"only the worker itself writes its ownership: {by.name} wrote {new}")
        if old is None:
            return
        if new.fence < old.fence:
            raise Broken(f"{new.key}: the fence fell from {old.fence} to {new.fence}")
        if new.fence == old.fence:
            if new.worker != old.worker:
                raise Broken(f"{new.key}: {old.worker} and {new.worker} both own fence {new.fence}")
            return
        if old.status is ClaimStatus.HELD and not self._is_over(old):
            raise Broken(f"{new.key}: {by.name} took a lease of {old.worker} that still beats")

    def _is_over(self, claim: Claim) -> bool:
        owner = self._world.employed[claim.worker].process
        lease = self._world.scenario.settings.lease * 0.99  # monotonic clocks drift
        return not owner.alive or self._world.scheduler.now - self._beat_at[claim.key] >= lease

    # -- jobs -----------------------------------------------------------------------------------------

    def _job_changed(self, old: Job | None, new: Job, by: Process) -> None:
        if old is None:
            if new.state not in (JobState.PREPARING, JobState.QUEUED):
                raise Broken(f"{new.job_id} begins as {new.state}")
            return
        interrupted = new.interruptions > old.interruptions
        self._history_stays(old, new, interrupted)
        if old.state is JobState.RUNNING and (new.state is not JobState.RUNNING or interrupted):
            self._ended(old, new, by, interrupted)
        fresh_start = old.state is not JobState.RUNNING or new.fence != old.fence or interrupted
        if new.state is JobState.RUNNING and fresh_start:
            self._started(old, new, by)

    def _history_stays(self, old: Job, new: Job, interrupted: bool) -> None:
        if not old.open and (old.outcome, old.result, old.settled_at) != (new.outcome, new.result, new.settled_at):
            raise Broken(f"{new.job_id} was settled as {old.outcome} and is settled again, as {new.outcome}")
        if (old.order != new.order) != interrupted or old.thread_order != new.thread_order:
            raise Broken(f"{new.job_id} moved in its queue without an interruption")
        if new.attempts < 0:
            raise Broken(f"{new.job_id} counts {new.attempts} attempts")
        if new.interruptions > MAX_INTERRUPTIONS:
            raise Broken(f"{new.job_id} was interrupted {new.interruptions} times")

    def _ended(self, old: Job, new: Job, by: Process, interrupted: bool) -> None:
        owner = self._claims.get(new.key)
        rightful = (
            owner is not None
            and owner.status is ClaimStatus.HELD
            and (owner.worker, owner.fence) == (old.worker, old.fence)
            and by.name == old.worker
        )
        if not rightful:
            raise Broken(f"{by.name} ended {new.job_id} ({new.state}) under fence {old.fence}; the owner is {owner}")
        if interrupted and not any(_made_way_for(old, other) for other in self._of(new.key)):
            raise Broken(f"{new.job_id} was interrupted and nobody else waits")

    def _started(self, old: Job, new: Job, by: Process) -> None:
        claim = self._state.claims.get(new.key)
        if claim is None or (claim.worker, claim.fence, claim.status) != (by.name, new.fence, ClaimStatus.HELD):
            raise Broken(f"{by.name} started {new.job_id} under fence {new.fence}; the owner is {claim}")
        self._keys_take_turns(new, claim)
        others = [job for job in self._of(new.key) if job.open and job.job_id != new.job_id]
        if any(job.state is JobState.RUNNING and job.fence == new.fence for job in others):
            raise Broken(f"two jobs of {new.key} run at once under fence {new.fence}")
        for other in others:
            if _before_in_thread(other, new) and not self._overdue(other):
                raise Broken(f"{new.job_id} started before {other.job_id} of its thread ended")
            if other.order < new.order and _could_start(other, new.fence, [*others, new]):
                raise Broken(f"{new.job_id} overtook {other.job_id}")

    def _keys_take_turns(self, new: Job, claim: Claim) -> None:
        """A key that waits gets the next slot, or the one after: no other key is served again and again before it."""
        now = EPOCH + timedelta(seconds=self._world.scheduler.now)
        waiting = {hint.key for hint, sent_at in self._state.hints() if self._waits(hint, sent_at, now)}
        served = {(key, other): n for (key, other), n in self._passed_over.items() if key in waiting}
        if now - claim.claimed_at > self._clearly():
            served |= {(key, new.key): served.get((key, new.key), 0) + 1 for key in waiting - {new.key}}
        self._passed_over = served
        for (key, other), times in served.items():
            if times > MOST_TURNS and self._world.weather.last_strike is None:
                raise Broken(f"{other} was served {times} times while {key} waited for a slot")

    def _waits(self, hint: ClaimRequest, sent_at: datetime, now: datetime) -> bool:
        claim = self._state.claims.get(hint.key)
        free = claim is None or claim.status is not ClaimStatus.HELD
        long_enough = max(min(sent_at, now), hint.waiting_since) < now - self._clearly()
        return free and long_enough and next_job(self._of_open(hint.key), ANY_FENCE, now) is not None

    def _clearly(self) -> timedelta:
        """A moment that every worker sees as over: hints carry the clock of their sender, which may be ahead of it."""
        return 2 * A_MOMENT + timedelta(seconds=self._world.scenario.climate.skew)

    def _of_open(self, key: ProjectUser) -> list[Job]:
        return [job for job in self._of(key) if job.open]

    def _of(self, key: ProjectUser) -> Iterable[Job]:
        return [job for job in self._state.jobs.values() if job.key == key]

    def _overdue(self, job: Job) -> bool:
        slack = 2 * self._world.scenario.climate.skew
        waited = self._world.scheduler.now - _seconds(job.recorded_at)
        return job.state is JobState.PREPARING and waited > PREPARING_WAIT_SECONDS - slack


def _seconds(moment: datetime) -> float:
    return (moment - EPOCH).total_seconds()


def _before_in_thread(one: Job, other: Job) -> bool:
    return one.thread_id == other.thread_id and one.thread_order < other.thread_order


def _could_start(job: Job, fence: int, others: Iterable[Job]) -> bool:
    ready = job.state is JobState.QUEUED and job.not_before is None
    orphan = job.state is JobState.RUNNING and job.fence < fence
    return (ready or orphan) and not any(_before_in_thread(other, job) for other in others)


def _made_way_for(old: Job, other: Job) -> bool:
    return other.thread_id != old.thread_id and (other.open or other.state is JobState.SETTLED)


class WatchedTokens:
    """The engine's tokens: each is answered once, and only with what the job's record says."""

    def __init__(self, target: SqliteExecutions, state: PoolRecords) -> None:
        self._target, self._state = target, state
        self._answered: dict[str, Answer] = {}

    def answer_token(self, token: str, outcome: Answer) -> bool:
        """See TaskTokens."""
        accepted = self._target.answer_token(token, outcome)
        if accepted:
            if token in self._answered:
                raise Broken(f"token {token} was answered twice: {self._answered[token]}, then {outcome}")
            self._answered[token] = outcome
            self._is_true(token, outcome)
        return accepted

    def beat_token(self, token: str, now: datetime) -> bool:
        """See TaskTokens."""
        return self._target.beat_token(token, now)

    def _is_true(self, token: str, outcome: Answer) -> None:
        if outcome.error == "PREEMPTED":
            true = any(job.preempted_token == token for job in self._state.jobs.values())
        else:
            true = any(job.task_token == token and not job.open for job in self._state.jobs.values())
        if not true:
            raise Broken(f"token {token} was answered {outcome}, and no job's record says so")
