"""Publishing to an object store: the manifest there says what is shown, and is moved by compare-and-swap.

`publishing` stands there before the first object changes and `published` after the last one did. Whoever holds the
project's lease and finds `publishing` was preceded by somebody who did not finish: it publishes its own release, and
writes anew whatever the other one may have touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient
from webordinary.site.deploy_plan import DeployPlan, StoredManifest, plan_deploy, refused_paths
from webordinary.site.manifests import Manifest, manifest_of, manifest_text, read_manifest
from webordinary.site.ports import ObjectStore
from webordinary.site.releases import Release

DELETE_EACH = 1000
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """What the store's manifest says: `files` were shown last; `touched` is what somebody is replacing or removing.

    Not the new content but the paths: after two unfinished publications any of three contents may lie there.
    """

    fence: int = 0
    release: str = ""
    files: Manifest = field(default_factory=dict)
    touched: frozenset[str] | None = None

    def text(self) -> bytes:
        """As it is stored."""
        record = {
            "state": "published" if self.touched is None else "publishing",
            "fence": self.fence,
            "release": self.release,
            "touched": sorted(self.touched or ()),
            "manifest": manifest_text(self.files),
        }
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def read_shown(stored: StoredManifest | None) -> Shown:
    """What the store shows; nothing, if nothing was ever published. Raises Permanent on a damaged manifest."""
    if stored is None:
        return Shown()
    try:
        record = json.loads(stored.text)
        touched = frozenset(record["touched"]) if record["state"] == "publishing" else None
        return Shown(int(record["fence"]), str(record["release"]), read_manifest(record["manifest"]), touched)
    except (ValueError, KeyError, TypeError) as problem:
        words = "the manifest in the bucket is damaged: remove it, and the next publication writes all anew"
        raise Permanent(words) from problem


def deploy(release: Release, lease: ProjectLease, store: ObjectStore, check: Callable[[], None]) -> DeployPlan:
    """Make the store show a release; returns what was done. `check` raises when the right to publish is lost.

    Doing it again changes nothing. Killed anywhere, the next call by whoever holds the lease ends it.
    """
    wanted = manifest_of(release.path)
    if not wanted:
        raise Permanent(f"release {release.name} has no manifest: publish it anew")
    if odd := refused_paths(wanted):
        raise Permanent(f"{odd[0]!r} is no path of a site: it is not published")
    plan, version = _enter(store, lease, wanted, release.name)
    if version is None:
        return plan
    _write(plan, release.path, store, check)
    check()
    if store.swap_manifest(Shown(lease.fence, release.name, wanted).text(), version) is None:
        raise ClaimLost(lease.project_id, lease.worker, lease.fence)
    return plan


def _enter(store: ObjectStore, lease: ProjectLease, wanted: Manifest, name: str) -> tuple[DeployPlan, str | None]:
    """Plan it, and say in the store what is about to be touched. No version: all of it is done already."""
    for _ in range(_TRIES):
        stored = store.manifest()
        before = read_shown(stored)
        if before.fence > lease.fence:
            raise ClaimLost(lease.project_id, lease.worker, lease.fence)
        plan = plan_deploy(before.files, wanted, before.touched or ())
        if stored and before.touched is None and before.release == name and not plan:
            return plan, None
        begun = replace(before, fence=lease.fence, touched=(before.touched or frozenset()) | plan.paths)
        version = store.swap_manifest(begun.text(), stored.version if stored else None)
        if version is not None:
            return plan, version
    raise Transient(f"{lease.project_id}: the bucket's manifest moved {_TRIES} times; it will be tried again")


def _write(plan: DeployPlan, folder: Path, store: ObjectStore, check: Callable[[], None]) -> None:
    for upload in plan.uploads:
        check()
        store.put(upload, folder / upload.path)
    for stale in (plan.stale_pages, plan.stale_assets):
        for first in range(0, len(stale), DELETE_EACH):
            check()
            store.delete(stale[first : first + DELETE_EACH])
