"""Written replies in SQLite, until they are delivered."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.mail.ports import OutboxEntry
from webordinary.model.mail import Reply

PUT = """
INSERT INTO outbox (email_id, kind, recipient, message_id, raw, thread_id, created_at, next_try_at)
VALUES (:email_id, :kind, :recipient, :message_id, :raw, :thread_id, :now, :now)
ON CONFLICT (email_id, kind) DO NOTHING"""

DUE = """
SELECT * FROM outbox WHERE sent_at IS NULL AND given_up = 0 AND next_try_at <= :now
ORDER BY next_try_at, outbox_id LIMIT :limit"""

MARK_SENT = """
UPDATE outbox SET sent_at = :now, sent_as = :sent_as, attempts = attempts + 1, last_error = NULL
WHERE email_id = :email_id AND kind = :kind AND sent_at IS NULL"""

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
        """See Outbox."""
        with self._db.write() as conn:
            return conn.execute(PUT, put_row(reply, now)).rowcount == 1

    def due(self, now: datetime, limit: int) -> tuple[OutboxEntry, ...]:
        """See Outbox."""
        with self._db.read() as conn:
            rows = conn.execute(DUE, {"now": now.timestamp(), "limit": limit}).fetchall()
        return tuple(_entry(row) for row in rows)

    def mark_sent(self, reply: Reply, now: datetime, sent_as: str | None = None) -> None:
        """See Outbox."""
        row = {"email_id": reply.email_id, "kind": reply.kind, "now": now.timestamp(), "sent_as": sent_as}
        with self._db.write() as conn:
            conn.execute(MARK_SENT, row)

    def mark_failed(self, reply: Reply, error: str, next_try_at: datetime | None) -> None:
        """See Outbox."""
        row = {
            "email_id": reply.email_id,
            "kind": reply.kind,
            "error": error,
            "next_try_at": next_try_at.timestamp() if next_try_at else None,
        }
        with self._db.write() as conn:
            conn.execute(MARK_FAILED, row)

    def mark_bounced(self, reply: Reply, reason: str) -> None:
        """See Outbox."""
        with self._db.write() as conn:
            conn.execute(MARK_BOUNCED, {"email_id": reply.email_id, "kind": reply.kind, "reason": reason})

    def of(self, email_id: str) -> tuple[OutboxEntry, ...]:
        """See Outbox."""
        with self._db.read() as conn:
            return tuple(_entry(row) for row in conn.execute(OF, (email_id,)))


def put_row(reply: Reply, now: datetime) -> dict[str, object]:
    """What PUT writes."""
    return {
        "email_id": reply.email_id,
        "kind": reply.kind,
        "recipient": reply.recipient,
        "message_id": reply.message_id,
        "raw": reply.raw,
        "thread_id": reply.thread_id,
        "now": now.timestamp(),
    }


def _entry(row: sqlite3.Row) -> OutboxEntry:
    return OutboxEntry(
        reply=Reply(row["email_id"], row["kind"], row["recipient"], row["message_id"], row["raw"], row["thread_id"]),
        created_at=datetime.fromtimestamp(row["created_at"], UTC),
        next_try_at=datetime.fromtimestamp(row["next_try_at"], UTC),
        attempts=row["attempts"],
        sent_at=datetime.fromtimestamp(row["sent_at"], UTC) if row["sent_at"] is not None else None,
        last_error=row["last_error"],
        given_up=bool(row["given_up"]),
        sent_as=row["sent_as"],
        bounced=row["bounced"],
    )
