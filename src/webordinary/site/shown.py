"""What an object store shows: the record in its manifest, and which earlier releases it can show again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from webordinary.model.errors import Permanent
from webordinary.site.deploy_plan import StoredManifest
from webordinary.site.manifests import Manifest, Mark, files_of, manifest_record


@dataclass(frozen=True, slots=True)
class Kept:
    """A release that was shown; `version` is the manifest's at that time. Numbers grow with each new release."""

    release: str
    number: int
    made_at: str
    files: int
    version: str = ""

    @property
    def at(self) -> datetime | None:
        """When it was made, by the clock of whoever made it; for people to read."""
        return datetime.fromisoformat(self.made_at) if self.made_at else None


@dataclass(frozen=True, slots=True)
class Shown:
    """What the store's manifest says: `files` were shown last; `touched` is what somebody is replacing or removing.

    Not the new content but the paths: after two unfinished publications any of three contents may lie there.
    """

    fence: int = 0
    release: str = ""
    files: Manifest = field(default_factory=dict)
    touched: frozenset[str] | None = None
    number: int = 0
    made_at: str = ""
    kept: tuple[Kept, ...] = ()

    def text(self) -> bytes:
        """As it is stored."""
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

    def known(self, version: str | None) -> dict[str, Kept]:
        """Every release that can be shown, by name; `version` is this manifest's own."""
        known = {one.release: one for one in self.kept}
        if self.release and self.touched is None and version is not None:
            known[self.release] = Kept(self.release, self.number, self.made_at, len(self.files), version)
        return known

    def begun(self, fence: int, version: str | None, paths: frozenset[str]) -> Shown:
        """The same while `paths` are being written; what was shown last can be shown again from now on."""
        touched = (self.touched or frozenset()) | paths
        kept = tuple(self.known(version).values())
        return Shown(fence, self.release, self.files, touched, self.number, self.made_at, kept)

    def ended(self, fence: int, release: Kept, wanted: Manifest, written: Mapping[str, str], keep: int) -> Shown:
        """Another release is shown; `written` are the versions of what was written for it."""
        files = {path: _marked(mark, written.get(path), self.files.get(path)) for path, mark in wanted.items()}
        others = (one for one in self.kept if one.release != release.release)
        kept = sorted(others, key=lambda one: one.number, reverse=True)[:keep]
        return Shown(fence, release.release, files, None, release.number, release.made_at, tuple(kept))


def read_shown(stored: StoredManifest | None) -> Shown:
    """What the store shows; nothing, if nothing was ever published. Raises Permanent on a damaged manifest."""
    if stored is None:
        return Shown()
    try:
        record = json.loads(stored.text)
        return Shown(
            fence=int(record["fence"]),
            release=str(record["release"]),
            files=files_of(record["manifest"]),
            touched=frozenset(record["touched"]) if record["state"] == "publishing" else None,
            number=int(record["number"]),
            made_at=str(record["made_at"]),
            kept=tuple(Kept(*fields) for fields in record["kept"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        words = "the manifest in the bucket is damaged: remove it, and the next publication writes all anew"
        raise Permanent(words) from problem


def _marked(mark: Mark, written: str | None, before: Mark | None) -> Mark:
    """Without its source, which only the builder that has it beside it asks for."""
    version = written if written is not None else before.version if before else ""
    return mark._replace(source="", version=version)
