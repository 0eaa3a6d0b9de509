"""Which objects to write and to remove so that a bucket shows a release; pure functions over manifests.

Assets come before the pages that use them, new pages before changed ones and the home page last; what is stale goes
at the very end, pages before assets. So at no moment does a page refer to something that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from pathlib import Path

from webordinary.site.manifests import Manifest, is_hidden
from webordinary.site.media_types import media_type_of

FOREVER = "public, max-age=31536000, immutable"
SHORTLY = "public, max-age=300, must-revalidate"
ASK_EACH_TIME = "public, max-age=0, must-revalidate"
NAMED_BY_CONTENT = ("_astro/", "_next/static/", "_nuxt/", "_app/immutable/")
_FINGERPRINT = re.compile(r"[.-](?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,64}\.[a-z0-9.]{1,12}$")
_PAGES = (".html", ".htm", ".xhtml")


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
class Lying:
    """An object of the same path that lies in a store already, in one of its versions."""

    store: str
    version: str


Origin = Path | Lying
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


def plan_deploy(shown: Manifest, wanted: Manifest, touched: Collection[str] = ()) -> DeployPlan:
    """From what the bucket shows to what it should show.

    `touched` is what unfinished publications may have written or removed: nobody knows what lies there, so it is
    written again.
    """
    doubtful = frozenset(touched)
    known = {path: (mark.digest, mark.foreign) for path, mark in shown.items() if path not in doubtful}
    present = shown.keys() | doubtful
    uploads = [
        _upload(path, wanted, path in present)
        for path, mark in wanted.items()
        if known.get(path) != (mark.digest, mark.foreign)
    ]
    stale = sorted(present - wanted.keys())
    return DeployPlan(
        tuple(sorted(uploads, key=lambda upload: (upload.rank, upload.path))),
        tuple(path for path in stale if is_page(path)),
        tuple(path for path in stale if not is_page(path)),
    )


def refused_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths that would leave the site's tree or hide in it; a manifest that has one is not published."""
    return tuple(sorted(path for path in paths if not _is_plain(path)))


def is_page(path: str) -> bool:
    """What refers to assets, not what is referred to."""
    return path.lower().endswith(_PAGES)


def cache_control_of(path: str, replaced: bool = False) -> str:
    """How long others may keep it. A name that stays while its content changes was not made from the content."""
    if is_page(path):
        return ASK_EACH_TIME
    return FOREVER if _named_by_content(path) and not replaced else SHORTLY


def _upload(path: str, wanted: Manifest, replaces: bool) -> Upload:
    mark = wanted[path]
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
