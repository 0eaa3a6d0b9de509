"""Mail conversations in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from webordinary.adapters.sqlite.database import Database
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Thread

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
        """See Threads."""
        with self._db.read() as conn:
            rows = (conn.execute(FIND, (message_id,)).fetchone() for message_id in message_ids)
            row = next((row for row in rows if row is not None), None)
        return _thread(row) if row else None

    def get(self, thread_id: str) -> Thread | None:
        """See Threads."""
        with self._db.read() as conn:
            row = conn.execute(GET, (thread_id,)).fetchone()
        return _thread(row) if row else None

    def record(self, thread: Thread, message_id: str, now: datetime, email_id: str = "") -> Thread:
        """See Threads."""
        row = {
            "thread_id": thread.thread_id,
            "key": str(thread.key),
            "subject": thread.subject,
            "agent_session": thread.agent_session,
            "now": now.timestamp(),
        }
        with self._db.write() as conn:
            conn.execute(RECORD, row)
            conn.execute(ADD_MESSAGE, (message_id, thread.thread_id, email_id))
            return _thread(conn.execute(GET, (thread.thread_id,)).fetchone())

    def add_message(self, thread_id: str, message_id: str, email_id: str = "") -> None:
        """See Threads."""
        try:
            with self._db.write() as conn:
                conn.execute(ADD_MESSAGE, (message_id, thread_id, email_id))
        except sqlite3.IntegrityError as problem:
            raise Permanent(f"thread {thread_id} is not recorded: {message_id} cannot join it") from problem

    def mail_of(self, message_ids: Sequence[str]) -> str:
        """See Threads."""
        with self._db.read() as conn:
            rows = (conn.execute(MAIL_OF, (message_id,)).fetchone() for message_id in message_ids)
            row = next((row for row in rows if row is not None), None)
        return str(row["email_id"]) if row else ""

    def save_session(self, thread_id: str, agent_session: str) -> None:
        """See Threads."""
        with self._db.write() as conn:
            conn.execute(SAVE_SESSION, (agent_session, thread_id))


def _thread(row: sqlite3.Row) -> Thread:
    return Thread(row["thread_id"], ProjectUser.parse(row["key"]), row["subject"], row["agent_session"])
