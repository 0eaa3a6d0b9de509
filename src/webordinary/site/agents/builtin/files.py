"""The files of a site that may be edited: found within bounds, never through a link, never hidden ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

MAX_FILES = 2_000
MAX_SEEN = 50_000
_LEFT_ALONE = frozenset(("node_modules", "__pycache__", "vendor", "themes"))


def files_of(root: Path, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> list[str]:
    """Their names, relative to `root`, in order."""
    names = []
    for name in _walk(root, folders):
        if PurePosixPath(name).suffix in suffixes:
            names.append(name)
        if len(names) >= MAX_FILES:
            break
    return sorted(names)


def _walk(root: Path, folders: tuple[str, ...]) -> Iterator[str]:
    seen = 0
    for folder in folders:
        if (root / folder).is_symlink():
            continue
        for here, below, files in os.walk(root / folder):
            below[:] = sorted(name for name in below if name not in _LEFT_ALONE and not name.startswith("."))
            for file in sorted(files):
                seen += 1
                if seen > MAX_SEEN:
                    return
                path = Path(here) / file
                if not file.startswith(".") and path.is_file() and not path.is_symlink():
                    yield path.relative_to(root).as_posix()
