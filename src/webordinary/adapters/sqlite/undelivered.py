"""Replies that did not reach their customer, for an operator who has mended the reason."""

from __future__ import annotations

from datetime import UTC, datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.mail.ports import Undelivered

FAILED = """
SELECT email_id, kind, recipient, created_at, next_try_at, attempts, last_error, given_up FROM outbox
WHERE sent_at IS NULL AND (given_up = 1 OR attempts > 0) ORDER BY outbox_id DESC LIMIT :limit"""

SEND_AGAIN = """
UPDATE outbox SET given_up = 0, attempts = 0, next_try_at = :now
WHERE email_id = :email_id AND kind = :kind AND sent_at IS NULL"""


class SqliteUndelivered:
    """See UndeliveredReplies."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def all(self, limit: int) -> list[Undelivered]:
        """See UndeliveredReplies."""
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
        """See UndeliveredReplies."""
        row = {"email_id": reply.email_id, "kind": reply.kind, "now": now.timestamp()}
        with self._db.write() as conn:
            return conn.execute(SEND_AGAIN, row).rowcount == 1
