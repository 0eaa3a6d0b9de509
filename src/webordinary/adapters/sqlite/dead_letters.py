"""Dead letters, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import at
from webordinary.model.jobs import DeadLetter

LETTERS = "letters"
"""The listener of this name is woken after each new dead letter."""

ADD = """
INSERT INTO dead_letters (email_id, job_id, reason, died_at, redrives)
VALUES (:email_id, :job_id, :reason, :now, :redrives)
ON CONFLICT (email_id, redrives, reason) DO NOTHING"""

OF_MAIL = """
SELECT * FROM dead_letters WHERE email_id >= :start AND email_id < :start || '~' ORDER BY letter_id DESC LIMIT :limit"""

CLEAR = "DELETE FROM dead_letters WHERE email_id = ? AND redrives <= ?"


class SqliteDeadLetters:
    """See DeadLetters."""

    def __init__(self, db: Database, notify: Callable[[str], None] = lambda _: None) -> None:
        self._db, self._notify = db, notify

    def add(self, email_id: str, job_id: str | None, reason: str, now: datetime, redrives: int = 0) -> None:
        fields = {
            "email_id": email_id,
            "job_id": job_id,
            "reason": reason,
            "now": now.timestamp(),
            "redrives": redrives,
        }
        with self._db.write() as conn:
            conn.execute(ADD, fields)
        self._notify(LETTERS)

    def all(self, limit: int) -> Sequence[DeadLetter]:
        with self._db.read() as conn:
            rows = conn.execute("SELECT * FROM dead_letters ORDER BY died_at DESC LIMIT ?", (limit,))
            return [letter_of(row) for row in rows]

    def get(self, letter_id: int) -> DeadLetter | None:
        with self._db.read() as conn:
            row = conn.execute("SELECT * FROM dead_letters WHERE letter_id = ?", (letter_id,)).fetchone()
            return letter_of(row) if row else None

    def remove(self, letter_id: int) -> bool:
        with self._db.write() as conn:
            return bool(conn.execute("DELETE FROM dead_letters WHERE letter_id = ?", (letter_id,)).rowcount)

    def clear(self, email_id: str, redrives: int) -> None:
        with self._db.write() as conn:
            conn.execute(CLEAR, (email_id, redrives))

    def of_mail(self, start: str, limit: int) -> Sequence[DeadLetter]:
        """The letters of the mails whose id begins so, the newest first."""
        with self._db.read() as conn:
            return [letter_of(row) for row in conn.execute(OF_MAIL, {"start": start, "limit": limit})]


def letter_of(row: sqlite3.Row) -> DeadLetter:
    """A row of `dead_letters`."""
    return DeadLetter(
        row["letter_id"], row["email_id"], row["job_id"], row["reason"], at(row["died_at"]), row["redrives"]
    )
