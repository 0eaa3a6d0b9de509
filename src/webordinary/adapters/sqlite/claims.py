"""Claims in SQLite: claim and first start, and settle and next start, are one transaction each."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import at, claim_of, key_of
from webordinary.adapters.sqlite.running import end, next_job, start
from webordinary.model.claims import (
    LEASE_SECONDS,
    YIELD_AFTER_SECONDS,
    Claim,
    ClaimStatus,
    Started,
    Turn,
    next_fence,
)
from webordinary.model.errors import ClaimLost
from webordinary.model.jobs import Ending, Job
from webordinary.model.names import ProjectUser

CLAIM = """
INSERT INTO claims (key, worker, fence, beat, status, claimed_at, last_activity_at, lease_expires_at)
VALUES (:key, :worker, :fence, 0, 'held', :now, :now, :until)
ON CONFLICT (key) DO UPDATE
SET worker = :worker, fence = :fence, beat = 0, status = 'held',
    claimed_at = :now, last_activity_at = :now, lease_expires_at = :until"""

STILL_MINE = "SELECT 1 FROM claims WHERE key = ? AND worker = ? AND fence = ? AND status = 'held'"

OPEN_JOBS = "SELECT 1 FROM jobs WHERE key = ? AND state <> 'settled' LIMIT 1"

LONGEST_WAITING = """
SELECT key FROM hints
WHERE waiting_since < :than AND key <> :key
  AND (preferred IS NULL OR preferred = :worker OR sent_at <= :old_enough)
ORDER BY waiting_since LIMIT 8"""

HINT = """
INSERT INTO hints (key, waiting_since, preferred, sent_at) VALUES (:key, :since, :worker, :now)
ON CONFLICT (key) DO NOTHING"""

RENEW = """
UPDATE claims SET beat = beat + 1, lease_expires_at = :until
WHERE key = :key AND worker = :worker AND fence = :fence AND status = 'held'"""

RELEASE = """
UPDATE claims SET status = :after
WHERE key = :key AND worker = :worker AND fence = :fence AND status = :before"""


BUSY = """
SELECT count(*) FROM claims JOIN jobs ON jobs.key = claims.key AND jobs.state <> 'settled'
WHERE claims.worker = ? AND claims.status = 'held' AND jobs.state = 'running'"""


class SqliteClaims:
    """Who acts for which ProjectUser, as rows."""

    def __init__(self, db: Database, lease_seconds: float = LEASE_SECONDS) -> None:
        self._db = db
        self._lease_seconds = lease_seconds

    def claim_and_start(
        self, key: ProjectUser, worker: str, now: datetime, over: Claim | None = None
    ) -> Started | Claim | None:
        """Take a key with its first runnable job."""
        with self._db.write() as conn:
            return self._claim_and_start(conn, str(key), worker, now.timestamp(), over)

    def take_longest_waiting(self, worker: str, now: datetime) -> Started | None:
        """Take whichever key has a hint, the longest first."""
        with self._db.write() as conn:
            return self._take_waiting_since(conn, now.timestamp(), worker, now.timestamp())

    def start_next(self, claim: Claim, now: datetime) -> Job | None:
        """Start the next runnable job of a key that is ours."""
        with self._db.write() as conn:
            _check(conn, claim)
            found = next_job(conn, str(claim.key), claim.fence, now.timestamp())
            return start(conn, found.job, claim, now.timestamp()) if found else None

    def end_and_take_next(self, started: Started, ending: Ending, now: datetime, *, more: bool) -> Turn:
        """Settle or requeue, then start the next job or yield."""
        claim, seconds = started.claim, now.timestamp()
        with self._db.write() as conn:
            owed = end(conn, started, ending, seconds)
            kept, following = self._go_on(conn, claim, seconds) if more else (claim, None)
        return Turn(kept, following, owed)

    def renew(self, claims: Collection[Claim], now: datetime) -> set[ProjectUser]:
        """Prolong the leases of all that is still ours."""
        until = now.timestamp() + self._lease_seconds
        with self._db.write() as conn:
            return {claim.key for claim in claims if conn.execute(RENEW, {**_identity(claim), "until": until}).rowcount}

    def begin_release(self, claim: Claim) -> bool:
        """Held becomes releasing."""
        return self._release(claim, before="held", after="releasing")

    def end_release(self, claim: Claim) -> None:
        """Releasing becomes free."""
        self._release(claim, before="releasing", after="free")

    def look(self, key: ProjectUser) -> Claim | None:
        """Who holds the key now."""
        with self._db.read() as conn:
            return _look(conn, str(key))

    def busy(self, worker: str) -> int:
        """How many jobs that worker runs now."""
        with self._db.read() as conn:
            count: int = conn.execute(BUSY, (worker,)).fetchone()[0]
            return count

    def _release(self, claim: Claim, before: str, after: str) -> bool:
        with self._db.write() as conn:
            fields = {**_identity(claim), "before": before, "after": after}
            return bool(conn.execute(RELEASE, fields).rowcount)

    def _claim_and_start(
        self, conn: sqlite3.Connection, key: str, worker: str, now: float, over: Claim | None
    ) -> Started | Claim | None:
        # Any fence will do to find an orphan: only a key that can be claimed has one.
        found = next_job(conn, key, 1 << 62, now)
        if found is None:
            conn.execute("DELETE FROM hints WHERE key = ?", (key,))
            return None
        current = conn.execute("SELECT * FROM claims WHERE key = ?", (key,)).fetchone()
        if current and current["status"] == "held" and not _unmoved(current, over):
            return claim_of(current)
        conn.execute("DELETE FROM hints WHERE key = ?", (key,))
        claim = self._claim(conn, key, worker, current["fence"] if current else 0, now)
        return Started(claim, start(conn, found.job, claim, now))

    def _claim(self, conn: sqlite3.Connection, key: str, worker: str, last_fence: int, now: float) -> Claim:
        moment, until = at(now), now + self._lease_seconds
        claim = Claim(
            key_of(key), worker, next_fence(last_fence, moment), 0, ClaimStatus.HELD, moment, moment, at(until)
        )
        conn.execute(CLAIM, {**_identity(claim), "now": now, "until": until})
        return claim

    def _go_on(self, conn: sqlite3.Connection, claim: Claim, now: float) -> tuple[Claim | None, Started | None]:
        """What is kept, and what starts: the key's next job, or that of a key which has waited longer."""
        own = next_job(conn, str(claim.key), claim.fence, now)
        if own is None and conn.execute(OPEN_JOBS, (str(claim.key),)).fetchone():
            return claim, None  # it waits for a moment that comes by itself, or for its attachments
        just_now = now - YIELD_AFTER_SECONDS
        if own and claim.claimed_at.timestamp() > just_now:
            return claim, Started(claim, start(conn, own.job, claim, now))  # quick jobs are not worth a change of keys
        waited = min(own.queued_at, just_now) if own else just_now
        if handed := self._take_waiting_since(conn, waited, claim.worker, now, own=str(claim.key)):
            conn.execute(RELEASE, {**_identity(claim), "before": "held", "after": "free"})
            if own:
                conn.execute(HINT, {**_identity(claim), "since": own.queued_at, "now": now})
            return None, handed
        return claim, Started(claim, start(conn, own.job, claim, now)) if own else None

    def _take_waiting_since(
        self, conn: sqlite3.Connection, waited: float, worker: str, now: float, own: str = ""
    ) -> Started | None:
        """Take the key that has waited longest; a younger hint is left to a worker that has nothing to do."""
        fields = {"key": own, "worker": worker, "than": waited, "old_enough": now - YIELD_AFTER_SECONDS}
        for waiting in conn.execute(LONGEST_WAITING, fields).fetchall():
            taken = self._claim_and_start(conn, waiting["key"], worker, now, None)
            if isinstance(taken, Started):
                return taken
        return None


def _look(conn: sqlite3.Connection, key: str) -> Claim | None:
    row = conn.execute("SELECT * FROM claims WHERE key = ? AND status <> 'free'", (key,)).fetchone()
    return claim_of(row) if row else None


def _unmoved(current: sqlite3.Row, over: Claim | None) -> bool:
    seen = (over.worker, over.fence, over.beat) if over else None
    return (current["worker"], current["fence"], current["beat"]) == seen


def _identity(claim: Claim) -> dict[str, object]:
    return {"key": str(claim.key), "worker": claim.worker, "fence": claim.fence}


def _check(conn: sqlite3.Connection, claim: Claim) -> None:
    if not conn.execute(STILL_MINE, (str(claim.key), claim.worker, claim.fence)).fetchone():
        raise ClaimLost(claim.key, claim.worker, claim.fence)
