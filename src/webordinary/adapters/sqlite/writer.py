"""One writer per process: threads that want the disk at the same time share one transaction and its sync."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from webordinary.model.errors import Transient

BUSY_SECONDS = 10.0
# SQLite's own busy handler sleeps up to 100 ms at a time, and starves whoever has waited longest.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.001, 0.008
_MAX_MEMBERS = 16
_ABANDONED_SECONDS = 0.5


class Rider(Protocol):
    """Rows that travel with whatever transaction comes next, so that they cost no sync of their own."""

    def board(self, conn: sqlite3.Connection) -> None:
        """Add rows, if any are due; called just before the commit."""

    def arrived(self) -> None:
        """What boarded is on disk."""

    def missed(self) -> None:
        """The transaction did not happen; keep what boarded for the next."""


class _Group:
    """A transaction with the changes of one or more threads. They return when it is on disk, or fail together."""

    def __init__(self) -> None:
        self.members = 0
        self.error: BaseException | None = None
        self.ended = threading.Event()


class Writer:
    """Lets one thread at a time change the file. The last of those who stand in line commits for all of them."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._conn: sqlite3.Connection | None = None
        self._turn = threading.Lock()
        self._owner: int | None = None
        self._line, self._line_guard = 0, threading.Lock()
        self._group: _Group | None = None
        self.rider: Rider | None = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block is on disk afterwards, or nothing of it."""
        self._take_turn()
        problem: BaseException | None = None
        try:
            conn = self._conn = self._conn or self._connect()
            group = self._join(conn)
            try:
                yield conn
            except BaseException as raised:
                problem = raised
                self._take_back(conn, group, raised)
            else:
                self._keep(conn, group)
            if self._group and not self._left_to_the_next(group):
                self._commit(conn, group)
        finally:
            self._owner = None
            self._turn.release()
        if problem and group.error is problem:
            raise problem
        self._wait_for(group)  # also before an error is told: it may rest on what another member has changed
        if problem:
            raise problem

    def close(self) -> None:
        """Let go of the file."""
        with self._turn:
            if self._conn:
                if self._group:
                    self._commit(self._conn, self._group)
                self._conn.close()
            self._conn = None

    def _take_turn(self) -> None:
        if self._owner == threading.get_ident():
            raise RuntimeError("a write inside a write: pass the connection on instead")
        with self._line_guard:
            self._line += 1
        try:
            self._turn.acquire()
        finally:
            with self._line_guard:
                self._line -= 1
        self._owner = threading.get_ident()

    def _join(self, conn: sqlite3.Connection) -> _Group:
        if self._group:
            conn.execute("SAVEPOINT member")
        else:
            begin(conn)
            self._group = _Group()
        return self._group

    def _keep(self, conn: sqlite3.Connection, group: _Group) -> None:
        if group.members:
            conn.execute("RELEASE member")
        group.members += 1

    def _take_back(self, conn: sqlite3.Connection, group: _Group, problem: BaseException) -> None:
        """Undo one member's part. Where SQLite gave the whole transaction up, the others hear of it."""
        if group.members and conn.in_transaction:
            conn.execute("ROLLBACK TO member")
            conn.execute("RELEASE member")
            return
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        self._end(group, problem)

    def _left_to_the_next(self, group: _Group) -> bool:
        """The next in line has its turn in a moment, and commits for this thread too."""
        return self._line > 0 and group.members < _MAX_MEMBERS

    def _commit(self, conn: sqlite3.Connection, group: _Group) -> None:
        try:
            if self.rider:
                self.rider.board(conn)
            conn.execute("COMMIT")
        except BaseException as problem:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            if self.rider:
                self.rider.missed()
            self._end(group, problem)
            raise
        self._end(group, None)
        if self.rider:
            self.rider.arrived()

    def _end(self, group: _Group, error: BaseException | None) -> None:
        self._group = None
        group.error = error
        group.ended.set()

    def _wait_for(self, group: _Group) -> None:
        while not group.ended.wait(_ABANDONED_SECONDS):
            with self._turn:  # whoever was to commit was torn out of the line
                if self._group is group and self._conn:
                    self._commit(self._conn, group)
        if group.error:
            raise Transient(f"a shared write failed: {group.error}; it will be tried again") from group.error


def begin(conn: sqlite3.Connection) -> None:
    """Wait for the writers of other processes, in short naps."""
    pause, deadline = _FIRST_PAUSE_SECONDS, time.monotonic() + BUSY_SECONDS
    while True:
        try:
            conn.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_SECONDS, pause * 2)
