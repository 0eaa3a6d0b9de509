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
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"


class GitWorkspaces:
    """One worker's copies by key. Only the origin is precious: whatever is wrong here is thrown away."""

    def __init__(self, mirrors: Mirrors, cache: WorkspaceCache, worker: str) -> None:
        self._mirrors, self._cache, self._worker = mirrors, cache, worker
        self._copies: dict[Path, Copy] = {}

    def held(self, workspace: Workspace) -> Copy:
        """The copy of a workspace that was prepared here."""
        return self._copies[self._cache.folder(workspace.work.key)]

    def find(self, work: Work) -> Copy | None:
        """A copy that is whole and worth going on with."""
        folder = self._cache.folder(work.key)
        git_dir, tree = home_of(folder)
        with self._cache.guard:
            if not (git_dir / _READY).exists() or not tree.is_dir() or _is_worn(git_dir):
                return None
            copy = self._copies.get(folder)
            if copy is None or copy.project != work.project:
                main = (git_dir / _READY).read_text(encoding="utf-8").strip()
                copy = self._copies[folder] = self._copy(work, git_dir, tree, main)
            self._cache.use(folder)
            return copy

    def make(self, work: Work) -> Copy:
        """A new one; whatever was there goes, and so does what the cache has no room for."""
        folder = self._cache.folder(work.key)
        git_dir, tree = home_of(folder)
        mirror = self._mirrors.refresh(work.project)
        main = main_branch(mirror, work.project)
        shutil.rmtree(folder, ignore_errors=True)
        tree.mkdir(parents=True)
        _write_repository(git_dir, mirror)
        (git_dir / _READY).write_text(f"{main}\n", encoding="utf-8")
        copy = self._copies[folder] = self._copy(work, git_dir, tree, main)
        copy.untouched = True
        self._cache.use(folder)
        self._cache.make_room(work.key)
        return copy

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


def _is_worn(git_dir: Path) -> bool:
    return _count(git_dir / "objects" / "17") > _WORN_LOOSE or _count(git_dir / "objects" / "pack") > 2 * _WORN_PACKS


def _count(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0
