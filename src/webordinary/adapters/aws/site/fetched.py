"""Customers' files on a worker's own disk, fetched when an agent is to see them."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

from webordinary.adapters.aws.blobs import S3Blobs
from webordinary.adapters.durable import disk_errors

MOST_FILES = 500


class FetchedFiles:
    """Copies by digest, made again where they are gone; the oldest go when there are many."""

    def __init__(self, blobs: S3Blobs, folder: Path, most_files: int = MOST_FILES) -> None:
        self._blobs, self._folder, self._most_files = blobs, folder, most_files
        self._guard = threading.Lock()
        shutil.rmtree(folder, ignore_errors=True)

    def path(self, digest: str) -> Path:
        """Where the bytes of a digest are, for as long as a job takes."""
        path = self._folder / digest
        with disk_errors(path):
            if path.exists():
                path.touch()
                return path
            content = self._blobs.get(digest)
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{threading.get_ident()}")
            partial.write_bytes(content)
            partial.rename(path)
            self._drop_oldest()
        return path

    def _drop_oldest(self) -> None:
        with self._guard:
            kept = sorted(os.scandir(self._folder), key=lambda entry: entry.stat().st_mtime, reverse=True)
            for old in kept[self._most_files :]:
                Path(old.path).unlink(missing_ok=True)
