"""The baseline: the least that SQLite can do for "one key, one FIFO, one worker", in one table and plain SQL.

One transaction ends a message and pops the next of the same key, or claims another key. No fence, no lease, no
fairness, no retries, no events: nothing here is safe, it only shows what the disk and SQLite allow.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sqlite3
import time
from pathlib import Path

SCHEMA = """
CREATE TABLE messages (
  id     INTEGER PRIMARY KEY,
  key    TEXT NOT NULL,
  body   TEXT NOT NULL,
  owner  INTEGER
) STRICT;
CREATE INDEX of_key ON messages (key, id);
"""
PUT = "INSERT INTO messages (key, body) VALUES (?, ?)"
NEXT_OF_KEY = "SELECT id, key, body FROM messages WHERE key = ? ORDER BY id LIMIT 1"
# Every key of a message that somebody works on is claimed.
NEXT_KEY = """
SELECT id, key, body FROM messages AS waiting
WHERE owner IS NULL AND NOT EXISTS (
  SELECT 1 FROM messages AS held WHERE held.key = waiting.key AND held.owner IS NOT NULL)
ORDER BY id LIMIT 1"""
CLAIM = "UPDATE messages SET owner = ? WHERE id = ?"
DONE = "DELETE FROM messages WHERE id = ?"

Message = tuple[int, str, str]


class RawQueue:
    """One connection to it."""

    def __init__(self, path: Path) -> None:
        self._conn = sqlite3.connect(path, timeout=60, isolation_level=None)
        self._conn.execute("PRAGMA journal_mode = WAL")
        self._conn.execute("PRAGMA synchronous = FULL")

    def create(self) -> None:
        """Make the table."""
        self._conn.executescript(SCHEMA)

    def put(self, key: str, body: str) -> None:
        """One message, synced."""
        self._conn.execute("BEGIN IMMEDIATE")
        self._conn.execute(PUT, (key, body))
        self._conn.execute("COMMIT")

    def next(self, held: Message | None) -> Message | None:
        """End the held message and pop the next: of the same key, or of the first key nobody holds."""
        execute = self._conn.execute
        execute("BEGIN IMMEDIATE")
        found: Message | None = None
        if held:
            execute(DONE, (held[0],))
            found = execute(NEXT_OF_KEY, (held[1],)).fetchone()
        if found is None:
            found = execute(NEXT_KEY).fetchone()
        if found:
            execute(CLAIM, (os.getpid(), found[0]))
        execute("COMMIT")
        return found

    def close(self) -> None:
        """Let go of the file."""
        self._conn.close()


def drain(path: Path) -> tuple[int, float]:
    """Pop until nothing is left; how many messages it was, and when the last one ended."""
    queue = RawQueue(path)
    held, count = queue.next(None), 0
    while held:
        held = queue.next(held)
        count += 1
    queue.close()
    return count, time.time()


def serve(path: Path, address: str) -> list[tuple[str, float]]:
    """Sleep until woken by a datagram, pop what is there, until told to end; body and moment of every start."""
    queue, starts = RawQueue(path), []
    ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ear.bind(address)
    ear.setblocking(False)
    ended = False
    while not ended:
        select.select([ear], [], [])
        with contextlib.suppress(BlockingIOError):
            while not ended:
                ended = ear.recv(16) == b"end"
        held = queue.next(None)
        while held:
            starts.append((held[2], time.time()))
            held = queue.next(held)
    queue.close()
    return starts
