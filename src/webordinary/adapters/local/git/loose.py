"""Small blobs written straight into a repository: one git process less in every push."""

from __future__ import annotations

import hashlib
import secrets
import zlib
from pathlib import Path


def write_blob(git_dir: Path, content: bytes) -> str:
    """Store a blob as git itself would and return its id; a second time costs nothing."""
    stored = b"blob %d\0" % len(content) + content
    oid = hashlib.sha1(stored, usedforsecurity=False).hexdigest()
    folder = git_dir / "objects" / oid[:2]
    path = folder / oid[2:]
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"tmp_obj_{secrets.token_hex(6)}"
        draft.write_bytes(zlib.compress(stored, 1))
        draft.rename(path)
    return oid
