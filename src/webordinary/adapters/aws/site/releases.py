"""S3Releases: sites in folders of a bucket. A release is built on the worker's disk, shown by writing what changed.

The folder's manifest says what is shown and which earlier releases can be shown again; their files are versions of the
folder's objects. So any worker, and an operator without any copy, goes back to one without moving its bytes.

Also the list of previews of a project's conversations, with their times, and the removal of a preview.

One object beside them lists them, moved by compare-and-swap, since a publisher may list no bucket. The bucket forgets
what lies there for EXPIRES; so a preview is written anew before that, and one that may have lost files is not used.
"""

from __future__ import annotations

import json
import secrets
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from webordinary.adapters.aws.blobs import fetch
from webordinary.adapters.aws.names import PREVIEW_DAYS
from webordinary.adapters.aws.site.deploy import (
    DELETE_EACH,
    DesiredRelease,
    KeptVersion,
    ManifestState,
    ShownManifest,
    in_folder,
    in_store,
    look,
    read_shown,
    show,
)
from webordinary.adapters.aws.site.objects import MANIFEST, S3Objects, split
from webordinary.adapters.durable import disk_errors
from webordinary.jobs.ports import no_check
from webordinary.jobs.site_files import (
    FOLDER,
    KEPT_RELEASES,
    SPARE,
    Manifest,
    Release,
    Stage,
    is_page,
    keep_manifest,
    manifest_of,
    release_name,
)
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient, reason_of

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


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
        """A release that was built by this worker and is still on its disk."""
        with self._guard:
            made_at = self._used(site).made.get(name)
        return Release(*site, name, self.path(site, name), made_at) if made_at else None

    def names(self, site: Site) -> tuple[str, ...]:
        """The releases that this worker built, newest first."""
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
        """The folder of a release's copy."""
        return self._place(site) / "releases" / name

    def site_of(self, path: Path) -> Site:
        """The project and stage of a path."""
        project_id, stage, *_ = path.relative_to(self._folder).parts
        return project_id, Stage(stage)

    def forget(self, site: Site) -> None:
        """Remove all of a site's copies here."""
        with self._guard:
            self._sites.pop(site, None)
            shutil.rmtree(self._place(site), ignore_errors=True)

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


REMEMBERED = 16
K = TypeVar("K")
V = TypeVar("V")


class S3Releases:
    """See Releases. `s3_of` gives the client to act for a project with. Thread-safe."""

    def __init__(
        self,
        s3_of: Callable[[str], S3Client],
        store_of: Callable[[str, Stage], str],
        previews_in: Callable[[str], str],
        copies: LocalCopies,
        now: Callable[[], datetime],
        keep: int = KEPT_RELEASES,
    ) -> None:
        self._s3_of, self._store_of, self._previews_in = s3_of, store_of, previews_in
        self._copies, self._now = copies, now
        self._keep = max(keep, 1)
        self._seen: dict[Site, ManifestState] = {}
        self._promoted: dict[tuple[Site, str], DesiredRelease] = {}
        self._guard = threading.Lock()

    def stage(self, project_id: str, stage: Stage, fence: int) -> Path:
        return self._copies.stage((project_id, stage), fence)

    def finish(self, project_id: str, stage: Stage, staged: Path, commit: str) -> Release:
        """Make the staged folder the release of this commit; killed before it is shown, it is built again."""
        return self._copies.finish((project_id, stage), staged, release_name(commit), self._now())

    def find(self, project_id: str, stage: Stage, commit: str) -> Release | None:
        site, name = (project_id, stage), release_name(commit)
        if found := self._copies.find(site, name):
            return found
        standing = self._standing(site)
        entry = standing.known.get(name) if self._is_whole(site, standing) else None
        return self._release(site, entry) if entry else None

    def promote(self, project_id: str, source: Stage, target: Stage, fence: int, commit: str) -> Release | None:
        """The objects are copied in the store."""
        standing = self._look((project_id, source))
        name = standing.shown.release if self._is_whole((project_id, source), standing) else ""
        desired = in_store(name, self._store((project_id, source)), standing) if name else None
        if desired is None:
            return None
        site, entry = (project_id, target), replace(standing.known[name], release=release_name(commit))
        with self._guard:
            _remember(self._promoted, (site, entry.release), replace(desired, name=entry.release))
        return self._release(site, entry)

    def activate(self, release: Release, fence: int, check: Callable[[], None] = no_check) -> bool:
        site = (release.project_id, release.stage)
        lease, keep = _lease(release.project_id, fence), self._keep
        if release.stage.is_preview:
            keep = 0
            if not self._previews(release.project_id).note(release.stage, self._now()):
                self._forget(site)
                clear(self._store(site))
        seen = self._standing(site)
        desired = self._desired(site, release, seen)
        try:
            done = show(desired, lease, self._store(site), check, seen, keep)
        except ClaimLost:
            self._forget(site)
            check()  # a lost claim is for the caller; a newer publication just stands
            return False
        except BaseException:
            self._forget(site)
            raise
        self._keep_seen(site, done.standing)
        with self._guard:
            self._promoted.pop((site, release.name), None)
        return done.flipped

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """See Releases; of a release that was not built here there is the manifest alone."""
        site = (project_id, stage)
        standing = self._standing(site)
        shown = standing.shown
        if not shown.release or not self._is_whole(site, standing):
            return None
        self._copies.note(site, shown.release, shown.files)
        return self._copies.path(site, shown.release)

    def read(self, release: Path, name: str) -> bytes:
        """A file of a release that was current; of one that was not built here, as the bucket keeps it."""
        with suppress(FileNotFoundError):
            return (release / name).read_bytes()
        mark = manifest_of(release).get(name)
        if mark is None or not mark.version:
            raise Permanent(f"{name} of release {release.name} is neither here nor kept in its folder")
        return self._store(self._copies.site_of(release)).read(name, mark.version, MOST_FILE_BYTES)

    def list(self, project_id: str, stage: Stage) -> tuple[Release, ...]:
        """All kept releases, newest first: those that were never shown are only known where they were built."""
        site = (project_id, stage)
        standing = self._look(site)
        known = standing.known
        here = (self._copies.find(site, name) for name in self._copies.names(site) if name not in known)
        newest_first = sorted(known.values(), key=lambda entry: entry.number, reverse=True)
        every = [*filter(None, here), *(self._release(site, entry) for entry in newest_first)]
        shown = standing.shown.release
        return tuple(release for place, release in enumerate(every) if place < self._keep or release.name == shown)

    def previews(self, project_id: str) -> tuple[Stage, ...]:
        return self._previews(project_id).newest_first()

    def drop(self, project_id: str, preview: Stage) -> None:
        """Remove pages first: a visitor during the removal finds pages missing, not pages without their pictures."""
        site = (project_id, preview)
        with suppress(Transient, Permanent):
            self._previews(project_id).forget(preview, lambda: clear(self._store(site)))
        self._forget(site)
        self._copies.forget(site)

    def _previews(self, project_id: str) -> PreviewList:
        return PreviewList(S3Objects(self._s3_of(project_id), self._previews_in(project_id), may_list=False))

    def _is_whole(self, site: Site, standing: ManifestState) -> bool:
        return not site[1].is_preview or is_fresh(standing, self._now())

    def _desired(self, site: Site, release: Release, seen: ManifestState) -> DesiredRelease:
        with self._guard:
            promoted = self._promoted.get((site, release.name))
        if promoted:
            return promoted
        if built := self._copies.find(site, release.name):
            return in_folder(built)
        store = self._store(site)
        desired = in_store(release.name, store, seen) or in_store(release.name, store, self._look(site))
        if desired is None:
            raise Transient(f"release {release.name} of {site[0]} is neither here nor in its folder: it is built again")
        return desired

    def _release(self, site: Site, entry: KeptVersion) -> Release:
        return Release(*site, entry.release, self._copies.path(site, entry.release), entry.at, entry.files)

    def _store(self, site: Site) -> S3Objects:
        return S3Objects(self._s3_of(site[0]), self._store_of(*site), may_list=False)

    def _standing(self, site: Site) -> ManifestState:
        """The manifest as last seen; a stale one is noticed by its compare-and-swap."""
        with self._guard:
            seen = self._seen.get(site)
        return seen or self._look(site)

    def _look(self, site: Site) -> ManifestState:
        standing = look(self._store(site))
        self._keep_seen(site, standing)
        return standing

    def _keep_seen(self, site: Site, standing: ManifestState) -> None:
        with self._guard:
            _remember(self._seen, site, standing)

    def _forget(self, site: Site) -> None:
        with self._guard:
            self._seen.pop(site, None)


def _lease(project_id: str, fence: int) -> ProjectLease:
    return ProjectLease(project_id, "this worker", fence)


def _remember(memory: dict[K, V], key: K, value: V) -> None:
    """Remember an entry; the oldest entries are dropped."""
    memory.pop(key, None)
    memory[key] = value
    for oldest in list(memory)[:-REMEMBERED]:
        del memory[oldest]


MOST_FILE_BYTES = 100_000_000


class ShownCopies:
    """Local copies for the operators' preview; of each release only the files that changed are fetched."""

    def __init__(self, s3: S3Client, store_of: Callable[[str, Stage], str], folder: Path) -> None:
        self._s3, self._store_of, self._folder = s3, store_of, folder
        self._have: dict[Site, tuple[ShownManifest, Path]] = {}
        self._guard = threading.Lock()

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """A local folder with what the site shows now; None if that is nothing, or cannot be read."""
        store = self._store_of(project_id, stage)
        try:
            shown = read_shown(S3Objects(self._s3, store).manifest())
        except (Permanent, Transient):
            return None
        if not shown.files:
            return None
        with self._guard:
            before = self._have.get((project_id, stage))
            if before is None or before[0].release != shown.release:
                before = shown, self._fetch(store, shown, before)
                self._have[project_id, stage] = before
        return before[1]

    def _fetch(self, store: str, shown: ShownManifest, before: tuple[ShownManifest, Path] | None) -> Path:
        (bucket, folder), path = split(store), self._folder / store / shown.release
        known: Manifest = before[0].files if before else {}
        with disk_errors(path):
            for name, mark in shown.files.items():
                file = path / name
                file.parent.mkdir(parents=True, exist_ok=True)
                if before and name in known and known[name].digest == mark.digest:
                    shutil.copyfile(before[1] / name, file)
                else:
                    file.write_bytes(fetch(self._s3, bucket, folder + name, MOST_FILE_BYTES))
        if before:
            shutil.rmtree(before[1], ignore_errors=True)
        return path


EXPIRES = timedelta(days=PREVIEW_DAYS)
"""The rule of the bucket. No file of a preview in use is older than twice FRESH."""
FRESH = EXPIRES / 3
"""For so long a changed preview keeps its files, and for so long after its last change it is used."""
_TRIES = 5
Shown = dict[Stage, datetime]
"""When the oldest files of each were written; the one that changed last is the last."""


class PreviewList:
    """Of one project; `store` is the folder above its previews."""

    def __init__(self, store: S3Objects) -> None:
        self._store = store

    def newest_first(self) -> tuple[Stage, ...]:
        """Every preview that shows something."""
        return tuple(reversed(self._read()[0]))

    def note(self, preview: Stage, now: datetime) -> bool:
        """List it as the one that changed last, before it does; False if its files have to be written anew."""
        kept = False

        def noted(shown: Shown) -> Shown:
            nonlocal kept
            since = shown.pop(preview, None)
            kept = since is not None and now - since <= FRESH
            return {**shown, preview: since if since and kept else now}

        self._change(noted)
        return kept

    def forget(self, preview: Stage, clear: Callable[[], None]) -> None:
        """Take it off the list once `clear` has removed its files. Idempotent."""
        if preview in self._read()[0]:
            clear()
            self._change(lambda shown: {one: since for one, since in shown.items() if one != preview})

    def _read(self) -> tuple[Shown, str | None]:
        stored = self._store.manifest()
        if stored is None:
            return {}, None
        listed = json.loads(stored.text)
        return {Stage(name): datetime.fromisoformat(since) for name, since in listed.items()}, stored.version

    def _change(self, change: Callable[[Shown], Shown]) -> None:
        for _ in range(_TRIES):
            shown, version = self._read()
            text = json.dumps({str(one): since.isoformat() for one, since in change(shown).items()})
            if self._store.swap_manifest(text.encode(), version) is not None:
                return
        raise Transient(f"the list of previews {self._store.name} moved {_TRIES} times; it will be tried again")


def is_fresh(standing: ManifestState, now: datetime) -> bool:
    """Whether all files of a preview are certainly there."""
    made_at = standing.shown.made_at
    return bool(made_at) and now - datetime.fromisoformat(made_at) <= FRESH


def clear(store: S3Objects) -> None:
    """Remove what a preview shows: the pages before what they refer to, its manifest last. Idempotent."""
    shown = look(store).shown
    paths = sorted(shown.files.keys() | (shown.touched or frozenset()), key=lambda path: (not is_page(path), path))
    for first in range(0, len(paths), DELETE_EACH):
        store.delete(paths[first : first + DELETE_EACH])
    store.delete([MANIFEST])
