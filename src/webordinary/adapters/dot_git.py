"""Entries named `.git` in a workspace: git would open them as a repository, with settings that name programs to run.

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
_IGNORED_BY_HFS = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF), None
)  # fmt: skip


def is_dot_git(name: str) -> bool:
    """Whether git takes a name for `.git` on any file system: in any case, as NTFS and as HFS+ read it.

    Same rules as git's `core.protectNTFS` and `core.protectHFS`.
    """
    plain = name if name.isascii() else name.translate(_IGNORED_BY_HFS)
    return plain.lower().partition(":")[0].partition("\\")[0].rstrip(" .") in _NAMES


def remove_dot_git(folder: Path) -> None:
    """Remove all such entries at any depth; links are not followed. Raises OSError if a part cannot be searched.

    Works by descriptors: git sees paths relative to the folder, which may be longer than an absolute one can be.
    Only for folders in which no other program runs.
    """
    try:
        for _, folders, files, descriptor in os.fwalk(folder, onerror=_fail, follow_symlinks=False):
            for name in filter(is_dot_git, (*folders, *files)):
                remove_entry(name, descriptor)
            folders[:] = [name for name in folders if not is_dot_git(name)]
    except RecursionError as problem:
        raise OSError(errno.ENAMETOOLONG, "too many folders in folders") from problem


def remove_entry(name: str, descriptor: int | None = None) -> None:
    """Remove a file, a link or a folder with all in it."""
    with suppress(FileNotFoundError):
        try:
            os.unlink(name, dir_fd=descriptor)
        except (IsADirectoryError, PermissionError):  # Linux says the one of a folder, POSIX the other
            shutil.rmtree(name, dir_fd=descriptor)


def _fail(problem: OSError) -> None:
    raise problem
