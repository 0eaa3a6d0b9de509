"""Mirrors: one bare copy of each origin, so that a second workspace costs no network."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from webordinary.adapters.local.git.command import REMOTE_SECONDS, Git, GitFailed
from webordinary.adapters.local.git.credentials import Credentials
from webordinary.adapters.local.git.refusals import check_access, reach
from webordinary.model.errors import Permanent
from webordinary.model.projects import Project


class Mirrors:
    """All workers of a machine share them; a lock file per mirror orders its writers."""

    def __init__(self, folder: Path, worker: str, credentials: Credentials | None = None) -> None:
        self._folder = folder
        self._worker = worker
        self._credentials = credentials or Credentials()

    def git(self, project_id: str) -> Git:
        """Git on a project's mirror."""
        return Git(self._folder / f"{project_id}.git", self._worker)

    def remote(self, git: Git, project: Project) -> Git:
        """The same with the project's credential, for calls that go to its origin."""
        return replace(git, extra_env=self._credentials.env(project.project_id))

    def reach(self, project: Project) -> None:
        """Raise AccessRefused if the origin keeps us out, Transient unless it answers."""
        self._folder.mkdir(parents=True, exist_ok=True)
        reach(self.remote(self.git(project.project_id), project), project)

    def refresh(self, project: Project) -> Git:
        """The mirror as the origin is now, made or repaired where needed."""
        git = self.git(project.project_id)
        with self.locked(project.project_id):
            if git.git_dir.exists() and self._fetched(git, project):
                return git
            self._clone(git, project)
        return git

    def _fetched(self, git: Git, project: Project) -> bool:
        args = ("fetch", "--quiet", "--", project.repo, "+refs/*:refs/*")
        if self.remote(git, project).attempt(*args, seconds=REMOTE_SECONDS).code == 0:
            return True
        # Workspaces borrow objects from here, so a mirror goes only when it, and not the origin, is at fault.
        self.reach(project)
        return False

    def _clone(self, git: Git, project: Project) -> None:
        fresh = self._folder / f".{project.project_id}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        outside = self.remote(Git(fresh / "unused", self._worker), project)
        fresh.mkdir()
        copy = fresh / "mirror.git"
        finished = outside.attempt(
            "clone", "--quiet", "--mirror", "--template=", "--", project.repo, str(copy), seconds=REMOTE_SECONDS
        )
        if finished.code != 0:
            check_access(project, finished.err.decode(errors="replace"))
            raise GitFailed(("clone", project.repo), finished)
        shutil.rmtree(git.git_dir, ignore_errors=True)
        copy.rename(git.git_dir)
        shutil.rmtree(fresh, ignore_errors=True)

    @contextmanager
    def locked(self, project_id: str) -> Iterator[None]:
        """Nobody else makes, refreshes or removes this mirror during the block."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f".{project_id}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def main_branch(git: Git, project: Project) -> str:
    """The branch that is published: the one that the origin's HEAD names."""
    name = (git.git_dir / "HEAD").read_text(encoding="utf-8").strip().removeprefix("ref: refs/heads/")
    if git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{name}").code != 0:
        raise Permanent(f"{project.repo} has no commit on {name}: push a first page to it")
    return name
