"""Workspaces on disk: found, made anew where broken or worn, borrowing their objects from the project's mirror."""

from __future__ import annotations

import shutil
from pathlib import Path

from webordinary.adapters.local.git.cache import WorkspaceCache
from webordinary.adapters.local.git.command import Git
from webordinary.adapters.local.git.copies import Copy, home_of
from webordinary.adapters.local.git.mirrors import Mirrors, main_branch
from webordinary.site.sources import Work, Workspace

_READY = "ready"
_WORN_LOOSE, _WORN_PACKS = 27, 50
"""27 objects under one of 256 letters mean some 7,000, as git reckons. Making anew is cheaper than packing."""
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsync = none\n"
"""No sync: only the origin is precious, and after a power cut every workspace is made anew."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class GitWorkspaces:
    """One worker's copies by key. Only the origin is precious: whatever is wrong here is thrown away."""

    def __init__(self, mirrors: Mirrors, cache: WorkspaceCache, worker: str) -> None:
        self._mirrors, self._cache, self._worker = mirrors, cache, worker
        self._copies: dict[Path, Copy] = {}
        self._has_grown = False

    def held(self, workspace: Workspace) -> Copy:
        """The copy of a workspace that was prepared here."""
        return self._copies[self._cache.folder(workspace.work.key)]

    def find(self, work: Work) -> Copy | None:
        """A copy that is whole and worth going on with."""
        folder = self._cache.folder(work.key)
        git_dir, tree = home_of(folder)
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

    def make(self, work: Work) -> Copy:
        """A new one; whatever was there goes."""
        folder = self._cache.folder(work.key)
        git_dir, tree = home_of(folder)
        mirror = self._mirrors.refresh(work.project)
        main = main_branch(mirror, work.project)
        shutil.rmtree(folder, ignore_errors=True)
        tree.mkdir(parents=True)
        _write_repository(git_dir, mirror)
        (git_dir / _READY).write_text(f"{main}\n{_boot()}\n", encoding="utf-8")
        copy = self._copies[folder] = self._copy(work, git_dir, tree, main)
        copy.untouched = True
        self._cache.use(folder)
        self._has_grown = True
        return copy

    def make_room(self, work: Work) -> None:
        """If a workspace was made, the cache may have to let others go."""
        if self._has_grown:
            self._has_grown = False
            self._cache.make_room(work.key)

    def distrust(self, copy: Copy) -> None:
        """Make a new one next time."""
        (copy.git.git_dir / _READY).unlink(missing_ok=True)

    def _copy(self, work: Work, git_dir: Path, tree: Path, main: str) -> Copy:
        git = Git(git_dir, self._worker, tree)
        return Copy(git, work.project, main, self._mirrors.remote(git, work.project))


def _write_repository(git_dir: Path, mirror: Git) -> None:
    """What `git init` would make, less what is of no use here."""
    for folder in ("objects/info", "objects/pack", "refs/heads"):
        (git_dir / folder).mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
    (git_dir / "config").write_text(_CONFIG, encoding="utf-8")
    borrowed = (mirror.git_dir / "objects").resolve()
    (git_dir / "objects" / "info" / "alternates").write_text(f"{borrowed}\n", encoding="utf-8")


def _ready(git_dir: Path) -> str:
    """The main branch of a workspace that was made whole, and since the machine was started; else nothing."""
    try:
        main, boot = (git_dir / _READY).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return main if boot == _boot() else ""


def _boot() -> str:
    return _BOOT.read_text(encoding="utf-8").strip() if _BOOT.exists() else "-"


def _is_worn(git_dir: Path) -> bool:
    return _count(git_dir / "objects" / "17") > _WORN_LOOSE or _count(git_dir / "objects" / "pack") > 2 * _WORN_PACKS


def _count(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0
