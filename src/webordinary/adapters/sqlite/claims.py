"""Claims in SQLite: claim and first start, and settle and next start, are one transaction each.

The rules are those of `pool.transitions`; here rows are loaded for them, and what they return is written. The table of
workers is there for people to see; nothing decides by it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import NamedTuple

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.jobs import next_order
from webordinary.adapters.sqlite.rows import JOBS, at, claim_of, job_of, save_changes
from webordinary.model.claims import (
    LEASE_SECONDS,
    CancelToken,
    Claim,
    ClaimStatus,
    FinishResult,
    LeaseRecord,
    LeaseStatus,
    ProjectLease,
    StartedJob,
    next_fence,
)
from webordinary.model.errors import ClaimLost
from webordinary.model.jobs import Job, JobEnd, JobState
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import WorkerEntry
from webordinary.pool.transitions import (
    ANY_FENCE,
    claimed,
    ended,
    excused,
    first_to_start,
    left_to_another,
    may_claim,
    may_take_lease,
    requeues_at_tail,
    runs_under,
    sends_callback,
    start,
    yields_after,
)

CLAIM = """
INSERT INTO claims (key, worker, fence, beat, status, claimed_at, last_activity_at, lease_expires_at)
VALUES (:key, :worker, :fence, 0, 'held', :now, :now, :until)
ON CONFLICT (key) DO UPDATE
SET worker = :worker, fence = :fence, beat = 0, status = 'held',
    claimed_at = :now, last_activity_at = :now, lease_expires_at = :until"""

STILL_MINE = "SELECT 1 FROM claims WHERE key = :key AND worker = :worker AND fence = :fence AND status = 'held'"

# The indexes of open jobs are named: others by key would lead over all that a key has ever done.
IN_ORDER = f"{JOBS} INDEXED BY open_jobs WHERE key = ? AND state <> 'settled' ORDER BY ord"
MOVED = f"{JOBS} INDEXED BY moved_jobs WHERE key = ? AND state <> 'settled' AND interruptions > 0"
MINE = f"""
SELECT job_id, state, fence, cancel_requested, task_token, preempted_token FROM jobs
WHERE id = :order AND EXISTS ({STILL_MINE})"""  # noqa: S608 - statements of this module
OPEN_JOBS = "SELECT 1 FROM jobs INDEXED BY open_jobs WHERE key = ? AND state <> 'settled' LIMIT 1"

WAITING_LONGEST = """
SELECT key, preferred, sent_at FROM hints WHERE waiting_since < ? AND key <> ? ORDER BY waiting_since LIMIT 100"""

HINT = """
INSERT INTO hints (key, waiting_since, preferred, sent_at) VALUES (:key, :now, :worker, :now)
ON CONFLICT (key) DO NOTHING"""

RENEW = """
UPDATE claims SET beat = beat + 1, lease_expires_at = :until
WHERE key = :key AND worker = :worker AND fence = :fence AND status = 'held'"""

RELEASE = """
UPDATE claims SET status = :after
WHERE key = :key AND worker = :worker AND fence = :fence AND status = :before"""

RUNNING_UNDER = f"{JOBS} WHERE key = ? AND state <> 'settled' AND state = 'running' AND fence = ?"

HELD_BY = "SELECT * FROM claims WHERE worker = ? AND status = 'held'"

BUSY = """
SELECT count(*) FROM claims JOIN jobs INDEXED BY open_jobs ON jobs.key = claims.key AND jobs.state <> 'settled'
WHERE claims.worker = ? AND claims.status = 'held' AND jobs.state = 'running'"""

_MOST_OFFERS = 8


class Upcoming(NamedTuple):
    """A key's next job, and whether the key has no open job at all."""

    job: Job | None
    empty: bool


def always_dead(worker: str) -> bool:
    """Every worker whose lease ran out has ended."""
    return True


class SqliteClaims:
    """See Claims. `is_dead` tells whether a worker's process has certainly ended."""

    def __init__(
        self, db: Database, lease_seconds: float = LEASE_SECONDS, is_dead: Callable[[str], bool] = always_dead
    ) -> None:
        self._db, self._is_dead = db, is_dead
        self._lease = timedelta(seconds=lease_seconds)

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> StartedJob | Claim | None:
        with self._db.write() as conn:
            return self._claim_and_start(conn, key, worker, now, over)

    def take_longest_waiting(self, worker: str, now: datetime) -> StartedJob | None:
        with self._db.write() as conn:
            return self._take_waiting_since(conn, now, worker, now)

    def start_next(self, claim: Claim, now: datetime) -> StartedJob | None:
        with self._db.write() as conn:
            if not conn.execute(STILL_MINE, _identity(claim)).fetchone():
                raise ClaimLost(claim.key, claim.worker, claim.fence)
            following = _upcoming(conn, claim.key, claim.fence, now).job
            return _start(conn, following, claim, now) if following else None

    def end_and_take_next(self, started: StartedJob, ending: JobEnd, now: datetime, *, more: bool) -> FinishResult:
        claim = started.claim
        with self._db.write() as conn:
            job = _load_running(conn, started)
            tail = next_order(conn) if requeues_at_tail(ending) else job.order
            after = ended(job, ending, now, tail)
            save_changes(conn, job, after)
            pending = after if sends_callback(after) else None
            if more:
                return self._go_on(conn, claim, pending, now)
            return FinishResult(claim, None, pending, empty=not conn.execute(OPEN_JOBS, (claim.key.text,)).fetchone())

    def renew(self, claims: Collection[Claim], now: datetime) -> set[ProjectUser]:
        until = (now + self._lease).timestamp()
        with self._db.write() as conn:
            return {claim.key for claim in claims if conn.execute(RENEW, {**_identity(claim), "until": until}).rowcount}

    def begin_release(self, claim: Claim) -> bool:
        """Held becomes releasing; the start of a job that still runs under it is given back."""
        with self._db.write() as conn:
            if not _release(conn, claim, before="held", after="releasing"):
                return False
            for row in conn.execute(RUNNING_UNDER, (claim.key.text, claim.fence)).fetchall():
                job = job_of(row)
                save_changes(conn, job, excused(job))
            return True

    def end_release(self, claim: Claim) -> None:
        with self._db.write() as conn:
            _release(conn, claim, before="releasing", after="free")

    def look(self, key: ProjectUser) -> Claim | None:
        with self._db.read() as conn:
            return _look(conn, key.text)

    def look_all(self, keys: Collection[ProjectUser]) -> Mapping[ProjectUser, Claim]:
        with self._db.read() as conn:
            return {key: claim for key in keys if (claim := _look(conn, key.text))}

    def busy(self, worker: str) -> int:
        with self._db.read() as conn:
            count: int = conn.execute(BUSY, (worker,)).fetchone()[0]
            return count

    def held_by(self, worker: str) -> Sequence[Claim]:
        with self._db.read() as conn:
            return [claim_of(row) for row in conn.execute(HELD_BY, (worker,))]

    def _claim_and_start(
        self, conn: sqlite3.Connection, key: ProjectUser, worker: str, now: datetime, over: Claim | None
    ) -> StartedJob | Claim | None:
        following = _upcoming(conn, key, ANY_FENCE, now).job
        if following is None:
            _drop_hint(conn, key)
            return None
        row = conn.execute("SELECT * FROM claims WHERE key = ?", (key.text,)).fetchone()
        current = claim_of(row) if row else None
        if current and not may_claim(current, over):
            return current
        _drop_hint(conn, key)
        claim = claimed(current, key, worker, now, self._lease)
        times = {"now": now.timestamp(), "until": claim.lease_expires_at.timestamp()}
        conn.execute(CLAIM, {**_identity(claim), **times})
        # A worker that lives and could not renew its lease stood still or found no space: that is not the job's fault.
        is_excused = current is not None and current.status is ClaimStatus.HELD and not self._is_dead(current.worker)
        return _start(conn, following, claim, now, is_excused=is_excused)

    def _go_on(self, conn: sqlite3.Connection, claim: Claim, pending: Job | None, now: datetime) -> FinishResult:
        """Start the key's next job, or that of a key which has waited longer."""
        upcoming = _upcoming(conn, claim.key, claim.fence, now)
        own = upcoming.job
        waited = yields_after(claim, own, now, empty=upcoming.empty)
        if waited and (handed := self._take_waiting_since(conn, waited, claim.worker, now, own=claim.key.text)):
            _release(conn, claim, before="held", after="free")
            if own:
                conn.execute(HINT, {**_identity(claim), "now": now.timestamp()})
            return FinishResult(None, handed, pending, upcoming.empty)
        following = _start(conn, own, claim, now) if own else None
        return FinishResult(claim, following, pending, upcoming.empty)

    def _take_waiting_since(
        self, conn: sqlite3.Connection, waited: datetime, worker: str, now: datetime, own: str = ""
    ) -> StartedJob | None:
        """Take the key that has waited longest; a younger hint is left to a worker that has nothing to do."""
        for key in islice(_offers(conn, waited, worker, now, own), _MOST_OFFERS):
            taken = self._claim_and_start(conn, key, worker, now, None)
            if isinstance(taken, StartedJob):
                return taken
        return None


def _upcoming(conn: sqlite3.Connection, key: ProjectUser, fence: int, now: datetime) -> Upcoming:
    """Reads no further than the first job that may start; most often it is the first row."""
    name = key.text
    rows = conn.execute(IN_ORDER, (name,))
    first = rows.fetchone()
    if first is None:
        return Upcoming(None, empty=True)
    moved = map(job_of, conn.execute(MOVED, (name,)))
    found = first_to_start(map(job_of, chain((first,), rows)), moved, fence, now)
    rows.close()
    return Upcoming(found, empty=False)


def _start(conn: sqlite3.Connection, job: Job, claim: Claim, now: datetime, *, is_excused: bool = False) -> StartedJob:
    begun = start(excused(job) if is_excused else job, claim, now)
    save_changes(conn, job, begun.job)
    return begun


def _load_running(conn: sqlite3.Connection, started: StartedJob) -> Job:
    """A job that is still ours to end: as it was started, with the columns that others may have written since."""
    claim = started.claim
    row = conn.execute(MINE, {**_identity(claim), "order": started.job.order}).fetchone()
    if row is None:
        raise ClaimLost(claim.key, claim.worker, claim.fence)
    job_id, state, fence, cancel_requested, task_token, preempted_token = row
    job = started.job._replace(
        state=JobState(state),
        fence=fence,
        cancel_requested=bool(cancel_requested),
        task_token=task_token,
        preempted_token=preempted_token,
    )
    if job_id != job.job_id or not runs_under(job, claim):
        raise ClaimLost(claim.key, claim.worker, claim.fence)
    return job


def _offers(conn: sqlite3.Connection, waited: datetime, worker: str, now: datetime, own: str) -> Iterator[ProjectUser]:
    for hint in conn.execute(WAITING_LONGEST, (waited.timestamp(), own)).fetchall():
        if not left_to_another(hint["preferred"], at(hint["sent_at"]), worker, now):
            yield ProjectUser.parse(hint["key"])


def _look(conn: sqlite3.Connection, key: str) -> Claim | None:
    row = conn.execute("SELECT * FROM claims WHERE key = ? AND status <> 'free'", (key,)).fetchone()
    return claim_of(row) if row else None


def _drop_hint(conn: sqlite3.Connection, key: ProjectUser) -> None:
    conn.execute("DELETE FROM hints WHERE key = ?", (key.text,))


def _release(conn: sqlite3.Connection, claim: Claim, before: str, after: str) -> bool:
    return bool(conn.execute(RELEASE, {**_identity(claim), "before": before, "after": after}).rowcount)


def _identity(claim: Claim) -> dict[str, object]:
    return {"key": claim.key.text, "worker": claim.worker, "fence": claim.fence}


LEASE_OF = "SELECT * FROM project_leases WHERE project_id = ?"
JOB_OF_LEASE = f"{JOBS} WHERE job_id = ?"
NEWEST_FENCE = "SELECT fence FROM claims WHERE key = ?"

TAKE = """
INSERT INTO project_leases (project_id, fence, worker, job_id, job_fence, status)
VALUES (:project_id, :fence, :worker, :job_id, :job_fence, 'held')
ON CONFLICT (project_id) DO UPDATE
SET fence = :fence, worker = :worker, job_id = :job_id, job_fence = :job_fence, status = 'held'"""

# A lease is held, then showing: an operator does not overtake it any more; or it is free.
CONFIRM = "UPDATE project_leases SET status = 'showing' WHERE project_id = ? AND fence = ? AND status <> 'free'"
RELEASE_LEASE = "UPDATE project_leases SET status = 'free' WHERE project_id = ? AND fence = ?"


class SqliteProjectLeases:
    """One row a project. `is_dead` tells whether a worker's process has certainly ended."""

    def __init__(self, db: Database, is_dead: Callable[[str], bool]) -> None:
        self._db, self._is_dead = db, is_dead

    def take(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        return self._take(project_id, token, now, overtaking=False)

    def overtake(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        return self._take(project_id, token, now, overtaking=True)

    def _take(self, project_id: str, token: CancelToken, now: datetime, *, overtaking: bool) -> ProjectLease | None:
        with self._db.write() as conn:
            stands = _lease_of(conn, project_id)
            job, claim_fence = _job_of_lease(conn, stands)
            is_dead = stands is not None and stands.status is not LeaseStatus.FREE and self._is_dead(stands.worker)
            if not may_take_lease(stands, token, job, claim_fence, overtaking=overtaking, holder_is_dead=is_dead):
                return None
            lease = ProjectLease(project_id, token.worker, next_fence(stands.fence if stands else 0, now))
            job_fields = {"job_id": token.job_id, "job_fence": token.fence}
            conn.execute(TAKE, {**asdict(lease), **job_fields})
            return lease

    def confirm(self, lease: ProjectLease) -> None:
        """Make the lease final: no other lease replaces it. Raises ClaimLost when a newer lease exists."""
        with self._db.write() as conn:
            if not conn.execute(CONFIRM, (lease.project_id, lease.fence)).rowcount:
                raise ClaimLost(lease.project_id, lease.worker, lease.fence)

    def release(self, lease: ProjectLease) -> None:
        """Give it back; nothing happens if a newer lease exists."""
        with self._db.write() as conn:
            conn.execute(RELEASE_LEASE, (lease.project_id, lease.fence))


def _lease_of(conn: sqlite3.Connection, project_id: str) -> LeaseRecord | None:
    row = conn.execute(LEASE_OF, (project_id,)).fetchone()
    if row is None:
        return None
    return LeaseRecord(row["fence"], row["worker"], row["job_id"], row["job_fence"], LeaseStatus(row["status"]))


def _job_of_lease(conn: sqlite3.Connection, lease: LeaseRecord | None) -> tuple[Job | None, int]:
    """The job that a lease was taken for, and the newest fence of that job's key."""
    row = conn.execute(JOB_OF_LEASE, (lease.job_id,)).fetchone() if lease and lease.job_id else None
    if row is None:
        return None, 0
    claim = conn.execute(NEWEST_FENCE, (row["key"],)).fetchone()
    return job_of(row), claim["fence"] if claim else 0


ENTER = """
INSERT INTO workers (worker, name, pid, slots, started_at) VALUES (:worker, :name, :pid, :slots, :now)"""
LEAVE = "UPDATE workers SET ended_at = :now WHERE worker = :worker AND ended_at IS NULL"
PRESENT = "SELECT * FROM workers WHERE ended_at IS NULL ORDER BY started_at, worker"
NAMES = "SELECT worker, name FROM workers WHERE worker IN (SELECT value FROM json_each(:ids))"
FORGET = "DELETE FROM workers WHERE ended_at < ?"


class SqliteWorkers:
    """The table of workers."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def enter(
        self, entry: WorkerEntry, now: datetime, in_the_way: Callable[[WorkerEntry], bool] = lambda _: False
    ) -> WorkerEntry | None:
        """A worker begins, unless another one of its name is in the way: then that is returned, and nothing written."""
        fields = {"worker": entry.worker, "name": entry.name, "pid": entry.pid, "slots": entry.slots}
        with self._db.write() as conn:
            present = [_entry(row) for row in conn.execute(PRESENT)]
            for other in present:
                if other.name == entry.name and in_the_way(other):
                    return other
            conn.execute(ENTER, {**fields, "now": now.timestamp()})
        return None

    def leave(self, worker: str, now: datetime) -> None:
        """Record the end of a worker."""
        with self._db.write() as conn:
            conn.execute(LEAVE, {"worker": worker, "now": now.timestamp()})

    def present(self) -> list[WorkerEntry]:
        """The workers without a recorded end, alive or not; the newest last."""
        with self._db.read() as conn:
            return [_entry(row) for row in conn.execute(PRESENT)]

    def names(self, workers: Iterable[str]) -> dict[str, str]:
        """The names of these workers, alive or not; workers that ended long ago have none."""
        with self._db.read() as conn:
            return names_of(conn, workers)

    def forget(self, before: datetime) -> int:
        """Delete those that ended long ago."""
        with self._db.write() as conn:
            return conn.execute(FORGET, (before.timestamp(),)).rowcount


def names_of(conn: sqlite3.Connection, workers: Iterable[str]) -> dict[str, str]:
    """Names of these workers, by id; workers that are gone have none."""
    return {row["worker"]: row["name"] for row in conn.execute(NAMES, {"ids": json.dumps(sorted(workers))})}


def _entry(row: sqlite3.Row) -> WorkerEntry:
    return WorkerEntry(row["worker"], row["name"], row["pid"], row["slots"])
