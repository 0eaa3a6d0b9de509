"""Repositories that survive a power cut: the settings of our origins, and the folders of their refs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from webordinary.adapters.durable import disk_errors, sync_folder, write_durably
from webordinary.adapters.git.command import local_origin

_LEFTOVERS = ("incoming-*", "tmp_objdir-*", "pack/tmp_*", "pack/.tmp-*", "??/tmp_obj_*")
"""Quarantine folders of pushes, and unfinished packs and objects."""
_LEFTOVER_AGE = timedelta(hours=1)
_ORIGIN_SETTINGS = """\
[core]
	fsync = all
	fsyncMethod = fsync
[receive]
	unpackLimit = 1
	autogc = false
"""
"""One pack per push needs two syncs, and a third of the space; loose objects need one each. Upkeep packs them."""


def harden_origin(git_dir: Path) -> bool:
    """Append our settings to an origin's configuration, where they take precedence; False if they are there."""
    config = git_dir / "config"
    text = config.read_text(encoding="utf-8")
    if _ORIGIN_SETTINGS in text:
        return False
    write_durably(config, f"{text.rstrip()}\n{_ORIGIN_SETTINGS}".encode())
    return True


def harden_origins(folder: Path) -> int:
    """Harden the origins of a data folder that an earlier version made; returns how many changed."""
    hardened = 0
    for git_dir in folder.glob("[!.]*.git"):
        with suppress(FileNotFoundError):  # a damaged repository: the first job on it says so
            hardened += harden_origin(git_dir)
    return hardened


def clear_leftovers(folder: Path, now: datetime) -> int:
    """Remove what killed git processes left in the repositories of a folder; returns how many.

    A worker started by hand may be fetching at this moment: young files stay.
    """
    before, removed = (now - _LEFTOVER_AGE).timestamp(), 0
    for pattern in _LEFTOVERS:
        for path in folder.glob(f"[!.]*.git/objects/{pattern}"):
            with suppress(OSError):  # another process has removed it
                if path.stat().st_mtime < before:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    removed += 1
    return removed


def sync_refs(repo: str, refs: Iterable[str]) -> None:
    """Make moved refs of an origin on this machine durable: git syncs their files, but not their folders."""
    git_dir = local_origin(repo)
    if git_dir is None:
        return
    folders = {parent for ref in refs for parent in (git_dir / ref).parents if parent.is_relative_to(git_dir / "refs")}
    with disk_errors(git_dir):
        for folder in sorted(folders, reverse=True):  # the innermost first
            with suppress(FileNotFoundError):  # packed meanwhile
                sync_folder(folder)
        sync_folder(git_dir / "objects" / "pack")
