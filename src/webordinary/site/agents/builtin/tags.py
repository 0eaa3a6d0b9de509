"""The tags of an HTML source, found as a browser finds them, in time that grows with the source and no faster.

Python's own parser goes over an unfinished tag again for each tag that begins in it, which a page of a few hundred
kilobytes turns into hours. Here whatever is not closed reaches to the end of the source, as in a browser.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_NAME = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+(?:(?P<end>>)|(?P<name>=?[^\s/>=]*+)(?:\s*+=\s*+(?P<value>"[^"]*+"|'[^']*+'|(?!["'>])[^\s>]++)?+)?+)"""
)
_RAW = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style")}
_ENDLESS_NUMBER = re.compile(r"&#[0-9]{8,}+;?")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag, or a comment or declaration, which have no name; offsets into the source."""

    start: int
    end: int
    name: str = ""
    closing: bool = False
    empty: bool = False
    attributes: dict[str, str] = field(default_factory=dict)


def tags_of(source: str) -> Iterator[Tag]:
    """All of them in order; what stands between them is text."""
    position = 0
    while (start := source.find("<", position)) >= 0:
        tag = _tag(source, start)
        position = tag.end if tag else start + 1
        if tag is None:
            continue
        yield tag
        if tag.name in _RAW and not tag.closing and not tag.empty:
            raw = _RAW[tag.name].search(source, tag.end)
            position = raw.start() if raw else len(source)


def unescaped(text: str) -> str:
    """The text with its character references read; a number that no character has is not computed."""
    return html.unescape(_ENDLESS_NUMBER.sub("\ufffd", text))


def _tag(source: str, start: int) -> Tag | None:
    """The tag that begins here; None if this is just a `<` in the text."""
    if source.startswith("<!--", start):
        return Tag(start, _after(source, "-->", start + 2))
    named = _NAME.match(source, start)
    if named is None:
        mark = source[start + 1 : start + 2]
        return Tag(start, _after(source, ">", start)) if mark and mark in "!?/" else None
    if named[1]:
        return Tag(start, _after(source, ">", named.end()), named[2].lower(), closing=True)
    return _opening(source, start, named)


def _opening(source: str, start: int, named: re.Match[str]) -> Tag:
    attributes: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(source, named.end()):
        if found["end"]:
            empty = found[0].endswith("/>")
            return Tag(start, found.end(), named[2].lower(), empty=empty, attributes=attributes)
        if found["name"]:
            attributes.setdefault(found["name"].lower(), _value(found["value"]))
    return Tag(start, len(source), named[2].lower(), attributes=attributes)


def _value(written: str | None) -> str:
    if not written:
        return ""
    return unescaped(written[1:-1] if written[0] in "\"'" else written)


def _after(source: str, mark: str, start: int) -> int:
    found = source.find(mark, start)
    return found + len(mark) if found >= 0 else len(source)
