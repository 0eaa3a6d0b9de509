"""Files by content in memory, for tests and simulation."""

from __future__ import annotations

import hashlib

from webordinary.model.errors import Permanent


class MemoryBlobs:
    """See Blobs."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._blobs[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        try:
            return self._blobs[digest]
        except KeyError:
            raise Permanent(f"no file {digest} is stored here: restore a backup") from None
