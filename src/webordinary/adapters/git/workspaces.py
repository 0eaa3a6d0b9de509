"""Workspaces on disk and their cache. A workspace borrows its objects from the project's mirror."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.adapters.git.checkout import Checkout, checkout_folder
from webordinary.adapters.git.command import Git, write_attributes
from webordinary.adapters.git.mirrors import Mirrors, main_branch
from webordinary.adapters.sandbox.sandbox import remove
from webordinary.jobs.source import JobContext, Workspace
from webordinary.model.names import ProjectUser

_GONE = ".gone-"
_USED = "used"


def never_busy(key: ProjectUser) -> bool:
    """No key is in work."""
    return False


@dataclass(slots=True)
class WorkspaceCache:
    """The workspaces below one worker's home: `{project}/{user}/`, each with a file that holds its last use.

    `guard` is held during the look-up and the removal of a workspace: a job either finds its workspace or makes a new
    one, and never loses it while it runs.
    """

    home: Path
    bytes: int = 0
    """Disk space of all workspaces together; 0: no limit."""
    in_work: Callable[[ProjectUser], bool] = never_busy
    guard: threading.Lock = field(default_factory=threading.Lock)
    _sizes: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def folder(self, key: ProjectUser) -> Path:
        """Where a key's workspace lies."""
        return self.home / key.project_id / key.user_id

    def use(self, folder: Path) -> None:
        """Record a use."""
        mark = folder / _USED
        mark.touch()
        os.utime(mark)

    def make_room(self, keeping: ProjectUser) -> list[ProjectUser]:
        """Evict the least recently used workspaces until all fit; never a busy one, nor the one to keep."""
        self._sweep()
        if not self.bytes:
            return []
        oldest_first = sorted(self._all(), key=lambda key: _used_at(self.folder(key)))
        total = sum(self._size(self.folder(key)) for key in oldest_first)
        removed = []
        for key in oldest_first:
            if total <= self.bytes:
                break
            folder = self.folder(key)
            if key != keeping and self._take_away(key, folder):
                total -= self._sizes.pop(folder, (0, 0))[1]
                removed.append(key)
        self._sweep()
        return removed

    def _take_away(self, key: ProjectUser, folder: Path) -> bool:
        with self.guard:
            if self.in_work(key):
                return False
            folder.rename(self.home / f"{_GONE}{secrets.token_hex(6)}")
        return True

    def _sweep(self) -> None:
        """Delete evicted workspaces, also those of a worker that was killed meanwhile."""
        for gone in self.home.glob(f"{_GONE}*"):
            shutil.rmtree(gone, ignore_errors=True)

    def _all(self) -> list[ProjectUser]:
        found = []
        for project in self.home.iterdir() if self.home.is_dir() else ():
            if project.is_dir() and not project.name.startswith("."):
                found += [ProjectUser(project.name, user.name) for user in project.iterdir() if user.is_dir()]
        return found

    def _size(self, folder: Path) -> int:
        """Measured once after each use: between uses nothing grows."""
        used = _used_at(folder)
        known = self._sizes.get(folder)
        if known is None or known[0] != used:
            known = self._sizes[folder] = (used, size_of(folder))
        return known[1]


def size_of(folder: Path) -> int:
    """The disk space of a folder; files that disappear meanwhile count nothing."""
    total, unread = 0, [os.fspath(folder)]
    while unread:
        try:
            with os.scandir(unread.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        unread.append(entry.path)
        except OSError:
            continue
    return total


def _used_at(folder: Path) -> int:
    try:
        return (folder / _USED).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


_READY = "ready"
_LAYOUT = "2"
"""Of a workspace's repository. One of another layout is made anew: its work is on the origin."""
_WORN_LOOSE, _WORN_PACKS = 7, 50
"""7 objects under one of 256 letters mean some 1,800, the changes of 400 mails in 7 MB. Making anew is cheaper than
packing, and it also drops the branches of finished threads."""
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsync = none\n"
"""No sync: only the origin is precious, and after a power cut every workspace is made anew."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class GitWorkspaces:
    """One worker's checkouts by key. A broken one is removed: the origin has all its work."""

    def __init__(self, mirrors: Mirrors, cache: WorkspaceCache, worker: str) -> None:
        self._mirrors, self._cache, self._worker = mirrors, cache, worker
        self._copies: dict[Path, Checkout] = {}
        self._has_grown = False

    def held(self, workspace: Workspace) -> Checkout:
        """The copy of a workspace that was prepared here."""
        return self._copies[self._cache.folder(workspace.work.key)]

    def find(self, work: JobContext) -> Checkout | None:
        """A complete checkout; None if it is missing, broken or has too many loose objects."""
        folder = self._cache.folder(work.key)
        git_dir, tree = checkout_folder(folder)
        with self._cache.guard:
            main = _ready(git_dir)
            if not main or not tree.is_dir() or _is_worn(git_dir):
                return None
            copy = self._copies.get(folder)
            if copy is None or copy.project != work.project:
                copy = self._copies[folder] = self._copy(work, git_dir, tree, main)
            copy.remote = self._mirrors.remote(copy.git, work.project)  # the operator may have changed the credential
            self._cache.use(folder)
            return copy

    def make(self, work: JobContext) -> Checkout:
        """A new checkout, in place of an existing one."""
        folder = self._cache.folder(work.key)
        git_dir, tree = checkout_folder(folder)
        mirror = self._mirrors.refresh(work.project)
        main = main_branch(mirror, work.project)
        remove(folder)
        tree.mkdir(parents=True)
        _write_repository(git_dir, mirror)
        (git_dir / _READY).write_text(f"{main}\n{_boot()}\n{_LAYOUT}\n", encoding="utf-8")
        copy = self._copies[folder] = self._copy(work, git_dir, tree, main)
        copy.untouched = True
        self._cache.use(folder)
        self._has_grown = True
        return copy

    def make_room(self, work: JobContext) -> None:
        """Evict other workspaces if this one is new."""
        if self._has_grown:
            self._has_grown = False
            self._cache.make_room(work.key)

    def distrust(self, copy: Checkout) -> None:
        """Mark the checkout as broken: the next job makes a new one."""
        (copy.git.git_dir / _READY).unlink(missing_ok=True)

    def _copy(self, work: JobContext, git_dir: Path, tree: Path, main: str) -> Checkout:
        git = Git(git_dir, self._worker, tree)
        return Checkout(git, work.project, main, self._mirrors.remote(git, work.project))


def _write_repository(git_dir: Path, mirror: Git) -> None:
    """Write the files of `git init` that are needed here."""
    for folder in ("objects/info", "objects/pack", "refs/heads"):
        (git_dir / folder).mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
    (git_dir / "config").write_text(_CONFIG, encoding="utf-8")
    write_attributes(git_dir)
    borrowed = (mirror.git_dir / "objects").resolve()
    (git_dir / "objects" / "info" / "alternates").write_text(f"{borrowed}\n", encoding="utf-8")


def _ready(git_dir: Path) -> str:
    """The main branch of a workspace that was made whole, so, and since the machine was started; else nothing."""
    try:
        main, *made = (git_dir / _READY).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return main if made == [_boot(), _LAYOUT] else ""


def _boot() -> str:
    return _BOOT.read_text(encoding="utf-8").strip() if _BOOT.exists() else "-"


def _is_worn(git_dir: Path) -> bool:
    return _count(git_dir / "objects" / "17") > _WORN_LOOSE or _count(git_dir / "objects" / "pack") > 2 * _WORN_PACKS


def _count(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0
