"""Raw mails (files, then rows), their readings and their attachment manifests."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from webordinary.adapters.durable import write_durably
from webordinary.adapters.sqlite.database import Database
from webordinary.mail.authenticate import Held, Refused
from webordinary.mail.errors import UnknownMail
from webordinary.mail.records import (
    attachment_from_json,
    attachment_to_json,
    mail_from_json,
    mail_to_json,
    verdicts_from_json,
    verdicts_to_json,
)
from webordinary.model.errors import Permanent, Transient, WebOrdinaryError
from webordinary.model.mail import Attachment, Email, Envelope, ParsedMail, RefusedAttachment

HAS = "SELECT 1 FROM raw_mails WHERE email_id = ?"

STORE = """
INSERT INTO raw_mails (email_id, path, peer, mail_from, recipient, size, received_at, verdicts)
VALUES (:email_id, :path, :peer, :mail_from, :recipient, :size, :received_at, :verdicts)
ON CONFLICT (email_id) DO NOTHING"""

LOAD = "SELECT path, peer, mail_from, recipient, received_at, verdicts FROM raw_mails WHERE email_id = ?"

MARK_STARTED = "UPDATE raw_mails SET started = 1 WHERE email_id = ? AND started = 0"

MARK_PLACED = "UPDATE raw_mails SET placed = 1 WHERE email_id = ? AND placed = 0"

EARLIER_UNPLACED = """
SELECT 1 FROM raw_mails AS mine
JOIN raw_mails AS earlier ON earlier.mail_from = mine.mail_from AND earlier.placed = 0
WHERE mine.email_id = ? AND earlier.received_at < mine.received_at AND earlier.received_at >= ?
LIMIT 1"""

WITHOUT_WORKFLOW = """
SELECT email_id FROM raw_mails WHERE started = 0 ORDER BY received_at, email_id LIMIT ?"""

SAVE_PARSED = """
INSERT INTO parsed_mails (email_id, message_id, sender, subject, record, parsed_at)
VALUES (:email_id, :message_id, :sender, :subject, :record, :parsed_at)
ON CONFLICT (email_id) DO NOTHING"""

LOAD_PARSED = "SELECT record FROM parsed_mails WHERE email_id = ?"

SAVE_ATTACHMENT = """
INSERT INTO attachments (email_id, position, record) VALUES (:email_id, :position, :record)
ON CONFLICT (email_id, position) DO UPDATE SET record = excluded.record"""

ATTACHMENTS_OF = "SELECT record FROM attachments WHERE email_id = ? ORDER BY position"


class SqliteRawMails:
    """Rows in the database, bytes under `mail/` of the data folder."""

    def __init__(self, db: Database, data: Path) -> None:
        self._db, self._data = db, data

    def store(self, email: Email) -> bool:
        """See RawMails."""
        if self._has(email.email_id):
            return False
        name = f"mail/{email.email_id[:2]}/{email.email_id}.eml"
        path = self._data / name
        write_durably(path, email.raw)
        try:
            return self._insert(email, name, path)
        except BaseException:
            self._remove_unless_accepted(email.email_id, path)
            raise

    def _insert(self, email: Email, name: str, path: Path) -> bool:
        with self._db.write() as conn:
            # A delivery of the same mail that failed at this moment may have taken the file away with it.
            if not path.exists():
                raise Transient(f"{path} vanished while the mail was being accepted: it will be sent again")
            row = {
                "email_id": email.email_id,
                "path": name,
                "peer": email.envelope.peer,
                "mail_from": email.envelope.mail_from,
                "recipient": email.envelope.recipient,
                "size": len(email.raw),
                "received_at": email.envelope.received_at.timestamp(),
                "verdicts": verdicts_to_json(email.envelope.verdicts),
            }
            return conn.execute(STORE, row).rowcount == 1

    def _remove_unless_accepted(self, email_id: str, path: Path) -> None:
        """Under the write lock, so that no other delivery of the same mail commits in between."""
        with suppress(WebOrdinaryError, OSError), self._db.write() as conn:
            if conn.execute(HAS, (email_id,)).fetchone() is None:
                path.unlink(missing_ok=True)

    def _has(self, email_id: str) -> bool:
        with self._db.read() as conn:
            return conn.execute(HAS, (email_id,)).fetchone() is not None

    def load(self, email_id: str) -> Email:
        """See RawMails."""
        row = self._row(email_id)
        path = self._data / row["path"]
        try:
            return Email(email_id, _envelope(row), path.read_bytes())
        except FileNotFoundError as problem:
            raise Permanent(f"{path} is gone though its mail was accepted: restore a backup") from problem
        except OSError as problem:
            raise Transient(f"{path} cannot be read ({problem.strerror}): check the disk") from problem

    def envelope(self, email_id: str) -> Envelope:
        """See RawMails."""
        return _envelope(self._row(email_id))

    def _row(self, email_id: str) -> sqlite3.Row:
        with self._db.read() as conn:
            row: sqlite3.Row | None = conn.execute(LOAD, (email_id,)).fetchone()
        if row is None:
            raise UnknownMail(email_id)
        return row

    def mark_started(self, email_id: str) -> None:
        """See RawMails."""
        with self._db.write() as conn:
            conn.execute(MARK_STARTED, (email_id,))

    def mark_placed(self, email_id: str, stopped: Held | Refused | None = None) -> None:
        """See RawMails. What became of it, the events tell."""
        with self._db.write() as conn:
            conn.execute(MARK_PLACED, (email_id,))

    def waits_for_earlier(self, email_id: str, since: datetime) -> bool:
        """See RawMails."""
        with self._db.read() as conn:
            return conn.execute(EARLIER_UNPLACED, (email_id, since.timestamp())).fetchone() is not None

    def without_workflow(self, limit: int) -> tuple[str, ...]:
        """See RawMails."""
        with self._db.read() as conn:
            return tuple(row["email_id"] for row in conn.execute(WITHOUT_WORKFLOW, (limit,)))


def _envelope(row: sqlite3.Row) -> Envelope:
    received_at, verdicts = datetime.fromtimestamp(row["received_at"], UTC), verdicts_from_json(row["verdicts"])
    return Envelope(row["peer"], row["mail_from"], row["recipient"], received_at, verdicts)


class SqliteParsedMails:
    """Readings as JSON, with the columns that lists are made of."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, email_id: str, mail: ParsedMail, now: datetime) -> None:
        """See ParsedMails."""
        row = {
            "email_id": email_id,
            "message_id": mail.message_id,
            "sender": mail.sender,
            "subject": mail.subject,
            "record": mail_to_json(mail),
            "parsed_at": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(SAVE_PARSED, row)

    def load(self, email_id: str) -> ParsedMail | None:
        """See ParsedMails."""
        with self._db.read() as conn:
            row = conn.execute(LOAD_PARSED, (email_id,)).fetchone()
        return mail_from_json(row["record"]) if row else None


class SqliteAttachmentManifest:
    """One row per position."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, email_id: str, position: int, record: Attachment | RefusedAttachment) -> None:
        """See AttachmentManifest."""
        row = {"email_id": email_id, "position": position, "record": attachment_to_json(record)}
        with self._db.write() as conn:
            conn.execute(SAVE_ATTACHMENT, row)

    def of(self, email_id: str) -> tuple[Attachment | RefusedAttachment, ...]:
        """See AttachmentManifest."""
        with self._db.read() as conn:
            return tuple(attachment_from_json(r["record"]) for r in conn.execute(ATTACHMENTS_OF, (email_id,)))
