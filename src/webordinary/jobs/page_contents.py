"""What a page shows and loads, read in a time that grows with its length alone, whatever is in it.

The tokens are those of browsers, so that nothing which runs there is missed here. The standard library's parser takes
the square of an unfinished tag and raises on odd sections; a page of 2 MB would keep a worker for hours.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlsplit

MOST_ADDRESSES = 2_000
"""Of each kind on one page; further ones are not looked at."""
MAX_VALUE = 4_000
"""Characters of an address or a title; the standard library raises on longer character references."""
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
_SCRIPT_TYPES = frozenset({"", "module", "text/javascript", "application/javascript", "text/ecmascript"})
_LOADED = ("src", "data", "action", "formaction", "poster", "background", "ping", "xlink:href")
"""Attributes with an address that a browser loads from, or sends a form to, on any element."""
_LOADED_BY_HREF = frozenset({"base", "image", "use", "feimage"})
_LOADED_RELATIONS = frozenset({"stylesheet", "preload", "modulepreload", "icon", "manifest", "prefetch"})
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
    """The hosts that a style sheet loads something from."""
    for host in _CSS_HOST.findall(_CSS_COMMENT.sub(" ", text)):
        yield host.lower()


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
        if name.startswith("on") or name == "srcdoc" or _plain(value).lower().startswith("javascript:"):
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
    if source := given.get("src"):
        if not _host_of(source):  # bundlers put a digest into the name of each build
            page.scripts.add(_HASHED.sub("", posixpath.basename(_path_of(source))))
    elif given.get("type", "").strip().lower() in _SCRIPT_TYPES and inner.strip():
        page.scripts.add(_digest(inner))


def _add_hosts(page: PageContents, tag: str, given: Mapping[str, str]) -> None:
    addresses = [given[name] for name in _LOADED if name in given]
    relations = given.get("rel", "").lower().split()
    if tag in _LOADED_BY_HREF or (tag == "link" and not _LOADED_RELATIONS.isdisjoint(relations)):
        addresses.append(given.get("href", ""))
    addresses += (part for name in ("srcset", "imagesrcset") for part in given.get(name, "").split(","))
    page.hosts.update(filter(None, map(_host_of, addresses)))
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
