"""GitHistory: what published changes were, for people who want to see it."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from webordinary.adapters.local.git.command import Git
from webordinary.adapters.local.git.credentials import Credentials
from webordinary.adapters.local.git.mirrors import Mirrors
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.projects import Project

DIFF_CHARACTERS = 200_000
_QUICKLY = 10.0
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

    def subjects(self, project: Project, commits: Collection[str]) -> dict[str, str]:
        """What commits did, in a line each, as far as that is known on this machine or told quickly: it never fails."""
        known: dict[str, str] = {}
        git = self._mirrors.git(project.project_id)
        if not git.git_dir.exists():
            return known
        with suppress(WebOrdinaryError, OSError):
            known = _subjects(git, commits)
            if len(known) < len(commits):  # the last ones come to a mirror with the next job; no ref moves for us
                fetch = ("fetch", "--quiet", "--no-write-fetch-head", "--", project.repo, "HEAD")
                self._mirrors.remote(git, project).attempt(*fetch, seconds=_QUICKLY)
                known = _subjects(git, commits)
        return known


def _subjects(git: Git, commits: Collection[str]) -> dict[str, str]:
    said = git.attempt("log", "--no-walk", "--ignore-missing", "--format=%H %s", *commits, "--")
    lines = [line.partition(" ") for line in said.out.decode(errors="replace").split("\n")]
    return {name: subject for full, _, subject in lines for name in commits if full.startswith(name)}
