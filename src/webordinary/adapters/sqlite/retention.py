"""Retention of mails: rows and files of a mail are deleted together, a bounded number at a time.

A thread keeps its id and its owner: an answer to a forgotten mail carries the id in its address, or the thread's
root in References, and goes on in the same thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from webordinary.adapters.durable import disk_errors
from webordinary.adapters.sqlite.database import Database

# Never admitted are mails that were held or refused, and mails without a verdict because their workflow broke off.
FORGETTABLE = """
SELECT email_id, path FROM raw_mails
WHERE started = 1
  AND (received_at < :before OR ((stopped <> '' OR placed = 0) AND received_at < :unadmitted_before))
  AND NOT EXISTS (
    SELECT 1 FROM executions WHERE name >= email_id AND name < email_id || '.' AND finished_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM dead_letters WHERE dead_letters.email_id = raw_mails.email_id)
  AND NOT EXISTS (
    SELECT 1 FROM outbox WHERE outbox.email_id = raw_mails.email_id AND sent_at IS NULL AND given_up = 0)
  AND email_id NOT IN (SELECT email_id FROM jobs)
ORDER BY received_at LIMIT :limit"""
# An execution is named after its mail, a redrive with "-r1" behind it; '.' is the character after '-'.

FORGET = (
    """
UPDATE threads SET subject = ''
WHERE thread_id IN (SELECT thread_id FROM thread_messages WHERE thread_messages.email_id = :email_id)""",
    "DELETE FROM thread_messages WHERE email_id = :email_id",
    "DELETE FROM parsed_mails WHERE email_id = :email_id",
    "DELETE FROM attachments WHERE email_id = :email_id",
    "DELETE FROM confirmations WHERE email_id = :email_id",
    "DELETE FROM outbox WHERE email_id = :email_id",
    "DELETE FROM mail_index WHERE email_id = :email_id",
    "DELETE FROM raw_mails WHERE email_id = :email_id",
)

# Such as alarms to the operator: these answer no mail.
FORGET_OTHER_LETTERS = """
DELETE FROM outbox WHERE outbox_id IN (
  SELECT outbox_id FROM outbox
  WHERE created_at < :before AND (sent_at IS NOT NULL OR given_up = 1)
    AND NOT EXISTS (SELECT 1 FROM raw_mails WHERE raw_mails.email_id = outbox.email_id)
  LIMIT :limit)"""

ATTACHED = """
SELECT json_extract(record, '$.digest') AS digest FROM attachments
UNION SELECT json_extract(record, '$.webp') FROM attachments"""

_BITE = 50


class SqliteRetention:
    """Deletes the mails that are past their retention."""

    def __init__(self, db: Database, data: Path) -> None:
        self._db, self._data = db, data

    def forget(self, before: datetime, unadmitted_before: datetime, limit: int = 1000) -> int:
        """Delete finished mails that came before a time, and mails that were never admitted before another one.

        Mails with an open job, an unsent reply or a dead letter stay.
        """
        values = {"before": before.timestamp(), "unadmitted_before": unadmitted_before.timestamp(), "limit": limit}
        with self._db.read() as conn:
            past = [(row["email_id"], row["path"]) for row in conn.execute(FORGETTABLE, values)]
        for first in range(0, len(past), _BITE):
            self._forget(past[first : first + _BITE])
        with self._db.write() as conn:
            conn.execute(FORGET_OTHER_LETTERS, {"before": before.timestamp(), "limit": limit})
        return len(past)

    def attached(self) -> frozenset[str]:
        """The digests of all files that mails in the store came with."""
        with self._db.read() as conn:
            return frozenset(row["digest"] for row in conn.execute(ATTACHED) if row["digest"])

    def _forget(self, mails: Sequence[tuple[str, str]]) -> None:
        for _, path in mails:  # files first: a crash leaves rows, which the next sweep finds
            with disk_errors(self._data / path):
                (self._data / path).unlink(missing_ok=True)
        with self._db.write() as conn:
            for statement in FORGET:
                conn.executemany(statement, [{"email_id": email_id} for email_id, _ in mails])
