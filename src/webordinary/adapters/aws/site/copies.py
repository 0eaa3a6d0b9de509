"""LocalCopies: releases on this worker's own disk, on their way into a bucket and to build the next one from.

Nothing depends on them: what is missing is built or read again. So they begin empty, and the sites that nobody
published for longest go when they take too much room.
"""

from __future__ import annotations

import secrets
import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from webordinary.model.errors import Transient, reason_of
from webordinary.site.manifests import FOLDER, SPARE, Manifest, keep_manifest, manifest_of
from webordinary.site.releases import Release, Stage

KEPT_COPIES = 4
"""Of one site: what is shown, what was before, and what a picture may still be taken of."""
MOST_BYTES = 4_000_000_000
LEAST_SITES = 16
"""As many are never cleared away, as they may be in use."""
Site = tuple[str, Stage]


@dataclass(slots=True)
class _Copies:
    """When each was made, the newest last; None where there is a manifest alone."""

    made: dict[str, datetime | None] = field(default_factory=dict)
    bytes: int = 0


class LocalCopies:
    """`{project}/{stage}/releases/{name}` below one folder. Thread-safe."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder, self._most_bytes = folder, most_bytes
        self._sites: dict[Site, _Copies] = {}  # the one used last comes last
        self._guard = threading.RLock()
        shutil.rmtree(folder, ignore_errors=True)

    def stage(self, site: Site, fence: int) -> Path:
        """An empty folder to build into; what holders of lower fences left behind is removed."""
        staging, mark = self._place(site) / "staging", f"{fence:020d}"
        staging.mkdir(parents=True, exist_ok=True)
        for left in staging.iterdir():
            if left.name < mark:
                shutil.rmtree(left, ignore_errors=True)
        folder = staging / f"{mark}-{secrets.token_hex(4)}"
        (folder / FOLDER).mkdir(parents=True)
        with suppress(FileNotFoundError):
            (staging.parent / "spare").rename(folder / SPARE)  # an outlived release, to make the next one out of
        return folder

    def finish(self, site: Site, staged: Path, name: str, now: datetime) -> Release:
        """The staged folder is a release from now on; an existing one is used instead."""
        path = self.path(site, name)
        with self._guard:
            copies = self._used(site)
            made_at = copies.made.pop(name, None)
            if made_at is None:
                made_at = now
                self._adopt(staged, path)
                copies.bytes = sum(mark.size for mark in manifest_of(path).values())
            copies.made[name] = made_at
            self._make_room(site)
        shutil.rmtree(staged, ignore_errors=True)
        return Release(*site, name, path, made_at)

    def find(self, site: Site, name: str) -> Release | None:
        """A release that was built here and still lies here."""
        with self._guard:
            made_at = self._used(site).made.get(name)
        return Release(*site, name, self.path(site, name), made_at) if made_at else None

    def names(self, site: Site) -> tuple[str, ...]:
        """What was built here, the newest first."""
        with self._guard:
            return tuple(name for name, made_at in reversed(self._used(site).made.items()) if made_at)

    def note(self, site: Site, name: str, files: Manifest) -> None:
        """Let it be known what a release holds of which there is no copy here."""
        path = self.path(site, name)
        with self._guard, suppress(OSError):  # a full disk is noticed where something depends on it
            copies = self._used(site)
            if name not in copies.made:
                path.mkdir(parents=True, exist_ok=True)
                keep_manifest(path, files)
                copies.made[name] = None

    def path(self, site: Site, name: str) -> Path:
        """Where a copy of a release lies or would lie."""
        return self._place(site) / "releases" / name

    def _used(self, site: Site) -> _Copies:
        copies = self._sites.pop(site, None) or _Copies()
        self._sites[site] = copies
        return copies

    @staticmethod
    def _adopt(staged: Path, path: Path) -> None:
        shutil.rmtree(staged / SPARE, ignore_errors=True)
        shutil.rmtree(path, ignore_errors=True)  # perhaps there is a manifest alone
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            staged.rename(path)
        except OSError as problem:
            raise Transient(f"{path} cannot be made ({reason_of(problem)}): free some disk space") from problem

    def _make_room(self, site: Site) -> None:
        copies = self._sites[site]
        for name in list(copies.made)[:-KEPT_COPIES]:
            whole, path = copies.made.pop(name), self.path(site, name)
            if whole:
                with suppress(OSError):  # there is one already
                    path.rename(self._place(site) / "spare")
            shutil.rmtree(path, ignore_errors=True)
        for oldest in list(self._sites)[:-LEAST_SITES]:
            if sum(each.bytes for each in self._sites.values()) <= self._most_bytes:
                break
            del self._sites[oldest]
            shutil.rmtree(self._place(oldest), ignore_errors=True)

    def _place(self, site: Site) -> Path:
        project_id, stage = site
        return self._folder / project_id / stage.value
