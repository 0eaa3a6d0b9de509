"""Files of one folder and nothing else: no link on the way is followed, so that nobody can lead us out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

MOST_BYTES = 20_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
HIDDEN = frozenset({".git", ".claude", ".mcp.json"})
"""What an agent may not write through us, at the top of the folder: it would speak to programs, not to visitors."""


class Outside(ValueError):
    """A path that does not lie in the folder."""


def inside(root: Path, path: str) -> PurePosixPath:
    """The path below `root`, given as absolute or relative; raises Outside."""
    asked = PurePosixPath(path)
    for base in (PurePosixPath(root), PurePosixPath(root.resolve())):
        if asked.is_absolute() and asked.is_relative_to(base):
            asked = asked.relative_to(base)
    parts = asked.parts
    if asked.is_absolute() or not parts or ".." in parts or "\0" in path or parts[0] in HIDDEN:
        raise Outside(f"{path[:200]} is not a file of this site")
    return asked


def read(root: Path, path: str) -> bytes:
    """A plain file's content; raises Outside or OSError."""
    below = inside(root, path)
    with _parent(root, below, make=False) as folder:
        number = os.open(below.name, os.O_RDONLY | _FILE, dir_fd=folder)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise Outside(f"{path[:200]} is not a plain file")
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Outside(f"{path[:200]} has more than {MOST_BYTES:,} bytes")
    return content


def write(root: Path, path: str, content: bytes) -> None:
    """Make or replace a plain file, with the folders that it needs; raises Outside or OSError."""
    below = inside(root, path)
    if len(content) > MOST_BYTES:
        raise Outside(f"{path[:200]} would have more than {MOST_BYTES:,} bytes")
    with _parent(root, below, make=True) as folder:
        number = os.open(below.name, os.O_WRONLY | os.O_CREAT | _FILE, 0o644, dir_fd=folder)
        with os.fdopen(number, "wb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise Outside(f"{path[:200]} is not a plain file")
            file.truncate()
            file.write(content)


@contextmanager
def _parent(root: Path, below: PurePosixPath, make: bool) -> Iterator[int]:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in below.parts[:-1]:
            folder = _step(folder, part, make)
        yield folder
    finally:
        os.close(folder)


def _step(folder: int, part: str, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=folder)
    below = os.open(part, _FOLDER, dir_fd=folder)
    os.close(folder)
    return below
