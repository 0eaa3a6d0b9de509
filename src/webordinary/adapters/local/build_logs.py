"""What building programs said, one bounded file per job."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path

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
