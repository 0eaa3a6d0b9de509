"""Publishing to an object store: the manifest there says what is shown, and is moved by compare-and-swap.

`publishing` stands there before the first object changes and `published` after the last one did. Whoever holds the
project's lease and finds `publishing` was preceded by somebody who did not finish: it publishes its own release, and
writes anew whatever the other one may have touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient
from webordinary.site.deploy_plan import DeployPlan, Lying, Origin, StoredManifest, plan_deploy, refused_paths
from webordinary.site.manifests import Manifest, manifest_of
from webordinary.site.ports import ObjectStore
from webordinary.site.releases import KEPT_RELEASES, Release
from webordinary.site.shown import Kept, Shown, read_shown

PUT_EACH = 200
DELETE_EACH = 1000
_TRIES = 5
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A release to be shown: what it holds, and where the bytes of each file are."""

    name: str
    files: Manifest
    origin: Callable[[str], Origin]
    made_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What a store shows, with the version of its manifest; none if it has none."""

    shown: Shown
    version: str | None

    @property
    def known(self) -> dict[str, Kept]:
        """Every release that can be shown, by name."""
        return self.shown.known(self.version)


@dataclass(frozen=True, slots=True)
class Deployed:
    """What was done; `flipped` if visitors see another release than before."""

    plan: DeployPlan
    flipped: bool
    standing: Standing


def deploy(release: Release, lease: ProjectLease, store: ObjectStore, check: Callable[[], None]) -> DeployPlan:
    """Make the store show a release that lies in a folder; returns what was done. See `show`."""
    return show(in_folder(release), lease, store, check).plan


def show(
    wanted: Wanted,
    lease: ProjectLease,
    store: ObjectStore,
    check: Callable[[], None],
    seen: Standing | None = None,
    keep: int = KEPT_RELEASES,
) -> Deployed:
    """Make the store show a release. `check` raises when the right to publish is lost.

    Doing it again changes nothing. Killed anywhere, the next call by whoever holds the lease ends it. `seen` saves a
    look at the store if nobody else has published meanwhile.
    """
    for standing in _looks(store, seen):
        before = standing.shown
        if before.fence > lease.fence:
            raise ClaimLost(lease.project_id, lease.worker, lease.fence)
        if odd := refused_paths(wanted.files.keys() - before.files.keys()):
            raise Permanent(f"{odd[0]!r} is no path of a site: it is not published")
        plan = plan_deploy(before.files, wanted.files, before.touched or ())
        if before.touched is None and before.release == wanted.name and not plan:
            if standing is seen:
                continue  # that was then
            return Deployed(plan, False, standing)
        begun = before.begun(lease.fence, standing.version, plan.paths)
        version = store.swap_manifest(begun.text(), standing.version)
        if version is not None:
            written = _write(plan, wanted, store, check)
            check()
            shown = begun.ended(lease.fence, _entry(wanted, standing), wanted.files, written, keep)
            return Deployed(plan, before.release != wanted.name, _end(shown, version, lease, store))
    raise _moved_on(lease)


def shut_out(lease: ProjectLease, store: ObjectStore) -> Standing:
    """Let no lower fence end or begin a publication from now on; what the store shows stays as it is."""
    for standing in _looks(store, None):
        if standing.shown.fence >= lease.fence:
            return standing
        shown = replace(standing.shown, fence=lease.fence)
        version = store.swap_manifest(shown.text(), standing.version)
        if version is not None:
            return Standing(shown, version)
    raise _moved_on(lease)


def look(store: ObjectStore) -> Standing:
    """What the store shows now."""
    stored = store.manifest()
    return Standing(read_shown(stored), stored.version if stored else None)


def in_folder(release: Release) -> Wanted:
    """A release that was built here. Raises Permanent if it has no manifest."""
    files = manifest_of(release.path)
    if not files:
        raise Permanent(f"release {release.name} has no manifest: publish it anew")
    return Wanted(release.name, files, lambda path: release.path / path, release.made_at)


def in_store(name: str, store: ObjectStore, standing: Standing) -> Wanted | None:
    """A release that the store shows or showed; None if it is not kept."""
    shown, entry = standing.shown, standing.known.get(name)
    if entry is None:
        return None
    earlier = shown if shown.release == name else read_shown(StoredManifest(store.recall(entry.version), entry.version))
    return Wanted(name, earlier.files, lambda path: Lying(store.name, earlier.files[path].version), entry.at)


def _looks(store: ObjectStore, seen: Standing | None) -> Iterator[Standing]:
    if seen is not None:
        yield seen
    for _ in range(_TRIES):
        yield look(store)


def _moved_on(lease: ProjectLease) -> Transient:
    return Transient(f"{lease.project_id}: the bucket's manifest moved {_TRIES} times; it will be tried again")


def _entry(wanted: Wanted, standing: Standing) -> Kept:
    """A release that comes back keeps its number."""
    known = standing.known
    if wanted.name in known:
        return known[wanted.name]
    number = 1 + max([standing.shown.number, *(one.number for one in known.values())])
    return Kept(wanted.name, number, wanted.made_at.isoformat() if wanted.made_at else "", len(wanted.files))


def _write(plan: DeployPlan, wanted: Wanted, store: ObjectStore, check: Callable[[], None]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for rank in plan.ranks:
        for uploads in _bites(rank, PUT_EACH):
            check()
            versions |= store.put_all([(upload, wanted.origin(upload.path)) for upload in uploads])
    for stale in (plan.stale_pages, plan.stale_assets):
        for paths in _bites(stale, DELETE_EACH):
            check()
            store.delete(paths)
    return versions


def _bites(whole: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (whole[first : first + size] for first in range(0, len(whole), size))


def _end(shown: Shown, version: str, lease: ProjectLease, store: ObjectStore) -> Standing:
    ended = store.swap_manifest(shown.text(), version)
    if ended is None:
        raise ClaimLost(lease.project_id, lease.worker, lease.fence)
    return Standing(shown, ended)
