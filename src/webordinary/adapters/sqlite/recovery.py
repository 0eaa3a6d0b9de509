"""Notices a database that lost commits while it was not in use, and takes up mails whose rows are lost.

SQLite opens a database whose write-ahead log was cut or removed without an error: it shows an earlier state. The number
of the last stored event is therefore kept in a file outside the database.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import SqliteRawMails
from webordinary.model.errors import Permanent, WebOrdinaryError

LAST_EVENT = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
KNOWN = "SELECT email_id FROM raw_mails"
_DIGITS = 20


class CommitsLost(Permanent):
    """The database is older than the mark beside it."""

    def __init__(self, database: Path, stored: int, found: int) -> None:
        super().__init__(
            f"{database} has lost what was written last: it ends with event {found}, but event {stored} was stored. "
            f"Its write-ahead log ({database.name}-wal) was cut or removed, or an older file took its place. Put the "
            "right files back or restore a backup; or go on with what is left: `webordinary recover`"
        )


class HighWaterMark:
    """The number of the last event that was committed, in a file beside the database.

    It is written after each commit and not synced: it may be behind the database after a power cut, never ahead of it.
    """

    def __init__(self, database: Path) -> None:
        self._database, self._path = database, database.with_suffix(".mark")

    def raise_to(self, seq: int) -> None:
        """Keep the highest number that any process has stored. A mark that cannot be written fails no commit."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _number(os.pread(descriptor, _DIGITS, 0)) < seq:
                os.pwrite(descriptor, b"%0*d\n" % (_DIGITS, seq), 0)
        except OSError:
            return
        finally:
            os.close(descriptor)

    def check(self, db: Database) -> None:
        """Raises CommitsLost where the database is behind the mark."""
        stored = self._read()  # first: the database only grows meanwhile
        if stored > (found := _last_event(db)):
            raise CommitsLost(self._database, stored, found)

    def set_back(self, db: Database) -> None:
        """Set the recorded counter back to the last event of the database."""
        self._path.unlink(missing_ok=True)
        self.raise_to(_last_event(db))

    def _read(self) -> int:
        try:
            return _number(self._path.read_bytes()[:_DIGITS])
        except FileNotFoundError:
            return 0


def _number(digits: bytes) -> int:
    return int(digits) if digits.isdigit() else 0


def _last_event(db: Database) -> int:
    with db.read() as conn:
        row = conn.execute(LAST_EVENT).fetchone()
    return int(row["seq"]) if row else 0


@dataclass(frozen=True, slots=True)
class AdoptedMails:
    """Mail files that had no row."""

    mails: tuple[str, ...]
    unreadable: tuple[Path, ...]
    """Of no use without their row: written by an earlier version, or damaged."""


def mails_without_row(db: Database, data: Path) -> Iterator[Path]:
    """The files of mails that the database does not know."""
    with db.read() as conn:
        known = {row["email_id"] for row in conn.execute(KNOWN)}
    for path in sorted((data / "mail").glob("*/[!.]*")):
        if path.stem not in known:
            yield path


def take_up_mails(db: Database, data: Path) -> AdoptedMails:
    """Give mails without a row a new one. Their workflows start with the next `up`.

    A mail that was answered already is answered again, but not done twice: its job finds its commit on main.
    """
    store, mails, unreadable = SqliteRawMails(db, data), list[str](), list[Path]()
    for path in mails_without_row(db, data):
        try:
            mails.append(store.take_up(path))
        except (WebOrdinaryError, OSError, ValueError):
            unreadable.append(path)
    return AdoptedMails(tuple(mails), tuple(unreadable))
