"""An origin to rehearse on: main as it was before a change, in a folder of its own."""

from __future__ import annotations

import re
from pathlib import Path

from webordinary.adapters.local.git.command import REMOTE_SECONDS, Git
from webordinary.adapters.local.git.mirrors import Mirrors, main_branch
from webordinary.model.projects import Project

_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def rehearsal_origin(mirrors: Mirrors, project: Project, change: str | None, into: Path) -> str:
    """Make a bare repository whose main stands before `change`, or where main is now; returns that commit."""
    mirror = mirrors.refresh(project)
    base = _before(mirror, change) or mirror("rev-parse", f"refs/heads/{main_branch(mirror, project)}").strip()
    into.parent.mkdir(parents=True, exist_ok=True)
    origin = Git(into, "replay")
    origin("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
    mirror("push", "--quiet", "--no-verify", "--", str(into), f"{base}:refs/heads/main", seconds=REMOTE_SECONDS)
    return base


def _before(mirror: Git, change: str | None) -> str:
    if not change or not _COMMIT.fullmatch(change):
        return ""
    return mirror.attempt("rev-parse", "--verify", "--quiet", f"{change}^").out.decode().strip()
