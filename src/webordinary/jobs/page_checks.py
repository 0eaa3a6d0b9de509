"""Compares a built site with the release before it: which pages changed, and what the change broke.

Only what the change introduced counts; a link that was dead before is no finding. Pages are read in a time that grows
with their length alone: the tokens are those of browsers, so that nothing which runs there is missed here. The
standard library's parser takes the square of an unfinished tag and raises on odd sections.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from html import unescape
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from webordinary.jobs.site_files import HOME, Manifest, changed_paths, is_page, manifest_of

MOST_ADDRESSES = 2_000
"""Of each kind on one page; further ones are not looked at."""
MAX_VALUE = 4_000
"""Characters of an address or a title; the standard library raises on longer character references."""
MOST_ESCAPES = 50_000
"""Characters that one style sheet may write as escapes; those of the largest icon fonts have 10,000."""
DETAIL_CHARACTERS = 120
_TITLE_CHARACTERS = 100
_S = r"[ \t\n\r\f]"
_ATTRIBUTE_PARTS = (
    rf"([^ \t\n\r\f/>][^ \t\n\r\f/>=]*+)"
    rf"(?:{_S}*+={_S}*+(?:\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|([^ \t\n\r\f>\"'][^ \t\n\r\f>]*+)|))?+"
)
_UNNAMED_ATTRIBUTE = re.sub(r"(?<!\\)\((?!\?)", "(?:", _ATTRIBUTE_PARTS)
_ATTRIBUTE = re.compile(_ATTRIBUTE_PARTS)
_TOKEN = re.compile(
    r"<(?:!--(?:-?>|.*?--!?>|.*+)|[!?/][^>]*+>?"
    rf"|([A-Za-z][^ \t\n\r\f/>]*+)((?:[ \t\n\r\f/]++|{_UNNAMED_ATTRIBUTE})*+)>?)",
    re.S,
)
"""A comment, a declaration or end tag, or a start tag with its attributes; what has no end goes to the page's end."""
_RAW = {
    name: re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.I)
    for name in ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript")
}
"""Elements whose content is text for a browser with scripts."""
_FOREIGN = re.compile(r"<(?:svg|math)", re.I)
_CDATA = re.compile(r"<!\[CDATA\[", re.I)
_HASHED = re.compile(r"[._-][A-Za-z0-9_-]{8,}(?=\.(?:m?js)$)")
_HOST = re.compile(r"(?:https?:[/\\]*+|[/\\]{2,}+)(?:[^/\\?#@]*+@)?([^/\\?#:@]++)", re.I)
_CSS_COMMENT = re.compile(r"/\*(?:.*?\*/|.*+)", re.S)
_CSS_HOST = re.compile(
    r"(?:@import|url\(|image-set\()[ \t\n\r\f]*+[\"']?+[ \t\n\r\f]*+(?:https?:)?[/\\]{2}([^/\\\"')\s:]++)", re.I
)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})(?:\r\n|[ \t\n\r\f])?+|(\r\n|[\n\r\f])|(.))", re.S)
_IMAGE_SET = re.compile(r"image-set\(((?:[^\"'{}]++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+)", re.I)
_QUOTED_HOST = re.compile(r"[\"'][ \t\n\r\f]*+(?:https?:)?[/\\]{2}([^/\\\"')\s:]++)", re.I)
_SCRIPT_TYPES = frozenset(
    {"", "module", "importmap", "speculationrules", "text/jscript", "text/livescript"}
    | {f"{kind}/{x}{name}script" for kind in ("text", "application") for x in ("", "x-") for name in ("java", "ecma")}
    | {f"text/javascript1.{version}" for version in range(6)}
)
"""What browsers run, or take as directions for what they run."""
_LOADED = ("src", "data", "action", "formaction", "poster", "background", "ping", "xlink:href")
"""Attributes with an address that a browser loads from, or sends a form to, on any element."""
_LOADED_BY_HREF = frozenset({"base", "image", "use", "feimage", "script"})
_DATA_RUNS = frozenset({"iframe", "frame", "object", "embed", "use", "base"})
"""Elements in which a `data:` address is more than a picture."""
_SHEETS = frozenset({"stylesheet", "preload", "modulepreload", "manifest"})
_LOADED_RELATIONS = _SHEETS | {
    "icon", "prefetch", "prerender", "preconnect", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon",
}  # fmt: skip
_INVISIBLE = "".join(map(chr, range(33)))


@dataclass(slots=True)
class PageContents:
    """The addresses, pictures, scripts and the title of a page."""

    title: str = ""
    links: set[str] = field(default_factory=set)
    pictures: set[str] = field(default_factory=set)
    without_alt: dict[str, None] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    scripts: set[str] = field(default_factory=set)
    has_base: bool = False


def read_page(content: bytes) -> PageContents:
    """Read a page, however it is written."""
    text = content.decode("utf-8", "replace")
    page = PageContents()
    foreign = _FOREIGN.search(text) is not None
    if foreign and _CDATA.search(text):  # a browser ends such a section elsewhere: what is hidden in it cannot be told
        page.scripts.add(_digest(text))
    for tag, attributes, inner in _elements(text):
        _add(page, tag, attributes, inner)
        if foreign and inner and tag != "script":  # inside a drawing a browser reads these as markup
            for one in _elements(inner):
                _add(page, *one)
    return page


def style_hosts(text: str) -> Iterator[str]:
    """The hosts that a style sheet loads something from; TOO_LARGE where it is written in escapes."""
    text = _CSS_COMMENT.sub(" ", text)
    if escapes := text.count("\\"):
        if escapes > MOST_ESCAPES:
            yield TOO_LARGE
            return
        text = _CSS_ESCAPE.sub(_unescaped, text)
    for host in _CSS_HOST.findall(text):
        yield host.lower()
    for images in _IMAGE_SET.findall(text):
        yield from map(str.lower, _QUOTED_HOST.findall(images))


def _unescaped(found: re.Match[str]) -> str:
    """What a style sheet writes out, if an address or a keyword may be made of it: never what ends a string."""
    code = int(found[1], 16) if found[1] else 0
    char = found[3] or ("" if found[2] else chr(code) if code < 0x80 else "_")
    return char if char.isalnum() or char in "/\\:.@-" else "_"


def _elements(text: str) -> Iterator[tuple[str, Mapping[str, str], str]]:
    """Each start tag in lower case, its attributes, and the text of an element that holds nothing but text."""
    at = 0
    while found := _TOKEN.search(text, at):
        at = found.end()
        if not found[1]:
            continue
        tag, inner = found[1].lower(), ""
        if raw := _RAW.get(tag):
            end = raw.search(text, at)
            inner = text[at : end.start() if end else len(text)]
            at += len(inner)
        yield tag, _attributes(found[2]), inner


def _attributes(text: str) -> dict[str, str]:
    """By name; the first of a name counts, as in browsers."""
    found: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(text):
        found.setdefault(name.lower(), "".join(values))
    return found


def _add(page: PageContents, tag: str, attributes: Mapping[str, str], inner: str) -> None:
    if not attributes and not inner:
        return
    given = {name: unescape(value[:MAX_VALUE]) for name, value in attributes.items()}
    for name, value in given.items():
        values = value.split(";") if name == "values" else [value]
        runs = any(_plain(one).lower().startswith("javascript:") for one in values)
        if name.startswith("on") or name == "srcdoc" or runs:
            page.scripts.add(_digest(f"{name}={attributes[name]}"))
    match tag:
        case "a" | "area" if "href" in given and len(page.links) < MOST_ADDRESSES:
            page.links.add(given["href"])
        case "img":
            _add_picture(page, given)
        case "base":
            page.has_base = True
        case "script":
            _add_script(page, given, inner)
        case "style":
            page.hosts.update(style_hosts(inner))
        case "title" if not page.title:
            page.title = " ".join(unescape(inner[:MAX_VALUE]).split())[:_TITLE_CHARACTERS]
        case "meta" if given.get("http-equiv", "").lower() == "refresh":
            page.scripts.add(_digest(given.get("content", "")))
    _add_hosts(page, tag, given)


def _add_picture(page: PageContents, given: Mapping[str, str]) -> None:
    source = given.get("src", "")
    if source and not source.startswith("data:") and len(page.pictures) < MOST_ADDRESSES:
        page.pictures.add(source)
    described = "alt" in given or given.get("role") == "presentation" or "aria-hidden" in given
    if not described and len(page.without_alt) < MOST_ADDRESSES:
        page.without_alt[source[:DETAIL_CHARACTERS]] = None


def _add_script(page: PageContents, given: Mapping[str, str], inner: str) -> None:
    if source := given.get("src") or given.get("href") or given.get("xlink:href"):
        if not _host_of(source):  # bundlers put a digest into the name of each build
            page.scripts.add(_HASHED.sub("", posixpath.basename(_path_of(source))))
    elif given.get("type", "").strip().lower() in _SCRIPT_TYPES and inner.strip():
        page.scripts.add(_digest(inner))


def _add_hosts(page: PageContents, tag: str, given: Mapping[str, str]) -> None:
    addresses = [given[name] for name in _LOADED if name in given]
    relations = given.get("rel", "").lower().split()
    if tag in _LOADED_BY_HREF or (tag == "link" and not _LOADED_RELATIONS.isdisjoint(relations)):
        addresses.append(given.get("href", ""))
    for name in ("srcset", "imagesrcset"):
        if several := given.get(name):
            addresses += several.split(",")
    page.hosts.update(filter(None, map(_host_of, addresses)))
    if tag in _DATA_RUNS or (tag == "link" and not _SHEETS.isdisjoint(relations)):
        held = [one for one in addresses if _plain(one).lower().startswith("data:")]
        page.scripts.update(map(_digest, held))
    if style := given.get("style"):
        page.hosts.update(style_hosts(style))


def _plain(address: str) -> str:
    """An address as browsers take it: without the invisible characters that they drop."""
    return address.strip(_INVISIBLE).translate({9: None, 10: None, 13: None})


def _host_of(address: str) -> str:
    found = _HOST.match(_plain(address))
    return found[1].lower() if found else ""


def _path_of(address: str) -> str:
    try:
        return urlsplit(address).path
    except ValueError:
        return address


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()


MOST_PAGES = 2_000
"""Changed pages that are read, and pages that are searched for links to a removed file."""
MOST_REMOVED = 200
"""Removed files whose links are searched for."""
MOST_BYTES = 20_000_000
"""Of all pages that one comparison reads, and of the pages that it searches: it runs in the worker's own process."""
MOST_FINDINGS = 10
LISTED_PAGES = 20
PAGE_BYTES = 2_000_000
"""The read part of a page."""
LARGE_PAGE_BYTES = 500_000
GROWTH = 2
TOO_LARGE = "pages too large to check"
"""In place of a host: a changed page or style sheet was not read whole, so that it may load from anywhere."""
ANY_HOST = "*"
"""An allowed host that stands for every host, and for scripts inside pages."""


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
    """New hosts that pages load something from, `script` for a new script inside a page, and TOO_LARGE."""
    is_checked: bool = False
    """False: only the manifests could be compared, or some pages were too many to be read."""
    is_restyled: bool = False
    """A style sheet or script changed, so that pages with the same source may look different."""

    def refused(self, allowed: Collection[str]) -> tuple[str, ...]:
        """The part of `outside` that the operator has not allowed."""
        if not self.outside or ANY_HOST in allowed:
            return ()
        return tuple(host for host in self.outside if host == TOO_LARGE or host not in allowed)


NOT_COMPARED = SiteComparison()


@dataclass(frozen=True, slots=True)
class Flawed:
    """The built change breaks something, so it was not deployed."""

    findings: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()
    """Hosts, `script` or TOO_LARGE: what the operator has not allowed."""


def compare_releases(before: Path | None, after: Path) -> SiteComparison:
    """Compare a release or a folder that holds a build with the release before it."""
    old, new = manifest_of(before), manifest_of(after)
    if before is None or before == after or not old or not new:
        return SiteComparison()
    changed = [path for path in changed_paths(old, new) if is_page(path)]
    removed = sorted(old.keys() - new.keys())
    restyled = any(path.lower().endswith((".css", ".js", ".mjs")) for path in (*changed_paths(old, new), *removed))
    count = len(changed) + sum(map(is_page, removed))
    read = {path: _read(after, path, new) for path in _affordable(changed, old, new)}
    was = {path: _read(before, path, old) for path in read if path in old}
    titles = tuple((path, page.title or path) for path, page in list(read.items())[:LISTED_PAGES])
    total = sum(map(is_page, new))
    if not all((before / path).is_file() for path in was):  # an object store: this worker has the manifest only
        return SiteComparison(total, count, titles, is_restyled=restyled)
    findings = [
        *(one for path, page in read.items() for one in _page_findings(path, page, was.get(path), old, new)),
        *_links_to_removed(after, removed, new, read),
    ]
    styles = [path for path in changed_paths(old, new) if path.lower().endswith(".css")]
    read_styles = _affordable(styles, old, new)
    outside = _outside(before, after, old, read, was, read_styles)
    is_checked = len(read) == len(changed) and all(_is_whole(after, path, new) for path in changed)
    if not is_checked or len(read_styles) < len(styles) or not all(_is_whole(after, path, new) for path in styles):
        outside = (*outside, TOO_LARGE)
    kept = tuple(dict.fromkeys(findings))[:MOST_FINDINGS]
    return SiteComparison(total, count, titles, kept, outside, is_checked, restyled)


def _affordable(paths: Iterable[str], *manifests: Manifest) -> list[str]:
    """The first of these files, up to a number and a size."""
    chosen, left = [], MOST_BYTES
    for path in islice(paths, MOST_PAGES):
        left -= sum(min(files[path].size, PAGE_BYTES) for files in manifests if path in files)
        if left < 0:
            break
        chosen.append(path)
    return chosen


def _page_findings(
    path: str, page: PageContents, was: PageContents | None, old: Manifest, new: Manifest
) -> Iterator[Finding]:
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
                    yield flaw, name, target[:DETAIL_CHARACTERS]
    known = was.without_alt if was else {}
    for source in page.without_alt:
        if source not in known:
            yield Flaw.ALT, name, posixpath.basename(source)[:DETAIL_CHARACTERS]


def _has(page: PageContents, flaw: Flaw, target: str) -> bool:
    return target in (page.links if flaw is Flaw.LINK else page.pictures)


def _links_to_removed(after: Path, removed: list[str], new: Manifest, read: Collection[str]) -> Iterator[Finding]:
    """Pages that did not change, and link to a file that is gone."""
    if not removed:
        return
    names = {posixpath.basename(path.removesuffix(f"/{HOME}")).rpartition(".")[0] or path for path in removed}
    words = [name.encode("utf-8", "surrogateescape") for name in sorted(names)[:MOST_REMOVED]]
    gone = set(removed)
    for path in _affordable((path for path in new if is_page(path) and path not in read), new):
        content = _bytes(after, path)
        if not any(word in content for word in words):
            continue
        page = read_page(content)
        for flaw, targets in ((Flaw.LINK, page.links), (Flaw.PICTURE, page.pictures)):
            for target in sorted(targets):
                if gone.intersection(_files_of(path, target)) and _is_dead(path, target, new):
                    yield flaw, page.title or path, target[:DETAIL_CHARACTERS]


def _outside(
    before: Path, after: Path, old: Manifest, read: dict[str, PageContents], was: dict[str, PageContents],
    styles: Collection[str],
) -> tuple[str, ...]:  # fmt: skip
    """Hosts and scripts of changed pages that the site did not have before."""
    hosts = {host for page in read.values() for host in page.hosts} | set(_style_hosts(after, styles))
    scripts = {script for page in read.values() for script in page.scripts}
    hosts -= {host for page in was.values() for host in page.hosts} | set(_style_hosts(before, styles))
    scripts -= {script for page in was.values() for script in page.scripts}
    if hosts or scripts:  # a new page may use what other pages have
        for path in _affordable((path for path in old if is_page(path) and path not in was), old):
            page = _read(before, path, old)
            hosts -= page.hosts
            scripts -= page.scripts
    return (*sorted(hosts)[:MOST_FINDINGS], *(("script",) if scripts else ()))


def _style_hosts(folder: Path, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from style_hosts(_bytes(folder, path).decode("utf-8", "replace"))


def _is_dead(path: str, target: str, files: Manifest) -> bool:
    found = _files_of(path, target)
    return bool(found) and files.keys().isdisjoint(found)


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


def _read(folder: Path, path: str, files: Manifest) -> PageContents:
    return read_page(_bytes(folder, path)) if path in files else PageContents()


def _is_whole(folder: Path, path: str, files: Manifest) -> bool:
    """Whether all of a file can be read here."""
    return files[path].size <= PAGE_BYTES and (folder / path).is_file()


def _bytes(folder: Path, path: str) -> bytes:
    try:
        with (folder / path).open("rb") as file:
            return file.read(PAGE_BYTES)
    except OSError:
        return b""
