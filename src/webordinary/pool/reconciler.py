"""The reconciler: sends hints for open jobs without a live owner and redoes effects. Not a job in a queue."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from webordinary.model.claims import Claim, ClaimRequest, ClaimStatus
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.names import ProjectUser
from webordinary.pool.callbacks import deliver_pending_callbacks
from webordinary.pool.ports import Pool
from webordinary.pool.transitions import ANY_FENCE, next_job

_PAGE = 500


class Reconciler:
    """Makes sure that every open job has a live owner or a hint; harmless to run anywhere, any time."""

    def __init__(
        self,
        pool: Pool,
        events: Events,
        is_over: Callable[[Claim], bool] | None = None,
        is_mine: Callable[[ProjectUser], bool] = lambda key: False,
    ) -> None:
        """`is_over` is what a worker has seen; who only looks now and then goes by the lease's end.

        A worker's own keys have an owner: it looks after them itself, and its lease keeper notices when they are lost.
        """
        self._pool, self._events, self._is_over, self._is_mine = pool, events, is_over, is_mine

    def run_once(self, now: datetime) -> int:
        """One pass over all keys with work; returns how many hints it sent."""
        deliver_pending_callbacks(self._pool)
        sent, after = 0, None
        while keys := self._pool.jobs.keys_to_look_at(after, _PAGE):
            sent += sum(self._hint(key, now) for key in keys if not self._is_mine(key))
            if len(keys) < _PAGE:
                break
            after = keys[-1]
        if sent:
            self._pool.tickets.notify_unclaimed()
        return sent

    def _hint(self, key: ProjectUser, now: datetime) -> bool:
        claim = self._pool.claims.look(key)
        if claim and not self._ownerless(claim, now):
            return False
        job = next_job(self._pool.jobs.open_jobs(key), ANY_FENCE, now)
        if job is None:
            return False  # what waits for its time, or for its attachments, needs no worker yet
        request = ClaimRequest.for_job(job, fence=claim.fence if claim else None)
        sent = self._pool.hints.send(request, now, again=True)
        if sent:
            self._events.emit(Event(EventKind.CLAIM_REQUESTED, key=key, data={"by": "reconciler"}))
        return sent

    def _ownerless(self, claim: Claim, now: datetime) -> bool:
        # Only a reason to hint: whether a lease is over, the worker that claims decides by the beat.
        if claim.status is not ClaimStatus.HELD:
            return True
        if self._is_over:
            return self._is_over(claim)
        return self._pool.liveness.is_dead(claim.worker) or claim.lease_expires_at < now
