"""One SQLite file: many readers, one writer per process; every write is one fully synced transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import TracebackType

from webordinary.adapters.sqlite.writer import BUSY_SECONDS, Rider, Writer
from webordinary.model.errors import Permanent, Transient

_CHECKPOINT_PAGES = 4000
_RETRYABLE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
)


class Database:
    """The data folder's one database. Thread-safe: writers take turns, each reader has its own connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = Writer(self._open_writer)
        self._readers: list[sqlite3.Connection] = []

    def carry(self, rider: Rider) -> None:
        """Take `rider` along on every write from now on."""
        self._writer.rider = rider

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Read the last committed state."""
        try:
            conn = self._reader()
            try:
                yield conn
            finally:
                self._readers.append(conn)
        except sqlite3.DatabaseError as problem:
            _tell_in_our_words(problem, self.path)
            raise

    def write(self) -> Write:
        """One atomic change: all of the block is on disk after it, or nothing."""
        return Write(self._writer, self.path)

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
        for number, script in enumerate(steps[version:], start=version + 1):
            self._apply(number, script)

    def _apply(self, number: int, script: str) -> None:
        with self.write() as conn:
            current: int = conn.execute("PRAGMA user_version").fetchone()[0]
            if current >= number:
                return  # another process was faster
            for statement in _statements(script):
                conn.execute(statement)
            conn.execute(f"PRAGMA user_version = {number}")

    def close(self) -> None:
        """Close every connection; the last one out folds the journal into the file."""
        self._writer.close()
        while self._readers:
            self._readers.pop().close()

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            return self._open()

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
        conn.execute("PRAGMA foreign_keys = ON")
        return conn


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
        raise Permanent(f"{path} cannot be read ({problem}): restore a backup with `webordinary restore`") from problem


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
