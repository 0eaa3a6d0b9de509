"""HTML mail to plain text: lines where a reader sees lines, `>` where a reader sees a quote."""

from __future__ import annotations

import re
from collections import Counter

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_HTML = 1_000_000
MAX_TAGS = 100_000
MAX_DEPTH = 500
MAX_QUOTES = 20
"""Deeper quotes are marked as if they were this deep."""

_SKIPPED = {"script", "style", "head", "title", "meta", "link", "template", "noscript", "object", "svg"}
_BLOCKS = {
    "address", "article", "aside", "blockquote", "center", "dd", "div", "dl", "dt", "fieldset", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p",
    "pre", "section", "table", "tbody", "tr", "ul",
}  # fmt: skip
_SPACED = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "pre"}
_CLOSE_THEMSELVES = {
    "area", "base", "br", "col", "dd", "dt", "hr", "img", "input", "li", "link", "meta", "option", "p",
    "source", "td", "th", "tr", "wbr",
}  # fmt: skip
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_ANY_TAG = re.compile(r"<[^<>]{0,2000}>")
_SPACES = re.compile(r"[ \t\r\n\f]+")


def html_to_text(html: str, max_tags: int = MAX_TAGS) -> str:
    """Plain text of an HTML mail; a document too wild to walk loses only its layout."""
    html = html[:MAX_HTML]
    if _too_wild(html, max_tags):
        return _SPACES.sub(" ", _ANY_TAG.sub(" ", html)).strip()
    root = LexborHTMLParser(html).body
    if root is None:
        return ""
    writer = _TextWriter()
    _walk(root, writer)
    return writer.text()


def _too_wild(html: str, max_tags: int) -> bool:
    """The parser's time grows with the square of the depth, so depth is estimated before it starts."""
    opened: Counter[str] = Counter()
    depth = 0
    for tags, match in enumerate(_TAG.finditer(html)):
        closing, tag = match.group(1), match.group(2).lower()
        if tag not in _CLOSE_THEMSELVES and not (closing and not opened[tag]):
            change = -1 if closing else 1
            opened[tag] += change
            depth += change
        if tags >= max_tags or depth > MAX_DEPTH:
            return True
    return False


class _TextWriter:
    """Collects lines; knows how deep in quotes it is."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []  # pieces: adding to one long string takes the square of its length
        self._quotes = 0

    def words(self, text: str, *, verbatim: bool) -> None:
        if verbatim:
            *whole, last = text.split("\n")
            for line in whole:
                self._add(line)
                self.end_line(force=True)
            self._add(last)
            return
        flat = _SPACES.sub(" ", text)
        self._add(flat.lstrip(" ") if not self._line or self._line[-1].endswith(" ") else flat)

    def _add(self, piece: str) -> None:
        if piece:
            self._line.append(piece)

    def end_line(self, *, force: bool = False) -> None:
        line = "".join(self._line).replace("\u00a0", " ").replace("\u200b", "").rstrip()
        if line or force:
            self._lines.append(self._mark() + line)
        self._line = []

    def _mark(self) -> str:
        return "> " * min(self._quotes, MAX_QUOTES)

    def blank_line(self) -> None:
        self.end_line()
        if self._lines and self._lines[-1].strip("> "):
            self._lines.append(self._mark())

    def quote(self, change: int) -> None:
        self.blank_line()
        self._quotes = max(0, self._quotes + change)

    def text(self) -> str:
        self.end_line()
        return "\n".join(line.rstrip() for line in self._lines).strip()


def _walk(root: LexborNode, writer: _TextWriter) -> None:
    """Iterative, so that depth costs no stack."""
    stack: list[tuple[LexborNode, bool]] = [(root, False)]
    verbatim = 0
    while stack:
        node, leaving = stack.pop()
        tag = node.tag or ""
        if leaving:
            verbatim -= tag == "pre"
            _leave(tag, writer)
            continue
        if tag == "-text":
            writer.words(node.text_content or "", verbatim=verbatim > 0)
            continue
        if tag in _SKIPPED or tag.startswith(("-", "_", "!")):
            continue
        _enter(tag, writer)
        verbatim += tag == "pre"
        stack.append((node, True))
        children = []
        child = node.child
        while child is not None:
            children.append((child, False))
            child = child.next
        stack.extend(reversed(children))


def _enter(tag: str, writer: _TextWriter) -> None:
    if tag == "br":
        writer.end_line(force=True)
    elif tag in _SPACED:
        writer.blank_line()
    elif tag in _BLOCKS:
        writer.end_line()
    if tag == "blockquote":
        writer.quote(1)
    elif tag == "li":
        writer.words("- ", verbatim=True)
    elif tag == "hr":
        writer.words("________________________________", verbatim=True)
        writer.end_line()


def _leave(tag: str, writer: _TextWriter) -> None:
    if tag == "blockquote":
        writer.quote(-1)
    elif tag in _SPACED:
        writer.blank_line()
    elif tag in _BLOCKS:
        writer.end_line()
    elif tag in ("td", "th"):
        writer.words(" ", verbatim=False)
