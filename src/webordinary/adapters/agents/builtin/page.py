"""A page as text with places: whatever language it is written in, an edit touches only its own characters."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from html.entities import codepoint2name
from typing import NamedTuple, Protocol

_ATTRIBUTE = re.compile(r"""([^\s=/>"']++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>"']++))?+""")
_ENDLESS_NUMBER = re.compile(r"&#[0-9]{8,}+;?")
_SAME = {letter: group for group in ("'\u2019\u2018", '"\u201c\u201d', "-\u2013\u2014") for letter in group}
_FRONT = re.compile(r"\A\ufeff?(?P<fence>---|\+\+\+)[ \t]*\r?\n(?P<body>.*?)^(?P=fence)[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_FRONT_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*+(?P<value>[^\r\n]*+)", re.M)
_SIMPLE_VALUE = re.compile(r"\"[^\"\\]*+\"|'(?:[^']|'')*+'|[^\W_](?:(?!: | #)[^\"])*+")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
ASIDE = frozenset(("header", "nav", "footer"))


class Patch(NamedTuple):
    """New text for what stands between two offsets."""

    start: int
    end: int
    new: str


class Overlap(Exception):
    """Two patches would change the same place."""


def patched(text: str, patches: Iterable[Patch]) -> str:
    """The text with all of these at once."""
    parts, position = [], 0
    for patch in sorted(patches):
        if not position <= patch.start <= patch.end <= len(text):
            raise Overlap
        parts += [text[position : patch.start], patch.new]
        position = patch.end
    return "".join([*parts, text[position:]])


def unescaped(text: str) -> str:
    """The text with its character references read; a number that no character has is not computed."""
    return unescape(_ENDLESS_NUMBER.sub("\ufffd", text))


@dataclass(slots=True, eq=False)
class Element:
    """A heading, paragraph, list, picture …: its tag, and where its inner part is."""

    name: str
    tag: str
    start: int
    inner_start: int
    parent: Element | None = None
    inner_end: int = -1
    end: int = -1
    outer: frozenset[str] = frozenset()
    """The names of all that it stands in."""
    fixed: bool = False
    """Whether a program fills it, so that the agent must not."""

    @property
    def attributes(self) -> dict[str, str]:
        """Those of its tag."""
        found = _ATTRIBUTE.findall(self.tag[len(self.name) + 1 :])
        return {name.lower(): unescaped(value.strip("\"'")) for name, value in reversed(found)}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of visible text within one element."""

    start: int
    end: int
    element: Element | None


class Picture(NamedTuple):
    """A picture as a page names it; 0 where its size is not known."""

    address: str
    shows: str
    width: int = 0
    height: int = 0
    webp: str = ""
    """The address of the same photo as WebP."""


class Markup(Protocol):
    """How things are written in the language of a page; new words can never become markup."""

    @property
    def backslashes(self) -> bool:
        """Whether a backslash may stand before a mark."""

    def escape(self, words: str, element: Element | None = None) -> str:
        """Words as they are written within this element."""

    def read(self, fragment: str, element: Element | None = None) -> str:
        """What a visitor reads in a fragment of the source."""

    def block(self, page: Page, after: Element | None, content: str | Picture) -> Patch:
        """A new paragraph or picture behind an element, else at the end of the text."""

    def item(self, page: Page, items: list[Element], words: str) -> Patch:
        """A new item behind the last of a list."""

    def other_picture(self, page: Page, image: Element, picture: Picture) -> Patch:
        """Another picture in the place of one."""


@dataclass(slots=True)
class Page:
    """A parsed page; offsets hold until its source is edited."""

    source: str
    markup: Markup
    elements: list[Element] = field(default_factory=list)
    texts: list[Span] = field(default_factory=list)

    def all(self, *names: str) -> list[Element]:
        """The elements of these names, in order of their start."""
        return [element for element in self.elements if element.name in names]

    def text_of(self, *names: str) -> list[Element]:
        """Those that belong to the text: not of a menu, a header or a footer."""
        return [element for element in self.all(*names) if not element.outer & ASIDE]

    def within(self, outer: Element, *names: str) -> list[Element]:
        """Those that begin within an element."""
        begin, end = (bisect_left(self.elements, at, key=lambda one: one.start) for at in (outer.start + 1, outer.end))
        return [element for element in self.elements[begin:end] if element.name in names]

    @property
    def title(self) -> Element | None:
        """What the page is called; the title of a drawing in it is another matter."""
        return next((one for one in self.all("title") if "svg" not in one.outer), None)

    def running_text(self) -> list[Element]:
        """The paragraphs of the element that holds most of them: the text, not a card."""
        groups: dict[int, list[Element]] = {}
        for paragraph in self.text_of("p"):
            groups.setdefault(id(paragraph.parent), []).append(paragraph)
        return max(groups.values(), key=len, default=[])

    def lists(self) -> list[list[Element]]:
        """The items of each list of the text; not menus, and not lists within lists."""
        groups: dict[int, list[Element]] = {}
        for item in self.text_of("li"):
            if item.parent is not None and item.parent.name in ("ul", "ol") and "li" not in item.parent.outer:
                groups.setdefault(id(item.parent), []).append(item)
        return list(groups.values())

    def words(self, element: Element) -> str:
        """What a visitor reads in it."""
        return self.markup.read(self.source[element.inner_start : element.inner_end], element)

    def filled(self, element: Element, words: str) -> Patch:
        """The element with these words in place of all that is in it."""
        return Patch(element.inner_start, element.inner_end, self.markup.escape(words, element))

    def find(self, words: str) -> list[Span]:
        """Where this text is read; as written, else whatever the case of its letters."""
        for flags in (re.NOFLAG, re.IGNORECASE):
            pattern = _as_written(" ".join(words.split()), self.markup.backslashes, flags)
            matches = (
                (text, match) for text in self.texts for match in pattern.finditer(self.source, text.start, text.end)
            )
            if found := [Span(*match.span(), text.element) for text, match in matches]:
                return found
        return []


@lru_cache(maxsize=64)
def _as_written(words: str, backslashes: bool, flags: re.RegexFlag) -> re.Pattern[str]:
    """A pattern for words however a page writes them: entities, line ends, curly quotes; whole words only."""
    if not words:
        return re.compile("(?!)")
    before = r"(?<!\w)" if words[0].isalnum() else ""
    after = r"(?!\w)" if words[-1].isalnum() else ""
    before += r"(?<!\d[.,:])" if words[0].isdigit() else ""
    after += r"(?![.,:]\d)" if words[-1].isdigit() else ""
    return re.compile(before + "".join(_letter(letter, backslashes) for letter in words) + after, flags)


def _letter(letter: str, backslashes: bool) -> str:
    if letter == " ":
        return r"(?:\s|&nbsp;|&#160;)++"
    if letter.isascii() and letter.isalnum():
        return letter
    forms = [
        form
        for one in _SAME.get(letter, letter)
        for form in (one, f"&#{ord(one)};", f"&#x{ord(one):x};", f"&{codepoint2name.get(ord(one), 'apos')};")
    ]
    slash = r"\\?" if backslashes and letter.isascii() else ""
    return f"{slash}(?:{'|'.join(map(re.escape, forms))})"


def front_matter(source: str) -> tuple[int, Element | None]:
    """Where the settings before a page end, and its title if that is a simple text."""
    front = _FRONT.match(source)
    if front is None:
        return 0, None
    stop = re.compile(r"^[ \t]*\[", re.M).search(source, *front.span("body")) if front["fence"] == "+++" else None
    title = _FRONT_TITLE.search(source, front.start("body"), stop.start() if stop else front.end("body"))
    if title is None:
        return front.end(), None
    begin, end = title.start("value"), title.start("value") + len(title["value"].rstrip())
    goes_on = re.compile(r"\r?\n[ \t]+\S").match(source, title.end()) is not None
    fixed = goes_on or _SIMPLE_VALUE.fullmatch(source, begin, end) is None
    return front.end(), Element("title", "", begin, begin, None, end, end, fixed=fixed)
