"""Giving a key up: whoever comes next is told of the job that can be started first."""

from __future__ import annotations

from datetime import timedelta

from tests.harness.pool_records import PoolRecords
from tests.unit.worker.worker_ports import WORKER, WorkerPorts
from webordinary.adapters.sqlite.jobs import SqliteClaimRequests
from webordinary.model.claims import ClaimRequest, StartedJob
from webordinary.model.jobs import NewJob
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.operations.capacity.simulation import MIDNIGHT
from webordinary.worker.claims import release

SCOTT = ProjectUser("amelia", "scott")
HOUR = timedelta(hours=1)


class RecordingClaimRequests(SqliteClaimRequests):
    """Remembers what was said."""

    def __init__(self, state: PoolRecords) -> None:
        super().__init__(state.db)
        self.requests: list[ClaimRequest] = []

    def send(self, request: ClaimRequest, now: object, *, again: bool = False) -> bool:
        self.requests.append(request)
        return True


def test_a_job_that_is_ready_is_told_of_before_one_that_must_wait() -> None:
    assert _told_of(held=HOUR, behind=timedelta(0)) == ("mail-behind", None)


def test_of_jobs_that_must_wait_the_one_that_is_ready_first_is_told_of() -> None:
    assert _told_of(held=2 * HOUR, behind=HOUR) == ("mail-behind", MIDNIGHT + HOUR)
    assert _told_of(held=HOUR, behind=2 * HOUR) == ("mail-held", MIDNIGHT + HOUR)


def _told_of(held: timedelta, behind: timedelta) -> tuple[str, object]:
    state = PoolRecords()
    hints = RecordingClaimRequests(state)
    pool = WorkerPorts().worker_deps(state, hints=hints).pool
    for name in ("held", "behind"):
        pool.jobs.record(NewJob(name, SCOTT, f"thread-{name}", f"mail-{name}", Command.EDIT), MIDNIGHT, ready=True)
    started = pool.claims.claim_and_start(SCOTT, WORKER, MIDNIGHT)
    assert isinstance(started, StartedJob)
    waiting = {"held": started.job, "behind": state.jobs["behind"]}
    for name, pause in {"held": held, "behind": behind}.items():
        queued = waiting[name]._replace(state=state.jobs["behind"].state, attempts=0)
        state.put(queued._replace(not_before=MIDNIGHT + pause if pause else None))
    assert release(started.claim, pool, MIDNIGHT)
    [request] = hints.requests
    return request.email_id, request.ready_at
