"""What a program left behind: made plain, measured once more, and removed if it is too much or too odd."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

from webordinary.adapters.local.jail.limits import JailLimitReached, JailLimits
from webordinary.adapters.local.jail.usage import Tally, entries
from webordinary.model.errors import Permanent

_SECONDS = 600


def judge(folders: tuple[Path, ...], limits: JailLimits, reached: str) -> None:
    """Once all is quiet. The first folder is the workspace, emptied when the result is refused."""
    try:
        if reached := reached or _inspect(folders, limits):
            raise JailLimitReached(f"the program wanted {reached} and was ended; nothing was changed")
    except Permanent:
        empty(folders[0])
        raise


def _inspect(folders: tuple[Path, ...], limits: JailLimits) -> str:
    """Make it plain, and say what is too much. Raises Permanent on what is neither file, folder nor link."""
    tally = Tally(limits)
    for entry, depth in entries(folders, make_readable=True):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as problem:
            return f"a file that nobody can reach ({problem.strerror})"
        if reached := tally.add(status.st_size, depth):
            return reached
        kind = stat.S_IFMT(status.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise Permanent(f"{entry.name} is neither a file nor a folder: it cannot be published; nothing was changed")
        if kind == stat.S_IFREG and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            Path(entry.path).chmod(stat.S_IMODE(status.st_mode) & 0o777)  # root's jail could make root's programs
    return ""


def empty(workspace: Path) -> None:
    """Remove all in a workspace; the next job gets it filled from git again."""
    remove(workspace)
    workspace.mkdir(exist_ok=True)


def remove(path: Path) -> None:
    """Remove something, however deep it goes and whoever may read it; links are not followed."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        for words in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*words, "--", str(path)], check=False, capture_output=True, timeout=_SECONDS)
