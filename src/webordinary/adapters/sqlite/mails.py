"""Raw mails (files, then rows), their readings and their attachment manifests.

The file of a mail begins with a line that holds its envelope, so that the row can be made again from the file.

Retention: rows and files of a mail are deleted together, a bounded number at a time. A thread keeps its id and its
owner: an answer to a forgotten mail carries the id in its address, or the thread's root in References, and goes on in
the same thread.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

from webordinary.adapters.durable import disk_errors, write_durably
from webordinary.adapters.records import (
    attachment_from_json,
    attachment_to_json,
    envelope_from_json,
    envelope_to_json,
    mail_from_json,
    mail_to_json,
    verdicts_from_json,
    verdicts_to_json,
)
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import packed, unpacked
from webordinary.mail.auth import AwaitsConfirmation, Refused
from webordinary.mail.confirm import SenderQuestion
from webordinary.mail.parsing.headers import HEAD_BYTES
from webordinary.mail.ports import UnknownMail
from webordinary.model.errors import Permanent, Transient, WebOrdinaryError
from webordinary.model.mail import Attachment, Email, Envelope, ParsedMail, RefusedAttachment
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender, SenderRole, Thread

WITH_ENVELOPE = ".mail"
"""The suffix of mail files; files that earlier versions wrote end in .eml and hold no envelope."""
ENVELOPE_HEADER = "X-WebOrdinary-Envelope: "

HAS = "SELECT 1 FROM raw_mails WHERE email_id = ?"
UNADMITTED_BYTES = "SELECT total(size + 4096) FROM raw_mails WHERE stopped <> '' OR placed = 0"  # a file fills blocks

STORE = """
INSERT INTO raw_mails (email_id, path, peer, mail_from, recipient, size, received_at, verdicts)
VALUES (:email_id, :path, :peer, :mail_from, :recipient, :size, :received_at, :verdicts)
ON CONFLICT (email_id) DO NOTHING"""

LOAD = "SELECT path, peer, mail_from, recipient, received_at, verdicts FROM raw_mails WHERE email_id = ?"

IS_STARTED = "SELECT started FROM raw_mails WHERE email_id = ?"
MARK_STARTED = "UPDATE raw_mails SET started = 1 WHERE email_id = ? AND started = 0"

MARK_PLACED = "UPDATE raw_mails SET placed = 1, stopped = :stopped WHERE email_id = :email_id AND placed = 0"

RELEASE = """
UPDATE raw_mails SET stopped = '', released = 1, started = 0, placed = 0 WHERE email_id = ? AND stopped = 'held'"""
DROP = "UPDATE raw_mails SET stopped = 'dropped' WHERE email_id = ? AND stopped = 'held'"
RECONSIDER = "UPDATE raw_mails SET stopped = '', placed = 0 WHERE email_id = ? AND stopped = 'refused'"
IS_CLOSED = "SELECT 1 FROM events WHERE email_id = ? AND kind = 'MailClosed' LIMIT 1"
IS_RELEASED = "SELECT 1 FROM raw_mails WHERE email_id = ? AND released = 1"

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

    def __init__(self, db: Database, data: Path, write: Callable[[Path, bytes], None] = write_durably) -> None:
        self._db, self._data, self._write = db, data, write

    def store(self, email: Email) -> bool:
        with self._db.read() as conn:
            if conn.execute(HAS, (email.email_id,)).fetchone():
                return False
        name = f"mail/{email.email_id[:2]}/{email.email_id}{WITH_ENVELOPE}"
        path = self._data / name
        first_line = f"{ENVELOPE_HEADER}{envelope_to_json(email.envelope)}\r\n"
        self._write(path, first_line.encode() + email.raw)
        try:
            return self._insert(email, name, path)
        except BaseException:
            self._remove_unless_accepted(email.email_id, path)
            raise

    def take_up(self, path: Path) -> str:
        """Make the row of a mail again from its file; raises ValueError where the file holds no envelope."""
        with path.open("rb") as file:
            envelope, raw = _read_first_line(file), file.read()
        email = Email(path.stem, envelope, raw)
        self._insert(email, str(path.relative_to(self._data)), path)
        return email.email_id

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

    def unadmitted_bytes(self) -> int:
        """What the mails take that were never admitted, or not yet."""
        with self._db.read() as conn:
            return int(conn.execute(UNADMITTED_BYTES).fetchone()[0])

    def load(self, email_id: str) -> Email:
        return self._read(email_id, -1)

    def head(self, email_id: str) -> Email:
        return self._read(email_id, HEAD_BYTES + 1)

    def _read(self, email_id: str, size: int) -> Email:
        row = self._row(email_id)
        path = self._data / row["path"]
        try:
            with path.open("rb") as file:
                if path.suffix == WITH_ENVELOPE:
                    file.readline()
                return Email(email_id, _envelope(row), file.read(size))
        except FileNotFoundError as problem:
            raise Permanent(f"{path} is gone though its mail was accepted: restore a backup") from problem
        except OSError as problem:
            raise Transient(f"{path} cannot be read ({problem.strerror}): check the disk") from problem

    def envelope(self, email_id: str) -> Envelope:
        return _envelope(self._row(email_id))

    def _row(self, email_id: str) -> sqlite3.Row:
        with self._db.read() as conn:
            row: sqlite3.Row | None = conn.execute(LOAD, (email_id,)).fetchone()
        if row is None:
            raise UnknownMail(email_id)
        return row

    def mark_started(self, email_id: str) -> None:
        with self._db.read() as conn:
            row = conn.execute(IS_STARTED, (email_id,)).fetchone()
        if row is None or row["started"]:  # SqliteExecutions.start has marked it already
            return
        with self._db.write() as conn:
            conn.execute(MARK_STARTED, (email_id,))

    def mark_placed(self, email_id: str, stopped: AwaitsConfirmation | Refused | None = None) -> None:
        """See RawMails. The reason is in the events."""
        with self._db.write() as conn:
            conn.execute(MARK_PLACED, {"email_id": email_id, "stopped": stopped.word if stopped else ""})

    def release(self, email_id: str) -> bool:
        with self._db.write() as conn:
            return conn.execute(RELEASE, (email_id,)).rowcount == 1

    def drop(self, email_id: str) -> bool:
        with self._db.write() as conn:
            return conn.execute(DROP, (email_id,)).rowcount == 1

    def is_released(self, email_id: str) -> bool:
        with self._db.read() as conn:
            return conn.execute(IS_RELEASED, (email_id,)).fetchone() is not None

    def reconsider(self, email_id: str) -> None:
        with self._db.write() as conn:
            conn.execute(RECONSIDER, (email_id,))

    def note_closed(self, email_id: str) -> None:
        """Nothing to write: the stored event says it."""

    def is_closed(self, email_id: str) -> bool:
        with self._db.read() as conn:
            return conn.execute(IS_CLOSED, (email_id,)).fetchone() is not None

    def waits_for_earlier(self, email_id: str, since: datetime) -> bool:
        with self._db.read() as conn:
            return conn.execute(EARLIER_UNPLACED, (email_id, since.timestamp())).fetchone() is not None

    def without_workflow(self, limit: int) -> tuple[str, ...]:
        with self._db.read() as conn:
            return tuple(row["email_id"] for row in conn.execute(WITHOUT_WORKFLOW, (limit,)))


def _read_first_line(file: BinaryIO) -> Envelope:
    name, _, record = file.readline().decode().partition(" ")
    if name != ENVELOPE_HEADER.strip():
        raise ValueError("the file has no envelope")
    return envelope_from_json(record)


def _envelope(row: sqlite3.Row) -> Envelope:
    received_at, verdicts = datetime.fromtimestamp(row["received_at"], UTC), verdicts_from_json(row["verdicts"])
    return Envelope(row["peer"], row["mail_from"], row["recipient"], received_at, verdicts)


ASK = """
INSERT INTO confirmations (digest, email_id, address, day, expires_at)
SELECT :digest, :email_id, :address, :day, :expires_at
WHERE (SELECT count(DISTINCT email_id) FROM confirmations
       WHERE address = :address AND day = :day AND email_id <> :email_id) < :daily_limit"""
FIND_QUESTION = "SELECT email_id FROM confirmations WHERE digest = ? AND used_at IS NULL AND expires_at > ?"
MARK_USED = "UPDATE confirmations SET used_at = ? WHERE digest = ? AND used_at IS NULL"


class SqliteConfirmations:
    """See Confirmations. Rows are forgotten with their mail."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def ask(self, question: SenderQuestion, daily_limit: int) -> bool:
        row = {
            "digest": question.digest,
            "email_id": question.email_id,
            "address": question.address,
            "day": question.asked_at.date().isoformat(),
            "expires_at": question.expires_at.timestamp(),
            "daily_limit": daily_limit,
        }
        with self._db.write() as conn:
            return conn.execute(ASK, row).rowcount == 1

    def find(self, digest: str, now: datetime) -> str:
        with self._db.read() as conn:
            row = conn.execute(FIND_QUESTION, (digest, now.timestamp())).fetchone()
        return str(row["email_id"]) if row else ""

    def use(self, digest: str, now: datetime) -> None:
        with self._db.write() as conn:
            conn.execute(MARK_USED, (now.timestamp(), digest))


COUNTED = "SELECT count(*) FROM hourly_mails WHERE scope = ? AND hour = ? AND email_id <> ?"
COUNT = "INSERT OR IGNORE INTO hourly_mails (scope, hour, email_id) VALUES (?, ?, ?)"
COUNTED_SINCE = "SELECT email_id FROM hourly_mails WHERE scope = ? AND hour BETWEEN ? AND ? ORDER BY hour, email_id"
FORGET_HOURS = "DELETE FROM hourly_mails WHERE scope = ? AND hour < ? - 24"


class SqliteHourlyRates:
    """See HourlyRates. Rows that are older than a day are deleted with the next mail of their scope."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def admit(self, scope: str, email_id: str, limit: int, now: datetime) -> bool:
        hour = int(now.timestamp() // 3600)
        with self._db.write() as conn:
            if conn.execute(COUNTED, (scope, hour, email_id)).fetchone()[0] >= limit:
                return False
            conn.execute(COUNT, (scope, hour, email_id))
            conn.execute(FORGET_HOURS, (scope, hour))
            return True

    def counted(self, scope: str, since: datetime, now: datetime) -> Sequence[str]:
        hours = (int(at.timestamp() // 3600) for at in (since, now))
        with self._db.read() as conn:
            return [row["email_id"] for row in conn.execute(COUNTED_SINCE, (scope, *hours))]


class SqliteParsedMails:
    """Readings as packed JSON, with the columns that lists are made of."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, email_id: str, mail: ParsedMail, now: datetime) -> None:
        row = {
            "email_id": email_id,
            "message_id": mail.message_id,
            "sender": mail.sender,
            "subject": mail.subject,
            "record": packed(mail_to_json(mail).encode()),
            "parsed_at": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(SAVE_PARSED, row)

    def load(self, email_id: str) -> ParsedMail | None:
        with self._db.read() as conn:
            row = conn.execute(LOAD_PARSED, (email_id,)).fetchone()
        return mail_from_json(unpacked(row["record"])) if row else None


class SqliteAttachmentManifest:
    """One row per position."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, email_id: str, position: int, record: Attachment | RefusedAttachment) -> None:
        row = {"email_id": email_id, "position": position, "record": attachment_to_json(record)}
        with self._db.write() as conn:
            conn.execute(SAVE_ATTACHMENT, row)

    def of(self, email_id: str) -> tuple[Attachment | RefusedAttachment, ...]:
        with self._db.read() as conn:
            return tuple(attachment_from_json(r["record"]) for r in conn.execute(ATTACHMENTS_OF, (email_id,)))


FIND = """
SELECT t.* FROM thread_messages AS m JOIN threads AS t USING (thread_id) WHERE m.message_id = ?"""

GET = "SELECT * FROM threads WHERE thread_id = ?"

RECORD = """
INSERT INTO threads (thread_id, key, subject, agent_session, created_at)
VALUES (:thread_id, :key, :subject, :agent_session, :now)
ON CONFLICT (thread_id) DO NOTHING"""

ADD_MESSAGE = """
INSERT INTO thread_messages (message_id, thread_id, email_id) VALUES (?, ?, ?) ON CONFLICT (message_id) DO NOTHING"""
# The first thread keeps a Message-ID, so that a forged copy of an id cannot move a conversation.

MAIL_OF = "SELECT email_id FROM thread_messages WHERE message_id = ?"

SAVE_SESSION = "UPDATE threads SET agent_session = ? WHERE thread_id = ?"


class SqliteThreads:
    """See Threads."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def find(self, message_ids: Sequence[str]) -> Thread | None:
        with self._db.read() as conn:
            for message_id in message_ids:
                if row := conn.execute(FIND, (message_id,)).fetchone():
                    return _thread(row)
        return None

    def get(self, thread_id: str) -> Thread | None:
        with self._db.read() as conn:
            row = conn.execute(GET, (thread_id,)).fetchone()
        return _thread(row) if row else None

    def record(self, thread: Thread, message_id: str, now: datetime, email_id: str = "") -> Thread:
        row = {
            "thread_id": thread.thread_id,
            "key": thread.key.text,
            "subject": thread.subject,
            "agent_session": thread.agent_session,
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(RECORD, row)
            conn.execute(ADD_MESSAGE, (message_id, thread.thread_id, email_id))
            return _thread(conn.execute(GET, (thread.thread_id,)).fetchone())

    def add_message(self, thread_id: str, message_id: str, email_id: str = "") -> None:
        try:
            with self._db.write() as conn:
                conn.execute(ADD_MESSAGE, (message_id, thread_id, email_id))
        except sqlite3.IntegrityError as problem:
            raise Permanent(f"thread {thread_id} is not recorded: {message_id} cannot join it") from problem

    def mail_of(self, message_ids: Sequence[str]) -> str:
        with self._db.read() as conn:
            for message_id in message_ids:
                if row := conn.execute(MAIL_OF, (message_id,)).fetchone():
                    return str(row["email_id"])
        return ""

    def save_session(self, thread_id: str, agent_session: str) -> None:
        with self._db.write() as conn:
            conn.execute(SAVE_SESSION, (agent_session, thread_id))


def _thread(row: sqlite3.Row) -> Thread:
    return Thread(row["thread_id"], ProjectUser.parse(row["key"]), row["subject"], row["agent_session"])


ENTRIES = "SELECT address, project_id, user_id, role FROM senders WHERE address = ? ORDER BY project_id"

SENDERS = "SELECT address, project_id, user_id, role FROM senders ORDER BY project_id, address"

PROJECT = "SELECT settings FROM projects WHERE project_id = ?"

PROJECTS = "SELECT settings FROM projects ORDER BY project_id"

ADD_PROJECT = """
INSERT INTO projects (project_id, settings, created_at) VALUES (:project_id, :settings, :now)
ON CONFLICT (project_id) DO UPDATE SET settings = excluded.settings"""

CHANGE_PROJECT = "UPDATE projects SET settings = ? WHERE project_id = ?"

ADD_SENDER = """
INSERT INTO senders (address, project_id, user_id, created_at) VALUES (:address, :project_id, :user_id, :now)
ON CONFLICT (address, project_id) DO UPDATE SET user_id = excluded.user_id"""

SET_ROLE = "UPDATE senders SET role = ?3 WHERE address = ?1 AND project_id = ?2"

REMOVE_SENDER = "DELETE FROM senders WHERE address = ? AND project_id = ?"

REMOVE_SENDERS = "DELETE FROM senders WHERE project_id = ?"

REMOVE_PROJECT = "DELETE FROM projects WHERE project_id = ?"


class SqliteDirectory:
    """See Directory."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def entries(self, address: str) -> tuple[Sender, ...]:
        with self._db.read() as conn:
            return tuple(_sender(row) for row in conn.execute(ENTRIES, (address.lower(),)))

    def project(self, project_id: str) -> Project | None:
        with self._db.read() as conn:
            row = conn.execute(PROJECT, (project_id,)).fetchone()
        return _project_of(row["settings"]) if row else None

    def projects(self) -> tuple[Project, ...]:
        with self._db.read() as conn:
            return tuple(_project_of(settings) for (settings,) in conn.execute(PROJECTS))

    def senders(self) -> tuple[Sender, ...]:
        with self._db.read() as conn:
            return tuple(_sender(row) for row in conn.execute(SENDERS))

    def add_project(self, project: Project, now: datetime) -> None:
        row = {
            "project_id": project.project_id,
            "settings": _settings(project),
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(ADD_PROJECT, row)

    def change_project(self, before: Project, after: Project) -> bool:
        with self._db.write() as conn:
            row = conn.execute(PROJECT, (before.project_id,)).fetchone()
            if row is None or _project_of(row["settings"]) != before:
                return False
            return conn.execute(CHANGE_PROJECT, (_settings(after), before.project_id)).rowcount > 0

    def add_sender(self, sender: Sender, now: datetime) -> None:
        row = {
            "address": sender.address.lower(),
            "project_id": sender.key.project_id,
            "user_id": sender.key.user_id,
            "now": now.timestamp(),
        }
        try:
            with self._db.write() as conn:
                conn.execute(ADD_SENDER, row)
        except sqlite3.IntegrityError as problem:
            raise Permanent(f"there is no project {sender.key.project_id}: add it first") from problem

    def set_role(self, address: str, project_id: str, role: SenderRole) -> bool:
        with self._db.write() as conn:
            return conn.execute(SET_ROLE, (address.lower(), project_id, role.value)).rowcount > 0

    def remove_sender(self, address: str, project_id: str) -> None:
        with self._db.write() as conn:
            conn.execute(REMOVE_SENDER, (address.lower(), project_id))

    def remove_project(self, project_id: str) -> None:
        with self._db.write() as conn:
            conn.execute(REMOVE_SENDERS, (project_id,))
            conn.execute(REMOVE_PROJECT, (project_id,))


def _sender(row: sqlite3.Row) -> Sender:
    return Sender(row["address"], ProjectUser.parse(f"{row['project_id']}#{row['user_id']}"), SenderRole(row["role"]))


def _settings(project: Project) -> str:
    return json.dumps(asdict(project), ensure_ascii=False)


@lru_cache(maxsize=1024)
def _project_of(settings: str) -> Project:
    """Pages of the console read all sites; most are as they were."""
    return Project(**json.loads(settings))


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

# A deleted row leaves its words in the index until its segments are merged: first all are, then the rest in bites.
MERGE_SEARCH = "INSERT INTO mail_search (mail_search, rank) VALUES ('merge', ?)"

_BITE = 50
_MERGED_PAGES, _MOST_MERGES = 500, 40


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
        if past:
            self._forget_words()
        return len(past)

    def attached(self) -> frozenset[str]:
        """The digests of all files that mails in the store came with."""
        with self._db.read() as conn:
            return frozenset(row["digest"] for row in conn.execute(ATTACHED) if row["digest"])

    def _forget_words(self) -> None:
        """Remove the words of deleted mails from the index of the search, a bounded number of pages at a time."""
        for merged_pages in (-_MERGED_PAGES, *repeat(_MERGED_PAGES, _MOST_MERGES)):
            with self._db.write() as conn:
                before = conn.total_changes
                conn.execute(MERGE_SEARCH, (merged_pages,))
                if merged_pages > 0 and conn.total_changes - before < 2:
                    return

    def _forget(self, mails: Sequence[tuple[str, str]]) -> None:
        for _, path in mails:  # files first: a crash leaves rows, which the next sweep finds
            with disk_errors(self._data / path):
                (self._data / path).unlink(missing_ok=True)
        with self._db.write() as conn:
            for statement in FORGET:
                conn.executemany(statement, [{"email_id": email_id} for email_id, _ in mails])
