"""What the operator was told, in SQLite: an alarm and the mail about it are one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.letters import letter_of
from webordinary.adapters.sqlite.outbox import PUT, put_row
from webordinary.model.jobs import DeadLetter
from webordinary.model.mail import Reply
from webordinary.pool.watchdog import letter_name

TOLD = "SELECT name FROM alarms WHERE name IN (SELECT value FROM json_each(?))"

UNTOLD_LETTERS = """
SELECT * FROM dead_letters AS letter
WHERE NOT EXISTS (SELECT 1 FROM alarms WHERE name = replace(:name, '?', letter.letter_id))
ORDER BY letter_id LIMIT :limit"""

MAILS_SINCE = "SELECT count(DISTINCT mail) FROM alarms WHERE told_at > ?"

TELL = "INSERT INTO alarms (name, mail, told_at) VALUES (:name, :mail, :now) ON CONFLICT (name) DO NOTHING"

# As long as a letter is there, it is remembered that it was told.
FORGET = """
DELETE FROM alarms
WHERE told_at < :before
  AND NOT EXISTS (SELECT 1 FROM dead_letters WHERE alarms.name = replace(:name, '?', dead_letters.letter_id))"""


class SqliteAlarms:
    """Tells each alarm once, also when killed in between."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def told(self, names: Collection[str]) -> set[str]:
        """Which of these the operator knows of."""
        with self._db.read() as conn:
            return {row["name"] for row in conn.execute(TOLD, (json.dumps(list(names)),))}

    def untold_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Dead letters that the operator does not know of, oldest first."""
        with self._db.read() as conn:
            rows = conn.execute(UNTOLD_LETTERS, {"name": letter_name("?"), "limit": limit})
            return [letter_of(row) for row in rows]

    def mails_since(self, at: datetime) -> int:
        """How many mails the operator got since then."""
        with self._db.read() as conn:
            count: int = conn.execute(MAILS_SINCE, (at.timestamp(),)).fetchone()[0]
            return count

    def tell(self, names: Collection[str], mail: Reply, now: datetime) -> bool:
        """Put the mail into the outbox, unless every one of these was told already."""
        told = {"mail": mail.kind, "now": now.timestamp()}
        with self._db.write() as conn:
            fresh = sum(conn.execute(TELL, {**told, "name": name}).rowcount for name in names)
            return bool(fresh) and conn.execute(PUT, put_row(mail, now)).rowcount == 1

    def forget(self, before: datetime) -> int:
        """Delete what is long over."""
        with self._db.write() as conn:
            return conn.execute(FORGET, {"before": before.timestamp(), "name": letter_name("?")}).rowcount
