"""Zips that are the same bytes whenever the same files go in."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest day that a zip can name
_UNIX = 3  # or the permissions are not read
_NATIVE = ".so"


def write_zip(folder: Path, made: Path, comment: str, programs: Collection[str] = ()) -> None:
    """Pack a folder: in the order of names, without dates, with the permissions that a function needs."""
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        packed.comment = comment.encode()
        for path, name in files_of(folder):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.create_system = _UNIX
            runs = name in programs or path.suffix == _NATIVE
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())


def comment_of(package: Path) -> str:
    """What `write_zip` was told; empty where there is no such zip."""
    try:
        with zipfile.ZipFile(package) as packed:
            return packed.comment.decode()
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError):
        return ""


def files_of(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file below, with its name from there, in the order of names."""
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    named = sorted((path.relative_to(folder).as_posix(), path) for path in found)
    yield from ((path, name) for name, path in named)
