"""The unclaimed queue and stored interrupts, in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import at, key_of
from webordinary.model.claims import ClaimRequest, Interrupt
from webordinary.model.names import ProjectUser

SAID = "SELECT 1 FROM hints WHERE key = :key"

SEND = """
INSERT INTO hints (key, waiting_since, preferred, sent_at) VALUES (:key, :since, :preferred, :now)
ON CONFLICT (key) DO NOTHING"""

INTERRUPT = """
INSERT INTO interrupts (key, job_id, new_thread_id, reason, sent_at)
VALUES (:key, :job_id, :new_thread_id, :reason, :now)
ON CONFLICT (key, job_id) DO NOTHING"""


class SqliteHints:
    """At most one hint a key: a second one would tell nothing new."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def send(self, request: ClaimRequest, now: datetime, *, again: bool = False) -> bool:
        """Say that a key has work and no owner; no hint here is ever lost."""
        fields = {
            "key": str(request.key),
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
        """Hints that wait, the longest first."""
        skipped = {str(key) for key in skip}
        found: list[ClaimRequest] = []
        with self._db.read() as conn:
            for row in conn.execute("SELECT * FROM hints ORDER BY waiting_since"):
                if row["key"] not in skipped:
                    found.append(ClaimRequest(key_of(row["key"]), at(row["waiting_since"]), row["preferred"]))
                if len(found) == limit:
                    break
        return found

    def acknowledge(self, key: ProjectUser) -> None:
        """Hints for this key have nothing to tell any more."""
        with self._db.write() as conn:
            conn.execute("DELETE FROM hints WHERE key = ?", (str(key),))


class SqliteInterrupts:
    """Requests to look at a key's queue."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def send(self, interrupt: Interrupt, now: datetime) -> None:
        """Ask; asking twice is asking once."""
        fields = {
            "key": str(interrupt.key),
            "job_id": interrupt.job_id,
            "new_thread_id": interrupt.new_thread_id,
            "reason": interrupt.reason,
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(INTERRUPT, fields)

    def take(self, key: ProjectUser) -> Sequence[Interrupt]:
        """Receive and delete what was asked for this key."""
        with self._db.read() as conn:  # a look costs no sync when nothing is there
            if not conn.execute("SELECT 1 FROM interrupts WHERE key = ? LIMIT 1", (str(key),)).fetchone():
                return []
        with self._db.write() as conn:
            rows = conn.execute("DELETE FROM interrupts WHERE key = ? RETURNING *", (str(key),)).fetchall()
        return [Interrupt(key, row["job_id"], row["new_thread_id"], row["reason"]) for row in rows]
