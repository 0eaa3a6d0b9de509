"""One writer per process: threads that want the disk at the same time share one transaction and its sync."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
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


class Group:
    """A transaction with the changes of one or more threads. They return when it is on disk, or fail together."""

    __slots__ = ("_under_way", "conn", "ended", "error", "members")

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn
        self.members = 0
        self.ended = False
        self.error: BaseException | None = None
        self._under_way = threading.Lock()
        self._under_way.acquire()

    def end(self, error: BaseException | None) -> None:
        """It is on disk, or failed."""
        self.error, self.ended = error, True
        self._under_way.release()

    def wait(self, seconds: float) -> bool:
        """True as soon as it has ended; False when the time is over first."""
        ended = self._under_way.acquire(timeout=seconds)
        if ended:
            self._under_way.release()  # for the next who waits
        return ended


class Writer:
    """Lets one thread at a time change the file. The last of those who stand in line commits for all of them."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._conn: sqlite3.Connection | None = None
        self._turn = threading.Lock()
        self._owner: int | None = None
        self._line: deque[int] = deque()
        self._group: Group | None = None
        self.rider: Rider | None = None

    def enter(self) -> Group:
        """Wait for the turn, and begin a transaction or join the one that is open."""
        self._take_turn()
        try:
            if self._group:
                self._group.conn.execute("SAVEPOINT member")
            else:
                self._group = self._begin()
        except BaseException:
            self._pass_turn()
            raise
        return self._group

    def leave(self, group: Group, problem: BaseException | None) -> None:
        """Keep what was changed since `enter`, or take it back if there was a problem; return when it is on disk."""
        try:
            if problem is None:
                self._keep(group)
            else:
                self._take_back(group, problem)
            if not group.ended and not self._left_to_the_next(group):
                self._commit(group)
        finally:
            self._pass_turn()
        if not group.ended:
            self._wait_for(group)
        if group.error and group.error is not problem:
            # Also instead of a member's own problem: that may rest on what another member had changed.
            raise Transient(f"a shared write failed: {group.error}; it will be tried again") from group.error

    def close(self) -> None:
        """Let go of the file."""
        with self._turn:
            if self._group:
                self._commit(self._group)
            if self._conn:
                self._conn.close()
            self._conn = None

    def _take_turn(self) -> None:
        me = threading.get_ident()
        if self._owner == me:
            raise RuntimeError("a write inside a write: pass the connection on instead")
        if not self._turn.acquire(blocking=False):
            self._line.append(me)
            try:
                self._turn.acquire()
            finally:
                self._line.remove(me)
        self._owner = me

    def _pass_turn(self) -> None:
        self._owner = None
        self._turn.release()

    def _begin(self) -> Group:
        conn = self._conn = self._conn or self._connect()
        begin(conn)
        return Group(conn)

    def _keep(self, group: Group) -> None:
        if group.members:
            group.conn.execute("RELEASE member")
        group.members += 1

    def _take_back(self, group: Group, problem: BaseException) -> None:
        """Undo one member's part. Where SQLite gave the whole transaction up, the others hear of it."""
        if group.members and group.conn.in_transaction:
            group.conn.execute("ROLLBACK TO member")
            group.conn.execute("RELEASE member")
            return
        if group.conn.in_transaction:
            group.conn.execute("ROLLBACK")
        self._end(group, problem)

    def _left_to_the_next(self, group: Group) -> bool:
        """The next in line has its turn in a moment, and commits for this thread too."""
        return bool(self._line) and group.members < _MAX_MEMBERS

    def _commit(self, group: Group) -> None:
        try:
            if self.rider:
                self.rider.board(group.conn)
            group.conn.execute("COMMIT")
        except BaseException as problem:
            if group.conn.in_transaction:
                group.conn.execute("ROLLBACK")
            if self.rider:
                self.rider.missed()
            self._end(group, problem)
            raise
        self._end(group, None)
        if self.rider:
            self.rider.arrived()

    def _end(self, group: Group, error: BaseException | None) -> None:
        self._group = None
        group.end(error)

    def _wait_for(self, group: Group) -> None:
        while not group.wait(_ABANDONED_SECONDS):
            with self._turn:  # whoever was to commit was torn out of the line
                if not group.ended:
                    self._commit(group)


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
