"""Giving a key up without losing a wake-up: let others in first, look once more, then end."""

from __future__ import annotations

from datetime import datetime

from webordinary.model.claims import Claim, ClaimRequest
from webordinary.model.jobs import Job
from webordinary.pool.ports import Pool
from webordinary.pool.rules import next_job


def release(claim: Claim, pool: Pool, now: datetime) -> bool:
    """Release a key; True if it still has open jobs, for which a hint was sent.

    The key is claimable before the look, so work that arrives in between is seen by this look or hinted by
    its sender, who no longer sees an owner.
    """
    if not pool.claims.begin_release(claim):
        return False
    waiting = _first_to_serve(claim, pool, now)
    if waiting:
        pool.hints.send(ClaimRequest.for_job(waiting, claim.worker, claim.fence), now)
        pool.tickets.unclaimed()
    pool.claims.end_release(claim)
    return waiting is not None


def _first_to_serve(claim: Claim, pool: Pool, now: datetime) -> Job | None:
    """What the next owner can start; else what it can start soonest."""
    jobs = pool.jobs.open_jobs(claim.key)
    ready = next_job(jobs, claim.fence + 1, now)
    return ready or min(jobs, key=lambda job: job.not_before or now, default=None)
