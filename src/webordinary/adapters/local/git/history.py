"""GitHistory: a published change as a diff, for people who want to see it."""

from __future__ import annotations

import re
from pathlib import Path

from webordinary.adapters.local.git.credentials import Credentials
from webordinary.adapters.local.git.mirrors import Mirrors
from webordinary.model.projects import Project

DIFF_CHARACTERS = 200_000
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


class GitHistory:
    """Reads the mirrors; asks the origin only for a commit that they do not hold yet."""

    def __init__(self, mirrors: Path, credentials: Credentials | None = None, reader: str = "history") -> None:
        self._mirrors = Mirrors(mirrors, reader, credentials)

    def diff(self, project: Project, commit: str) -> str | None:
        """What a commit changed, as a bounded unified diff; None if the origin does not have it."""
        if not _COMMIT.fullmatch(commit):
            return None
        git = self._mirrors.git(project.project_id)
        if not git.git_dir.exists() or git.attempt("cat-file", "-e", f"{commit}^{{commit}}").code != 0:
            git = self._mirrors.refresh(project)
        shown = git.attempt("show", "--format=", "--no-color", "--no-ext-diff", "--no-textconv", commit, "--")
        return shown.out.decode(errors="replace")[:DIFF_CHARACTERS] if shown.code == 0 else None
