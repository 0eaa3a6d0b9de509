"""Unpack a backup into a folder that is not there yet: all of it appears at once, or nothing does."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from webordinary.adapters.durable import make_folder, sync_folder
from webordinary.adapters.local.backup import FORMAT, MANIFEST, MAX_TEXT_BYTES, Manifest, Report, entries_of
from webordinary.model.errors import Permanent

_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, LookupError, TypeError, OverflowError)


def unpack(backup: Path, data: Path, check: Callable[[Path, Manifest], None], report: Report) -> Manifest:
    """Restore `backup` as `data`. `check` sees the unpacked folder before that takes its place; it may refuse."""
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise Permanent(f"{data} is not empty; name a new folder with --data, or move that one away")
    make_folder(data.parent)
    with tempfile.TemporaryDirectory(dir=data.parent, prefix=f".{data.name[:80]}.restore-") as room:
        draft = Path(room) / "data"
        draft.mkdir()
        with _readable(backup):
            entries = entries_of(backup)
            manifest = _manifest(backup, *next(entries))
            dated: dict[Path, float] = {}
            for number, (entry, content) in enumerate(entries, start=1):
                report(f"{number:,} files")
                path = _put(entry, content, draft)
                if entry.isdir():
                    dated[path] = entry.mtime
            for path, at in dated.items():  # after all, as whatever is put into a folder changes its time
                os.utime(path, (at, at))
        check(draft, manifest)
        _sync_all(draft)
        draft.rename(data)
        sync_folder(data.parent)
    return manifest


def _manifest(backup: Path, first: tarfile.TarInfo, content: IO[bytes] | None) -> Manifest:
    if first.name != MANIFEST or content is None:
        raise Permanent(f"{backup} is not a backup of WebOrdinary; name a file that `webordinary backup` made")
    said = json.loads(content.read(MAX_TEXT_BYTES))
    if said["format"] != FORMAT:
        raise Permanent(f"{backup} has format {said['format']}, not {FORMAT}; restore it with the version that made it")
    return Manifest(**said)


def _put(entry: tarfile.TarInfo, content: IO[bytes] | None, draft: Path) -> Path:
    """Unpack one entry inside `draft` and nowhere else; returns where.

    (Python 3.11.2 has no filter that would see to it.)
    """
    path = draft / _inside(entry.name)
    if any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(draft)):
        raise ValueError(f"{entry.name!r} leads through a link")
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.isdir():
        path.mkdir(exist_ok=True)
    elif entry.issym():
        _inside(os.path.normpath(PurePosixPath(entry.name).parent / entry.linkname))
        path.symlink_to(entry.linkname)
    elif content:
        with path.open("xb") as file:
            shutil.copyfileobj(content, file)
        path.chmod(entry.mode & 0o755 | 0o600)
    else:
        raise ValueError(f"{entry.name!r} is neither file, folder nor link")
    return path


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} leads out of the folder")
    return path


@contextmanager
def _readable(backup: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as problem:
        raise Permanent(f"{backup} is not there; name a file that `webordinary backup` made") from problem
    except (*_DAMAGE, StopIteration) as problem:
        raise Permanent(f"{backup} is damaged or not a backup ({problem}); take another one") from problem


def _sync_all(folder: Path) -> None:
    for place, _, names in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in names):
            if not path.is_symlink():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        sync_folder(Path(place))
