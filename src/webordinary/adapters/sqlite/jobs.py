"""Jobs, the callbacks they owe, and the audit of their interruptions, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import JOBS, at, job_of, save_changes
from webordinary.model.claims import ClaimRequest, Interrupt
from webordinary.model.errors import HourlyLimitReached, Permanent
from webordinary.model.jobs import Job, JobState, NewJob, Settlement
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Interruption
from webordinary.pool.transitions import enqueued, excused, hour_of, stopped

# A job's order is the id of its row, also after it moved to the tail: no counter is written, and none is used twice.
LAST_ORDER = "SELECT max(id) FROM jobs"

IN_THIS_HOUR = "SELECT count(*) FROM jobs WHERE key = ? AND recorded_at >= ?"

RECORD = """
INSERT INTO jobs (id, job_id, key, ord, thread_ord, thread_id, email_id, command, state, recorded_at, queued_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id) DO NOTHING"""

# Whether a key has an owner, or a hint that it needs one.
EXPECTED = """
SELECT EXISTS (SELECT 1 FROM claims WHERE key = ? AND status = 'held')
  OR EXISTS (SELECT 1 FROM hints WHERE key = ?)"""

# The hint that the workflow would send next, without a transaction of its own.
HINT = "INSERT INTO hints (key, waiting_since, sent_at) VALUES (?, ?, ?)"

GET = f"{JOBS} WHERE job_id = ?"
OPEN_JOBS = f"{JOBS} WHERE key = ? AND state <> 'settled' AND ord > ? ORDER BY ord LIMIT ?"

SETTLED_JOBS = f"{JOBS} INDEXED BY jobs_by_time WHERE key = ? AND state = 'settled' ORDER BY recorded_at DESC LIMIT ?"
SETTLED_SINCE = f"{JOBS} WHERE state = 'settled' AND settled_at >= ? ORDER BY settled_at, id LIMIT ?"
BIND_CALLBACK = "UPDATE jobs SET task_token = :token, called_back = 0 WHERE job_id = :job_id"

PENDING_CALLBACKS = f"""{JOBS}
WHERE (state = 'settled' AND called_back = 0 AND task_token IS NOT NULL) OR preempted_token IS NOT NULL
ORDER BY id LIMIT ?"""

MARK_SETTLED_DELIVERED = "UPDATE jobs SET called_back = 1 WHERE job_id = :job_id AND task_token = :token"
MARK_PREEMPTED_DELIVERED = "UPDATE jobs SET preempted_token = NULL WHERE job_id = :job_id AND preempted_token = :token"

# Hints are not lost here: among ten thousand keys that wait, only claimed and forgotten keys need a look.
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
    """See Jobs, WaitingJobs and PendingCallbacks."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def record(self, new: NewJob, now: datetime, *, ready: bool = False, hourly_limit: int = 0) -> Job:
        with self._db.write() as conn:
            if hourly_limit:
                recorded = conn.execute(IN_THIS_HOUR, (new.key.text, hour_of(now) * 3600)).fetchone()[0]
                if recorded >= hourly_limit:
                    if known := _find(conn, new.job_id):
                        return known
                    raise HourlyLimitReached(new.key, hourly_limit)
            job = new.recorded(next_order(conn), now, ready=ready)
            if not conn.execute(RECORD, _new_fields(job)).rowcount:
                return _get(conn, new.job_id)
            if ready:
                _hint_unless_expected(conn, new.key, now)
        return job

    def enqueue(self, job_id: str, now: datetime) -> Job:
        with self._db.write() as conn:
            job = _get(conn, job_id)
            queued = enqueued(job, now)
            if queued is not job:
                save_changes(conn, job, queued)
                _hint_unless_expected(conn, job.key, now)
        return queued

    def settled_since(self, since: datetime, limit: int) -> list[Job]:
        """Settled jobs in the order of their ends. Reads the whole table: for one reader that polls."""
        with self._db.read() as conn:
            return [job_of(row) for row in conn.execute(SETTLED_SINCE, (since.timestamp(), limit))]

    def get(self, job_id: str) -> Job | None:
        with self._db.read() as conn:
            return _find(conn, job_id)

    def open_jobs(self, key: ProjectUser, limit: int = 1000, after: int = 0) -> Sequence[Job]:
        with self._db.read() as conn:
            return [job_of(row) for row in conn.execute(OPEN_JOBS, (key.text, after, limit))]

    def settled_jobs(self, key: ProjectUser, limit: int) -> Sequence[Job]:
        with self._db.read() as conn:
            return [job_of(row) for row in conn.execute(SETTLED_JOBS, (key.text, limit))]

    def bind_token(self, job_id: str, token: str) -> Job:
        with self._db.write() as conn:
            conn.execute(BIND_CALLBACK, {"job_id": job_id, "token": token})
            return _get(conn, job_id)

    def settle_waiting(self, job_id: str, settlement: Settlement, now: datetime) -> Job:
        """Settles a waiting job; for a running one, requests its cancellation."""
        with self._db.write() as conn:
            job = _get(conn, job_id)
            after = stopped(job, settlement, now)
            save_changes(conn, job, after)
            waits = after.state is not JobState.RUNNING  # it may start now, or what waited behind it
            if job.open and waits and conn.execute(OPEN_JOBS, (job.key.text, 0, 1)).fetchone():
                _hint_unless_expected(conn, job.key, now)
            return after

    def keys_to_look_at(self, after: ProjectUser | None, limit: int) -> Sequence[ProjectUser]:
        """Every key that has work, but for those that wait with a hint."""
        with self._db.read() as conn:
            rows = conn.execute(KEYS_TO_LOOK_AT, (str(after) if after else "", limit))
            return [ProjectUser.parse(row["key"]) for row in rows]

    def pending(self, limit: int) -> Sequence[Job]:
        with self._db.read() as conn:
            return [job_of(row) for row in conn.execute(PENDING_CALLBACKS, (limit,))]

    def mark_delivered(self, job_id: str, token: str) -> None:
        with self._db.write() as conn:
            conn.execute(MARK_SETTLED_DELIVERED, {"job_id": job_id, "token": token})
            conn.execute(MARK_PREEMPTED_DELIVERED, {"job_id": job_id, "token": token})

    def keys_of(self, project_id: str) -> Sequence[ProjectUser]:
        with self._db.read() as conn:
            return [ProjectUser.parse(row["key"]) for row in conn.execute(KEYS_OF, _bounds(project_id))]

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
        job.order,
        job.job_id,
        job.key.text,
        job.order,
        job.thread_order,
        job.thread_id,
        job.email_id,
        str(job.command),
        str(job.state),
        job.recorded_at.timestamp(),
        job.queued_at and job.queued_at.timestamp(),
    )


def next_order(conn: sqlite3.Connection) -> int:
    """The order of what comes next to the tail of a queue: higher than that of every stored job."""
    last: int | None = conn.execute(LAST_ORDER).fetchone()[0]
    return (last or 0) + 1


def _hint_unless_expected(conn: sqlite3.Connection, key: ProjectUser, now: datetime) -> None:
    if not conn.execute(EXPECTED, (key.text, key.text)).fetchone()[0]:
        conn.execute(HINT, (key.text, now.timestamp(), now.timestamp()))


def _find(conn: sqlite3.Connection, job_id: str) -> Job | None:
    row = conn.execute(GET, (job_id,)).fetchone()
    return job_of(row) if row else None


def _get(conn: sqlite3.Connection, job_id: str) -> Job:
    if job := _find(conn, job_id):
        return job
    raise Permanent(f"job {job_id} is not recorded; it was pruned, or its mail never got this far")


SAID = "SELECT 1 FROM hints WHERE key = :key"

SEND = """
INSERT INTO hints (key, waiting_since, preferred, sent_at) VALUES (:key, :since, :preferred, :now)
ON CONFLICT (key) DO NOTHING"""

INTERRUPT = """
INSERT INTO interrupts (key, job_id, new_thread_id, reason, sent_at)
VALUES (:key, :job_id, :new_thread_id, :reason, :now)
ON CONFLICT (key, job_id) DO NOTHING"""


class SqliteClaimRequests:
    """At most one hint a key: a second one would tell nothing new."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def send(self, request: ClaimRequest, now: datetime, *, again: bool = False) -> bool:
        """Say that a key has work and no owner; no hint here is ever lost."""
        fields = {
            "key": request.key.text,
            "since": request.waiting_since.timestamp(),
            "preferred": request.preferred,
            "now": now.timestamp(),
        }
        with self._db.read() as conn:  # the reconciler says the same again and again, and must not wait for writers
            if conn.execute(SAID, fields).fetchone():
                return False
        with self._db.write() as conn:
            return bool(conn.execute(SEND, fields).rowcount)

    def receive(self, now: datetime, skip: Collection[ProjectUser], limit: int) -> Sequence[ClaimRequest]:
        found: list[ClaimRequest] = []
        with self._db.read() as conn:
            for row in conn.execute("SELECT * FROM hints ORDER BY waiting_since"):
                key = ProjectUser.parse(row["key"])
                if key not in skip:
                    found.append(ClaimRequest(key, at(row["waiting_since"]), row["preferred"]))
                if len(found) == limit:
                    break
        return found

    def acknowledge(self, key: ProjectUser) -> None:
        with self._db.write() as conn:
            conn.execute("DELETE FROM hints WHERE key = ?", (key.text,))


class SqliteInterrupts:
    """Requests to look at a key's queue."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def send(self, interrupt: Interrupt, now: datetime) -> None:
        """Ask; asking twice is asking once."""
        fields = {
            "key": interrupt.key.text,
            "job_id": interrupt.job_id,
            "new_thread_id": interrupt.new_thread_id,
            "reason": interrupt.reason,
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(INTERRUPT, fields)

    def take(self, key: ProjectUser) -> Sequence[Interrupt]:
        with self._db.read() as conn:  # a look costs no sync when nothing is there
            if not conn.execute("SELECT 1 FROM interrupts WHERE key = ? LIMIT 1", (key.text,)).fetchone():
                return []
        with self._db.write() as conn:
            rows = conn.execute("DELETE FROM interrupts WHERE key = ? RETURNING *", (key.text,)).fetchall()
        return [Interrupt(key, row["job_id"], row["new_thread_id"], row["reason"]) for row in rows]


RUNNING = f"{JOBS} WHERE state <> 'settled' AND state = 'running'"


class SqliteOutages:
    """Gives back the starts that an outage cut off."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def excuse(self, is_dead: Callable[[str], bool]) -> int:
        """Called when the system comes up: a job that a dead worker still runs was not ended by itself.

        Had only its worker died, another one would have taken the job over long ago.
        """
        with self._db.write() as conn:
            running = [job_of(row) for row in conn.execute(RUNNING)]
            dead = {worker for worker in {job.worker or "" for job in running} if is_dead(worker)}
            cut_off = [(job, excused(job)) for job in running if (job.worker or "") in dead]
            for before, after in cut_off:
                save_changes(conn, before, after)
        return sum(after is not before for before, after in cut_off)


INTERRUPTED = """
INSERT INTO interruptions (email_id, job_id, worker, times, reason, new_thread_id, at)
VALUES (:email_id, :job_id, :worker, :times, :reason, :new_thread_id, :now)
ON CONFLICT (job_id, times) DO NOTHING"""

INTERRUPTIONS = """
SELECT * FROM interruptions WHERE :email_id = '' OR email_id = :email_id ORDER BY interruption_id DESC LIMIT :limit"""

FORGET_INTERRUPTIONS = "DELETE FROM interruptions WHERE at < ?"


class SqliteInterruptions:
    """See Interruptions."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def record(self, job: Job, reason: str, now: datetime, new_thread_id: str = "") -> None:
        """Write down a job's last interruption, unless it is written down."""
        fields = {
            "new_thread_id": new_thread_id,
            "email_id": job.email_id,
            "job_id": job.job_id,
            "worker": job.worker or "",
            "times": job.interruptions,
            "reason": reason,
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(INTERRUPTED, fields)

    def listing(self, limit: int, email_id: str = "") -> Sequence[Interruption]:
        """The newest first, of all mails or of one."""
        with self._db.read() as conn:
            rows = conn.execute(INTERRUPTIONS, {"email_id": email_id, "limit": limit}).fetchall()
        return [
            Interruption(
                row["email_id"], row["job_id"], row["worker"], row["reason"], row["new_thread_id"], at(row["at"])
            )
            for row in rows
        ]

    def forget(self, before: datetime) -> int:
        """Delete what is past its retention."""
        with self._db.write() as conn:
            return conn.execute(FORGET_INTERRUPTIONS, (before.timestamp(),)).rowcount
