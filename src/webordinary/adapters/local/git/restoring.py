"""GitRestoring: main's content goes back to that of an earlier commit, by a new commit on top of it."""

from __future__ import annotations

from pathlib import Path

from webordinary.adapters.local.git.command import REMOTE_SECONDS, Git
from webordinary.adapters.local.git.credentials import Credentials
from webordinary.adapters.local.git.mirrors import Mirrors, main_branch
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient
from webordinary.model.projects import Project
from webordinary.site.fencemarks import FenceMark, project_fence_ref, read_mark

_TRIES = 3


class GitRestoring:
    """Works on the mirror, without any workspace; the push is fenced like that of a worker."""

    def __init__(self, mirrors: Path, operator: str, credentials: Credentials | None = None) -> None:
        self._mirrors = Mirrors(mirrors, operator, credentials)

    def restore(self, project: Project, name: str, lease: ProjectLease) -> str | None:
        """Make main's content that of a release; the new commit, or None if it is that already."""
        for _ in range(_TRIES):
            git = self._mirrors.refresh(project)
            main = f"refs/heads/{main_branch(git, project)}"
            head = git("rev-parse", main).strip()
            tree = self._tree(git, head, name)
            if tree == git("rev-parse", f"{head}^{{tree}}").strip():
                return None
            message = f"Go back to {name}\n\nAn operator put the site back to this release.\n\nRolled-Back-To: {name}\n"
            commit = git("commit-tree", tree, "-p", head, "-F", "-", stdin=message.encode()).strip()
            if self._pushed(git, project, lease, main, head, commit):
                return commit
        raise Transient(f"{project.project_id}: main moved {_TRIES} times meanwhile; try again")

    def _tree(self, git: Git, head: str, name: str) -> str:
        if git.attempt("merge-base", "--is-ancestor", f"{name}^{{commit}}", head).code != 0:
            raise Permanent(f"the commit of release {name} is not on main any more; main stays as it is")
        return git("rev-parse", f"{name}^{{tree}}").strip()

    def _pushed(self, git: Git, project: Project, lease: ProjectLease, main: str, head: str, commit: str) -> bool:
        ref = project_fence_ref(lease.project_id)
        known = git.attempt("rev-parse", "--verify", "--quiet", ref).out.decode().strip()
        mark = (read_mark(git("cat-file", "blob", known)) if known else FenceMark()).moved(lease.fence)
        if mark is None:
            raise ClaimLost(lease.project_id, lease.worker, lease.fence)
        blob = git("hash-object", "-w", "--stdin", stdin=mark.text().encode()).strip()
        pushed = self._mirrors.remote(git, project).attempt(
            "push", "--quiet", "--atomic", "--no-verify",
            f"--force-with-lease={main}:{head}", f"--force-with-lease={ref}:{known}",
            "--", project.repo, f"{commit}:{main}", f"{blob}:{ref}", seconds=REMOTE_SECONDS,
        )  # fmt: skip
        return pushed.code == 0
