"""The tally of events in SQLite: kept apart, so that it outlives the events that it counted."""

from __future__ import annotations

import sqlite3

from webordinary.adapters.sqlite.database import Database
from webordinary.pool.tally import CountedEvent, Tally

LOAD = "SELECT record FROM tallies"
SAVE = """
INSERT INTO tallies (tally_id, record) VALUES (1, ?)
ON CONFLICT (tally_id) DO UPDATE SET record = excluded.record"""
AFTER = "SELECT seq, kind, data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"


class SqliteTallies:
    """Where counting goes on after a restart."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def load(self) -> Tally:
        """The tally as it was saved last; an empty one before the first time."""
        with self._db.read() as conn:
            row: sqlite3.Row | None = conn.execute(LOAD).fetchone()
        return Tally.from_json(row["record"]) if row else Tally()

    def save(self, tally: Tally) -> None:
        """Keep it."""
        with self._db.write() as conn:
            conn.execute(SAVE, (tally.to_json(),))

    def events_after(self, seq: int, limit: int) -> list[CountedEvent]:
        """What is to be counted next, oldest first."""
        with self._db.read() as conn:
            rows = conn.execute(AFTER, (seq, limit)).fetchall()
        return [CountedEvent(row["seq"], row["kind"], row["data"]) for row in rows]
