"""Origins: the repository a project lives in, found, checked, or made from a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from webordinary.adapters.local.git import reading
from webordinary.adapters.local.git.command import REMOTE_SECONDS, Git, GitFailed
from webordinary.adapters.local.git.credentials import Credentials, refuse_secret_in
from webordinary.adapters.local.git.fitness import check_sources
from webordinary.adapters.local.git.mirrors import Mirrors, main_branch
from webordinary.adapters.local.git.refusals import check_writable
from webordinary.model.errors import Permanent, Transient
from webordinary.model.projects import Project
from webordinary.site.sources import SourceTree

_OPERATOR = "operator"


class Origins:
    """Bare repositories below one folder, for sites that have no address of their own to push to."""

    def __init__(self, folder: Path, mirrors: Path, credentials: Credentials | None = None) -> None:
        self._folder = folder
        self._mirrors = Mirrors(mirrors, _OPERATOR, credentials)

    def settle(self, project_id: str, repo: str) -> str:
        """The address to use from now on: itself if it is remote or bare, else a bare copy of a folder."""
        refuse_secret_in(repo)
        folder = Path(repo).expanduser()
        if not folder.is_dir():
            return repo
        folder = folder.resolve()
        if Git(folder, _OPERATOR).attempt("rev-parse", "--is-bare-repository").out.strip() == b"true":
            return str(folder)
        origin = self._folder / f"{project_id}.git"
        if not origin.exists():
            self._copy(folder, origin)
        return str(origin)

    def check(self, project: Project) -> tuple[str, ...]:
        """Raise Permanent, in words, unless the repository answers, can be served and would take a push.

        Returns the files in it that no site can show.
        """
        try:
            self._mirrors.reach(project)
            mirror = self._mirrors.refresh(project)
            main = main_branch(mirror, project)
            unshown = check_sources(mirror, f"refs/heads/{main}")
            check_writable(self._mirrors.remote(mirror, project), project, main)
        except (GitFailed, Transient) as problem:
            raise Permanent(f"{problem}: check the address and that this machine may read and write it") from problem
        return unshown

    def export(self, project: Project, into: Path) -> tuple[str, SourceTree]:
        """The files of main as they are now, and which commit that is."""
        mirror = self._mirrors.refresh(project)
        commit = mirror("rev-parse", f"refs/heads/{main_branch(mirror, project)}").strip()
        into.mkdir(parents=True)
        copy = Git(into / "index.git", _OPERATOR, tree=into / "tree")
        (into / "tree").mkdir()
        Git(into / "none", _OPERATOR)("clone", "--quiet", "--bare", "--shared", str(mirror.git_dir), str(copy.git_dir))
        copy("read-tree", commit)
        copy("checkout-index", "--all")
        return commit, reading.tree(copy)

    def _copy(self, folder: Path, origin: Path) -> None:
        """A bare clone of a work tree; a folder without git becomes one commit."""
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = origin.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        outside = Git(self._folder / "none", _OPERATOR)
        if (folder / ".git").exists():
            outside("clone", "--quiet", "--bare", "--", str(folder), str(draft), seconds=REMOTE_SECONDS)
        else:
            outside("init", "--quiet", "--bare", "--initial-branch=main", str(draft))
            self._commit_all(Git(draft, _OPERATOR, tree=folder))
        draft.rename(origin)

    def _commit_all(self, git: Git) -> None:
        git("add", "--all", "--", ".")
        if not git("ls-files").strip():
            raise Permanent(f"{git.tree} has no files: put a site into it, or name another folder")
        git("commit", "--quiet", "--no-verify", "--message=The site as it was when it came to WebOrdinary")
