"""The files of agents' sessions in a folder that all workers of a machine share."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from webordinary.adapters.durable import disk_errors, make_folder, sync_folder

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
        """See SessionFiles."""
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
            sync_folder(path.parent)

    def drop(self, project_id: str, thread_id: str) -> None:
        """See SessionFiles."""
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
