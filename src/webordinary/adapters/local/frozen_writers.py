"""A process that is stopped in the middle of a write keeps every other from writing: it is found, and ended.

Nothing is lost with it: what it was writing was not done, and a worker that stands still for a lease has lost its keys.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

_LOCKS = Path("/proc/locks")  # Linux; elsewhere nobody can tell who it is
_WRITE_LOCK = 120  # the byte of the -shm file that whoever writes has locked: part of SQLite's file format
_STOPPED = ("T", "t")  # by a signal, by a debugger
_log = logging.getLogger(__name__)


class FrozenWriters:
    """Looks now and then who writes. Reads the kernel's list: opening the file itself would break SQLite's locks."""

    def __init__(self, database: Path, patience: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._shared, self._patience, self._monotonic = Path(f"{database}-shm"), patience, monotonic
        self._seen: tuple[int, float] | None = None
        self._stopping = threading.Event()

    def run(self) -> None:
        """Look until stopped."""
        while not self._stopping.wait(self._patience / 3):
            self.look()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    def look(self) -> int | None:
        """End the process that has stood still in the middle of a write for too long; which it was."""
        pid, now = self._writer(), self._monotonic()
        if pid is None or not _is_stopped(pid):
            self._seen = None
            return None
        if self._seen is None or self._seen[0] != pid:
            self._seen = (pid, now)
        if now - self._seen[1] < self._patience:
            return None
        self._seen = None
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as problem:  # it has ended meanwhile, or belongs to another user
            _log.warning("process %d is stopped in the middle of a write and cannot be ended: %s", pid, problem)
            return None
        _log.warning("process %d was stopped in the middle of a write, which kept all others from writing: ended", pid)
        return pid

    def _writer(self) -> int | None:
        try:
            inode, locks = str(self._shared.stat().st_ino), _LOCKS.read_text(encoding="ascii")
        except OSError:
            return None
        for line in locks.splitlines():
            match line.split():
                case [_, "POSIX", _, "WRITE", pid, place, first, last] if place.rpartition(":")[2] == inode:
                    if int(first) <= _WRITE_LOCK and (last == "EOF" or int(last) >= _WRITE_LOCK):
                        return int(pid)
        return None


def _is_stopped(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] in _STOPPED
