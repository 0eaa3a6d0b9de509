"""Written replies in SQLite, until they are delivered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.dead_letters import letter_of
from webordinary.adapters.sqlite.rows import packed, unpacked
from webordinary.mail.ports import OutboxEntry, Undelivered
from webordinary.model.jobs import DeadLetter
from webordinary.model.mail import Reply
from webordinary.pool.alerts import alert_name_of_dead_letter

PUT = """
INSERT INTO outbox (email_id, kind, recipient, message_id, raw, thread_id, created_at, next_try_at)
VALUES (:email_id, :kind, :recipient, :message_id, :raw, :thread_id, :now, :now)
ON CONFLICT (email_id, kind) DO NOTHING"""

DUE = """
SELECT * FROM outbox WHERE sent_at IS NULL AND given_up = 0 AND next_try_at <= :now
ORDER BY next_try_at, outbox_id LIMIT :limit"""

MARK_SENT = """
UPDATE outbox
SET sent_at = :now, sent_as = :sent_as, attempts = attempts + 1, last_error = NULL, raw = coalesce(:kept, raw)
WHERE email_id = :email_id AND kind = :kind AND sent_at IS NULL"""

FILE_SENT = """
INSERT INTO thread_messages (message_id, thread_id, email_id)
SELECT :sent_as, thread_id, :email_id FROM threads WHERE thread_id = :thread_id ON CONFLICT (message_id) DO NOTHING"""

MARK_FAILED = """
UPDATE outbox
SET attempts = attempts + 1, last_error = :error, next_try_at = coalesce(:next_try_at, next_try_at),
    given_up = :next_try_at IS NULL
WHERE email_id = :email_id AND kind = :kind AND sent_at IS NULL"""

MARK_BOUNCED = "UPDATE outbox SET bounced = :reason WHERE email_id = :email_id AND kind = :kind"

OF = "SELECT * FROM outbox WHERE email_id = ? ORDER BY outbox_id"


class SqliteOutbox:
    """See Outbox."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, reply: Reply, now: datetime) -> bool:
        with self._db.write() as conn:
            return conn.execute(PUT, put_row(reply, now)).rowcount == 1

    def due(self, now: datetime, limit: int) -> tuple[OutboxEntry, ...]:
        with self._db.read() as conn:
            rows = conn.execute(DUE, {"now": now.timestamp(), "limit": limit}).fetchall()
        return tuple(map(_entry, rows))

    def mark_sent(self, reply: Reply, now: datetime, sent_as: str | None = None, kept: bytes | None = None) -> None:
        row = {"email_id": reply.email_id, "kind": reply.kind, "now": now.timestamp(), "sent_as": sent_as}
        with self._db.write() as conn:
            conn.execute(MARK_SENT, row | {"kept": None if kept is None else packed(kept)})
            if sent_as:
                conn.execute(FILE_SENT, row | {"thread_id": reply.thread_id})

    def mark_failed(self, reply: Reply, error: str, next_try_at: datetime | None) -> None:
        row = {
            "email_id": reply.email_id,
            "kind": reply.kind,
            "error": error,
            "next_try_at": next_try_at.timestamp() if next_try_at else None,
        }
        with self._db.write() as conn:
            conn.execute(MARK_FAILED, row)

    def mark_bounced(self, reply: Reply, reason: str) -> None:
        with self._db.write() as conn:
            conn.execute(MARK_BOUNCED, {"email_id": reply.email_id, "kind": reply.kind, "reason": reason})

    def of(self, email_id: str) -> tuple[OutboxEntry, ...]:
        with self._db.read() as conn:
            return tuple(_entry(row) for row in conn.execute(OF, (email_id,)))


def put_row(reply: Reply, now: datetime) -> dict[str, object]:
    """The parameters of PUT."""
    return {
        "email_id": reply.email_id,
        "kind": reply.kind,
        "recipient": reply.recipient,
        "message_id": reply.message_id,
        "raw": packed(reply.raw),
        "thread_id": reply.thread_id,
        "now": now.timestamp(),
    }


def _entry(row: sqlite3.Row) -> OutboxEntry:
    raw = unpacked(row["raw"])
    return OutboxEntry(
        reply=Reply(row["email_id"], row["kind"], row["recipient"], row["message_id"], raw, row["thread_id"]),
        created_at=datetime.fromtimestamp(row["created_at"], UTC),
        next_try_at=datetime.fromtimestamp(row["next_try_at"], UTC),
        attempts=row["attempts"],
        sent_at=datetime.fromtimestamp(row["sent_at"], UTC) if row["sent_at"] is not None else None,
        last_error=row["last_error"],
        given_up=bool(row["given_up"]),
        sent_as=row["sent_as"],
        bounced=row["bounced"],
    )


FAILED = """
SELECT email_id, kind, recipient, created_at, next_try_at, attempts, last_error, given_up FROM outbox
WHERE outbox_id IN (
  SELECT outbox_id FROM outbox INDEXED BY outbox_given_up WHERE given_up = 1 AND sent_at IS NULL
  UNION ALL
  SELECT outbox_id FROM outbox INDEXED BY outbox_unsent WHERE given_up = 0 AND sent_at IS NULL AND attempts > 0
)
ORDER BY outbox_id DESC LIMIT :limit"""
# Without the names of the indexes, the order makes SQLite read every reply of the retention time.

SEND_AGAIN = """
UPDATE outbox SET given_up = 0, attempts = 0, next_try_at = :now
WHERE email_id = :email_id AND kind = :kind AND sent_at IS NULL"""


class SqliteUndelivered:
    """See UndeliveredReplies."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self, limit: int) -> list[Undelivered]:
        with self._db.read() as conn:
            rows = conn.execute(FAILED, {"limit": limit}).fetchall()
        return [
            Undelivered(
                row["email_id"],
                row["kind"],
                row["recipient"],
                datetime.fromtimestamp(row["created_at"], UTC),
                None if row["given_up"] else datetime.fromtimestamp(row["next_try_at"], UTC),
                row["attempts"],
                row["last_error"] or "",
            )
            for row in rows
        ]

    def send_again(self, reply: Undelivered, now: datetime) -> bool:
        row = {"email_id": reply.email_id, "kind": reply.kind, "now": now.timestamp()}
        with self._db.write() as conn:
            return conn.execute(SEND_AGAIN, row).rowcount == 1


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


class SqliteAlerts:
    """Tells each alarm once, also when killed in between."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def told(self, names: Collection[str]) -> set[str]:
        """Those of these alerts that were mailed."""
        with self._db.read() as conn:
            return {row["name"] for row in conn.execute(TOLD, (json.dumps(list(names)),))}

    def untold_letters(self, limit: int) -> Sequence[DeadLetter]:
        """Dead letters that the operator does not know of, oldest first."""
        with self._db.read() as conn:
            rows = conn.execute(UNTOLD_LETTERS, {"name": alert_name_of_dead_letter("?"), "limit": limit})
            return [letter_of(row) for row in rows]

    def mails_since(self, at: datetime) -> int:
        with self._db.read() as conn:
            count: int = conn.execute(MAILS_SINCE, (at.timestamp(),)).fetchone()[0]
            return count

    def tell(self, names: Collection[str], mail: Reply, now: datetime) -> bool:
        """Put the mail into the outbox, unless all of its alerts were mailed before."""
        values = {"mail": mail.kind, "now": now.timestamp()}
        with self._db.write() as conn:
            fresh = sum(conn.execute(TELL, {**values, "name": name}).rowcount for name in names)
            return bool(fresh) and conn.execute(PUT, put_row(mail, now)).rowcount == 1

    def forget(self, before: datetime) -> int:
        """Delete old alerts."""
        with self._db.write() as conn:
            return conn.execute(FORGET, {"before": before.timestamp(), "name": alert_name_of_dead_letter("?")}).rowcount
