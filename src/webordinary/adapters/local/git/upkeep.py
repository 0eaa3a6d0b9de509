"""Upkeep of mirrors: many small packs become one, and a mirror that nobody borrows from any more goes.

Workspaces borrow objects by name, so nothing that a mirror holds is ever pruned while a workspace stands on it: a
repack keeps what no branch names any more, and git itself lets readers and fetches go on beside it. What is no longer
wanted leaves with the whole mirror, once no workspace is left.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from webordinary.adapters.local.git.command import REMOTE_SECONDS
from webordinary.adapters.local.git.mirrors import Mirrors

MANY_PACKS = 20
MANY_LOOSE = 27
"""Objects under one of 256 letters: some 7,000 in all, as git itself reckons."""
UNUSED_SECONDS = 7 * 86_400.0
_KEEPER = "upkeep"


def tend_mirrors(folder: Path, workspaces: Path) -> str:
    """Tend the one mirror that needs it most, so that a round stays short; tells what was done, if anything."""
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


def _is_left_alone(mirror: Path, workspaces: Path, project_id: str) -> bool:
    lock = mirror.parent / f".{project_id}.lock"
    used_at = lock.stat().st_mtime if lock.exists() else mirror.stat().st_mtime
    return time.time() - used_at > UNUSED_SECONDS and not _borrowers(workspaces, project_id)


def _borrowers(workspaces: Path, project_id: str) -> list[Path]:
    return [git_dir for git_dir in workspaces.glob(f"w*/{project_id}/*/git") if git_dir.is_dir()]


def _is_scattered(mirror: Path) -> bool:
    packs = list((mirror / "objects" / "pack").glob("*.pack"))
    loose = mirror / "objects" / "17"
    return len(packs) > MANY_PACKS or (loose.is_dir() and len(list(loose.iterdir())) > MANY_LOOSE)
