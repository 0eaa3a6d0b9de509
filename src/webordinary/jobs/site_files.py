"""Releases and stages: what visitors see, and since which commit."""

from __future__ import annotations

import codecs
import json
import mimetypes
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from webordinary.model.text import is_text

FOLDER = ".webordinary"
SPARE = f"{FOLDER}/spare"
"""Where an outlived release may lie in a folder to build into, to be turned into the new one."""
_NAME = "manifest.json"
_VERSION = 1
_PUBLIC_DOT_NAMES = frozenset({".well-known"})


class Mark(NamedTuple):
    """One file of a site: SHA-256 and size of its bytes; `source` is the id of the tracked file it was copied from.

    `version` names it in an object store that keeps what is replaced; `foreign` text is no UTF-8.
    """

    digest: str
    size: int
    source: str = ""
    version: str = ""
    foreign: bool = False


Manifest = Mapping[str, Mark]


def is_hidden(path: str) -> bool:
    """Names that begin with a dot are never part of a site, but for what the web itself agreed on.

    Nor are names that are no UTF-8: no address leads to them.
    """
    hidden = path.startswith(".") and path.partition("/")[0] not in _PUBLIC_DOT_NAMES
    return hidden or "/." in path or not (path.isascii() or is_text(path))


def manifest_text(manifest: Manifest) -> str:
    """The manifest as JSON."""
    return json.dumps(manifest_record(manifest), separators=(",", ":"), ensure_ascii=False)


def manifest_record(manifest: Manifest) -> dict[str, object]:
    """The manifest as a JSON value.

    A mark goes without the flag where it is not set: during a deployment workers read it that do not know it yet.
    """
    files = {path: mark if mark.foreign else mark[:-1] for path, mark in sorted(manifest.items())}
    return {"version": _VERSION, "files": files}


def read_manifest(text: str | bytes) -> dict[str, Mark]:
    """Read it back; one that is damaged or of another version counts as empty: then all is done anew."""
    try:
        return files_of(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def files_of(record: Mapping[str, Any]) -> dict[str, Mark]:
    """The files in a manifest's record; none if it is of another version. A damaged one is for the caller to catch."""
    if record["version"] != _VERSION:
        return {}
    known = len(Mark._fields)
    return {path: Mark(*fields[:known]) for path, fields in record["files"].items()}


def manifest_of(release: Path | None) -> dict[str, Mark]:
    """A release's manifest; empty if there is no release or no manifest in it."""
    if release is None:
        return {}
    try:
        return read_manifest((release / FOLDER / _NAME).read_bytes())
    except OSError:
        return {}


def keep_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest into a release that is being made."""
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / FOLDER / _NAME).write_text(manifest_text(manifest), encoding="utf-8")


def changed_paths(before: Manifest, after: Manifest) -> tuple[str, ...]:
    """Files that are new or other than before, in order."""
    changed = (path for path, mark in after.items() if path not in before or before[path].digest != mark.digest)
    return tuple(sorted(changed))


_PAGES = (".html", ".htm", ".xhtml")


def is_page(path: str) -> bool:
    """Whether a file is a page, which refers to assets."""
    return path.lower().endswith(_PAGES)


COMMIT_DIGITS = 12
KEPT_RELEASES = 20


_PREVIEW = re.compile(r"t-[0-9a-f]{16}")


class Stage(StrEnum):
    """The edit site follows every change; the public one moves when the customer says `publish`.

    Beside these two, each conversation may have a preview, `t-{thread}`.
    """

    EDIT = "edit"
    PUBLIC = "public"

    @classmethod
    def of_thread(cls, thread_id: str) -> Stage:
        """The preview of a conversation."""
        return cls(f"t-{thread_id}")

    @property
    def is_preview(self) -> bool:
        """Whether it shows one conversation alone."""
        return self.value.startswith("t-")

    @classmethod
    def _missing_(cls, value: object) -> Stage | None:
        """Previews are not listed: there is one for each conversation."""
        if not isinstance(value, str) or not _PREVIEW.fullmatch(value):
            return None
        preview = str.__new__(cls, value)
        preview._name_ = preview._value_ = value
        return preview


def site_host(project_id: str, stage: Stage) -> str:
    """The host name of a site, without the domain."""
    if stage is Stage.PUBLIC:
        return project_id
    return f"{stage}.{Stage.EDIT}.{project_id}" if stage.is_preview else f"{stage}.{project_id}"


@dataclass(frozen=True, slots=True)
class Release:
    """One published state of a site. Immutable; at most one per stage and commit.

    `path` is its folder, of which a worker may have no copy where sites lie in buckets.
    """

    project_id: str
    stage: Stage
    name: str
    path: Path
    made_at: datetime | None = field(default=None, compare=False)
    """When, if that is known without asking."""
    files: int = field(default=0, compare=False)
    """How many, if that is known without asking."""


def release_name(commit: str) -> str:
    """Releases are named after their commit."""
    return commit[:COMMIT_DIGITS]


HOME = "index.html"


def page_to_show(before: Manifest, after: Manifest) -> str | None:
    """A page that was added, else one that changed: the home page, else the topmost; without any, home shows the rest.

    A change that adds a page also changes the pages that link to it.
    """
    changed = changed_paths(before, after)
    pages = [path for path in changed if is_page(path)]
    if pages:
        return min(pages, key=lambda path: (path in before, path != HOME, path.count("/"), path))
    return HOME if changed and HOME in after else None


def address_of(page: str) -> str:
    """Its address below the site's own: a folder's page is reached by the folder."""
    folder, _, name = page.rpartition("/")
    if name == HOME:
        return quote(f"{folder}/") if folder else ""
    return quote(page)


_TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".webmanifest": "application/manifest+json",
    ".xml": "application/xml",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".ico": "image/x-icon",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".pdf": "application/pdf",
}
_TEXTUAL = ("text/", "application/json", "application/manifest+json", "application/xml", "image/svg+xml")


OPENING = 1 << 20
"""As many bytes of a file tell whether it is foreign."""


def media_type_of(name: str, *, foreign: bool = False) -> str:
    """The content type by the file's name, with UTF-8 for everything textual that is not foreign."""
    return f"{_bare(name)}; charset=utf-8" if is_textual(name) and not foreign else _bare(name)


def is_textual(name: str) -> bool:
    """Whether a media type has a charset."""
    return _bare(name).startswith(_TEXTUAL)


def is_foreign(name: str, opening: bytes) -> bool:
    """Whether a text is not UTF-8, such as an old page: it declares its own charset, which a header would override."""
    if not is_textual(name):
        return False
    try:  # an opening may end amid a character, a whole file may not
        codecs.getincrementaldecoder("utf-8")().decode(opening[:OPENING], final=len(opening) < OPENING)
    except UnicodeDecodeError:
        return True
    return False


def _bare(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


_HOST = re.compile(r"^https?://[^/?#]*", re.I)
_SERVED = (".html", ".htm", ".xhtml")
_PAGE_NAMES_PAGES = (*_SERVED, ".md", ".markdown", ".mdx", ".astro")
_ROOTS = ("public/", "site/", "docs/", "content/", "src/pages/", "src/content/")


def is_address(words: str) -> bool:
    """Whether it tells a whole way from the home page on, rather than the name of a file."""
    return words.startswith("/") or _HOST.match(words) is not None


def becomes_page(file: str) -> bool:
    """Whether a file of the source is, or is made into, a page."""
    return file.lower().endswith(_PAGE_NAMES_PAGES)


def place_of(words: str) -> str:
    """What an address or the name of a file leads to, to be compared with `places_of` files; home is empty."""
    if is_address(words):
        words = unquote(re.split(r"[?#]", _HOST.sub("", words))[0])
    return _place(words.casefold().strip("/"))


def places_of(file: str) -> set[str]:
    """Where a file of the source may stand on the site; a page without its suffix, and home empty."""
    file = file.casefold()
    root = next((root for root in _ROOTS if file.startswith(root)), "")
    places = {_place(file.removeprefix(root))}
    if not becomes_page(file) or file.endswith(_SERVED):
        places.add(_place(file))  # where nothing is built, it lies in a folder that only happens to be named so
    return places


def _place(path: str) -> str:
    suffix = next((suffix for suffix in _PAGE_NAMES_PAGES if path.endswith(suffix)), "")
    folder, _, name = path.removesuffix(suffix).rpartition("/")
    return folder if name in ("index", "_index") else f"{folder}/{name}".lstrip("/")


_CANDIDATES = (".", "public", "site")


def site_root(files: Container[str]) -> PurePosixPath | None:
    """The folder that holds the home page."""
    for candidate in _CANDIDATES:
        root = PurePosixPath(candidate)
        if str(root / "index.html") in files:
            return root
    return None
