"""Giving a key up without losing a wake-up: let others in first, look once more, then end."""

from __future__ import annotations

from datetime import datetime

from webordinary.model.claims import Claim, ClaimRequest
from webordinary.pool.ports import Pool


def release(claim: Claim, pool: Pool, now: datetime) -> bool:
    """Release a key; True if it still has open jobs, for which a hint was sent.

    The key is claimable before the look, so work that arrives in between is seen by this look or hinted by
    its sender, who no longer sees an owner.
    """
    if not pool.claims.begin_release(claim):
        return False
    waiting = pool.jobs.open_jobs(claim.key, limit=1)
    if waiting:
        pool.hints.send(ClaimRequest.for_job(waiting[0], claim.worker, claim.fence), now)
        pool.tickets.unclaimed()
    pool.claims.end_release(claim)
    return bool(waiting)
