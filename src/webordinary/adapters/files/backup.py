"""A backup: one compressed file with all that a data folder must not lose, made while the system runs.

The order of copying makes it consistent. The database comes first: the mails and files it names are on disk
already and never change. Then the sites, then the git repositories, so that each published commit is in its
repository; a job that the database shows as open finds its commit there and is not done twice.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO

from webordinary.adapters.durable import make_folder, move_durably, sync_path
from webordinary.adapters.git.command import REMOTE_SECONDS, Git, GitFailed
from webordinary.model.errors import Permanent

FORMAT = 1
DATABASE, CONFIG, ORIGINS, SITES = "webordinary.db", "webordinary.toml", "origins", "sites"
MANIFEST, SEAL = "manifest.json", "complete.json"  # first and last entry
FOLDERS = ("mail", "blobs", "outbox", SITES, "agent-sessions")
CHUNK_BYTES = 1 << 20
MAX_TEXT_BYTES = 100_000
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the first entry of a backup says about the rest."""

    format: int
    schema_version: int
    made_at: str
    data: str
    """The folder it was made from: restored elsewhere, repositories inside it move along."""


def pack(data: Path, target: Path, copy_database: Callable[[Path], int], now: datetime, report: Report) -> Manifest:
    """Write a backup of `data` to `target`, whole and read back once, or not at all.

    `copy_database` writes a consistent copy to the path given and returns its schema version.
    """
    with _draft_beside(target) as (draft, scratch):
        report("copying the database")
        version = copy_database(scratch / DATABASE)
        manifest = Manifest(FORMAT, version, now.isoformat(), str(data))
        with tarfile.open(draft, "w:gz", compresslevel=6) as tar:
            _add_text(tar, MANIFEST, json.dumps(asdict(manifest)))
            writer = _ArchiveWriter(tar, report)
            writer.add(scratch / DATABASE, DATABASE)
            for name in (CONFIG, *FOLDERS):
                writer.add_all(data / name, name)
            for origin in sorted((data / ORIGINS).glob("[!.]*.git")):
                copy = _mirrored(origin, scratch, report)
                writer.add_all(copy, f"{ORIGINS}/{origin.name}")
                shutil.rmtree(copy)
            _add_text(tar, SEAL, json.dumps({"files": writer.count}))
        _read_back(draft, report)
        _sync_file(draft)
        draft.replace(target)
        sync_path(target.parent)
        return manifest


class _ArchiveWriter:
    def __init__(self, tar: tarfile.TarFile, report: Report) -> None:
        self._tar, self._report = tar, report
        self.count, self._size = 0, 0

    def add_all(self, path: Path, name: str) -> None:
        """Add a file, or a folder and all below it; a missing one is left out."""
        if path.is_dir() and not path.is_symlink():
            self.add(path, name)
            with suppress(FileNotFoundError):  # an old release may be removed just now
                for child in sorted(path.iterdir()):
                    self.add_all(child, f"{name}/{child.name}")
        elif path.is_symlink() or path.is_file():
            self.add(path, name)

    def add(self, path: Path, name: str) -> None:
        """Add one entry; a file that was moved away meanwhile was not ours to keep."""
        try:
            # Releases share unchanged files by hard links; each entry must stand for itself, as a restore takes it.
            self._tar.inodes = {}  # type: ignore[attr-defined]  # tarfile's memory of the links it has met
            self._tar.add(path, name, recursive=False)
        except FileNotFoundError:
            return
        self.count += 1
        with suppress(FileNotFoundError):  # or the rest of its folder would be left out
            self._size += path.lstat().st_size
        self._report(f"{self.count:,} files, {self._size / 1e6:,.0f} MB")


@contextmanager
def _draft_beside(target: Path) -> Iterator[tuple[Path, Path]]:
    """A draft and room to work, on the target's disk; gone afterwards whatever happens."""
    if not target.parent.is_dir():
        raise Permanent(f"{target.parent} is not a folder; make it, or name another place for the backup")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:80]}.") as room:
        draft = Path(room) / "draft"
        draft.touch(mode=0o600)  # mails are private
        yield draft, Path(room)


def _mirrored(origin: Path, scratch: Path, report: Report) -> Path:
    """Copy a repository at one instant, also during pushes; its settings and HEAD as they are."""
    report(f"copying {origin.name}")
    copy = scratch / origin.name
    git = Git(scratch / "none", "backup")
    args = ("clone", "--quiet", "--mirror", "--no-local", "--", str(origin), str(copy))
    finished = git.attempt(*args, seconds=REMOTE_SECONDS)
    if finished.code != 0:
        raise GitFailed(args, finished)
    for name in ("config", "HEAD"):
        shutil.copyfile(origin / name, copy / name)
    shutil.rmtree(copy / "hooks", ignore_errors=True)
    return copy


def entries_of(backup: Path) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """Manifest, files, and no seal: raises ValueError, after the last file, where a backup is not whole.

    A tar file that was cut short reads like a smaller one; the seal and gzip's checksum at the very end tell.
    """
    count, seal = 0, None
    with tarfile.open(backup, "r:gz") as tar:
        for entry in tar:
            content = tar.extractfile(entry) if entry.isfile() else None
            if entry.name == SEAL and content:
                seal = json.loads(content.read(MAX_TEXT_BYTES))["files"]
                continue
            yield entry, content
            count += 1
        while tar.fileobj and tar.fileobj.read(CHUNK_BYTES):
            pass
    if seal != count - 1:
        raise ValueError(f"it holds {count - 1} files instead of {seal or 'a known number'}")


def _read_back(draft: Path, report: Report) -> None:
    """Read every byte once, as a restore would."""
    for number, (entry, content) in enumerate(entries_of(draft)):
        report(f"reading back, {number:,} files")
        if not (entry.isfile() or entry.isdir() or entry.issym()):
            raise Permanent(f"{entry.name} is of a kind that cannot be restored: remove it, then back up again")
        while content and content.read(CHUNK_BYTES):
            pass


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(text.encode()), 0o600
    tar.addfile(entry, io.BytesIO(text.encode()))


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


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
        move_durably(draft, data)
    return manifest


def _manifest(backup: Path, first: tarfile.TarInfo, content: IO[bytes] | None) -> Manifest:
    if first.name != MANIFEST or content is None:
        raise Permanent(f"{backup} is not a backup of WebOrdinary; name a file that `webordinary backup` made")
    record = json.loads(content.read(MAX_TEXT_BYTES))
    if record["format"] != FORMAT:
        raise Permanent(
            f"{backup} has format {record['format']}, not {FORMAT}; restore it with the version that made it"
        )
    return Manifest(**record)


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
