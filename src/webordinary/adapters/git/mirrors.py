"""Mirrors: one bare copy of each origin, so that a second workspace costs no network."""

from __future__ import annotations

import itertools
import shutil
import time
from dataclasses import replace
from pathlib import Path

from webordinary.adapters.durable import FileLock, move_durably
from webordinary.adapters.git.command import REMOTE_SECONDS, Git, GitFailed, is_worked_on
from webordinary.adapters.git.credentials import Credentials, check_access, reach
from webordinary.model.errors import MachineFault, Permanent, WebOrdinaryError
from webordinary.model.projects import Project


class EmptyRepository(Permanent):
    """There is nothing to publish before a first push."""


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
        move_durably(copy, git.git_dir)
        shutil.rmtree(fresh, ignore_errors=True)

    def locked(self, project_id: str) -> FileLock:
        """Excludes other processes that make, refresh or remove this mirror, for a `with` block."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self._folder / f".{project_id}.lock")


def live_branch(main: str, project: Project) -> str:
    """The branch that the public site shows. A site in a folder has one of its own: its repository may have several.

    A repository may use the usual name for its main branch.
    """
    usual, other = (f"{name}-{project.project_id}" if project.folder else name for name in ("live", "public"))
    return usual if main != usual else other


def main_branch(git: Git, project: Project) -> str:
    """The branch that is published: the one that the origin's HEAD names, or that the first push to it made."""
    name = (git.git_dir / "HEAD").read_text(encoding="utf-8").strip().removeprefix("ref: refs/heads/")
    if git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{name}").code == 0:
        return name
    branches = git("for-each-ref", "--count=2", "--format=%(refname:lstrip=2)", "refs/heads").split()
    if len(branches) != 1:
        raise without_commit(project, git.git_dir, name)
    git("symbolic-ref", "HEAD", f"refs/heads/{branches[0]}")
    return branches[0]


def without_commit(project: Project, git_dir: Path, branch: str) -> WebOrdinaryError:
    """Why git lists no such branch: there is none, or git had no file descriptor to look with, and does not tell."""
    packed = git_dir / "packed-refs"
    listed = packed.read_bytes() if packed.exists() else b""
    if (git_dir / "refs" / "heads" / branch).is_file() or f" refs/heads/{branch}\n".encode() in listed:
        return MachineFault(f"git does not see {branch} of {project.repo}: perhaps no file descriptors are left")
    return EmptyRepository(f"{project.repo} has no commit on {branch}: push a first page to it")


MANY_PACKS = 20
MANY_PUSHES = 50
"""Packs of an origin, one of each push; as git itself reckons."""
ORIGINS_AT_ONCE = 20
MANY_LOOSE = 27
"""Objects under one of 256 letters: some 7,000 in all, as git itself reckons."""
UNUSED_SECONDS = 7 * 86_400.0
_KEEPER = "upkeep"


def maintain_mirrors(folder: Path, workspaces: Path) -> str:
    """Maintain the one mirror that needs it most; returns what was done, in words."""
    mirrors = Mirrors(folder, _KEEPER)
    for path in sorted(folder.glob("[!.]*.git")) if folder.is_dir() else ():
        project_id = path.name.removesuffix(".git")
        if _is_left_alone(path, workspaces, project_id):
            with mirrors.locked(project_id):
                if not _borrowers(workspaces, project_id):
                    shutil.rmtree(path, ignore_errors=True)
            return f"removed the mirror of {project_id}, which no workspace uses"
        if _is_scattered(path):
            # --keep-unreachable: a workspace may stand on what no branch names any more.
            args = ("repack", "-a", "-d", "-l", "--keep-unreachable", "--quiet")
            mirrors.git(project_id)(*args, seconds=REMOTE_SECONDS)
            mirrors.git(project_id)("prune-packed", "--quiet")
            return f"packed the mirror of {project_id}"
    return ""


def tend_origins(folder: Path) -> int:
    """Pack our origins that many pushes left in many packs, a bounded number at once; returns how many.

    Pushes go on meanwhile. Like git's own automatic gc, it removes only unreachable objects older than two weeks;
    until then they are in one pack, where git can do that (2.37 and newer), and not in a file each.
    """
    scattered = (path for path in sorted(folder.glob("[!.]*.git")) if _is_scattered(path, MANY_PUSHES))
    packed = 0
    for path in itertools.islice(scattered, ORIGINS_AT_ONCE):
        args = ("-c", "gc.cruftPacks=true", "gc", "--quiet", "--prune=2.weeks.ago")
        packed += Git(path, _KEEPER).attempt(*args, seconds=REMOTE_SECONDS).code == 0
    return packed


def _is_left_alone(mirror: Path, workspaces: Path, project_id: str) -> bool:
    lock = mirror.parent / f".{project_id}.lock"
    used_at = lock.stat().st_mtime if lock.exists() else mirror.stat().st_mtime
    is_old = time.time() - used_at > UNUSED_SECONDS
    return is_old and not _borrowers(workspaces, project_id) and not is_worked_on(mirror)


def _borrowers(workspaces: Path, project_id: str) -> list[Path]:
    return [git_dir for git_dir in workspaces.glob(f"w*/{project_id}/*/git") if git_dir.is_dir()]


def _is_scattered(repository: Path, many_packs: int = MANY_PACKS) -> bool:
    packs = list((repository / "objects" / "pack").glob("*.pack"))
    loose = repository / "objects" / "17"
    return len(packs) > many_packs or (loose.is_dir() and len(list(loose.iterdir())) > MANY_LOOSE)
