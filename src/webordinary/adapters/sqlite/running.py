"""A job's rows from start to end, inside somebody's transaction: which comes next, how it starts, how it ends."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from webordinary.adapters.sqlite.rows import JOBS, job_of, result_text
from webordinary.model.claims import PREPARING_WAIT_SECONDS, Claim, Started
from webordinary.model.errors import ClaimLost
from webordinary.model.jobs import Ending, Job, Settlement, Why

# A job still running under an older fence is one whose worker lost the key: it starts again, in its place.
# Only an interruption moves a job behind later ones of its thread: all others that hold a job up stand before it.
OPEN_IN_ORDER = """
SELECT id, queued_at, thread_id, thread_ord,
  (state = 'queued' AND coalesce(not_before, 0) <= ?) OR (state = 'running' AND fence < ?),
  state = 'preparing' AND recorded_at <= ?,
  EXISTS (
    SELECT 1 FROM jobs AS moved
    WHERE moved.key = job.key AND moved.interruptions > 0 AND moved.state <> 'settled'
      AND moved.thread_id = job.thread_id AND moved.thread_ord < job.thread_ord)
FROM jobs AS job WHERE key = ? AND state <> 'settled' ORDER BY ord"""

START = """
UPDATE jobs SET state = 'running', worker = ?, fence = ?, attempts = attempts + 1, started_at = ?, not_before = NULL
WHERE id = ?"""

# Looking costs less than RETURNING, which gathers every row in a table of its own.
STARTED = f"{JOBS} WHERE id = ?"

STILL_RUNNING = """
SELECT id, coalesce(task_token, preempted_token) FROM jobs
WHERE EXISTS (SELECT 1 FROM claims WHERE key = ? AND worker = ? AND fence = ? AND status = 'held')
  AND job_id = ? AND state = 'running' AND fence = ?"""

SETTLE = """
UPDATE jobs SET state = 'settled', outcome = :outcome, result = :result, settled_at = :now
WHERE id = :id"""

RETRY = """
UPDATE jobs SET state = 'queued', not_before = :not_before, started_at = NULL, held = NULL
WHERE id = :id"""

STOP = """
UPDATE jobs SET state = 'queued', attempts = attempts - 1, started_at = NULL
WHERE id = :id"""

WAIT = """
UPDATE jobs SET state = 'queued', attempts = attempts - 1, not_before = :not_before, started_at = NULL, held = NULL
WHERE id = :id"""

# Held already, it only looked again: then its workflow has heard of it, and waits on.
HOLD = """
UPDATE jobs SET state = 'queued', attempts = attempts - 1, not_before = :not_before, started_at = NULL, held = :held,
  preempted_token = iif(held IS NULL, coalesce(task_token, preempted_token), preempted_token),
  task_token = iif(held IS NULL, NULL, task_token)
WHERE id = :id"""

INTERRUPT = """
UPDATE jobs SET state = 'queued', attempts = attempts - 1, interruptions = interruptions + 1,
  started_at = NULL, preempted_token = coalesce(task_token, preempted_token), task_token = NULL, held = NULL,
  ord = (SELECT max(ord) + 1 FROM jobs AS open WHERE open.key = jobs.key AND open.state <> 'settled')
WHERE id = :id"""

OWING = f"""{JOBS}
WHERE id = ? AND (preempted_token IS NOT NULL OR (state = 'settled' AND task_token IS NOT NULL))"""


class Next(NamedTuple):
    """The row of a job that may start."""

    job: int
    queued_at: float


def next_job(conn: sqlite3.Connection, key: str, fence: int, now: float) -> Next | None:
    """The lowest order that may start, no earlier job of its thread being open; most often it is the first row."""
    ahead: dict[str, int] = {}
    fields = (now, fence, now - PREPARING_WAIT_SECONDS, key)
    for job, queued_at, thread, place, startable, overdue, behind_moved in conn.execute(OPEN_IN_ORDER, fields):
        if startable and not behind_moved and place <= ahead.get(thread, place):
            return Next(job, queued_at)
        if not overdue:
            ahead[thread] = min(place, ahead.get(thread, place))
    return None


def start(conn: sqlite3.Connection, job: int, claim: Claim, now: float) -> Job:
    """It runs under this claim from now on."""
    conn.execute(START, (claim.worker, claim.fence, now, job))
    return job_of(conn.execute(STARTED, (job,)).fetchone())


def end(conn: sqlite3.Connection, started: Started, ending: Ending, now: float) -> Job | None:
    """Settle or requeue a job that is still ours; as it is then, if somebody waits to hear of it."""
    job, token = _still_running(conn, started)
    statement, fields = _ending(ending, now)
    conn.execute(statement, {**fields, "id": job})
    owing = conn.execute(OWING, (job,)).fetchone() if token else None
    return job_of(owing) if owing else None


def _still_running(conn: sqlite3.Connection, started: Started) -> tuple[int, str | None]:
    """The row of a job that is still ours to end, with whom it has to tell."""
    claim = started.claim
    mine = (str(claim.key), claim.worker, claim.fence, started.job.job_id, claim.fence)
    found: tuple[int, str | None] | None = conn.execute(STILL_RUNNING, mine).fetchone()
    if found is None:
        raise ClaimLost(claim.key, claim.worker, claim.fence)
    return found


def _ending(ending: Ending, now: float) -> tuple[str, dict[str, object]]:
    """The statement that ends a job, with its values."""
    if isinstance(ending, Settlement):
        return SETTLE, {"outcome": str(ending.outcome), "result": result_text(ending.result), "now": now}
    match ending.why:
        case Why.RETRY:
            return RETRY, {"not_before": ending.not_before and ending.not_before.timestamp()}
        case Why.HELD:
            return HOLD, {"not_before": ending.not_before and ending.not_before.timestamp(), "held": ending.held}
        case Why.WAITING:
            return WAIT, {"not_before": ending.not_before and ending.not_before.timestamp()}
        case Why.STOPPED:
            return STOP, {}
        case Why.INTERRUPTED:
            return INTERRUPT, {}
