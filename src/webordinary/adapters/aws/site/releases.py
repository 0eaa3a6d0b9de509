"""S3Releases: sites in buckets. A release is built on the worker's disk and shown by writing what changed.

The bucket's manifest says what is shown and which earlier releases can be shown again; their files are versions of the
bucket's objects. So any worker, and an operator without any copy, goes back to one without moving its bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from webordinary.adapters.aws.site.copies import LocalCopies, Site
from webordinary.adapters.aws.site.objects import S3Objects
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Transient
from webordinary.site.ports import free_to_go_on
from webordinary.site.releases import KEPT_RELEASES, Release, Stage, release_name
from webordinary.site.shown import Kept
from webordinary.site.targets import Standing, Wanted, in_folder, in_store, look, show, shut_out

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

REMEMBERED = 16
K = TypeVar("K")
V = TypeVar("V")


class S3Releases:
    """See Releases. `s3_of` gives the client to act for a project with. Thread-safe."""

    def __init__(
        self,
        s3_of: Callable[[str], S3Client],
        bucket_of: Callable[[str, Stage], str],
        copies: LocalCopies,
        now: Callable[[], datetime],
        keep: int = KEPT_RELEASES,
    ) -> None:
        self._s3_of, self._bucket_of, self._copies, self._now = s3_of, bucket_of, copies, now
        self._keep = max(keep, 1)
        self._seen: dict[Site, Standing] = {}
        self._promoted: dict[tuple[Site, str], Wanted] = {}
        self._guard = threading.Lock()

    def stage(self, project_id: str, stage: Stage, fence: int) -> Path:
        """See Releases."""
        return self._copies.stage((project_id, stage), fence)

    def finish(self, project_id: str, stage: Stage, staged: Path, commit: str) -> Release:
        """Make the staged folder the release of this commit; killed before it is shown, it is built again."""
        return self._copies.finish((project_id, stage), staged, release_name(commit), self._now())

    def find(self, project_id: str, stage: Stage, commit: str) -> Release | None:
        """See Releases."""
        site, name = (project_id, stage), release_name(commit)
        if found := self._copies.find(site, name):
            return found
        entry = self._standing(site).known.get(name)
        return self._release(site, entry) if entry else None

    def promote(self, project_id: str, source: Stage, target: Stage, fence: int) -> Release | None:
        """Make one stage's current release a release of another stage; its objects are copied in the store."""
        standing = self._look((project_id, source))
        name = standing.shown.release
        wanted = in_store(name, self._store((project_id, source)), standing) if name else None
        if wanted is None:
            return None
        site = (project_id, target)
        with self._guard:
            _remember(self._promoted, (site, name), wanted)
        return self._release(site, standing.known[name])

    def point(self, release: Release, fence: int, check: Callable[[], None] = free_to_go_on) -> bool:
        """See Releases."""
        site = (release.project_id, release.stage)
        lease = _lease(release.project_id, fence)
        seen = self._standing(site)
        wanted = self._wanted(site, release, seen)
        try:
            done = show(wanted, lease, self._store(site), check, seen, self._keep)
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

    def shut_out(self, project_id: str, stage: Stage, fence: int) -> None:
        """See Releases."""
        site = (project_id, stage)
        self._keep_seen(site, shut_out(_lease(project_id, fence), self._store(site)))

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """See Releases; of a release that was not built here there is the manifest alone."""
        site = (project_id, stage)
        shown = self._standing(site).shown
        if not shown.release:
            return None
        self._copies.note(site, shown.release, shown.files)
        return self._copies.path(site, shown.release)

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

    def _wanted(self, site: Site, release: Release, seen: Standing) -> Wanted:
        with self._guard:
            promoted = self._promoted.get((site, release.name))
        if promoted:
            return promoted
        if built := self._copies.find(site, release.name):
            return in_folder(built)
        store = self._store(site)
        wanted = in_store(release.name, store, seen) or in_store(release.name, store, self._look(site))
        if wanted is None:
            raise Transient(f"release {release.name} of {site[0]} is neither here nor in its bucket: it is built again")
        return wanted

    def _release(self, site: Site, entry: Kept) -> Release:
        return Release(*site, entry.release, self._copies.path(site, entry.release), entry.at, entry.files)

    def _store(self, site: Site) -> S3Objects:
        return S3Objects(self._s3_of(site[0]), self._bucket_of(*site))

    def _standing(self, site: Site) -> Standing:
        """What was seen last: whoever acts on it swaps the manifest, and so learns whether it is over."""
        with self._guard:
            seen = self._seen.get(site)
        return seen or self._look(site)

    def _look(self, site: Site) -> Standing:
        standing = look(self._store(site))
        self._keep_seen(site, standing)
        return standing

    def _keep_seen(self, site: Site, standing: Standing) -> None:
        with self._guard:
            _remember(self._seen, site, standing)

    def _forget(self, site: Site) -> None:
        with self._guard:
            self._seen.pop(site, None)


def _lease(project_id: str, fence: int) -> ProjectLease:
    return ProjectLease(project_id, "this worker", fence)


def _remember(memory: dict[K, V], key: K, value: V) -> None:
    """Bounded: what was learnt first is forgotten first."""
    memory.pop(key, None)
    memory[key] = value
    for oldest in list(memory)[:-REMEMBERED]:
        del memory[oldest]
