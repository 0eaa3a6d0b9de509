"""Lock files that a killed git left in an origin on this machine; they would block it for ever."""

from __future__ import annotations

import time
from pathlib import Path

STALE_SECONDS = 3.0  # git holds a ref's lock for milliseconds


def mentions_lock(words: str) -> bool:
    """Whether a refused push complains about a lock."""
    return ".lock" in words or "cannot lock ref" in words or "failed to lock" in words


def remove_stale_locks(repo: str) -> int:
    """Remove old lock files of a local origin; an origin elsewhere looks after its own."""
    folder = Path(repo)
    if not folder.is_dir():
        return 0
    git_dir = folder / ".git" if (folder / ".git").is_dir() else folder
    removed = 0
    for lock in [*git_dir.glob("*.lock"), *(git_dir / "refs").rglob("*.lock")]:
        try:
            if time.time() - lock.stat().st_mtime > STALE_SECONDS:
                lock.unlink()
                removed += 1
        except FileNotFoundError:
            continue
    return removed
