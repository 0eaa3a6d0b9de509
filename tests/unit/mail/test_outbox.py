"""Written replies as SQLite keeps them: small, and those of earlier versions as they were."""

from __future__ import annotations

from datetime import UTC, datetime

from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.model.mail import Reply

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TEXT = b"".join(b"<p>Your page number %d is changed.</p>\r\n" % number for number in range(100))
REPLY = Reply("mail-1", "answer", "scott@example.com", "<1@x>", b"Subject: Re: Spring\r\n\r\n" + TEXT, "thread-1")


def test_a_reply_is_stored_in_less_than_half_of_its_size_and_read_as_it_was_written() -> None:
    db = MemoryDatabase()
    db.migrate()
    outbox = SqliteOutbox(db)
    outbox.put(REPLY, NOON)
    assert [entry.reply for entry in outbox.of("mail-1")] == [REPLY]
    stored = db.conn.execute("SELECT length(raw) AS size FROM outbox").fetchone()["size"]
    assert stored < len(REPLY.raw) / 2


def test_a_reply_that_an_earlier_version_stored_is_read_as_it_is() -> None:
    db = MemoryDatabase()
    db.migrate()
    outbox = SqliteOutbox(db)
    outbox.put(REPLY, NOON)
    db.conn.execute("UPDATE outbox SET raw = ?", (REPLY.raw,))
    assert [entry.reply for entry in outbox.due(NOON, 1)] == [REPLY]
