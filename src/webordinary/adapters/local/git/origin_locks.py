"""Origins on this machine, and lock files that a killed git left there; they would block it for ever."""

from __future__ import annotations

import time
from pathlib import Path

STALE_SECONDS = 3.0  # git holds a ref's lock for milliseconds


def mentions_lock(words: str) -> bool:
    """Whether a refused push complains about a lock."""
    return ".lock" in words or "cannot lock ref" in words or "failed to lock" in words


def local_origin(repo: str) -> Path | None:
    """The repository of an origin on this machine; None if it is elsewhere."""
    folder = Path(repo)
    for git_dir in (folder, folder / ".git"):
        if (git_dir / "HEAD").is_file():
            return git_dir
    return None


def remove_stale_locks(repo: str) -> int:
    """Remove old lock files of a local origin; an origin elsewhere looks after its own."""
    git_dir = local_origin(repo)
    if git_dir is None:
        return 0
    removed = 0
    for lock in [*git_dir.glob("*.lock"), *(git_dir / "refs").rglob("*.lock")]:
        try:
            if time.time() - lock.stat().st_mtime > STALE_SECONDS:
                lock.unlink()
                removed += 1
        except FileNotFoundError:
            continue
    return removed
