"""Ends processes that are stopped while they hold a lock that others wait for: SQLite's write lock, a mirror's lock.

Nothing is lost with such a process: its write was not done, and a worker that stands still for a lease has lost its
keys. So a lock ends with its holder's lease.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

_LOCKS = Path("/proc/locks")  # Linux only; elsewhere the holder of a lock is unknown
_WRITE_LOCK = 120  # the byte of the -shm file that a writer locks: part of SQLite's file format
_STOPPED = ("T", "t")  # by a signal, by a debugger
_log = logging.getLogger(__name__)


class FrozenWriters:
    """Looks now and then at the kernel's list of locks. (Opening the database's file would break SQLite's locks.)"""

    name = "frozen-writers"

    def __init__(
        self,
        database: Path,
        patience: float,
        monotonic: Callable[[], float] = time.monotonic,
        lock_folder: Path | None = None,
    ) -> None:
        """`lock_folder` has the mirrors' lock files."""
        self._shared, self._patience, self._monotonic = Path(f"{database}-shm"), patience, monotonic
        self._lock_folder = lock_folder
        self._since: dict[int, float] = {}

    def run_once(self, now: datetime) -> int:
        return len(self.look())

    def look(self) -> list[int]:
        """End the processes that have stood still with a lock in hand for too long; which they were."""
        now = self._monotonic()
        stopped = {pid for pid in self._holders() if _is_stopped(pid)}
        self._since = {pid: self._since.get(pid, now) for pid in stopped}
        overdue = [pid for pid, since in self._since.items() if now - since >= self._patience]
        return [pid for pid in overdue if self._end(pid)]

    def _end(self, pid: int) -> bool:
        del self._since[pid]
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as problem:  # it has ended meanwhile, or belongs to another user
            _log.warning("process %d is stopped, holds a lock and cannot be ended: %s", pid, problem)
            return False
        _log.warning("process %d was stopped while it held a lock that others wait for: ended", pid)
        return True

    def _holders(self) -> Iterator[int]:
        try:
            database, locks = str(self._shared.stat().st_ino), _LOCKS.read_text(encoding="ascii")
        except OSError:
            return
        for line in locks.splitlines():
            match line.split():
                case [_, "POSIX", _, "WRITE", pid, place, first, last] if place.rpartition(":")[2] == database:
                    if int(first) <= _WRITE_LOCK and (last == "EOF" or int(last) >= _WRITE_LOCK):
                        yield int(pid)
                case [_, "FLOCK", _, "WRITE", pid, place, _, _] if self._is_lock_file(int(pid), place):
                    yield int(pid)

    def _is_lock_file(self, pid: int, place: str) -> bool:
        """Whether a stopped process has this file of the lock folder open. An inode alone may be another disk's."""
        if self._lock_folder is None or not _is_stopped(pid):
            return False
        folder, inode = self._lock_folder.resolve(), int(place.rpartition(":")[2])
        opened = (path for path in _open_files(pid) if path.parent == folder)
        return any(path.exists() and path.stat().st_ino == inode for path in opened)


def _open_files(pid: int) -> list[Path]:
    try:
        return [descriptor.readlink() for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it has ended meanwhile, or belongs to another user
        return []


def _is_stopped(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] in _STOPPED
