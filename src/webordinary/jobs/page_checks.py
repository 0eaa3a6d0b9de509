"""Compares a built site with the release before it: which pages changed, and what the change broke.

Only what the change introduced counts; a link that was dead before is no finding.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from webordinary.jobs.site_files import HOME, Manifest, changed_paths, is_page, manifest_of

MOST_PAGES = 200
"""Changed pages that are read, and pages that are searched for links to a removed file."""
MOST_FINDINGS = 10
LISTED_PAGES = 20
PAGE_BYTES = 2_000_000
"""The read part of a page."""
LARGE_PAGE_BYTES = 500_000
GROWTH = 2
ANY_HOST = "*"
"""An allowed host that stands for every host, and for scripts inside pages."""
_TITLE_CHARACTERS = 100
_DETAIL_CHARACTERS = 120
_HASHED = re.compile(r"[._-][A-Za-z0-9_-]{8,}(?=\.(?:m?js)$)")
_CSS_HOST = re.compile(r"(?:@import\s*|url\(\s*)[\"']?\s*(?:https?:)?//([^/\"')\s]+)", re.I)
_SCRIPT_TYPES = frozenset({"", "module", "text/javascript", "application/javascript", "text/ecmascript"})


class Flaw(StrEnum):
    """What a change may break on a page."""

    LINK = "link"
    PICTURE = "picture"
    ALT = "alt"
    TITLE = "title"
    SIZE = "size"


Finding = tuple[str, str, str]
"""A Flaw, the title of the page, and the address or size that is wrong."""


@dataclass(frozen=True, slots=True)
class SiteComparison:
    """Two releases beside each other; `pages_total` is 0 where one of them cannot be read."""

    pages_total: int = 0
    pages_changed: int = 0
    changed_pages: tuple[tuple[str, str], ...] = ()
    """File and title of added and altered pages, bounded."""
    findings: tuple[Finding, ...] = ()
    outside: tuple[str, ...] = ()
    """New hosts that pages load something from, and `script` for a new script inside a page."""
    is_checked: bool = False
    """False: only the manifests could be compared."""

    def refused(self, allowed: Collection[str]) -> tuple[str, ...]:
        """The part of `outside` that the operator has not allowed."""
        return () if ANY_HOST in allowed else tuple(host for host in self.outside if host not in allowed)


NOT_COMPARED = SiteComparison()


@dataclass(frozen=True, slots=True)
class Flawed:
    """The built change breaks something, so it was not deployed."""

    findings: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()
    """Hosts, or `script`, that the operator has not allowed."""


@dataclass(slots=True)
class _Page:
    title: str = ""
    links: set[str] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)
    without_alt: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    scripts: set[str] = field(default_factory=set)
    has_base: bool = False


def compare_releases(before: Path | None, after: Path) -> SiteComparison:
    """Compare a release or a folder that holds a build with the release before it."""
    old, new = manifest_of(before), manifest_of(after)
    if before is None or before == after or not old or not new:
        return SiteComparison()
    changed = [path for path in changed_paths(old, new) if is_page(path)]
    removed = sorted(old.keys() - new.keys())
    count = len(changed) + sum(map(is_page, removed))
    read = {path: _read(after, path, new) for path in changed[:MOST_PAGES]}
    was = {path: _read(before, path, old) for path in read if path in old}
    titles = tuple((path, page.title or path) for path, page in list(read.items())[:LISTED_PAGES])
    total = sum(map(is_page, new))
    if not all((before / path).is_file() for path in was):  # an object store: this worker has the manifest only
        return SiteComparison(total, count, titles)
    findings = [
        *(one for path, page in read.items() for one in _page_findings(path, page, was.get(path), old, new)),
        *_links_to_removed(after, removed, new, read),
    ]
    outside = _outside(before, after, old, new, read, was)
    return SiteComparison(
        total, count, titles, tuple(dict.fromkeys(findings))[:MOST_FINDINGS], outside, is_checked=True
    )


def _page_findings(path: str, page: _Page, was: _Page | None, old: Manifest, new: Manifest) -> Iterator[Finding]:
    name = page.title or (was.title if was else "") or path
    if was and was.title and not page.title:
        yield Flaw.TITLE, path, was.title
    if new[path].size > LARGE_PAGE_BYTES and new[path].size > GROWTH * (old[path].size if path in old else 0):
        yield Flaw.SIZE, name, f"{new[path].size / 1e6:.1f} MB"
    if not page.has_base:
        for flaw, targets in ((Flaw.LINK, page.links), (Flaw.PICTURE, page.pictures)):
            for target in sorted(targets):
                if _is_dead(path, target, new) and not (
                    was and _has(was, flaw, target) and _is_dead(path, target, old)
                ):
                    yield flaw, name, target[:_DETAIL_CHARACTERS]
    known = was.without_alt if was else []
    for source in page.without_alt:
        if source not in known:
            yield Flaw.ALT, name, posixpath.basename(source)[:_DETAIL_CHARACTERS]


def _has(page: _Page, flaw: Flaw, target: str) -> bool:
    return target in (page.links if flaw is Flaw.LINK else page.pictures)


def _links_to_removed(after: Path, removed: list[str], new: Manifest, read: Collection[str]) -> Iterator[Finding]:
    """Pages that did not change, and link to a file that is gone."""
    if not removed:
        return
    names = {posixpath.basename(path.removesuffix(f"/{HOME}")).rpartition(".")[0] or path for path in removed}
    words = re.compile("|".join(map(re.escape, sorted(names)[:MOST_PAGES])).encode())
    gone = set(removed)
    for path in [path for path in new if is_page(path) and path not in read][:MOST_PAGES]:
        content = _bytes(after, path)
        if not words.search(content):
            continue
        page = _parse(content)
        for flaw, targets in ((Flaw.LINK, page.links), (Flaw.PICTURE, page.pictures)):
            for target in sorted(targets):
                if gone.intersection(_files_of(path, target)) and _is_dead(path, target, new):
                    yield flaw, page.title or path, target[:_DETAIL_CHARACTERS]


def _outside(
    before: Path, after: Path, old: Manifest, new: Manifest, read: dict[str, _Page], was: dict[str, _Page]
) -> tuple[str, ...]:
    """Hosts and scripts of changed pages that the site did not have before."""
    styles = [path for path in changed_paths(old, new) if path.lower().endswith(".css")][:MOST_PAGES]
    hosts = {host for page in read.values() for host in page.hosts} | set(_style_hosts(after, styles))
    scripts = {script for page in read.values() for script in page.scripts}
    hosts -= {host for page in was.values() for host in page.hosts} | set(_style_hosts(before, styles))
    scripts -= {script for page in was.values() for script in page.scripts}
    if hosts or scripts:  # a new page may use what other pages have
        for path in [path for path in old if is_page(path) and path not in was][:MOST_PAGES]:
            page = _read(before, path, old)
            hosts -= page.hosts
            scripts -= page.scripts
    return (*sorted(hosts)[:MOST_FINDINGS], *(("script",) if scripts else ()))


def _style_hosts(folder: Path, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        for host in _CSS_HOST.findall(_bytes(folder, path).decode("utf-8", "replace")):
            yield host.lower()


def _is_dead(path: str, target: str, files: Manifest) -> bool:
    found = _files_of(path, target)
    return bool(found) and not any(one in files for one in found)


def _files_of(path: str, target: str) -> tuple[str, ...]:
    """The files of this site that an address on a page may lead to; none for an address elsewhere."""
    try:
        parts = urlsplit(target.strip())
    except ValueError:
        return ()
    if parts.scheme or parts.netloc or not parts.path:
        return ()
    joined = posixpath.normpath(posixpath.join("/", posixpath.dirname(path), unquote(parts.path))).lstrip("/")
    if joined.startswith(".") and not joined.startswith(".well-known"):
        return ()
    index = f"{joined}/{HOME}".lstrip("/")
    return (index,) if not joined or parts.path.endswith("/") else (joined, f"{joined}.html", index)


def _read(folder: Path, path: str, files: Manifest) -> _Page:
    return _parse(_bytes(folder, path)) if path in files else _Page()


def _bytes(folder: Path, path: str) -> bytes:
    try:
        with (folder / path).open("rb") as file:
            return file.read(PAGE_BYTES)
    except OSError:
        return b""


def _parse(content: bytes) -> _Page:
    reader = _Reader()
    reader.feed(content.decode("utf-8", "replace"))
    reader.close()
    return reader.page


class _Reader(HTMLParser):
    """Reads the addresses, pictures, scripts and the title of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = _Page()
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        page = self.page
        for name, value in given.items():
            if name.startswith("on") or value.strip().lower().startswith("javascript:"):
                page.scripts.add(_digest(f"{name}={value}"))
        match tag:
            case "a" | "area" if "href" in given:
                page.links.add(given["href"])
            case "img":
                self._picture(given)
            case "base":
                page.has_base = True
            case "script":
                self._script(given)
            case "iframe" | "embed" | "source" | "video" | "audio" | "object":
                self._load(given.get("src") or given.get("data", ""))
            case "link" if given.get("rel", "").lower() in ("stylesheet", "preload", "modulepreload", "icon"):
                self._load(given.get("href", ""))
            case "form":
                self._load(given.get("action", ""))
            case "title":
                self._inside = "title" if not page.title else ""
        if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":
            page.scripts.add(_digest(given.get("content", "")))

    def _picture(self, given: dict[str, str]) -> None:
        source = given.get("src", "")
        if source and not source.startswith("data:"):
            self.page.pictures.add(source)
            self._load(source)
        if "alt" not in given and given.get("role") != "presentation" and "aria-hidden" not in given:
            self.page.without_alt.append(source[:_DETAIL_CHARACTERS])

    def _script(self, given: dict[str, str]) -> None:
        if source := given.get("src"):
            self._load(source)
            if not urlsplit(source).netloc:  # bundlers put a digest into the name of each build
                self.page.scripts.add(_HASHED.sub("", posixpath.basename(urlsplit(source).path)))
        elif given.get("type", "").strip().lower() in _SCRIPT_TYPES:
            self._inside = "script"

    def _load(self, address: str) -> None:
        try:
            host = urlsplit(address.strip()).hostname
        except ValueError:
            return
        if host:
            self.page.hosts.add(host)

    def handle_data(self, data: str) -> None:
        if self._inside == "title":
            self.page.title = " ".join(f"{self.page.title} {data}".split())[:_TITLE_CHARACTERS]
        elif self._inside == "script" and data.strip():
            self.page.scripts.add(_digest(data))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("title", "script"):
            self._inside = ""


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()
