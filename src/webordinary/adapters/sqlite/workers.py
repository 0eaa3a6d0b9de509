"""Which workers there are, for people to see. Nothing decides by this table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from webordinary.adapters.sqlite.database import Database

ENTER = """
INSERT INTO workers (worker, name, pid, slots, started_at) VALUES (:worker, :name, :pid, :slots, :now)"""
LEAVE = "UPDATE workers SET ended_at = :now WHERE worker = :worker AND ended_at IS NULL"
PRESENT = "SELECT * FROM workers WHERE ended_at IS NULL ORDER BY started_at, worker"
FORGET = "DELETE FROM workers WHERE ended_at < ?"


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """A worker as it introduces itself."""

    worker: str
    name: str
    pid: int
    slots: int


class SqliteWorkers:
    """The workers that came and went."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def enter(self, entry: WorkerEntry, now: datetime) -> None:
        """A worker begins."""
        fields = {"worker": entry.worker, "name": entry.name, "pid": entry.pid, "slots": entry.slots}
        with self._db.write() as conn:
            conn.execute(ENTER, {**fields, "now": now.timestamp()})

    def leave(self, worker: str, now: datetime) -> None:
        """It ended, or was found dead."""
        with self._db.write() as conn:
            conn.execute(LEAVE, {"worker": worker, "now": now.timestamp()})

    def present(self) -> list[WorkerEntry]:
        """The workers that never said goodbye, alive or not; the newest last."""
        with self._db.read() as conn:
            rows = conn.execute(PRESENT).fetchall()
        return [WorkerEntry(row["worker"], row["name"], row["pid"], row["slots"]) for row in rows]

    def forget(self, before: datetime) -> int:
        """Delete those that ended long ago."""
        with self._db.write() as conn:
            return conn.execute(FORGET, (before.timestamp(),)).rowcount
