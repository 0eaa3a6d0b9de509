"""Where things stand in an HTML page's source, so that an edit touches only its own characters."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_CLOSED_BY_SIBLING = frozenset(("p", "li", "dt", "dd", "option", "tr", "td", "th"))
_UNSEEN = frozenset(("script", "style", "template", "noscript", "svg"))
_TOKEN = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});|\s+|.", re.IGNORECASE | re.DOTALL)
_LOOK_ALIKES = str.maketrans("\u2019\u2018\u201c\u201d\u2013\u2014", "''\"\"--")


@dataclass(slots=True)
class Element:
    """A tag and what it encloses, as offsets into the source."""

    name: str
    attributes: dict[str, str]
    start: int
    inner_start: int
    parent: Element | None
    inner_end: int = -1
    end: int = -1

    def inside(self, *names: str) -> bool:
        """Whether it is one of these elements or stands within one."""
        return self.name in names or (self.parent is not None and self.parent.inside(*names))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of visible text within one element."""

    start: int
    end: int
    element: Element | None


@dataclass(slots=True)
class Page:
    """A parsed page; offsets hold until its source is edited."""

    source: str
    elements: list[Element] = field(default_factory=list)
    texts: list[Span] = field(default_factory=list)

    def all(self, *names: str) -> list[Element]:
        """The elements of these names, in order of their start."""
        return [element for element in self.elements if element.name in names]

    def first(self, name: str) -> Element | None:
        """The first element of this name, if any."""
        return next(iter(self.all(name)), None)

    def words(self, element: Element) -> str:
        """What a visitor reads in it."""
        return visible_text(self.source[element.inner_start : element.inner_end])

    def find(self, wanted: str) -> list[Span]:
        """Where this text is read; as written, else whatever the case of its letters."""
        needle = _squeezed(wanted)
        exact = [span for text in self.texts for span in _matches(self.source, text, needle)]
        if exact or not needle:
            return exact
        return [span for text in self.texts for span in _matches(self.source, text, needle, folded=True)]


def parse_page(source: str) -> Page:
    """Read a page; whatever is wrong with it, every offset is a real one."""
    reader = _Reader(source)
    reader.feed(source)
    reader.close()
    return reader.finished()


def visible_text(fragment: str) -> str:
    """A fragment without its tags, entities read and white space squeezed."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", fragment)).split())


def escape(text: str) -> str:
    """Text from a mail, made safe to stand in a page."""
    return html.escape(text, quote=True).replace("&#x27;", "'")


class _Reader(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=False)
        self._page = Page(source)
        self._lines = [0, *(match.end() for match in re.finditer("\n", source))]
        self._open: list[Element] = []
        self._text_from = 0

    def finished(self) -> Page:
        size = len(self._page.source)
        self._text_until(size)
        for element in self._open:
            element.inner_end = element.end = size
        return self._page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        start = self._here()
        self._text_until(start)
        if tag in _CLOSED_BY_SIBLING and self._open and self._open[-1].name == tag:
            self._close(self._open.pop(), start, start)
        end = start + len(self.get_starttag_text() or "")
        parent = self._open[-1] if self._open else None
        element = Element(tag, {name: value or "" for name, value in attrs}, start, end, parent)
        self._page.elements.append(element)
        if tag in _VOID:
            self._close(element, end, end)
        else:
            self._open.append(element)
        self._text_from = end

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._close(self._open.pop(), self._text_from, self._text_from)

    def handle_endtag(self, tag: str) -> None:
        start = self._here()
        self._text_until(start)
        end = self._after(">", start)
        if any(element.name == tag for element in self._open):
            while self._open[-1].name != tag:
                self._close(self._open.pop(), start, start)
            self._close(self._open.pop(), start, end)
        self._text_from = end

    def handle_comment(self, data: str) -> None:
        self._skip(len(data) + len("<!---->"))

    def handle_decl(self, decl: str) -> None:
        self._skip(len(decl) + len("<!>"))

    def handle_pi(self, data: str) -> None:
        self._skip(len(data) + len("<?>"))

    def unknown_decl(self, data: str) -> None:
        self._skip(len(data) + len("<![]>"))

    def _skip(self, length: int) -> None:
        start = self._here()
        self._text_until(start)
        self._text_from = self._after(">", start + length - 1)

    def _here(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def _after(self, mark: str, start: int) -> int:
        found = self._page.source.find(mark, start)
        return found + 1 if found >= 0 else len(self._page.source)

    def _text_until(self, end: int) -> None:
        start, element = self._text_from, self._open[-1] if self._open else None
        if self._page.source[start:end].strip() and not (element and element.inside(*_UNSEEN)):
            self._page.texts.append(Span(start, end, element))
        self._text_from = max(end, start)

    @staticmethod
    def _close(element: Element, inner_end: int, end: int) -> None:
        element.inner_end, element.end = inner_end, end


def _squeezed(text: str) -> str:
    return " ".join(text.split()).translate(_LOOK_ALIKES)


def _matches(source: str, text: Span, needle: str, folded: bool = False) -> list[Span]:
    """Compare what is read (entities decoded, spaces squeezed), and map the hits back to the source."""
    read: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    position = 0
    places: list[int] = []
    for token in _TOKEN.finditer(source, text.start, text.end):
        word = " " if token[0].isspace() else html.unescape(token[0]).translate(_LOOK_ALIKES)
        read.append(word)
        places.append(position)
        starts.append(token.start())
        ends.append(token.end())
        position += len(word)
    hits = re.finditer(re.escape(needle), "".join(read), re.IGNORECASE if folded else 0)
    return [
        Span(
            starts[bisect_right(places, hit.start()) - 1],
            ends[bisect_right(places, hit.end() - 1) - 1],
            text.element,
        )
        for hit in hits
        if _whole_words("".join(read), hit)
    ]


def _whole_words(text: str, hit: re.Match[str]) -> bool:
    """`art` is not found in `earth`."""
    before, after = text[: hit.start()][-1:], text[hit.end() :][:1]
    return not (before.isalnum() and hit[0][:1].isalnum()) and not (after.isalnum() and hit[0][-1:].isalnum())
