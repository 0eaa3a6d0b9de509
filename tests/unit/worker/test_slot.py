"""A slot serves one key after another, and is taken all the time."""

from __future__ import annotations

from datetime import timedelta

from tests.harness.pool_records import PoolRecords
from tests.unit.worker.worker_ports import DONE, WORKER, WorkerPorts
from webordinary.model.claims import CancelToken, ClaimRequest, StartedJob
from webordinary.model.errors import Cancelled, MustWait
from webordinary.model.jobs import NewJob, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.simulation import MIDNIGHT, NeverStops, VirtualClock
from webordinary.worker.claims import JobCancelToken, LeaseRenewer
from webordinary.worker.slot import Slot
from webordinary.worker.worker import Worker

SCOTT, ANN = ProjectUser("amelia", "scott"), ProjectUser("bakery", "ann")


def test_a_slot_that_changes_keys_is_taken_all_the_while() -> None:
    deps, state, earlier = WorkerPorts(), PoolRecords(), MIDNIGHT - timedelta(seconds=10)
    worker_deps = deps.worker_deps(state)
    pool = worker_deps.pool
    for key in (SCOTT, ANN):
        pool.jobs.record(NewJob(f"job-{key}", key, "thread", f"mail-{key}", Command.EDIT), earlier, ready=True)
    pool.hints.send(ClaimRequest(ANN, earlier), earlier)
    started = pool.claims.claim_and_start(SCOTT, WORKER, earlier)
    assert isinstance(started, StartedJob)
    renewer = LeaseRenewer(worker_deps, deps.claim_set)
    renewer.confirm(SCOTT, started.claim.fence, 0.0)
    slot = Slot(worker_deps, deps.claim_set, renewer, NeverStops())

    slot.serve(slot.begin(started))

    assert deps.served == [str(SCOTT), str(ANN)]
    assert deps.taken == {"JobStarted": 1, "JobSettled": 1, "ClaimYielded": 1, "ClaimTaken": 1, "keys changed": 1}
    assert deps.claim_set.running() == []
    assert [claim.key for claim in deps.claim_set.claims()] == [ANN]


def test_a_key_whose_last_job_ended_is_looked_at_again_only_for_news() -> None:
    deps, state = WorkerPorts(), PoolRecords()
    worker_deps = deps.worker_deps(state)
    pool = worker_deps.pool
    pool.jobs.record(NewJob("a", SCOTT, "thread", "mail", Command.EDIT), MIDNIGHT, ready=True)
    started = pool.claims.claim_and_start(SCOTT, WORKER, MIDNIGHT)
    assert isinstance(started, StartedJob)
    renewer = LeaseRenewer(worker_deps, deps.claim_set)
    renewer.confirm(SCOTT, started.claim.fence, 0.0)
    slot = Slot(worker_deps, deps.claim_set, renewer, NeverStops())

    slot.serve(slot.begin(started))
    assert deps.claim_set.idle_notified() == []
    deps.claim_set.notify([SCOTT])
    assert [holding.claim.key for holding in deps.claim_set.idle_notified()] == [SCOTT]


def test_news_of_a_busy_key_are_kept_until_it_rests() -> None:
    deps, state = WorkerPorts(), PoolRecords()
    pool = deps.worker_deps(state).pool
    pool.jobs.record(NewJob("a", SCOTT, "thread", "mail", Command.EDIT), MIDNIGHT, ready=True)
    started = pool.claims.claim_and_start(SCOTT, WORKER, MIDNIGHT)
    assert isinstance(started, StartedJob)
    deps.claim_set.mark_busy(JobCancelToken(started, VirtualClock(), 1e9, lambda: 1e9), 0.0)
    deps.claim_set.notify([SCOTT])
    assert deps.claim_set.idle_notified() == []
    deps.claim_set.mark_idle(started.claim, 0.0, look=False)
    assert [holding.claim.key for holding in deps.claim_set.idle_notified()] == [SCOTT]


def test_a_job_that_waits_for_another_gives_its_slot_to_whom_nobody_serves() -> None:
    """The lease that it waits for may be that of a key which only a free slot can take over."""
    state = PoolRecords()

    class Publishing(WorkerPorts):
        def is_dead(self, worker: str) -> bool:
            return worker == "container-dead"

        def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
            self.served.append(started.job.job_id)
            if self.served == ["a"]:
                worker_deps.pool.hints.send(ClaimRequest(ANN, MIDNIGHT), MIDNIGHT)
                raise MustWait("somebody else's change is being published", 15.0)
            return DONE

    deps = Publishing()
    worker_deps = deps.worker_deps(state)
    jobs = worker_deps.pool.jobs
    jobs.record(NewJob("ann", ANN, "thread", "mail-ann", Command.EDIT), MIDNIGHT, ready=True)
    assert isinstance(worker_deps.pool.claims.claim_and_start(ANN, "container-dead", MIDNIGHT), StartedJob)
    for name in ("a", "b"):
        jobs.record(NewJob(name, SCOTT, f"thread-{name}", f"mail-{name}", Command.EDIT), MIDNIGHT, ready=True)
    worker_deps.pool.hints.send(ClaimRequest(SCOTT, MIDNIGHT), MIDNIGHT)

    worker = Worker(worker_deps, carry=lambda slot, token: slot.serve(token))
    worker.react([])
    worker.react([])

    assert deps.served == ["a", "ann", "b"]


def test_what_a_stopped_job_has_done_is_looked_up_as_that_of_a_stopped_job() -> None:
    looked: list[bool] = []

    class Stopping(WorkerPorts):
        def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
            raise Cancelled("stopped by the customer")

        def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None:
            looked.append(started.job.cancel_requested)
            return None

    deps, state = Stopping(), PoolRecords()
    worker_deps = deps.worker_deps(state)
    worker_deps.pool.jobs.record(NewJob("a", SCOTT, "thread", "mail", Command.EDIT), MIDNIGHT, ready=True)
    started = worker_deps.pool.claims.claim_and_start(SCOTT, WORKER, MIDNIGHT)
    assert isinstance(started, StartedJob)
    renewer = LeaseRenewer(worker_deps, deps.claim_set)
    renewer.confirm(SCOTT, started.claim.fence, 0.0)
    slot = Slot(worker_deps, deps.claim_set, renewer, NeverStops())

    slot.serve(slot.begin(started))

    assert looked == [True]
