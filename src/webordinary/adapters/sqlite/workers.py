"""Which workers there are, for people to see. Nothing decides by this table."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.model.snapshot import WorkerEntry

ENTER = """
INSERT INTO workers (worker, name, pid, slots, started_at) VALUES (:worker, :name, :pid, :slots, :now)"""
LEAVE = "UPDATE workers SET ended_at = :now WHERE worker = :worker AND ended_at IS NULL"
PRESENT = "SELECT * FROM workers WHERE ended_at IS NULL ORDER BY started_at, worker"
NAMES = "SELECT worker, name FROM workers WHERE worker IN (SELECT value FROM json_each(:ids))"
FORGET = "DELETE FROM workers WHERE ended_at < ?"


class SqliteWorkers:
    """The workers that came and went."""

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
        """It ended, or was found dead."""
        with self._db.write() as conn:
            conn.execute(LEAVE, {"worker": worker, "now": now.timestamp()})

    def present(self) -> list[WorkerEntry]:
        """The workers that never said goodbye, alive or not; the newest last."""
        with self._db.read() as conn:
            return [_entry(row) for row in conn.execute(PRESENT)]

    def names(self, workers: Iterable[str]) -> dict[str, str]:
        """What people call these workers, alive or not; one that ended long ago is left out."""
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
