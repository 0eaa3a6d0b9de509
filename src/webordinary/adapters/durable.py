"""Files that survive a power cut: all of the bytes under their name, or nothing."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from webordinary.model.errors import Transient


def write_durably(path: Path, data: bytes, through: Path | None = None) -> None:
    """Put `data` at `path` by way of a synced temporary file (in `through`, else beside it)."""
    with disk_errors(path):
        make_folder(path.parent)
        temporary = (through or path.parent) / f".{path.name[:100]}.{secrets.token_hex(6)}.tmp"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents so that their names survive a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Translate a full or failing disk into Transient: it is worth trying again."""
    try:
        yield
    except OSError as problem:
        raise Transient(
            f"{path} could not be written ({problem.strerror or problem}): free disk space or check the "
            "folder's permissions; it will be tried again"
        ) from problem
