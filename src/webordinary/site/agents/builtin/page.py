"""A page as text with places: whatever language it is written in, an edit touches only its own characters."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from webordinary.site.agents.builtin.values import Value

HIDDEN = "\ue000"  # stands for each character that is no text of the page, in the copy that a reader reads
_TOKEN = re.compile(
    r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});|\s+|\\[!-/:-@\[-`{-~]|.", re.IGNORECASE | re.DOTALL
)
_LOOK_ALIKES = str.maketrans("\u2019\u2018\u201c\u201d\u2013\u2014", "''\"\"--")


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

    def inside(self, *names: str) -> bool:
        """Whether it is one of these elements or stands within one."""
        return self.name in names or (self.parent is not None and self.parent.inside(*names))


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
        """New words for these spans, which stand in order; the patches too, the last first."""
        patches: list[Patch] = []
        wholes: dict[int, tuple[Value, str]] = {}
        for span, words in reversed(spans):
            value = span.element.value if span.element else None
            if value is None:
                patches.append(Patch(span.start, span.end, self.writing.escape(words, span.element)))
                continue
            _, whole = wholes.get(value.start, (value, self.source[value.inner_start : value.inner_end]))
            start, end = span.start - value.inner_start, span.end - value.inner_start
            wholes[value.start] = value, whole[:start] + words + whole[end:]
        patches += [Patch(value.start, value.end, value.spell(whole)) for value, whole in wholes.values()]
        return sorted(patches, reverse=True)

    @property
    def shape(self) -> list[str]:
        """Its elements by name; new words leave it as it is."""
        return [element.name for element in self.elements]

    def find(self, wanted: str) -> list[Span]:
        """Where this text is read; as written, else whatever the case of its letters."""
        needle = _squeezed(wanted)
        exact = [span for text in self.texts for span in self._matches(text, needle)]
        if exact or not needle:
            return exact
        return [span for text in self.texts for span in self._matches(text, needle, folded=True)]

    def add_value(self, value: Value, name: str = "title") -> None:
        """An element that is a value; its text is found only where it is written as it is read."""
        element = Element(name, {}, value.start, value.start, None, value.end, value.end, value)
        self.elements.append(element)
        if value.literal and value.inner_start < value.inner_end:
            self.texts.append(Span(value.inner_start, value.inner_end, element))

    def _matches(self, text: Span, needle: str, folded: bool = False) -> list[Span]:
        """Compare what is read (entities decoded, spaces squeezed), and map the hits back to the source."""
        read: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        places: list[int] = []
        for start, end, word in self._tokens(text):
            read.append(word)
            places.append(position)
            starts.append(start)
            ends.append(end)
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

    def _tokens(self, text: Span) -> list[tuple[int, int, str]]:
        plain = text.element is not None and text.element.value is not None
        tokens = []
        for token in _TOKEN.finditer(self.source, text.start, text.end):
            word = token[0]
            if word[0] == "\\" and len(word) > 1 and (plain or not self.writing.backslashes):
                middle = token.start() + 1
                tokens.append((token.start(), middle, "\\"))
                tokens.append((middle, token.end(), word[1:].translate(_LOOK_ALIKES)))
                continue
            if word.isspace():
                word = " "
            elif word[0] == "\\" and len(word) > 1:
                word = word[1:]
            elif not plain:
                word = html.unescape(word)
            tokens.append((token.start(), token.end(), word.translate(_LOOK_ALIKES)))
        return tokens


def hidden(text: str) -> str:
    """As long as the text and with its line ends, but nothing to read."""
    return re.sub(r"[^\n]", HIDDEN, text)


def _squeezed(text: str) -> str:
    return " ".join(text.split()).translate(_LOOK_ALIKES)


def _whole_words(text: str, hit: re.Match[str]) -> bool:
    """`art` is not found in `earth`."""
    before, after = text[: hit.start()][-1:], text[hit.end() :][:1]
    return not (before.isalnum() and hit[0][:1].isalnum()) and not (after.isalnum() and hit[0][-1:].isalnum())
