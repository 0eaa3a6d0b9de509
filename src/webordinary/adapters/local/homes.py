"""A worker's home: the folder with its checkouts, locked for as long as its process lives."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from webordinary.model.errors import Permanent

MAX_HOMES = 256


class Home:
    """One of `{workspaces}/w0`, `w1`, …: a restarted worker finds warm checkouts, a hung one keeps its own."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock

    def close(self) -> None:
        """Let the next worker have it."""
        os.close(self._lock)


def take_home(workspaces: Path) -> Home:
    """The first home that no living process has."""
    workspaces.mkdir(parents=True, exist_ok=True)
    for number in range(MAX_HOMES):
        lock = os.open(workspaces / f".w{number}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        path = workspaces / f"w{number}"
        path.mkdir(exist_ok=True)
        return Home(path, lock)
    raise Permanent(f"{workspaces}: {MAX_HOMES} workers run here already; stop some of them")
