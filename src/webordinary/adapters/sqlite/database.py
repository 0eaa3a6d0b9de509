"""One SQLite file: many readers, one writer per process; every write is one fully synced transaction."""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib import resources
from itertools import chain, repeat
from pathlib import Path
from types import TracebackType
from typing import Protocol

from webordinary.model.errors import DatabaseDamaged, Permanent, Transient

BUSY_SECONDS = 10.0
# SQLite's own busy handler sleeps up to 100 ms at a time, and starves the writer that has waited longest.
_BUSY_PAUSES = (0.001, 0.002, 0.004, 0.008)
_MAX_MEMBERS = 16
_ABANDONED_SECONDS = 0.5


class CommitHook(Protocol):
    """Rows that travel with whatever transaction comes next, so that they cost no sync of their own."""

    def before_commit(self, conn: sqlite3.Connection) -> None:
        """Add rows, if any are due; called just before the commit."""

    def committed(self) -> None:
        """The rows added in `before_commit` are on disk."""

    def rolled_back(self) -> None:
        """The transaction was rolled back; keep the rows for the next one."""


class CommitGroup:
    """A transaction with the changes of one or more threads. They return when it is on disk, or fail together."""

    __slots__ = ("conn", "ended", "error", "members", "under_way")

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn
        self.members = 0
        self.ended = False
        self.error: BaseException | None = None
        self.under_way = threading.Lock()
        self.under_way.acquire()

    def wait(self, seconds: float) -> bool:
        """True as soon as it has ended; False when the time is over first."""
        ended = self.under_way.acquire(timeout=seconds)
        if ended:
            self.under_way.release()  # for the next who waits
        return ended


class Writer:
    """Serialises writes. The last of the waiting threads commits for all of them (group commit)."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._conn: sqlite3.Connection | None = None
        self._turn = threading.Lock()
        self._owner: int | None = None
        self._line: deque[int] = deque()
        self._group: CommitGroup | None = None
        self.commit_hook: CommitHook | None = None

    def enter(self) -> CommitGroup:
        """Wait for the turn, and begin a transaction or join the one that is open."""
        self._take_turn()
        try:
            if self._group:
                self._group.conn.execute("SAVEPOINT member")
            else:
                self._conn = self._conn or self._connect()
                begin(self._conn)
                self._group = CommitGroup(self._conn)
        except BaseException:
            self._pass_turn()
            raise
        return self._group

    def leave(self, group: CommitGroup, problem: BaseException | None) -> None:
        """End the change: commit it, or roll it back after a problem. Returns when it is on disk."""
        try:
            if problem is not None:
                self._take_back(group, problem)
            else:
                if group.members:
                    group.conn.execute("RELEASE member")
                group.members += 1
            next_commits = bool(self._line) and group.members < _MAX_MEMBERS
            if not group.ended and not next_commits:
                self._commit(group)
        finally:
            self._pass_turn()
        if not group.ended:
            self._wait_for(group)
        if group.error and group.error is not problem:
            # Also instead of a member's own problem: that may rest on what another member had changed.
            raise Transient(f"a shared write failed: {group.error}; it will be tried again") from group.error

    def close(self) -> None:
        """Close the database."""
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

    def _take_back(self, group: CommitGroup, problem: BaseException) -> None:
        """Undo one member's part. Where SQLite gave the whole transaction up, the others hear of it."""
        if group.members and group.conn.in_transaction:
            group.conn.execute("ROLLBACK TO member")
            group.conn.execute("RELEASE member")
            return
        if group.conn.in_transaction:
            group.conn.execute("ROLLBACK")
        self._end(group, problem)

    def _commit(self, group: CommitGroup) -> None:
        try:
            if self.commit_hook:
                self.commit_hook.before_commit(group.conn)
            group.conn.execute("COMMIT")
        except BaseException as problem:
            if group.conn.in_transaction:
                group.conn.execute("ROLLBACK")
            if self.commit_hook:
                self.commit_hook.rolled_back()
            self._end(group, problem)
            raise
        self._end(group, None)
        if self.commit_hook:
            self.commit_hook.committed()

    def _end(self, group: CommitGroup, error: BaseException | None) -> None:
        """Wake the waiting threads: the transaction is committed or failed."""
        self._group = None
        group.error, group.ended = error, True
        group.under_way.release()

    def _wait_for(self, group: CommitGroup) -> None:
        while not group.wait(_ABANDONED_SECONDS):
            with self._turn:  # the thread that was to commit was ended
                if not group.ended:
                    self._commit(group)


def begin(conn: sqlite3.Connection) -> None:
    """Begin a write; wait for the writers of other processes in short pauses."""
    deadline = time.monotonic() + BUSY_SECONDS
    for pause in chain(_BUSY_PAUSES, repeat(_BUSY_PAUSES[-1])):
        try:
            conn.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(pause)


_CHECKPOINT_PAGES = 4000
_WAL_BYTES = 2 * _CHECKPOINT_PAGES * 4096  # a long read makes the log longer; it is cut to this afterwards
_RETRYABLE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
)


_NEEDS_PLACED = 11
"""The first migration that needs the column `placed`: an upgrade of a folder without it ended before that one."""
COMPLETE_FIRST_SCHEMA = """
ALTER TABLE raw_mails ADD COLUMN placed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX raw_mails_unplaced ON raw_mails (mail_from, received_at) WHERE placed = 0;
UPDATE raw_mails SET placed = 1
WHERE email_id IN (SELECT email_id FROM jobs)
  OR email_id IN (SELECT name FROM executions WHERE finished_at IS NOT NULL);
DROP INDEX IF EXISTS finished_jobs;
"""


class Database:
    """The data folder's one database. Thread-safe: writers take turns, each reader has its own connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = Writer(self._open_writer)
        self._shared = threading.local()
        self._readers: list[sqlite3.Connection] = []

    def set_commit_hook(self, commit_hook: CommitHook) -> None:
        """Call `commit_hook` in every write transaction from now on."""
        self._writer.commit_hook = commit_hook

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Read the last committed state."""
        try:
            try:
                conn = self._readers.pop()
            except IndexError:  # all are in use
                conn = self._open()
            try:
                yield conn
            finally:
                self._readers.append(conn)
        except sqlite3.DatabaseError as problem:
            _tell_in_our_words(problem, self.path)
            raise

    def write(self) -> AbstractContextManager[sqlite3.Connection]:
        """One atomic change: all of the block is on disk after it, or nothing. Inside `transaction` it is a part."""
        conn: sqlite3.Connection | None = getattr(self._shared, "conn", None)
        return _part(conn) if conn else Write(self._writer, self.path)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make one atomic change of all writes of this thread in the block: they share one sync.

        Keep the block short, as every other writer waits for it; reads in it see the state before it.
        """
        outer = getattr(self._shared, "conn", None)
        with self.write() as conn:
            self._shared.conn = conn
            try:
                yield
            finally:
                self._shared.conn = outer

    def migrate(self) -> None:
        """Bring the file to the newest schema; refuse a file that a newer version wrote."""
        steps = _migrations()
        with self.read() as conn:
            version: int = conn.execute("PRAGMA user_version").fetchone()[0]
        if version > len(steps):
            raise Permanent(
                f"{self.path} has schema version {version}, this WebOrdinary knows {len(steps)}: "
                "install the newer version again, or restore a backup made with this one"
            )
        if 0 < version < _NEEDS_PLACED:
            self._complete_first_schema()
        if version < len(steps):
            self._apply(steps)

    def _complete_first_schema(self) -> None:
        """Add the column that the first migration lacked in its first hours."""
        with self.write() as conn:
            columns = {row["name"] for row in conn.execute("PRAGMA table_info(raw_mails)")}
            if "placed" not in columns:
                for statement in _statements(COMPLETE_FIRST_SCHEMA):
                    conn.execute(statement)

    def _apply(self, steps: Sequence[str]) -> None:
        """Take all missing steps in one transaction, from the version that the file has by now."""
        with self.write() as conn:
            version: int = conn.execute("PRAGMA user_version").fetchone()[0]
            for script in steps[version:]:
                for statement in _statements(script):
                    conn.execute(statement)
            conn.execute(f"PRAGMA user_version = {max(version, len(steps))}")

    def close(self) -> None:
        """Close every connection; the last one out folds the journal into the file."""
        self._writer.close()
        while self._readers:
            self._readers.pop().close()

    def _open_writer(self) -> sqlite3.Connection:
        conn = self._open()
        conn.execute("PRAGMA busy_timeout = 0")  # it waits in its own way
        return conn

    def _open(self) -> sqlite3.Connection:
        conn = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        conn.row_factory = sqlite3.Row
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("PRAGMA synchronous = FULL")  # an accepted mail survives a power cut
        conn.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        conn.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        conn.execute("PRAGMA foreign_keys = ON")
        return conn


class MemoryDatabase(Database):
    """The newest schema without a file, for simulations and tests: all threads share one connection, in turn.

    A read waits for the write of another thread; there is no other process, and nothing to sync.
    """

    def __init__(self) -> None:
        super().__init__(Path(":memory:"))
        self.conn = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=256)
        self.conn.row_factory = sqlite3.Row
        _empty_database().backup(self.conn)
        self.conn.execute("PRAGMA foreign_keys = ON")
        self._turn = threading.RLock()
        weakref.finalize(self, self.conn.close)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            yield self.conn

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        with self._turn, super().write() as conn:
            yield conn

    def close(self) -> None:
        self._writer.close()
        self.conn.close()

    def _open(self) -> sqlite3.Connection:
        return self.conn


@cache
def _empty_database() -> sqlite3.Connection:
    """The schema, migrated once; a copy of it takes a fraction of a millisecond."""
    conn = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    steps = _migrations()
    for script in steps:
        conn.executescript(script)
    conn.execute(f"PRAGMA user_version = {len(steps)}")
    return conn


@contextmanager
def _part(conn: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A write inside a transaction: it is taken back alone if it fails."""
    conn.execute("SAVEPOINT part")
    try:
        yield conn
    except BaseException:
        if conn.in_transaction:  # SQLite gives the whole transaction up when the disk is full
            conn.execute("ROLLBACK TO part")
            conn.execute("RELEASE part")
        raise
    conn.execute("RELEASE part")


class Write:
    """A `with` block that changes the file, for one thread; plain, because every job goes through it."""

    __slots__ = ("_group", "_path", "_writer")

    def __init__(self, writer: Writer, path: Path) -> None:
        self._writer, self._path = writer, path

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._group = self._writer.enter()
        except sqlite3.DatabaseError as problem:
            _tell_in_our_words(problem, self._path)
            raise
        return self._group.conn

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._writer.leave(self._group, problem)
        except sqlite3.DatabaseError as failed:
            _tell_in_our_words(failed, self._path)
            raise
        if isinstance(problem, sqlite3.DatabaseError):
            _tell_in_our_words(problem, self._path)


def _tell_in_our_words(problem: sqlite3.DatabaseError, path: Path) -> None:
    """Raise what an operator or a retry can deal with; a mistake in a statement is none of it."""
    if isinstance(problem, sqlite3.OperationalError):
        if (problem.sqlite_errorcode or 0) & 0xFF in _RETRYABLE:
            raise Transient(f"{path}: {problem}; free disk space or wait, it will be tried again") from problem
    elif not isinstance(problem, sqlite3.IntegrityError | sqlite3.ProgrammingError):
        todo = "stop everything, then restore a backup with `webordinary restore`"
        raise DatabaseDamaged(f"{path} cannot be read ({problem}): {todo}") from problem


def _migrations() -> list[str]:
    folder = resources.files(__package__) / "migrations"
    scripts = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [script.read_text(encoding="utf-8") for script in scripts]


def _statements(script: str) -> Iterator[str]:
    """Split at complete statements, so that a whole script can run inside one transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        raise Permanent(f"migration ends in the middle of a statement: {pending.strip()[:80]}")
