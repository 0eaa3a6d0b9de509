"""Whatever a job's work or the pool raises, the slot goes on, and no lease is renewed for a job that nobody runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.fakes.any_port import AnyPort
from tests.harness.pool_records import PoolRecords
from tests.unit.worker.worker_ports import DONE, WORKER, WorkerPorts
from webordinary.model.claims import (
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    CancelToken,
    Claim,
    ClaimRequest,
    ClaimStatus,
    FinishResult,
    StartedJob,
)
from webordinary.model.errors import MACHINE_FAULT_SECONDS, Interrupted, JobTimedOut, MachineFault, Permanent
from webordinary.model.jobs import JobEnd, JobOutcome, NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.simulation import MIDNIGHT, NeverStops, VirtualClock
from webordinary.pool.ports import Claims
from webordinary.worker.claims import LeaseRenewer
from webordinary.worker.ports import WorkerDeps
from webordinary.worker.slot import Slot
from webordinary.worker.worker import Worker

SCOTT, ANN = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")
SURPRISE = RuntimeError("nobody foresaw this")


@dataclass
class Troubled(WorkerPorts):
    """Work that raises what it is told to."""

    performing: list[Exception] = field(default_factory=list)
    saving: Exception | None = None
    finding: Exception | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        if self.performing:
            raise self.performing.pop()
        return super().perform(started, token)

    def save(self, started: StartedJob, token: CancelToken) -> None:
        if self.saving:
            raise self.saving

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None:
        if self.finding:
            raise self.finding
        return None


@dataclass
class TroubledClaims(AnyPort):
    """Claims that raise a surprise: before they do something, or after."""

    inside: Claims
    refuses: Callable[[JobEnd], bool] = lambda ending: False
    tried: list[JobEnd] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.inside, name)

    def end_and_take_next(self, started: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        self.tried.append(ending)
        if self.refuses(ending):
            raise SURPRISE
        return self.inside.end_and_take_next(started, ending, now, more=more)

    def start_next(self, claim: Claim, now: datetime) -> StartedJob | None:
        self.inside.start_next(claim, now)
        raise SURPRISE


def _why_given_up(deps: WorkerPorts, worker_deps: WorkerDeps, state: PoolRecords) -> str:
    """Serve the job until all its attempts are used up; no slot may be left behind by any of them."""
    for _ in range(MAX_ATTEMPTS):
        _serve(deps, worker_deps)
        assert deps.claim_set.running() == []
        _wait_for_the_next_try(state)
    job = state.jobs["a"]
    assert job.outcome is JobOutcome.DEAD
    return (job.result and job.result.error) or ""


def test_work_that_cannot_be_saved_for_an_unforeseen_reason_is_done_again_later() -> None:
    deps, state = Troubled(saving=OSError(28, "No space left")), _queued()
    deps.performing = [Interrupted("a mail came in")]
    _serve(deps, deps.worker_deps(state))
    job = state.jobs["a"]
    assert (job.outcome, job.interruptions, job.attempts) == (JobOutcome.SUCCEEDED, 1, 1)
    assert deps.claim_set.running() == []


class StartedLater(VirtualClock):
    """Of a worker that starts eight days after the job was recorded."""

    passed = 0.0

    def now(self) -> datetime:
        return MIDNIGHT + timedelta(days=8, seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed


@pytest.mark.parametrize("problem", [OSError(28, "No space left"), Permanent("the jail's trial was killed")], ids=repr)
def test_a_fault_of_the_machine_is_waited_out_for_a_day_also_after_eight_days_of_downtime(problem: Exception) -> None:
    if isinstance(problem, Permanent):
        problem.__cause__ = MachineFault("ended with -9")
    deps, state = Troubled(performing=[problem] * 10), _queued()
    clock = StartedLater()
    worker_deps = replace(deps.worker_deps(state), clock=clock)
    for clock.passed in (0.0, 60.0, 3600.0, 40_000.0, MACHINE_FAULT_SECONDS - 1):
        _serve(deps, worker_deps)
        _wait_for_the_next_try(state)
        assert (state.jobs["a"].open, state.jobs["a"].attempts) == (True, 0)
    clock.passed = MACHINE_FAULT_SECONDS
    for _ in range(MAX_ATTEMPTS):
        if state.jobs["a"].open:
            _serve(deps, worker_deps)
            _wait_for_the_next_try(state)
    assert state.jobs["a"].outcome is JobOutcome.DEAD


def test_a_look_for_what_was_published_that_fails_unforeseen_is_a_failed_attempt() -> None:
    deps, state = Troubled(performing=[JobTimedOut("too long")] * MAX_ATTEMPTS, finding=SURPRISE), _queued()
    worker_deps = deps.worker_deps(state)
    assert "RuntimeError: nobody foresaw this" in _why_given_up(deps, worker_deps, state)


def test_an_end_that_the_store_cannot_hold_is_a_failed_attempt_with_its_reason() -> None:
    deps, state = WorkerPorts(), _queued()
    worker_deps, claims = _with_claims(deps, state, lambda ending: ending is DONE)
    assert "nobody foresaw this" in _why_given_up(deps, worker_deps, state)
    assert len(claims.tried) == 2 * MAX_ATTEMPTS


def test_a_key_whose_job_cannot_even_be_given_up_is_let_go_of_so_that_its_lease_runs_out() -> None:
    deps, state = WorkerPorts(), _queued()
    worker_deps, _ = _with_claims(deps, state, lambda ending: True)
    _serve(deps, worker_deps)
    assert deps.claim_set.claims() == []
    assert state.jobs["a"].attempts == 1


def test_the_words_of_a_failure_are_text_that_every_store_holds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # a log holds such words; a report of tests cannot
    deps, state = Troubled(performing=[ValueError("caf\udce9.html")] * MAX_ATTEMPTS), _queued()
    worker_deps = deps.worker_deps(state)
    for _ in range(MAX_ATTEMPTS):
        _serve(deps, worker_deps)
        _wait_for_the_next_try(state)
    result = state.jobs["a"].result
    assert result
    assert "ValueError: caf?.html" in (result.error or "")


def test_a_callback_that_fails_unforeseen_is_owed_and_the_slot_goes_on() -> None:
    class Deaf(WorkerPorts):
        def succeed(self, token: str, output: dict[str, str]) -> bool:
            raise SURPRISE

    deps, state = Deaf(), _queued()
    worker_deps = deps.worker_deps(state)
    worker_deps.pool.jobs.bind_token("a", "token")
    _serve(deps, worker_deps)
    assert state.jobs["a"].outcome is JobOutcome.SUCCEEDED
    assert deps.claim_set.running() == []
    assert [job.job_id for job in worker_deps.pool.pending_callbacks.pending(10)] == ["a"]


def test_a_renewal_that_fails_unforeseen_does_not_end_the_lease_keeper() -> None:
    class Unrenewed(TroubledClaims):
        def renew(self, claims: object, now: datetime) -> set[ProjectUser]:
            raise SURPRISE

    deps, state = WorkerPorts(), _queued()
    worker_deps = deps.worker_deps(state)
    worker_deps = replace(worker_deps, pool=replace(worker_deps.pool, claims=Unrenewed(worker_deps.pool.claims)))
    started = worker_deps.pool.claims.claim_and_start(SCOTT, WORKER, MIDNIGHT)
    assert isinstance(started, StartedJob)
    renewer = LeaseRenewer(worker_deps, deps.claim_set)
    renewer.confirm(SCOTT, started.claim.fence, worker_deps.clock.monotonic())
    deps.claim_set.mark_idle(started.claim, 0.0)
    renewer.renew_once()
    assert "ClaimRenewalFailed" in deps.taken


def test_a_job_that_may_have_been_started_when_the_answer_was_lost_is_let_go_of() -> None:
    deps, state = WorkerPorts(), _queued()
    worker_deps, _ = _with_claims(deps, state, lambda ending: False)
    worker = Worker(worker_deps, carry=lambda slot, token: slot.serve(token))
    worker.react([])
    worker_deps.pool.jobs.record(NewJob("b", SCOTT, "thread", "mail-b", Command.EDIT), MIDNIGHT, ready=True)
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        worker.react([f"ticket {SCOTT}"])
    worker.react([])
    assert state.jobs["b"].outcome is JobOutcome.SUCCEEDED
    assert (state.jobs["b"].attempts, state.jobs["b"].outages) == (1, 1), "the start that nobody heard of is given back"


@dataclass
class Unreleasable(TroubledClaims):
    """A store that takes no release, as long as it is told to."""

    refusing: bool = True

    def begin_release(self, claim: Claim) -> bool:
        if self.refusing:
            raise SURPRISE
        return self.inside.begin_release(claim)

    def start_next(self, claim: Claim, now: datetime) -> StartedJob | None:
        return super().start_next(claim, now) if claim.key == SCOTT else self.inside.start_next(claim, now)


def test_a_key_that_cannot_be_released_keeps_no_other_from_being_served() -> None:
    deps, state = WorkerPorts(), _queued()
    worker, _, claims = _with_an_abandoned_key(deps, state)
    worker.react([])
    assert deps.served == [str(SCOTT), str(ANN)]
    assert worker.seconds_to_wait() <= 1.0, "it is tried again soon"
    claims.refusing = False
    worker.react([])
    assert state.jobs["b"].outcome is JobOutcome.SUCCEEDED


def test_a_release_that_fails_for_longer_than_a_lease_is_tried_until_it_is_done() -> None:
    deps, state = WorkerPorts(), _queued()
    worker, clock, claims = _with_an_abandoned_key(deps, state)
    worker.react([])
    clock.after(LEASE_SECONDS, lambda: None)
    clock.run(LEASE_SECONDS, lambda: False)
    worker.react([])
    held = claims.look(SCOTT)
    assert held
    assert held.status is ClaimStatus.HELD
    claims.refusing = False
    worker.react([])
    assert state.jobs["b"].outcome is JobOutcome.SUCCEEDED


def test_an_idle_key_whose_release_fails_is_released_later() -> None:
    deps, state = WorkerPorts(), _queued()
    worker_deps = deps.worker_deps(state)
    claims = Unreleasable(worker_deps.pool.claims)
    settings = replace(worker_deps.settings, idle_release=0.0)
    worker_deps = replace(worker_deps, settings=settings, pool=replace(worker_deps.pool, claims=claims))
    worker = Worker(worker_deps, carry=lambda slot, token: slot.serve(token))
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        worker.react([])
    claims.refusing = False
    worker.react([])
    assert claims.held_by(WORKER) == []


class LostConfirmation(TroubledClaims):
    """The first claim is taken, and its answer is lost; look-ups are counted."""

    looked_up = 0
    lost = False

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> StartedJob | Claim | None:
        taken = self.inside.claim_and_start(key, worker, now, over)
        if not self.lost:
            self.lost = True
            raise SURPRISE
        return taken

    def held_by(self, worker: str) -> Sequence[Claim]:
        self.looked_up += 1
        return self.inside.held_by(worker)


def test_a_claim_whose_confirmation_was_lost_is_released_after_two_looks() -> None:
    deps, state = WorkerPorts(), _queued()
    worker_deps = deps.worker_deps(state)
    claims = LostConfirmation(worker_deps.pool.claims)
    worker_deps = replace(worker_deps, pool=replace(worker_deps.pool, claims=claims))
    worker = Worker(worker_deps, carry=lambda slot, token: slot.serve(token))
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        worker.react([])
    worker._renewer.renew_once()
    worker.react([])
    assert state.jobs["a"].open, "it may have been claimed a moment ago"
    worker._renewer.renew_once()
    worker.react([])
    assert state.jobs["a"].outcome is JobOutcome.SUCCEEDED


def test_a_worker_whose_calls_succeed_does_not_look_its_claims_up() -> None:
    deps, state = WorkerPorts(), _queued()
    worker_deps = deps.worker_deps(state)
    claims = LostConfirmation(worker_deps.pool.claims)
    claims.lost = True
    worker = Worker(
        replace(worker_deps, pool=replace(worker_deps.pool, claims=claims)),
        carry=lambda slot, token: slot.serve(token),
    )
    worker.react([])
    worker._renewer.renew_once()
    assert claims.looked_up == 0


def test_a_worker_that_stops_releases_what_nobody_serves_any_more() -> None:
    deps, state = WorkerPorts(), _queued()
    worker, _, claims = _with_an_abandoned_key(deps, state)
    claims.refusing = False
    worker._shut_down()
    claim = claims.inside.look(SCOTT)
    assert claim is None or claim.status is not ClaimStatus.HELD


def test_a_job_that_no_thread_can_be_had_for_is_let_go_of() -> None:
    deps, state = WorkerPorts(), _queued()
    worker_deps = deps.worker_deps(state)

    def no_thread(slot: Slot, token: object) -> None:
        raise RuntimeError("can't start new thread")

    worker = Worker(worker_deps, carry=no_thread)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        worker.react([])
    assert worker.seconds_to_wait() >= 0
    assert worker._claim_set.claims() == []


def _queued() -> PoolRecords:
    state = PoolRecords()
    pool = WorkerPorts().worker_deps(state).pool
    pool.jobs.record(NewJob("a", SCOTT, "thread", "mail", Command.EDIT), MIDNIGHT, ready=True)
    pool.hints.send(ClaimRequest(SCOTT, MIDNIGHT), MIDNIGHT)
    return state


def _with_claims(
    deps: WorkerPorts, state: PoolRecords, refuses: Callable[[JobEnd], bool]
) -> tuple[WorkerDeps, TroubledClaims]:
    worker_deps = deps.worker_deps(state)
    claims = TroubledClaims(worker_deps.pool.claims, refuses)
    return replace(worker_deps, pool=replace(worker_deps.pool, claims=claims)), claims


def _with_an_abandoned_key(deps: WorkerPorts, state: PoolRecords) -> tuple[Worker, VirtualClock, Unreleasable]:
    """A worker that let go of a key, while another key waits."""
    worker_deps = deps.worker_deps(state)
    claims = Unreleasable(worker_deps.pool.claims)
    worker_deps = replace(worker_deps, pool=replace(worker_deps.pool, claims=claims))
    worker = Worker(worker_deps, carry=lambda slot, token: slot.serve(token))
    worker.react([])
    worker_deps.pool.jobs.record(NewJob("b", SCOTT, "thread", "mail-b", Command.EDIT), MIDNIGHT, ready=True)
    with pytest.raises(RuntimeError, match="nobody foresaw this"):
        worker.react([f"ticket {SCOTT}"])
    worker_deps.pool.jobs.record(NewJob("c", ANN, "thread-c", "mail-c", Command.EDIT), MIDNIGHT, ready=True)
    worker_deps.pool.hints.send(ClaimRequest(ANN, MIDNIGHT), MIDNIGHT)
    assert isinstance(worker_deps.clock, VirtualClock)
    return worker, worker_deps.clock, claims


def _serve(deps: WorkerPorts, worker_deps: WorkerDeps) -> None:
    claim = worker_deps.pool.claims.look(SCOTT)
    started = worker_deps.pool.claims.claim_and_start(SCOTT, WORKER, MIDNIGHT, claim)
    assert isinstance(started, StartedJob)
    renewer = LeaseRenewer(worker_deps, deps.claim_set)
    renewer.confirm(SCOTT, started.claim.fence, worker_deps.clock.monotonic())
    slot = Slot(worker_deps, deps.claim_set, renewer, NeverStops())
    slot.serve(slot.begin(started))


def _wait_for_the_next_try(state: PoolRecords) -> None:
    job = state.jobs["a"]
    if job.open:
        state.put(job._replace(not_before=None))
