"""Where things stand in an HTML page's source, so that an edit touches only its own characters."""

from __future__ import annotations

from collections import Counter

from webordinary.site.agents.builtin.html_writing import HTML
from webordinary.site.agents.builtin.page import Element, Page, Span, Writing
from webordinary.site.agents.builtin.tags import Tag, tags_of

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_CLOSED_BY_SIBLING = frozenset(("p", "li", "option"))
_CELLS, _TERMS = frozenset(("td", "th")), frozenset(("dt", "dd"))
_ROWS = _CELLS | {"tr"}
_SECTIONS = frozenset(("thead", "tbody", "tfoot"))
_CLOSES = {
    **dict.fromkeys(_CELLS, (_CELLS, frozenset(("tr", "table", "template")))),
    "tr": (_ROWS, frozenset(("table", "template"))),
    **dict.fromkeys(_SECTIONS, (_ROWS | _SECTIONS, frozenset(("table", "template")))),
    **dict.fromkeys(_TERMS, (_TERMS, frozenset(("dl", "ul", "ol", "table", "template")))),
}
"""Which open elements end where one of this name begins, without an end tag; and where the search for them ends."""
_UNSEEN = frozenset(("script", "style", "template", "noscript", "svg"))
_DEEPEST = 200
"""Browsers stop near 500. What is deeper stands in the element at this depth; and if there are more elements in it,
it is left out, so that no character is within more than this many, and one more."""


def parse_page(source: str, readable: str | None = None, writing: Writing = HTML) -> Page:
    """Read a page; whatever is wrong with it, every offset is a real one.

    A `readable` copy of the source, as long as it, has what is no HTML hidden.
    """
    page = _Reader(source if readable is None else readable, writing).read()
    page.source = source
    return page


class _Reader:
    def __init__(self, source: str, writing: Writing) -> None:
        self._page = Page(source, writing)
        self._open: list[Element] = []
        self._names: Counter[str] = Counter()
        self._left_out: set[int] = set()
        self._text_from = 0

    def read(self) -> Page:
        for tag in tags_of(self._page.source):
            self._text_until(tag.start)
            self._text_from = tag.end
            if tag.closing:
                self._end(tag)
            elif tag.name:
                self._begin(tag)
        size = len(self._page.source)
        self._text_until(size)
        while self._open:
            self._close(size, size)
        self._page.elements = [element for element in self._page.elements if id(element) not in self._left_out]
        return self._page

    def _begin(self, tag: Tag) -> None:
        for _ in range(self._ended_by(tag.name)):
            self._close(tag.start, tag.start)
        parent = self._open[min(len(self._open), _DEEPEST) - 1] if self._open else None
        element = Element(tag.name, tag.attributes, tag.start, tag.end, parent, tag.end, tag.end)
        self._page.elements.append(element)
        if tag.empty or tag.name in _VOID:
            return
        if len(self._open) > _DEEPEST:
            self._left_out.add(id(self._open[-1]))
        self._open.append(element)
        self._names[tag.name] += 1

    def _ended_by(self, name: str) -> int:
        """How many open elements end where this one begins, as in browsers: a row ends the row before it."""
        if name not in _CLOSES:
            return int(name in _CLOSED_BY_SIBLING and bool(self._open) and self._open[-1].name == name)
        closed, within = _CLOSES[name]
        count = 0
        for up, element in enumerate(self._open[: -_DEEPEST - 1 : -1], start=1):
            if element.name in within:
                break
            count = up if element.name in closed else count
        return count

    def _end(self, tag: Tag) -> None:
        if self._names[tag.name]:
            while self._open[-1].name != tag.name:
                self._close(tag.start, tag.start)
            self._close(tag.start, tag.end)

    def _close(self, inner_end: int, end: int) -> None:
        element = self._open.pop()
        self._names[element.name] -= 1
        element.inner_end, element.end = inner_end, end

    def _text_until(self, end: int) -> None:
        if self._page.source[self._text_from : end].strip() and not any(self._names[name] for name in _UNSEEN):
            self._page.texts.append(Span(self._text_from, end, self._open[-1] if self._open else None))
