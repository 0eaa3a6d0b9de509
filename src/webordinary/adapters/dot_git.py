"""What a program may leave in a workspace for git to read: repositories of its own, and rules without measure.

Git would open entries named `.git` as a repository, with settings that name programs to run.

The repository of a workspace lies outside of it. Whatever has this name inside was planted, or belongs to a repository
that a program made or copied there; its files stay, as plain files of the site.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

_NAMES = frozenset({".git", "git~1"})
RULES = frozenset({".gitignore", ".gitattributes"})
MAX_RULES_BYTES = 1_000_000
"""Of all files of rules together: git keeps 40 bytes in memory for each of them, outside of every sandbox."""
_IGNORED_BY_HFS = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF), None
)  # fmt: skip


def is_dot_git(name: str) -> bool:
    """Whether git takes a name for `.git` on any file system: in any case, as NTFS and as HFS+ read it.

    Same rules as git's `core.protectNTFS` and `core.protectHFS`.
    """
    plain = name if name.isascii() else name.translate(_IGNORED_BY_HFS)
    return plain.lower().partition(":")[0].partition("\\")[0].rstrip(" .") in _NAMES


def remove_dot_git(folder: Path) -> int:
    """Remove all such entries at any depth; links are not followed. Raises OSError if a part cannot be searched.

    Returns the bytes of all files of rules.

    Works by descriptors: git sees paths relative to the folder, which may be longer than an absolute one can be.
    Only for folders in which no other program runs.
    """
    rules = 0
    try:
        for _, folders, files, descriptor in os.fwalk(folder, onerror=_fail, follow_symlinks=False):
            for name in filter(is_dot_git, (*folders, *files)):
                remove_entry(name, descriptor)
            folders[:] = [name for name in folders if not is_dot_git(name)]
            rules += sum(
                os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size for name in RULES.intersection(files)
            )
    except RecursionError as problem:
        raise OSError(errno.ENAMETOOLONG, "too many folders in folders") from problem
    return rules


def remove_entry(name: str, descriptor: int | None = None) -> None:
    """Remove a file, a link or a folder with all in it."""
    with suppress(FileNotFoundError):
        try:
            os.unlink(name, dir_fd=descriptor)
        except (IsADirectoryError, PermissionError):  # Linux says the one of a folder, POSIX the other
            shutil.rmtree(name, dir_fd=descriptor)


def _fail(problem: OSError) -> None:
    raise problem
