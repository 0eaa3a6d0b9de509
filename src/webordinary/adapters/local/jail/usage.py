"""Looking at what a jail uses: its processes with their memory, and the files it wrote."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

from webordinary.adapters.local.jail.bubblewrap import SCRATCH
from webordinary.adapters.local.jail.limits import MEGABYTE, JailLimits

_PAGE = resource.getpagesize()
_OWNER = 0o700


def family(init: int, most: int) -> list[int]:
    """A process and all that descend from it; stops looking after `most`. Orphans belong to `init` again."""
    found: list[int] = []
    unread = [init]
    while unread and len(found) <= most:
        pid = unread.pop()
        found.append(pid)
        unread += _children(pid)
    return found


def resident_bytes(pids: list[int]) -> int:
    """The memory that processes hold together."""
    return sum(map(_resident, pids))


def scratch_use(pids: list[int]) -> tuple[int, int]:
    """Bytes and files in the jail's own /tmp, /dev/shm and home, seen through one of its processes."""
    for pid in pids:
        try:
            disks = [os.statvfs(f"/proc/{pid}/root{place}") for place in SCRATCH]
        except OSError:
            continue
        used = sum((disk.f_blocks - disk.f_bfree) * disk.f_frsize for disk in disks)
        return used, sum(disk.f_files - disk.f_ffree for disk in disks)
    return 0, 0


class Tally:
    """Counts files against what a jail may have."""

    def __init__(self, limits: JailLimits) -> None:
        self._limits, self._count, self._bytes = limits, 0, 0

    def add(self, size: int, depth: int) -> str:
        """One more; in words what is too much now, empty if nothing is."""
        self._count += 1
        self._bytes += size
        if depth > self._limits.depth:
            return f"folders in folders, more than {self._limits.depth} deep"
        if self._count > self._limits.files:
            return f"more than {self._limits.files:,} files"
        if self._bytes > self._limits.disk_bytes:
            return f"more than {self._limits.disk_bytes // MEGABYTE:,} MB in files"
        return ""


def look_at_files(folders: tuple[Path, ...], limits: JailLimits) -> str:
    """In words what is too much in these folders; empty if nothing is."""
    return _look(Tally(limits), folders)


def look_at_all_files(folders: tuple[Path, ...], limits: JailLimits, pids: list[int]) -> str:
    """The same with files that processes hold open and nobody can name."""
    tally = Tally(limits)
    for size in _nameless(pids, folders[0].stat().st_dev):
        if reached := tally.add(size, 0):
            return reached
    return _look(tally, folders)


def disk_is_full(folder: Path, limits: JailLimits) -> bool:
    """Whether it is about to be, whoever filled it."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < limits.free_bytes


def _look(tally: Tally, folders: tuple[Path, ...]) -> str:
    for entry, depth in entries(folders):
        if reached := tally.add(_size(entry), depth):
            return reached
    return ""


def _nameless(pids: list[int], device: int) -> list[int]:
    """The sizes on disk of removed files that are still open, each once."""
    found: dict[int, int] = {}
    for pid in pids:
        try:
            held = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208  names are all that is wanted
        except OSError:
            continue
        for name in held:
            try:
                status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_dev == device:
                found[status.st_ino] = status.st_blocks * 512
    return list(found.values())


def entries(folders: tuple[Path, ...], make_readable: bool = False) -> Iterator[tuple[os.DirEntry[str], int]]:
    """All below these folders, with their depth; links are never followed. Works while they change."""
    unread = [(str(folder), 1) for folder in folders]
    while unread:
        path, depth = unread.pop()
        try:
            if make_readable and (mode := os.lstat(path).st_mode) & _OWNER != _OWNER:
                os.chmod(path, stat.S_IMODE(mode) | _OWNER)  # noqa: PTH101  as plain as the call beside it
            with os.scandir(path) as listing:
                for entry in listing:
                    yield entry, depth
                    if entry.is_dir(follow_symlinks=False):
                        unread.append((entry.path, depth + 1))
        except OSError:
            continue  # gone meanwhile, or closed by the program itself: the last look opens it


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  names are all that is wanted, many times a second
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
