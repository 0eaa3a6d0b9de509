"""A page as text with places: whatever language it is written in, an edit touches only its own characters."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from webordinary.site.agents.builtin.read_text import ReadText, folded, read_text, squeezed
from webordinary.site.agents.builtin.values import Value

HIDDEN = "\ue000"  # stands for each character that is no text of the page, in the copy that a reader reads


class Overlap(Exception):
    """Two patches want the same characters: none of them is made."""


class Patch(NamedTuple):
    """These characters of a source become those."""

    start: int
    end: int
    new: str


@dataclass(slots=True)
class Element:
    """A tag and what it encloses, as offsets into the source; a value stands outside of the page's own language."""

    name: str
    attributes: dict[str, str]
    start: int
    inner_start: int
    parent: Element | None
    inner_end: int = -1
    end: int = -1
    value: Value | None = None
    computed: bool = False

    @property
    def ancestors(self) -> Iterator[Element]:
        """What it stands in, the nearest first."""
        outer = self.parent
        while outer is not None:
            yield outer
            outer = outer.parent

    def inside(self, *names: str) -> bool:
        """Whether it is one of these elements or stands within one."""
        return self.name in names or any(outer.name in names for outer in self.ancestors)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of visible text within one element."""

    start: int
    end: int
    element: Element | None


class Writing(Protocol):
    """How things are written in the language of a page; new words can never become markup."""

    backslashes: bool

    def escape(self, words: str, element: Element | None = None) -> str:
        """Words as they are written within this element."""

    def read(self, fragment: str) -> str:
        """What a visitor reads in a fragment of the source."""

    def paragraph(self, page: Page, words: str) -> Patch:
        """A new paragraph below the running text."""

    def item(self, page: Page, within: Element, words: str) -> Patch:
        """A new item at the end of a list."""

    def pictures(self, page: Page, pictures: list[tuple[str, str]]) -> Patch:
        """New pictures, each an address and what it shows."""

    def picture_address(self, page: Page, picture: Element, address: str) -> Patch:
        """Another address for a picture."""


@dataclass(slots=True)
class Page:
    """A parsed page; offsets hold until its source is edited."""

    source: str
    writing: Writing
    elements: list[Element] = field(default_factory=list)
    texts: list[Span] = field(default_factory=list)

    def all(self, *names: str) -> list[Element]:
        """The elements of these names, in order of their start."""
        return [element for element in self.elements if element.name in names]

    def first(self, name: str) -> Element | None:
        """The first element of this name, if any."""
        return next(iter(self.all(name)), None)

    @property
    def title(self) -> Element | None:
        """What the page is called, if it says so; the title of a drawing in it is another matter."""
        return next((title for title in self.all("title") if not title.inside("svg")), None)

    def within(self, outer: Element, *names: str) -> list[Element]:
        """Those of these names that begin within an element."""
        first = bisect_right(self.elements, outer.start, key=lambda element: element.start)
        last = bisect_left(self.elements, outer.end, key=lambda element: element.start)
        return [element for element in self.elements[first:last] if element.name in names]

    def children(self, *names: str) -> dict[int, list[Element]]:
        """The elements of these names by the `id` of the one that they stand in."""
        found: dict[int, list[Element]] = {}
        for element in self.all(*names):
            found.setdefault(id(element.parent), []).append(element)
        return found

    def words(self, element: Element) -> str:
        """What a visitor reads in it."""
        if element.value is not None:
            return element.value.words
        return self.writing.read(self.source[element.inner_start : element.inner_end])

    def filled(self, element: Element, words: str) -> Patch:
        """The element with these words in place of all that is in it."""
        if element.value is not None:
            return Patch(element.value.start, element.value.end, element.value.spell(words))
        return Patch(element.inner_start, element.inner_end, self.writing.escape(words, element))

    def reworded(self, spans: list[tuple[Span, str]]) -> list[Patch]:
        """New words for these spans."""
        patches: list[Patch] = []
        values: dict[int, tuple[Value, list[Patch]]] = {}
        for span, words in spans:
            value = span.element.value if span.element else None
            if value is None:
                patches.append(Patch(span.start, span.end, self.writing.escape(words, span.element)))
            else:
                start, end = span.start - value.inner_start, span.end - value.inner_start
                values.setdefault(value.start, (value, []))[1].append(Patch(start, end, words))
        for value, within in values.values():
            whole = patched(self.source[value.inner_start : value.inner_end], within)
            patches.append(Patch(value.start, value.end, value.spell(whole)))
        return patches

    @property
    def shape(self) -> list[str]:
        """Its elements by name; new words leave it as it is."""
        return [element.name for element in self.elements]

    def find(self, wanted: str) -> list[Span]:
        """Where this text is read; as written, else whatever the case of its letters."""
        needle = squeezed(wanted)
        if not needle:
            return []
        texts = [(text, self._as_read(text)) for text in self.texts]
        exact = [Span(*hit, text.element) for text, read in texts for hit in read.find(needle)]
        return exact or [Span(*hit, text.element) for text, read in texts for hit in read.folded().find(folded(needle))]

    def _as_read(self, text: Span) -> ReadText:
        plain = text.element is not None and text.element.value is not None
        return read_text(self.source, text.start, text.end, not plain, self.writing.backslashes and not plain)

    def add_value(self, value: Value, name: str = "title") -> None:
        """An element that is a value; its text is found only where it is written as it is read."""
        element = Element(name, {}, value.start, value.start, None, value.end, value.end, value)
        self.elements.append(element)
        if value.literal and value.inner_start < value.inner_end:
            self.texts.append(Span(value.inner_start, value.inner_end, element))


def patched(text: str, patches: Iterable[Patch]) -> str:
    """The text with all of these at once."""
    parts, position = [], 0
    for patch in sorted(patches):
        if not position <= patch.start <= patch.end <= len(text):
            raise Overlap
        parts += [text[position : patch.start], patch.new]
        position = patch.end
    return "".join([*parts, text[position:]])


def hidden(text: str) -> str:
    """As long as the text and with its line ends, but nothing to read."""
    return re.sub(r"[^\n]", HIDDEN, text)
