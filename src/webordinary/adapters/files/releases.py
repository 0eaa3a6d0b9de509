"""Releases in a folder: built aside, renamed into place, shown by pointers that need no lock.

`{project}/{stage}/releases/{commit12}/` never changes; `pointers/{fence}` names a release, or nothing; the highest
fence is current. A stale worker can only write its own lower pointer, which is never read. `current` is a convenience
for web servers that follow a link. A release that is not kept any longer becomes the `spare`: the next one is made
out of it, so that a large site costs what changed, not what it has.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from webordinary.adapters.durable import make_folder, sync_files, sync_path
from webordinary.jobs.ports import no_check
from webordinary.jobs.site_files import FOLDER, KEPT_RELEASES, SPARE, Release, Stage, release_name
from webordinary.model.errors import Permanent, Transient, reason_of

NOTHING = "-"
"""The value of a pointer that shows no release; earlier versions wrote it."""
_FLIP_TRIES = 20


class FolderReleases:
    """The sites of all projects below one folder."""

    def __init__(self, sites: Path, keep: int = KEPT_RELEASES) -> None:
        self._sites = sites
        self._keep = max(keep, 1)
        self._began: dict[Path, int] = {}

    def stage(self, project_id: str, stage: Stage, fence: int) -> Path:
        staging = self._place(project_id, stage) / "staging"
        staging.mkdir(parents=True, exist_ok=True)
        mark = f"{fence:020d}"
        for left in staging.iterdir():
            if left.name < mark:
                shutil.rmtree(left, ignore_errors=True)
        folder = staging / f"{mark}-{secrets.token_hex(4)}"
        (folder / FOLDER).mkdir(parents=True)
        self._began[folder] = folder.stat().st_mtime_ns
        with suppress(FileNotFoundError):
            (staging.parent / "spare").rename(folder / SPARE)
        return folder

    def finish(self, project_id: str, stage: Stage, staged: Path, commit: str) -> Release:
        release = self._release(project_id, stage, release_name(commit))
        began = self._began.pop(staged, 0)
        if not release.path.exists():
            shutil.rmtree(staged / SPARE, ignore_errors=True)
            _sync_tree(staged, began)
            now = time.time_ns()
            # Its time tells the order of releases, also in a restored backup; some kernels' own is coarse.
            os.utime(staged, ns=(now, now))
            make_folder(release.path.parent)
            try:
                staged.rename(release.path)
            except OSError as problem:
                if not release.path.exists():
                    words = f"{release.path} cannot be made ({reason_of(problem)}); free some disk space"
                    raise Transient(words) from problem
            sync_path(release.path.parent)
        shutil.rmtree(staged, ignore_errors=True)
        return release

    def find(self, project_id: str, stage: Stage, commit: str) -> Release | None:
        release = self._release(project_id, stage, release_name(commit))
        return release if release.path.is_dir() else None

    def promote(self, project_id: str, source: Stage, target: Stage, fence: int, commit: str) -> Release | None:
        """The files are shared by hard links, not copied."""
        current = self.current(project_id, source)
        if current is None:
            return None
        found = self.find(project_id, target, commit)
        if found is not None:
            return found
        staged = self.stage(project_id, target, fence)
        _make_like(current, staged)
        return self.finish(project_id, target, staged, commit)

    def activate(self, release: Release, fence: int, check: Callable[[], None] = no_check) -> bool:
        before = self.current(release.project_id, release.stage)
        place = self._place(release.project_id, release.stage)
        make_folder(place / "pointers")
        _link(Path("..") / "releases" / release.name, place / "pointers" / f"{fence:020d}")
        self._turn(place)
        self._prune(release.project_id, release.stage)
        after = self.current(release.project_id, release.stage)
        return after == release.path and before != after

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """The folder that visitors see."""
        place = self._place(project_id, stage)
        highest = _highest(place)
        return place.joinpath("releases", highest) if highest else None

    def list(self, project_id: str, stage: Stage) -> tuple[Release, ...]:
        folder = self._place(project_id, stage) / "releases"
        try:
            with os.scandir(folder) as found:
                made = sorted(((entry.stat().st_mtime_ns, entry.name) for entry in found), reverse=True)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(
            Release(project_id, stage, name, folder / name, datetime.fromtimestamp(at / 1e9, UTC)) for at, name in made
        )

    def previews(self, project_id: str) -> tuple[Stage, ...]:
        found = ((_shown_since(place), place.name) for place in (self._sites / project_id).glob("t-*"))
        return tuple(Stage(name) for since, name in sorted(found, reverse=True) if since)

    def drop(self, project_id: str, preview: Stage) -> None:
        """Remove a preview: its name first, so that no visitor meets half of it."""
        place = self._place(project_id, preview)
        gone = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        with suppress(OSError):
            place.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def forget_previews(self, before: datetime) -> None:
        """Remove the previews that have not changed since, and what an earlier removal left."""
        for place in self._sites.glob("*/t-*"):
            if _shown_since(place) < before.timestamp():
                self.drop(place.parent.name, Stage(place.name))
        for gone in self._sites.glob("*/.t-*"):
            shutil.rmtree(gone, ignore_errors=True)

    def _turn(self, place: Path) -> None:
        """Let `current` follow the highest pointer, and look again: another may have pointed meanwhile."""
        current = place / "current"
        for _ in range(_FLIP_TRIES):
            if not (highest := _highest(place)):
                return
            target = Path("releases") / highest
            if current.is_symlink() and current.readlink() == target:
                return
            _link(target, current)

    def _prune(self, project_id: str, stage: Stage) -> None:
        place, keep = self._place(project_id, stage), 1 if stage.is_preview else self._keep
        pointers = sorted((place / "pointers").iterdir(), reverse=True)
        for pointer in pointers[keep:]:
            pointer.unlink(missing_ok=True)
        shown = _highest(place)
        for release in self.list(project_id, stage)[keep:]:
            if release.name != shown:
                _outlive(release.path, place / "spare")

    def _place(self, project_id: str, stage: Stage) -> Path:
        return self._sites.joinpath(project_id, stage.value)

    def _release(self, project_id: str, stage: Stage, name: str) -> Release:
        return Release(project_id, stage, name, self._place(project_id, stage) / "releases" / name)


def _highest(place: Path) -> str:
    """The release that the highest fence names; empty when there is none."""
    try:
        with os.scandir(f"{place}/pointers") as found:
            names = sorted((entry.name for entry in found if entry.name.isdigit()), reverse=True)
    except FileNotFoundError:
        return ""
    for name in names:
        try:
            release = (place / "pointers" / name).readlink().name
            return "" if release == NOTHING else release
        except FileNotFoundError:
            continue  # pruned meanwhile
    return ""


def _shown_since(place: Path) -> float:
    try:
        return (place / "current").lstat().st_mtime
    except FileNotFoundError:  # nothing was shown yet
        return 0.0


def _outlive(release: Path, spare: Path) -> None:
    """Keep one as the spare; what cannot become that is removed."""
    try:
        release.rename(spare)
    except OSError:  # there is one already
        shutil.rmtree(release, ignore_errors=True)


def _make_like(release: Path, staged: Path) -> None:
    shutil.rmtree(staged / FOLDER, ignore_errors=True)
    shutil.copytree(release, staged, copy_function=os.link, dirs_exist_ok=True)


def _link(target: Path, path: Path) -> None:
    """Put a symbolic link in place in one step, durably."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fresh.symlink_to(target)
    fresh.rename(path)
    sync_path(path.parent)


def _sync_tree(folder: Path, began: int) -> None:
    """Bring what is newer than `began` to disk, refusing anything that is not a plain file or folder."""
    fresh: list[str] = []
    unread = [os.fspath(folder)]
    while unread:
        here = unread.pop()
        # Files of a release are never written to: a folder with the same date holds nothing new.
        touched = os.stat(here).st_mtime_ns >= began  # noqa: PTH116  as plain as the calls beside it
        if touched:
            fresh.append(here)
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    unread.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    name = Path(entry.path).relative_to(folder)
                    raise Permanent(f"{name} is neither a file nor a folder: it cannot be published")
                elif touched and entry.stat(follow_symlinks=False).st_nlink == 1:
                    fresh.append(entry.path)  # with more names, it was synced in an earlier release
    sync_files(fresh, folder)
