"""View model of the pool's page: workers with their slots, claims, queues by age."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from webordinary.entrypoints.dashboard.text import FormattedTime, duration, moment
from webordinary.entrypoints.dashboard.views import ActionView
from webordinary.model.snapshot import ClaimSummary, PoolSnapshot, QueueSummary, WorkerSummary

_BACK = (("back", "/pool"),)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A job that a worker runs now."""

    key: str
    email_id: str
    subject: str
    since: FormattedTime | None
    interrupt: ActionView


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker; it cannot be drained from here where it runs on another machine."""

    name: str
    pid: int
    slots: int
    up_since: FormattedTime
    tasks: tuple[TaskRow, ...]
    drain: ActionView | None


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim; `release` is None while its worker works under it."""

    key: str
    worker: str
    fence: int
    since: FormattedTime
    lease: str
    does: str
    tone: str
    release: ActionView | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    """The open jobs of one key."""

    key: str
    preparing: int
    queued: int
    running: int
    since: FormattedTime | None
    owner: str


@dataclass(frozen=True, slots=True)
class PoolView:
    """The whole pool."""

    workers: tuple[WorkerRow, ...]
    claims: tuple[ClaimRow, ...]
    queues: tuple[QueueRow, ...]
    slots: int
    slots_used: int
    waiting: int
    unclaimed: int
    unclaimed_since: FormattedTime | None


def pool_view(pool: PoolSnapshot, now: datetime, *, drains: bool) -> PoolView:
    """The view of one look; `drains` says whether workers can be ended from here."""
    oldest_first = sorted(pool.queues, key=lambda queue: (queue.waiting_since or now, str(queue.key)))
    oldest = pool.unclaimed.oldest_since
    return PoolView(
        workers=tuple(_worker(worker, pool, now, drains=drains) for worker in pool.workers),
        claims=tuple(_claim(claim, now) for claim in pool.claims),
        queues=tuple(_queue(queue, now) for queue in oldest_first),
        slots=sum(worker.slots for worker in pool.workers),
        slots_used=len(pool.running),
        waiting=sum(queue.queued + queue.preparing for queue in pool.queues),
        unclaimed=pool.unclaimed.depth,
        unclaimed_since=moment(oldest, now) if oldest else None,
    )


def _worker(worker: WorkerSummary, pool: PoolSnapshot, now: datetime, *, drains: bool) -> WorkerRow:
    tasks = tuple(
        TaskRow(
            str(job.key),
            job.email_id,
            job.subject or "(no subject)",
            moment(job.started_at, now) if job.started_at else None,
            ActionView("Interrupt", f"/mails/{job.email_id}/interrupts", fields=_BACK),
        )
        for job in pool.running
        if job.worker == worker.worker
    )
    drain = ActionView("Stop when done", f"/workers/{quote(worker.worker, safe='')}/drains", fields=_BACK)
    started = moment(worker.started_at, now)
    return WorkerRow(worker.name, worker.pid, worker.slots, started, tasks, drain if drains else None)


def _claim(claim: ClaimSummary, now: datetime) -> ClaimRow:
    left = claim.lease_expires_at - now
    does, tone = ("worker is dead", "bad") if claim.dead else ("works", "busy") if claim.busy else ("idle", "")
    release = ActionView("Release", f"/claims/{quote(str(claim.key), safe='')}/releases", fields=_BACK)
    return ClaimRow(
        str(claim.key),
        claim.worker,
        claim.fence,
        moment(claim.claimed_at, now),
        f"in {duration(left)}" if left.total_seconds() > 0 else "it is over",
        does,
        tone,
        None if claim.busy and not claim.dead else release,
    )


def _queue(queue: QueueSummary, now: datetime) -> QueueRow:
    since = moment(queue.waiting_since, now) if queue.waiting_since else None
    return QueueRow(str(queue.key), queue.preparing, queue.queued, queue.running, since, queue.owner or "")
