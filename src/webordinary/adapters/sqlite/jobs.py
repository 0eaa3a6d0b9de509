"""Jobs and the callbacks they owe, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import JOBS, job_of, key_of, result_text
from webordinary.model.errors import Permanent
from webordinary.model.jobs import Job, NewJob, Settlement
from webordinary.model.names import ProjectUser

# Where the next job of a key goes, and whether its key has an owner, or a hint that it needs one.
TAIL = """
SELECT (SELECT max(ord) FROM jobs WHERE key = ? AND state <> 'settled'),
  EXISTS (SELECT 1 FROM claims WHERE key = ? AND status = 'held') OR EXISTS (SELECT 1 FROM hints WHERE key = ?)"""

RECORD = """
INSERT INTO jobs (job_id, key, ord, thread_ord, thread_id, email_id, command, state, recorded_at, queued_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id) DO NOTHING"""

ENQUEUE = "UPDATE jobs SET state = 'queued', queued_at = :now WHERE job_id = :job_id AND state = 'preparing'"

# The hint that somebody would send next, without a transaction of its own.
HINT = "INSERT INTO hints (key, waiting_since, sent_at) VALUES (?, ?, ?)"

GET = f"{JOBS} WHERE job_id = ?"
OPEN_JOBS = f"{JOBS} WHERE key = ? AND state <> 'settled' AND ord > ? ORDER BY ord LIMIT ?"

BIND_CALLBACK = "UPDATE jobs SET task_token = :token, called_back = 0 WHERE job_id = :job_id"

# A start that nobody saw end is an attempt or an outage, also once the job is queued again.
SETTLE_WAITING = """
UPDATE jobs SET state = 'settled', outcome = :outcome, result = :result, settled_at = :now
WHERE job_id = :job_id AND state IN ('preparing', 'queued') AND attempts = 0 AND outages = 0"""

REQUEST_CANCEL = """
UPDATE jobs SET cancel_requested = 1, not_before = NULL WHERE job_id = :job_id AND state <> 'settled'"""

OWED = f"""{JOBS}
WHERE (state = 'settled' AND called_back = 0 AND task_token IS NOT NULL) OR preempted_token IS NOT NULL
ORDER BY id LIMIT ?"""

PAID_SETTLED = "UPDATE jobs SET called_back = 1 WHERE job_id = :job_id AND task_token = :token"
PAID_PREEMPTED = "UPDATE jobs SET preempted_token = NULL WHERE job_id = :job_id AND preempted_token = :token"

# Hints are not lost here: among ten thousand keys that wait, only those that somebody holds or forgot need a look.
KEYS_TO_LOOK_AT = """
SELECT DISTINCT key FROM jobs
WHERE state <> 'settled' AND key > ?
  AND (NOT EXISTS (SELECT 1 FROM hints WHERE hints.key = jobs.key)
    OR EXISTS (SELECT 1 FROM claims WHERE claims.key = jobs.key AND status = 'held'))
ORDER BY key LIMIT ?"""

# '$' is the character after '#': together they bound the keys of one project.
KEYS_OF = "SELECT DISTINCT key FROM jobs WHERE key > ? AND key < ? AND state <> 'settled' ORDER BY key"
LET_GO = """
UPDATE jobs SET not_before = NULL
WHERE key > ? AND key < ? AND state <> 'settled' AND state = 'queued' AND not_before IS NOT NULL
RETURNING key"""

# An index by the time of settling would be written with every job and read once a minute. Jobs are old in the
# order of their ids, so the oldest are looked at; only so many that never end could hide the others.
PAST_RETENTION = """
SELECT id FROM (SELECT * FROM jobs ORDER BY id LIMIT 10000)
WHERE state = 'settled' AND settled_at < :before AND preempted_token IS NULL
  AND (called_back = 1 OR task_token IS NULL)
LIMIT :limit"""

_BITE = 100
FORGET = "DELETE FROM jobs WHERE id = ? AND (called_back = 1 OR task_token IS NULL)"


class SqliteJobs:
    """The truth about work, as rows."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def record(self, new: NewJob, now: datetime, *, ready: bool = False) -> Job:
        """Give a new job its order."""
        key = str(new.key)
        with self._db.write() as conn:
            last, expected = _tail(conn, key)
            job = new.recorded(last + 1, now, ready=ready)
            if not conn.execute(RECORD, _new_fields(job)).rowcount:
                return _get(conn, new.job_id)
            if ready and not expected:
                _hint(conn, key, now)
        return job

    def enqueue(self, job_id: str, now: datetime) -> Job:
        """Make a preparing job runnable."""
        with self._db.write() as conn:
            queued = conn.execute(ENQUEUE, {"job_id": job_id, "now": now.timestamp()}).rowcount
            job = _get(conn, job_id)
            if queued and not _tail(conn, str(job.key))[1]:
                _hint(conn, str(job.key), now)
        return job

    def get(self, job_id: str) -> Job | None:
        """One job, open or settled."""
        with self._db.read() as conn:
            return _find(conn, job_id)

    def open_jobs(self, key: ProjectUser, limit: int = 1000, after: int = 0) -> Sequence[Job]:
        """The open jobs of a key, in order."""
        with self._db.read() as conn:
            return [job_of(row) for row in conn.execute(OPEN_JOBS, (str(key), after, limit))]

    def bind_token(self, job_id: str, token: str) -> Job:
        """Name whom to call back."""
        with self._db.write() as conn:
            conn.execute(BIND_CALLBACK, {"job_id": job_id, "token": token})
            return _get(conn, job_id)

    def settle_waiting(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        """End a job that waits, or ask a worker."""
        with self._db.write() as conn:
            fields = {
                "job_id": job_id,
                "outcome": settlement.outcome,
                "result": result_text(settlement.result),
                "now": now.timestamp(),
            }
            if not conn.execute(SETTLE_WAITING, fields).rowcount:
                conn.execute(REQUEST_CANCEL, {"job_id": job_id})
            return _get(conn, job_id)

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        """Every key that has work, but for those that wait with a hint."""
        with self._db.read() as conn:
            rows = conn.execute(KEYS_TO_LOOK_AT, (str(after) if after else "", limit))
            return [key_of(row["key"]) for row in rows]

    def owed(self, limit: int) -> Sequence[Job]:
        """Jobs whose workflow waits to be told."""
        with self._db.read() as conn:
            return [job_of(row) for row in conn.execute(OWED, (limit,))]

    def paid(self, job_id: str, token: str) -> None:
        """The workflow behind this token was told."""
        with self._db.write() as conn:
            conn.execute(PAID_SETTLED, {"job_id": job_id, "token": token})
            conn.execute(PAID_PREEMPTED, {"job_id": job_id, "token": token})

    def keys_of(self, project_id: str) -> Sequence[ProjectUser]:
        """Every key of a project that has open jobs."""
        with self._db.read() as conn:
            return [key_of(row["key"]) for row in conn.execute(KEYS_OF, _bounds(project_id))]

    def let_go(self, project_id: str) -> Sequence[ProjectUser]:
        """Jobs of a project that were put off may start now; the keys that have such jobs."""
        with self._db.write() as conn:
            rows = conn.execute(LET_GO, _bounds(project_id)).fetchall()
        return sorted({ProjectUser.parse(row["key"]) for row in rows})

    def forget(self, before: datetime, limit: int = 1000) -> int:
        """Delete finished jobs past their retention, in bites that keep no other writer waiting for long."""
        with self._db.read() as conn:  # a look costs no sync when nothing is there
            past = conn.execute(PAST_RETENTION, {"before": before.timestamp(), "limit": limit}).fetchall()
        ids, forgotten = [(row["id"],) for row in past], 0
        for first in range(0, len(ids), _BITE):
            with self._db.write() as conn:
                forgotten += conn.executemany(FORGET, ids[first : first + _BITE]).rowcount
        return forgotten


def _bounds(project_id: str) -> tuple[str, str]:
    return f"{project_id}#", f"{project_id}$"


def _new_fields(job: Job) -> tuple[object, ...]:
    return (
        job.job_id,
        str(job.key),
        job.order,
        job.thread_order,
        job.thread_id,
        job.email_id,
        str(job.command),
        str(job.state),
        job.recorded_at.timestamp(),
        job.queued_at and job.queued_at.timestamp(),
    )


def _tail(conn: sqlite3.Connection, key: str) -> tuple[int, bool]:
    """The last order in a key's queue, and whether somebody will come for what is added to it."""
    last, expected = conn.execute(TAIL, (key, key, key)).fetchone()
    return last or 0, bool(expected)


def _hint(conn: sqlite3.Connection, key: str, now: datetime) -> None:
    conn.execute(HINT, (key, now.timestamp(), now.timestamp()))


def _find(conn: sqlite3.Connection, job_id: str) -> Job | None:
    row = conn.execute(GET, (job_id,)).fetchone()
    return job_of(row) if row else None


def _get(conn: sqlite3.Connection, job_id: str) -> Job:
    if job := _find(conn, job_id):
        return job
    raise Permanent(f"job {job_id} is not recorded; it was pruned, or its mail never got this far")
