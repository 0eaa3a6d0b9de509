"""Publishing to an object store: the manifest there says what is shown, and is moved by compare-and-swap.

`publishing` stands there before the first object changes and `published` after the last one did. A worker that holds
the project's lease and finds `publishing` follows one that did not finish: it publishes its own release,
and writes anew what the other one may have touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from itertools import groupby
from pathlib import Path
from typing import Protocol, TypeVar

from webordinary.jobs.site_files import (
    KEPT_RELEASES,
    Manifest,
    Mark,
    Release,
    files_of,
    is_hidden,
    is_page,
    manifest_of,
    manifest_record,
    media_type_of,
)
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient

FOREVER = "public, max-age=31536000, immutable"
SHORTLY = "public, max-age=300, must-revalidate"
ASK_EACH_TIME = "public, max-age=0, must-revalidate"
NAMED_BY_CONTENT = ("_astro/", "_next/static/", "_nuxt/", "_app/immutable/")
_FINGERPRINT = re.compile(r"[.-](?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}\.[a-z0-9.]{1,12}$")


class Rank(IntEnum):
    """The order of uploads."""

    NAMED_BY_CONTENT = 0
    ASSET = 1
    NEW_PAGE = 2
    CHANGED_PAGE = 3
    HOME_PAGE = 4


@dataclass(frozen=True, slots=True)
class Upload:
    """One object to write."""

    path: str
    digest: str
    size: int
    rank: Rank
    media_type: str
    cache_control: str


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A version of an object of the same path in a store."""

    store: str
    version: str


Origin = Path | StoredObject
"""Where the bytes of an object come from."""


@dataclass(frozen=True, slots=True)
class DeployPlan:
    """`uploads` rank by rank, then `stale_pages`, then `stale_assets`."""

    uploads: tuple[Upload, ...]
    stale_pages: tuple[str, ...] = ()
    stale_assets: tuple[str, ...] = ()

    @property
    def ranks(self) -> Iterator[tuple[Upload, ...]]:
        """The uploads that may happen side by side, in the order in which the groups must come."""
        return (tuple(group) for _, group in groupby(self.uploads, key=lambda upload: upload.rank))

    @property
    def paths(self) -> frozenset[str]:
        """Everything that is written or removed."""
        return frozenset((*(upload.path for upload in self.uploads), *self.stale_pages, *self.stale_assets))

    def __bool__(self) -> bool:
        return bool(self.paths)


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """What stands in a store, and which version of it."""

    text: bytes
    version: str


def plan_deploy(shown: Manifest, desired: Manifest, touched: Collection[str] = ()) -> DeployPlan:
    """From what the site shows to what it should show.

    `touched` is what unfinished publications may have written or removed: their content is unknown, so it is
    written again.
    """
    doubtful = frozenset(touched)
    known = {path: (mark.digest, mark.foreign) for path, mark in shown.items() if path not in doubtful}
    present = shown.keys() | doubtful
    uploads = [
        _upload(path, desired, path in present)
        for path, mark in desired.items()
        if known.get(path) != (mark.digest, mark.foreign)
    ]
    stale = sorted(present - desired.keys())
    return DeployPlan(
        tuple(sorted(uploads, key=lambda upload: (upload.rank, upload.path))),
        tuple(path for path in stale if is_page(path)),
        tuple(path for path in stale if not is_page(path)),
    )


def refused_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths that would leave the site's tree or hide in it; a manifest that has one is not published."""
    return tuple(sorted(path for path in paths if not _is_plain(path)))


def cache_control_of(path: str, replaced: bool = False) -> str:
    """How long others may keep it. A name that stays while its content changes was not made from the content."""
    if is_page(path):
        return ASK_EACH_TIME
    return FOREVER if _named_by_content(path) and not replaced else SHORTLY


def _upload(path: str, desired: Manifest, replaces: bool) -> Upload:
    mark = desired[path]
    cached = cache_control_of(path, replaces)
    media_type = media_type_of(path, foreign=mark.foreign)
    return Upload(path, mark.digest, mark.size, _rank(path, replaces), media_type, cached)


def _rank(path: str, replaces: bool) -> Rank:
    if path == "index.html":
        return Rank.HOME_PAGE
    if is_page(path):
        return Rank.CHANGED_PAGE if replaces else Rank.NEW_PAGE
    return Rank.NAMED_BY_CONTENT if _named_by_content(path) else Rank.ASSET


def _named_by_content(path: str) -> bool:
    return path.startswith(NAMED_BY_CONTENT) or _FINGERPRINT.search(path) is not None


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    odd = any(part in ("", ".", "..") for part in parts) or "\\" in path or not path.isprintable()
    return not odd and not is_hidden(path) and len(path.encode()) <= 900


class ObjectStore(Protocol):
    """A store of a site's objects, one per path, with one manifest that is not served.

    What is replaced or removed is kept for long: versions name it.
    """

    @property
    def name(self) -> str:
        """The name by which other stores refer to this one."""

    def manifest(self) -> StoredManifest | None:
        """The manifest with its version; None before the first."""

    def recall(self, version: str) -> bytes:
        """An earlier version of the manifest. Raises Permanent if it is not kept any longer."""

    def swap_manifest(self, text: bytes, expected: str | None) -> str | None:
        """Write it if its version is still the expected one (None: there is none yet); the new version, else None."""

    def put_all(self, uploads: Sequence[tuple[Upload, Origin]]) -> Mapping[str, str]:
        """Write objects with their type and caching, in any order, each whole or not at all; their versions by path.

        Raises Transient, and Permanent when an origin is not kept any longer.
        """

    def delete(self, paths: Sequence[str]) -> None:
        """Remove up to 1000 objects; those that are gone already do not matter. Raises Transient."""


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A release that was shown; `version` is the manifest's at that time. Numbers grow with each new release."""

    release: str
    number: int
    made_at: str
    files: int
    version: str = ""

    @property
    def at(self) -> datetime | None:
        """When the release was made, by its worker's clock; for display only."""
        return datetime.fromisoformat(self.made_at) if self.made_at else None


@dataclass(frozen=True, slots=True)
class ShownManifest:
    """What the store's manifest says: `files` were shown last; `touched` is what is being replaced or removed.

    Not the new content but the paths: after two unfinished publications any of three contents may lie there.
    """

    fence: int = 0
    release: str = ""
    files: Manifest = field(default_factory=dict)
    touched: frozenset[str] | None = None
    number: int = 0
    made_at: str = ""
    kept: tuple[KeptVersion, ...] = ()

    def text(self) -> bytes:
        """The manifest as JSON."""
        record = {
            "state": "published" if self.touched is None else "publishing",
            "fence": self.fence,
            "release": self.release,
            "number": self.number,
            "made_at": self.made_at,
            "touched": sorted(self.touched or ()),
            "kept": [[one.release, one.number, one.made_at, one.files, one.version] for one in self.kept],
            "manifest": manifest_record(self.files),
        }
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()

    def known(self, version: str | None) -> dict[str, KeptVersion]:
        """Every release that can be shown, by name; `version` is this manifest's own."""
        known = {one.release: one for one in self.kept}
        if self.release and self.touched is None and version is not None:
            known[self.release] = KeptVersion(self.release, self.number, self.made_at, len(self.files), version)
        return known

    def begun(self, fence: int, version: str | None, paths: frozenset[str]) -> ShownManifest:
        """The state while `paths` are written; the last release can be rolled back to from now on."""
        touched = (self.touched or frozenset()) | paths
        kept = tuple(self.known(version).values())
        return ShownManifest(fence, self.release, self.files, touched, self.number, self.made_at, kept)

    def ended(
        self, fence: int, release: KeptVersion, desired: Manifest, written: Mapping[str, str], keep: int
    ) -> ShownManifest:
        """The state after the deployment; `written` are the versions of its objects."""
        files = {path: _marked(mark, written.get(path), self.files.get(path)) for path, mark in desired.items()}
        others = (one for one in self.kept if one.release != release.release)
        kept = sorted(others, key=lambda one: one.number, reverse=True)[:keep]
        return ShownManifest(fence, release.release, files, None, release.number, release.made_at, tuple(kept))


def read_shown(stored: StoredManifest | None) -> ShownManifest:
    """What the store shows; nothing, if nothing was ever published. Raises Permanent on a damaged manifest."""
    if stored is None:
        return ShownManifest()
    try:
        record = json.loads(stored.text)
        return ShownManifest(
            fence=int(record["fence"]),
            release=str(record["release"]),
            files=files_of(record["manifest"]),
            touched=frozenset(record["touched"]) if record["state"] == "publishing" else None,
            number=int(record["number"]),
            made_at=str(record["made_at"]),
            kept=tuple(KeptVersion(*fields) for fields in record["kept"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        words = "the manifest of the site is damaged: remove it, and the next publication writes all anew"
        raise Permanent(words) from problem


def _marked(mark: Mark, written: str | None, before: Mark | None) -> Mark:
    """Without its source, which only the builder that has it beside it asks for."""
    version = written if written is not None else before.version if before else ""
    return mark._replace(source="", version=version)


PUT_EACH = 200
DELETE_EACH = 1000
_TRIES = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DesiredRelease:
    """A release to deploy: its files, and the origin of each file's bytes."""

    name: str
    files: Manifest
    origin: Callable[[str], Origin]
    made_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ManifestState:
    """What a store shows, with the version of its manifest; none if it has none."""

    shown: ShownManifest
    version: str | None

    @property
    def known(self) -> dict[str, KeptVersion]:
        """Every release that can be shown, by name."""
        return self.shown.known(self.version)


@dataclass(frozen=True, slots=True)
class S3Deployment:
    """The result of a deployment; `flipped` if visitors see another release than before."""

    plan: DeployPlan
    flipped: bool
    standing: ManifestState


def deploy(release: Release, lease: ProjectLease, store: ObjectStore, check: Callable[[], None]) -> DeployPlan:
    """Deploy a release from a folder. See `show`."""
    return show(in_folder(release), lease, store, check).plan


def show(
    desired: DesiredRelease,
    lease: ProjectLease,
    store: ObjectStore,
    check: Callable[[], None],
    seen: ManifestState | None = None,
    keep: int = KEPT_RELEASES,
) -> S3Deployment:
    """Make the store show a release. `check` raises when the right to publish is lost.

    Doing it again changes nothing. Killed anywhere, the next call by the lease holder ends it. `seen` saves a
    look at the store if no other worker has published meanwhile.
    """
    for standing in _looks(store, seen):
        before = standing.shown
        if before.fence > lease.fence:
            raise ClaimLost(lease.project_id, lease.worker, lease.fence)
        if odd := refused_paths(desired.files.keys() - before.files.keys()):
            raise Permanent(f"{odd[0]!r} is no path of a site: it is not published")
        plan = plan_deploy(before.files, desired.files, before.touched or ())
        if before.touched is None and before.release == desired.name and not plan:
            if standing is seen:
                continue  # that was then
            return S3Deployment(plan, False, standing)
        begun = before.begun(lease.fence, standing.version, plan.paths)
        version = store.swap_manifest(begun.text(), standing.version)
        if version is not None:
            written = _write(plan, desired, store, check)
            check()
            shown = begun.ended(lease.fence, _entry(desired, standing), desired.files, written, keep)
            return S3Deployment(plan, before.release != desired.name, _end(shown, version, lease, store))
    raise _moved_on(lease)


def look(store: ObjectStore) -> ManifestState:
    """The state of the store's manifest, with its version."""
    stored = store.manifest()
    return ManifestState(read_shown(stored), stored.version if stored else None)


def in_folder(release: Release) -> DesiredRelease:
    """A release that was built here. Raises Permanent if it has no manifest."""
    files = manifest_of(release.path)
    if not files:
        raise Permanent(f"release {release.name} has no manifest: publish it anew")
    return DesiredRelease(release.name, files, lambda path: release.path / path, release.made_at)


def in_store(name: str, store: ObjectStore, standing: ManifestState) -> DesiredRelease | None:
    """A release that the store shows or showed; None if it is not kept."""
    shown, entry = standing.shown, standing.known.get(name)
    if entry is None:
        return None
    earlier = shown if shown.release == name else read_shown(StoredManifest(store.recall(entry.version), entry.version))
    return DesiredRelease(
        name, earlier.files, lambda path: StoredObject(store.name, earlier.files[path].version), entry.at
    )


def _looks(store: ObjectStore, seen: ManifestState | None) -> Iterator[ManifestState]:
    if seen is not None:
        yield seen
    for _ in range(_TRIES):
        yield look(store)


def _moved_on(lease: ProjectLease) -> Transient:
    return Transient(f"{lease.project_id}: the site's manifest moved {_TRIES} times; it will be tried again")


def _entry(desired: DesiredRelease, standing: ManifestState) -> KeptVersion:
    """A release that comes back keeps its number."""
    known = standing.known
    if desired.name in known:
        return known[desired.name]
    number = 1 + max([standing.shown.number, *(one.number for one in known.values())])
    return KeptVersion(desired.name, number, desired.made_at.isoformat() if desired.made_at else "", len(desired.files))


def _write(plan: DeployPlan, desired: DesiredRelease, store: ObjectStore, check: Callable[[], None]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for rank in plan.ranks:
        for uploads in _bites(rank, PUT_EACH):
            check()
            versions |= store.put_all([(upload, desired.origin(upload.path)) for upload in uploads])
    for stale in (plan.stale_pages, plan.stale_assets):
        for paths in _bites(stale, DELETE_EACH):
            check()
            store.delete(paths)
    return versions


def _bites(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (whole[first : first + size] for first in range(0, len(whole), size))


def _end(shown: ShownManifest, version: str, lease: ProjectLease, store: ObjectStore) -> ManifestState:
    ended = store.swap_manifest(shown.text(), version)
    if ended is None:
        raise ClaimLost(lease.project_id, lease.worker, lease.fence)
    return ManifestState(shown, ended)
