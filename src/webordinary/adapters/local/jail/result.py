"""What a program left behind: made plain, measured once more, and removed if it is too much or too odd."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

from webordinary.adapters.local.jail.limits import JailLimitReached, JailLimits
from webordinary.adapters.local.jail.usage import entries, look_at_files
from webordinary.model.errors import Permanent

_SECONDS = 600


def judge(folders: tuple[Path, ...], limits: JailLimits, reached: str) -> None:
    """Once all is quiet. The first folder is the workspace, emptied when the result is refused."""
    odd = tidy(folders)
    if reached := reached or look_at_files(folders, limits):
        empty(folders[0])
        raise JailLimitReached(f"the program wanted {reached} and was ended; nothing was changed")
    if odd:
        empty(folders[0])
        raise Permanent(f"{odd} is neither a file nor a folder: it cannot be published; nothing was changed")


def tidy(folders: tuple[Path, ...]) -> str:
    """Folders that their owner cannot read and files that would run as their owner are made plain.

    Returns the name of something that is neither file, folder nor link; empty if there is none.
    """
    for folder in folders:
        for entry, _ in entries((folder,), make_readable=True):
            status = entry.stat(follow_symlinks=False)
            kind = stat.S_IFMT(status.st_mode)
            if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                return str(Path(entry.path).relative_to(folder))
            if kind == stat.S_IFREG and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
                Path(entry.path).chmod(stat.S_IMODE(status.st_mode) & 0o777)
    return ""


def empty(workspace: Path) -> None:
    """Remove all in a workspace, however deep it lies; the next job gets it filled from git again."""
    for entry in workspace.iterdir():
        for words in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*words, "--", str(entry)], check=False, capture_output=True, timeout=_SECONDS)
