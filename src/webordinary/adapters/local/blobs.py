"""Files by content under one folder: `ab/abcd…`, named by the SHA-256 of their bytes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from webordinary.adapters.durable import disk_errors, write_durably
from webordinary.model.errors import Permanent

_DIGEST = re.compile(r"[0-9a-f]{64}")


class LocalBlobs:
    """See Blobs; and `path`, for programs that want a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """See Blobs."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if not path.exists():  # files appear under their name only when whole and synced
            write_durably(path, data)
        return digest

    def get(self, digest: str) -> bytes:
        """See Blobs."""
        path = self.path(digest)
        if not path.exists():
            raise Permanent(f"no file {digest} is stored in {self._folder}: restore a backup")
        with disk_errors(path):
            return path.read_bytes()

    def path(self, digest: str) -> Path:
        """Where the bytes of a digest are; never to be written by anybody else."""
        if not _DIGEST.fullmatch(digest):
            raise Permanent(f"{digest!r} is not a SHA-256 digest: the manifest that names it is damaged")
        return self._folder / digest[:2] / digest
