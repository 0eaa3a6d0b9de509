"""Files by content under one folder: `ab/abcd…`, named by the SHA-256 of their bytes."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

from webordinary.adapters.durable import disk_errors, make_folder, sync_path, write_durably
from webordinary.model.errors import Permanent

_DIGEST = re.compile(r"[0-9a-f]{64}")


class LocalBlobs:
    """See Blobs; and `path`, for programs that want a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        try:
            os.utime(path)  # files appear under their name only when whole and synced; its age begins anew
        except FileNotFoundError:
            write_durably(path, data)
        return digest

    def get(self, digest: str) -> bytes:
        path = self.path(digest)
        if not path.exists():
            raise Permanent(f"no file {digest} is stored in {self._folder}: restore a backup")
        with disk_errors(path):
            return path.read_bytes()

    def forget(self, before: datetime, kept: Collection[str], limit: int = 1000) -> int:
        """Delete files that were last put before a time, but for the digests in `kept`; a bounded number of them."""
        old = (path for path in self._folder.glob("*/*") if path.name not in kept and _is_older(path, before))
        return sum(_delete_unless_put_again(path, before) for path in islice(old, limit))

    def path(self, digest: str) -> Path:
        """Where the bytes of a digest are; only this store writes there."""
        if not _DIGEST.fullmatch(digest):
            raise Permanent(f"{digest!r} is not a SHA-256 digest: the manifest that names it is damaged")
        return self._folder / digest[:2] / digest


def _is_older(path: Path, before: datetime) -> bool:
    with suppress(FileNotFoundError):
        return path.stat().st_mtime < before.timestamp()
    return False


def _delete_unless_put_again(path: Path, before: datetime) -> bool:
    """Take the name away first: a `put` before that has renewed the age, a `put` after it writes a new file."""
    aside = path.with_name(f".{path.name}.old")
    with disk_errors(path):
        path.rename(aside)
        if _is_older(aside, before):
            aside.unlink()
            return True
        aside.rename(path)
    return False


LOG_BYTES = 400_000
FORGET_EACH = 1000
_JOB = re.compile(r"[A-Za-z0-9-]{1,80}")


class FolderBuildLogs:
    """`{folder}/{job}.log`; a second try of a job is written below the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, job_id: str, text: str) -> None:
        """Keep it; never fails its caller, as a site may be published without it."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._path(job_id).open("ab") as file:
                room = max(0, LOG_BYTES - os.fstat(file.fileno()).st_size)
                file.write(text.encode(errors="replace")[-room:] if room else b"")

    def of(self, job_id: str) -> str:
        """All that was said; empty if nothing was."""
        if not _JOB.fullmatch(job_id):
            return ""
        try:
            with self._path(job_id).open("rb") as file:
                return file.read(LOG_BYTES).decode(errors="replace")
        except OSError:
            return ""

    def forget(self, before: datetime) -> None:
        """Remove the files that were last written before then, a bounded bite at a time."""
        files = sorted(self._folder.glob("*.log"))[:FORGET_EACH] if self._folder.is_dir() else []
        for file in files:
            with suppress(OSError):
                if file.stat().st_mtime < before.timestamp():
                    file.unlink()

    def _path(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.log"


SESSIONS = "agent-sessions"
"""The folder's name in the data folder."""
_FORGOTTEN_AT_ONCE = 1_000


class FolderSessionFiles:
    """See SessionFiles: `{project}/{thread}.tar`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fetch(self, project_id: str, thread_id: str, folder: Path) -> Path | None:
        """The kept archive itself: it is replaced, never changed."""
        path = self._path(project_id, thread_id)
        return path if path.is_file() else None

    def keep(self, project_id: str, thread_id: str, archive: Path) -> None:
        path = self._path(project_id, thread_id)
        with disk_errors(path):
            make_folder(path.parent)
            number, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
            try:
                with os.fdopen(number, "wb") as file, archive.open("rb") as fresh:
                    shutil.copyfileobj(fresh, file)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(path)
            except BaseException:
                with suppress(OSError):
                    Path(temporary).unlink(missing_ok=True)
                raise
            sync_path(path.parent)

    def drop(self, project_id: str, thread_id: str) -> None:
        self._path(project_id, thread_id).unlink(missing_ok=True)

    def _path(self, project_id: str, thread_id: str) -> Path:
        return self._folder / project_id / f"{thread_id}.tar"


def forget_homes(kept: Path, before: datetime) -> int:
    """Remove what no mail of its thread has used since, a bounded number of them."""
    old = (path for path in kept.glob("*/*.tar") if path.stat().st_mtime < before.timestamp())
    removed = 0
    for path in itertools.islice(old, _FORGOTTEN_AT_ONCE):
        path.unlink(missing_ok=True)
        removed += 1
    return removed
