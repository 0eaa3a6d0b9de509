"""Whether an agent left anything behind: a quick look at a folder before and after."""

from __future__ import annotations

import os
from pathlib import Path

MOST_FILES = 300_000
Footprint = frozenset[tuple[str, int, int, int]]


def footprint(folder: Path) -> Footprint:
    """Names, sizes, kinds and times of all below it, but for `.git`."""
    seen: set[tuple[str, int, int, int]] = set()
    unread = [str(folder)]
    while unread and len(seen) <= MOST_FILES:
        with os.scandir(unread.pop()) as entries:
            for entry in entries:
                if entry.name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    unread.append(entry.path)
                    continue
                status = entry.stat(follow_symlinks=False)
                seen.add((entry.path, status.st_size, status.st_mode, status.st_mtime_ns))
    return frozenset(seen)
