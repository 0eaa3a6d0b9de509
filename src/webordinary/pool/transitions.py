"""The rules of the pool as pure functions: a store loads its rows, calls these, and writes what they return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from webordinary.model.claims import (
    MAX_INTERRUPTIONS,
    PREPARING_WAIT_SECONDS,
    YIELD_AFTER_SECONDS,
    CancelToken,
    Claim,
    ClaimStatus,
    LeaseRecord,
    LeaseStatus,
    StartedJob,
    next_fence,
)
from webordinary.model.jobs import DeferReason, Job, JobEnd, JobState, Requeue, RequeueReason, Settlement
from webordinary.model.mail import Command
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Jobs

ANOTHER_THREAD = "a mail on another thread"
"""The usual reason to interrupt a job."""
BY_OPERATOR = "by the operator"
"""The other one."""
ANY_FENCE = 1 << 62
"""Higher than every fence: under it a job that is left running by a lost claim may start again."""
MAX_OUTAGES = 20
"""A job that takes the whole machine down with it must not do so for ever; after these, its starts count again."""
LONGEST_WAIT = timedelta(days=2)
"""No job is put off for longer. One that is was put off by a clock that was wrong, and may start."""
_PREPARING_WAIT = timedelta(seconds=PREPARING_WAIT_SECONDS)
_A_MOMENT = timedelta(seconds=YIELD_AFTER_SECONDS)


# --- which job is next


def next_job(open_jobs: Iterable[Job], fence: int, now: datetime) -> Job | None:
    """The job of the lowest order that may start under `fence`, no earlier job of its thread being open.

    A job that is still running under a lower fence was left by a worker that lost the key: it starts again.
    """
    jobs = sorted(open_jobs, key=lambda job: job.order)
    return first_to_start(jobs, jobs, fence, now)


def first_to_start(in_order: Iterable[Job], moved: Iterable[Job], fence: int, now: datetime) -> Job | None:
    """`next_job` for a store that reads a long queue row by row, and no further than needed.

    `moved` are the open jobs that were interrupted: all other jobs that block a job have a lower order.
    """
    first_of_thread: dict[str, int] = {}
    for job in moved:
        _note(job, first_of_thread, now)
    for job in in_order:
        _note(job, first_of_thread, now)
        if _startable(job, fence, now) and first_of_thread.get(job.thread_id, job.thread_order) >= job.thread_order:
            return job
    return None


def _note(job: Job, first_of_thread: dict[str, int], now: datetime) -> None:
    if not _lets_pass(job, now):
        first = first_of_thread.get(job.thread_id, job.thread_order)
        first_of_thread[job.thread_id] = min(first, job.thread_order)


def next_due_at(open_jobs: Iterable[Job]) -> datetime | None:
    """When a job that backs off, or waits for a preparing one, is worth another look."""
    due = [job.not_before for job in open_jobs if job.state is JobState.QUEUED and job.not_before]
    due += [job.recorded_at + _PREPARING_WAIT for job in open_jobs if job.state is JobState.PREPARING]
    return min(due, default=None)


def blocked_by(job: Job, of_thread: Iterable[Job]) -> bool:
    """Whether this job, or an earlier one of its thread, is held."""
    return any(one.held for one in of_thread if one.thread_order <= job.thread_order)


def interrupting_job(running: Job, open_jobs: Sequence[Job], now: datetime) -> Job | None:
    """The job that `running` must make way for: an edit of another thread that came in while it ran.

    What waited already when `running` began keeps its turn: a backlog would else be begun as a whole and only then
    finished. A clock that is wrong here makes a mail wait its turn, or be early; nothing depends on it.
    """
    if running.command is not Command.EDIT or running.interruptions >= MAX_INTERRUPTIONS:
        return None
    others = (job for job in open_jobs if job.thread_id != running.thread_id and job.command is Command.EDIT)
    fresh = (job for job in others if not job.attempts and not job.interruptions and _came_after(job, running))
    return next((job for job in fresh if _startable(job, 0, now) and not _blocked(job, open_jobs, now)), None)


def asked_by_operator(running: Job) -> str:
    """The reason of an operator's interrupt: it is for one start of the job, so that a copy of it ends no later one."""
    return f"{BY_OPERATOR}, start {running.attempts + running.interruptions}"


def _came_after(job: Job, running: Job) -> bool:
    return job.queued_at is None or running.started_at is None or job.queued_at >= running.started_at


def _startable(job: Job, fence: int, now: datetime) -> bool:
    if job.state is JobState.RUNNING:
        return job.fence < fence
    waits = job.not_before is not None and now < job.not_before <= now + LONGEST_WAIT
    return job.state is JobState.QUEUED and not waits


def _blocked(job: Job, open_jobs: Iterable[Job], now: datetime) -> bool:
    return any(
        earlier.thread_id == job.thread_id and earlier.thread_order < job.thread_order and not _lets_pass(earlier, now)
        for earlier in open_jobs
    )


def _lets_pass(job: Job, now: datetime) -> bool:
    """A mail whose photos never arrive, or that waits for its date, must not hold up its thread."""
    if job.state is JobState.PREPARING:
        return job.recorded_at <= now - _PREPARING_WAIT
    return job.state is JobState.QUEUED and job.held is DeferReason.LATER


# --- limits


def hour_of(at: datetime) -> int:
    """The clock hour that hourly limits count in, as hours since the epoch."""
    return int(at.timestamp() // 3600)


# --- what happens to a job


def enqueued(job: Job, now: datetime) -> Job:
    """The job once it is runnable; one that is further already stays as it is."""
    return job._replace(state=JobState.QUEUED, queued_at=now) if job.state is JobState.PREPARING else job


def started(job: Job, claim: Claim, now: datetime) -> Job:
    """The job as it runs under this claim."""
    return job._replace(
        state=JobState.RUNNING,
        worker=claim.worker,
        fence=claim.fence,
        attempts=job.attempts + 1,
        started_at=now,
        not_before=None,
    )


def start(job: Job, claim: Claim, now: datetime) -> StartedJob:
    """The next start of a job, under this claim."""
    return StartedJob(claim, started(job, claim, now), is_first=not may_have_published(job))


def runs_under(job: Job, claim: Claim) -> bool:
    """Whether this claim is the one to end the job."""
    return job.state is JobState.RUNNING and job.fence == claim.fence


def ended(job: Job, ending: JobEnd, now: datetime, tail: int) -> Job:
    """The job after its ending; `tail` is the order it gets if it goes to the tail."""
    return settled(job, ending, now) if isinstance(ending, Settlement) else _requeued(job, ending, now, tail)


def settled(job: Job, settlement: Settlement, now: datetime) -> Job:
    """The job as it ended for good."""
    return job._replace(state=JobState.SETTLED, outcome=settlement.outcome, result=settlement.result, settled_at=now)


def stopped(job: Job, settlement: Settlement, now: datetime) -> Job:
    """The job after a request to end it: settled, or with the request noted for the worker that looks at it next.

    Only a worker can find out what a job has published, and it does so at once, whatever the job waited for.
    """
    if not job.open:
        return job
    if may_have_published(job):
        return job._replace(cancel_requested=True, not_before=None)
    return settled(job, settlement, now)


def may_have_published(job: Job) -> bool:
    """Whether a job was ever started. A start that was given back counts: its change may have reached main."""
    return job.fence > 0


def excused(job: Job) -> Job:
    """The job after an outage of the machine cut its start off: that start does not count as an attempt.

    It stays running under its fence, as any job whose worker died: the next claim starts it again, in its place.
    """
    if job.state is not JobState.RUNNING or not job.attempts or job.outages >= MAX_OUTAGES:
        return job
    return job._replace(attempts=job.attempts - 1, outages=job.outages + 1)


def requeues_at_tail(ending: JobEnd) -> bool:
    """Whether a job that ends so gets a new order."""
    return isinstance(ending, Requeue) and ending.why is RequeueReason.INTERRUPTED


def sends_callback(job: Job) -> bool:
    """Whether a workflow waits for the callback of this job."""
    return bool(job.preempted_token or (not job.open and job.task_token))


def _requeued(job: Job, requeue: Requeue, now: datetime, tail: int) -> Job:
    not_before = requeue.not_before and min(requeue.not_before, now + LONGEST_WAIT)
    queued = job._replace(state=JobState.QUEUED, started_at=None)
    if requeue.why is RequeueReason.RETRY:
        return queued._replace(not_before=not_before, held=None)
    given_back = queued._replace(attempts=job.attempts - 1)
    if requeue.why is RequeueReason.STOPPED:
        return given_back
    if requeue.why is RequeueReason.WAITING:
        return given_back._replace(not_before=not_before, held=None)
    waiting = given_back._replace(preempted_token=job.task_token or job.preempted_token, task_token=None)
    if requeue.why is RequeueReason.HELD:
        result, is_known = requeue.result or job.result, job.held and requeue.result in (None, job.result)
        return (given_back if is_known else waiting)._replace(not_before=not_before, held=requeue.held, result=result)
    return waiting._replace(interruptions=job.interruptions + 1, order=tail, held=None)


# --- who holds a key


def may_claim(current: Claim | None, over: Claim | None) -> bool:
    """Whether a key may be claimed: it is free or releasing, or still held as `over`, which its claimer saw end."""
    return current is None or current.status is not ClaimStatus.HELD or is_unchanged(current, over)


def claimed(current: Claim | None, key: ProjectUser, worker: str, now: datetime, lease: timedelta) -> Claim:
    """The claim of a worker that takes the key after `current`."""
    fence = next_fence(current.fence if current else 0, now)
    return Claim(key, worker, fence, 0, ClaimStatus.HELD, now, now, now + lease)


def is_unchanged(current: Claim, seen: Claim | None) -> bool:
    """Whether a claim stands as it was seen."""
    return seen is not None and (current.worker, current.fence, current.beat) == (seen.worker, seen.fence, seen.beat)


def may_take_lease(
    lease: LeaseRecord | None,
    by: CancelToken,
    job: Job | None,
    claim_fence: int,
    *,
    overtaking: bool,
    holder_is_dead: bool,
) -> bool:
    """Whether the right to publish a project may be taken, although `lease` stands.

    `job` is the lease's job, and `claim_fence` the newest fence of that job's key: after a takeover another job of the
    key may start first, while the old one is still recorded as running. A lease without a job is an operator's and ends
    with that process. A job that is tried again under the same claim does not wait for its own lease.
    """
    if lease is None or lease.status is LeaseStatus.FREE or holder_is_dead:
        return True
    if overtaking and lease.status is LeaseStatus.HELD:
        return True
    if not lease.job_id:
        return False
    if (lease.job_id, lease.job_fence) == (by.job_id, by.fence):
        return True
    runs = job is not None and (job.state, job.fence) == (JobState.RUNNING, lease.job_fence)
    return not runs or claim_fence > lease.job_fence


def yields_after(claim: Claim, own: Job | None, now: datetime, *, empty: bool) -> datetime | None:
    """Another key is served before this one if it has waited since before this moment; None if none is.

    `own` is the key's next job, and `empty` says that it has no open job. Keys take turns: a key that was served makes
    way for every key that waits, however old its own jobs are, and waits from then on. A key whose jobs wait for a
    moment that comes by itself is kept. Keys do not change for quick jobs; a key that came just now is left to an idle
    worker.
    """
    if (own is None and not empty) or (own is not None and claim.claimed_at > now - _A_MOMENT):
        return None
    return now - _A_MOMENT


def left_to_another(preferred: str | None, sent_at: datetime, worker: str, now: datetime) -> bool:
    """Whether a hint is left, for a moment, to the worker that still has the key's checkout."""
    return preferred not in (None, worker) and sent_at > now - _A_MOMENT


_PAGE = 1000


def all_open(jobs: Jobs, key: ProjectUser) -> Iterator[Job]:
    """The open jobs of a key, page by page. One that goes to the tail meanwhile is met there, perhaps again."""
    after = 0
    while page := jobs.open_jobs(key, _PAGE, after):
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].order
