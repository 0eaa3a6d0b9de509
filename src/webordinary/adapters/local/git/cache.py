"""WorkspaceCache: a worker's workspaces are warmth, not truth; the least recently used go when they grow too large."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.model.names import ProjectUser

_GONE = ".gone-"
_USED = "used"


def nobody(key: ProjectUser) -> bool:
    """No key is in work."""
    return False


@dataclass(slots=True)
class WorkspaceCache:
    """The workspaces below one worker's home: `{project}/{user}/`, each with a file that tells when it was used.

    `guard` is held while a workspace is looked up and while one is taken away, so that a job either finds its
    workspace or makes a new one, and never loses it under way.
    """

    home: Path
    bytes: int = 0
    """How much they may hold together; 0 means: as much as they like."""
    in_work: Callable[[ProjectUser], bool] = nobody
    guard: threading.Lock = field(default_factory=threading.Lock)
    _sizes: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def folder(self, key: ProjectUser) -> Path:
        """Where a key's workspace lies."""
        return self.home / key.project_id / key.user_id

    def use(self, folder: Path) -> None:
        """It is used now."""
        mark = folder / _USED
        mark.touch()
        os.utime(mark)

    def make_room(self, keeping: ProjectUser) -> list[ProjectUser]:
        """Remove what was not used for longest until all fit; never what is in work, nor the one to keep."""
        self._sweep()
        if not self.bytes:
            return []
        oldest_first = sorted(self._all(), key=lambda key: _used_at(self.folder(key)))
        total = sum(self._size(self.folder(key)) for key in oldest_first)
        removed = []
        for key in oldest_first:
            if total <= self.bytes:
                break
            folder = self.folder(key)
            if key != keeping and self._take_away(key, folder):
                total -= self._sizes.pop(folder, (0, 0))[1]
                removed.append(key)
        self._sweep()
        return removed

    def _take_away(self, key: ProjectUser, folder: Path) -> bool:
        with self.guard:
            if self.in_work(key):
                return False
            folder.rename(self.home / f"{_GONE}{secrets.token_hex(6)}")
        return True

    def _sweep(self) -> None:
        """Remove what was taken away, by us or by a worker that was killed over it."""
        for gone in self.home.glob(f"{_GONE}*"):
            shutil.rmtree(gone, ignore_errors=True)

    def _all(self) -> list[ProjectUser]:
        found = []
        for project in self.home.iterdir() if self.home.is_dir() else ():
            if project.is_dir() and not project.name.startswith("."):
                found += [ProjectUser(project.name, user.name) for user in project.iterdir() if user.is_dir()]
        return found

    def _size(self, folder: Path) -> int:
        """Measured once after each use: between uses nothing grows."""
        used = _used_at(folder)
        known = self._sizes.get(folder)
        if known is None or known[0] != used:
            known = self._sizes[folder] = (used, size_of(folder))
        return known[1]


def size_of(folder: Path) -> int:
    """What a folder takes up on disk; files that go while we look count nothing."""
    total, unread = 0, [os.fspath(folder)]
    while unread:
        try:
            with os.scandir(unread.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        unread.append(entry.path)
        except OSError:
            continue
    return total


def _used_at(folder: Path) -> int:
    try:
        return (folder / _USED).stat().st_mtime_ns
    except FileNotFoundError:
        return 0
