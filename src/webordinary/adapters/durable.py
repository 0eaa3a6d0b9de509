"""Files that survive a power cut, the removal of a tree, and locks on files that end with their process."""

from __future__ import annotations

import ctypes
import fcntl
import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from webordinary.model.errors import Transient

_SYNC_EACH = 16
"""More single syncs than that take longer than one of the whole file system."""
_REMOVAL_SECONDS = 600


def write_durably(path: Path, data: bytes, through: Path | None = None) -> None:
    """Put `data` at `path` by way of a synced temporary file (in `through`, else beside it)."""
    with disk_errors(path):
        make_folder(path.parent)
        temporary = (through or path.parent) / f".{path.name[:100]}.{secrets.token_hex(6)}.tmp"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_path(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents so that their names survive a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_path(folder.parent)


def sync_files(paths: Sequence[Path | str], among: Path) -> None:
    """Make the contents of files and folders durable; many of them by one sync of the file system they are on."""
    if len(paths) <= _SYNC_EACH or not _sync_file_system(among):
        for path in paths:
            sync_path(path)


def remove_tree(path: Path) -> None:
    """Remove a file or folder of any depth and mode; links are not followed."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        for words in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*words, "--", str(path)], check=False, capture_output=True, timeout=_REMOVAL_SECONDS)


def move_durably(source: Path, target: Path) -> None:
    """Rename a folder, or a file, to where it appears whole: all that is in it is synced before, its name after."""
    with disk_errors(target):
        inside = [path for path in source.rglob("*") if not path.is_symlink()]
        sync_files([*inside, source], source)
        source.rename(target)
        sync_path(target.parent)


def _sync_file_system(folder: Path) -> bool:
    """Sync all that a file system holds in one go; False where the system has no such call."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if libc.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(folder))
    finally:
        os.close(descriptor)
    return True


def sync_path(path: Path | str) -> None:
    """Make the names in a folder, or the content of a file, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Translate a full or failing disk into Transient: it is worth trying again."""
    try:
        yield
    except OSError as problem:
        raise Transient(
            f"{path} could not be written ({problem.strerror or problem}): free disk space or check the "
            "folder's permissions; it will be tried again"
        ) from problem


class FileLock:
    """An exclusive `flock` on a file. The kernel releases it when the process ends.

    The file is never removed: another process that waits for the lock would hold it on a name that is gone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, *, blocking: bool = False) -> bool:
        """Take the lock; False if another process holds it and `blocking` is off."""
        descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
        except BaseException as problem:
            os.close(descriptor)
            if isinstance(problem, BlockingIOError):
                return False
            raise
        self._descriptor = descriptor
        return True

    def fileno(self) -> int:
        """The descriptor of the lock, for a child process that shall hold it as well."""
        if self._descriptor is None:
            raise ValueError(f"{self.path} is not locked")
        return self._descriptor

    def release(self) -> None:
        """Close the descriptor; the lock ends unless a child process holds it as well."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire(blocking=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds the FileLock on this file; raises FileNotFoundError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A shared lock, so that two simultaneous checks do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
