"""Where things stand in an HTML page's source, so that an edit touches only its own characters."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from webordinary.site.agents.builtin.html_writing import HTML
from webordinary.site.agents.builtin.page import Element, Page, Span, Writing

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_CLOSED_BY_SIBLING = frozenset(("p", "li", "dt", "dd", "option", "tr", "td", "th"))
_UNSEEN = frozenset(("script", "style", "template", "noscript", "svg"))


def parse_page(source: str, readable: str | None = None, writing: Writing = HTML) -> Page:
    """Read a page; whatever is wrong with it, every offset is a real one.

    A `readable` copy of the source, as long as it, has what is no HTML hidden.
    """
    reader = _Reader(source if readable is None else readable, writing)
    reader.feed(source if readable is None else readable)
    reader.close()
    page = reader.finished()
    page.source = source
    return page


class _Reader(HTMLParser):
    def __init__(self, source: str, writing: Writing) -> None:
        super().__init__(convert_charrefs=False)
        self._page = Page(source, writing)
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
