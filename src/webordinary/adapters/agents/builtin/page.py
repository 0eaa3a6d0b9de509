"""A page as text with places: whatever language it is written in, an edit touches only its own characters."""

from __future__ import annotations

import codecs
import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple, Protocol

from webordinary.adapters.agents.builtin.values import Value, unescaped

_ENTITY = r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});"
_BLANKS = r"(?! [^\s])\s++"  # a single space is read as it is written
_READ_OTHERWISE = {
    (entities, backslashes): re.compile(
        "|".join([_BLANKS, *([_ENTITY] if entities else []), *([r"\\[!-/:-@\[-`{-~]"] if backslashes else [])]), re.I
    )
    for entities in (False, True)
    for backslashes in (False, True)
}
_LOOK_ALIKES = str.maketrans("\u2019\u2018\u201c\u201d\u2013\u2014", "''\"\"--")


@dataclass(frozen=True, slots=True)
class ReadText:
    """Entities decoded, spaces squeezed, in pieces.

    At `places[i]` of what is read stands what begins at `starts[i]` in the source and ends before `starts[i + 1]`; a
    piece is either read as it is written or, where `whole[i]`, one thing that is read otherwise.
    """

    read: str
    places: list[int]
    starts: list[int]
    whole: list[bool]

    def folded(self) -> ReadText:
        """Whatever the case of its letters."""
        return replace(self, read=folded(self.read))

    def find(self, needle: str) -> Iterator[tuple[int, int]]:
        """Where these words begin and end in the source."""
        start = self.read.find(needle)
        while start >= 0:
            end = start + len(needle)
            if _whole_words(self.read, start, end):
                yield self._source(start), self._source(end - 1, after=1)
            start = self.read.find(needle, end)

    def _source(self, place: int, after: int = 0) -> int:
        """Where the character that is read at this place begins in the source, or, with `after`, ends."""
        piece = bisect_right(self.places, place) - 1
        if self.whole[piece]:
            return self.starts[piece + after]
        return self.starts[piece] + place - self.places[piece] + after


def read_text(source: str, start: int, end: int, entities: bool, backslashes: bool) -> ReadText:
    """A stretch of a source, in a language that has entities, or backslashes before its marks, or neither."""
    pieces: list[str] = []
    starts: list[int] = []
    whole: list[bool] = []
    position = start
    for found in _READ_OTHERWISE[entities, backslashes].finditer(source, start, end):
        pieces += [source[position : found.start()], _read(found[0])]
        starts += [position, found.start()]
        whole += [False, True]
        position = found.end()
    pieces.append(source[position:end])
    places = [0, *accumulate(map(len, pieces))]
    return ReadText("".join(pieces).translate(_LOOK_ALIKES), places, [*starts, position, end], [*whole, False])


def squeezed(text: str) -> str:
    """Words that are looked for, as a text of a page is read."""
    return " ".join(text.split()).translate(_LOOK_ALIKES)


def _read(written: str) -> str:
    if written[0] == "\\":
        return written[1:]
    return " " if written.isspace() else unescaped(written)


def folded(text: str) -> str:
    """Small letters, as many as there were."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(low if len(low := c.lower()) == 1 else c for c in text)


def _whole_words(text: str, start: int, end: int) -> bool:
    """`art` is not found in `earth`."""
    before, after = text[start - 1 : start] if start else "", text[end : end + 1]
    return not (before.isalnum() and text[start].isalnum()) and not (after.isalnum() and text[end - 1].isalnum())


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


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as a page names it; 0 where its size is not known."""

    address: str
    shows: str
    width: int = 0
    height: int = 0


MAX_HEADER = 300_000
"""Bytes; the size of a JPEG stands behind its colour profile."""
_UNKNOWN = (0, 0)


def size_of(head: bytes) -> tuple[int, int]:
    """Width and height of a PNG, GIF, JPEG or WebP; zeros for anything else, and for damaged files."""
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack_from(">II", head, 16)
        elif head.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack_from("<HH", head, 6)
        elif head.startswith(b"\xff\xd8"):
            width, height = _of_jpeg(head)
        elif head[8:12] == b"WEBP":
            width, height = _of_webp(head)
        else:
            return _UNKNOWN
    except struct.error:
        return _UNKNOWN
    return (width, height) if 0 < width <= 65_535 and 0 < height <= 65_535 else _UNKNOWN


def _of_jpeg(head: bytes) -> tuple[int, int]:
    """The first frame header (SOF); the segments before it are stepped over."""
    at = 2
    while True:
        mark, kind, length = struct.unpack_from(">BBH", head, at)
        if mark != 0xFF or length < 2:
            return _UNKNOWN
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        at += 2 + length


def _of_webp(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            low = struct.unpack_from("<HBHB", head, 24)
            return 1 + low[0] + (low[1] << 16), 1 + low[2] + (low[3] << 16)
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return _UNKNOWN


class MarkupWriter(Protocol):
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

    def paragraph_after(self, page: Page, heading: Element, words: str) -> Patch:
        """A new paragraph below a heading."""

    def pictures(self, page: Page, pictures: list[Picture], heading: Element | None) -> Patch:
        """New pictures below a heading, else after the first section."""

    def other_picture(self, page: Page, image: Element, picture: Picture) -> Patch:
        """Another picture in the place of one."""


@dataclass(slots=True)
class Page:
    """A parsed page; offsets hold until its source is edited."""

    source: str
    writing: MarkupWriter
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

    def running_text(self) -> list[Element]:
        """The paragraphs of the element that holds most of them: the text, not a card or the footer."""
        groups: dict[int, list[Element]] = {}
        for paragraph in self.all("p"):
            if not paragraph.inside("footer", "nav", "header"):
                groups.setdefault(id(paragraph.parent), []).append(paragraph)
        return max(groups.values(), key=len, default=[])

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


UTF8 = "utf-8"
_LIKELIEST = "cp1252"
_SEARCHED = 1_024  # bytes, as far as browsers look
_DECLARED = re.compile(rb"<(?:meta\b|\?xml\b)[^>]{1,300}?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_KNOWN = ("iso8859", "cp125", "cp932", "cp949", "koi8", "mac", "shift_jis", "euc", "gb", "big5", "tis-620")
_BYTE = re.compile("[\udc80-\udcff]")
_FENCES = (b"---", b"+++")  # of front matter
_MAX_SHOWN = 8_000


def decoded(name: str, raw: bytes) -> tuple[str, str]:
    """A charset and the text in it: of a plain HTML page that neither is UTF-8 nor says so its own, else UTF-8.

    Its own is the one that it declares, if that gives the same bytes back, else the likeliest. Letters in valid UTF-8
    are that, whatever is declared. A byte that is no letter becomes a lone surrogate, which `encoded` turns into that
    byte again.
    """
    declared = _declared(raw)
    if not _is_plain_html(name, raw) or declared == UTF8:
        return UTF8, raw.decode(UTF8, "surrogateescape")
    if _is_utf8(raw) and (declared is None or not raw.isascii()):
        return UTF8, raw.decode(UTF8)
    if declared is not None:
        text = raw.decode(declared, "surrogateescape")
        if encoded(text, declared) == raw:
            return declared, text
    return _LIKELIEST, raw.decode(_LIKELIEST, "surrogateescape")


def encoded(text: str, charset: str) -> bytes:
    """The bytes of a text; a letter that the charset does not have becomes a character reference."""
    return text.encode(charset, "webordinary.bytes-and-references")


def as_references(text: str) -> str:
    """The text with a character reference for all that is not ASCII: right in whichever charset it is read."""
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def shown(text: str) -> str:
    """A text for people: stray bytes of a page as the letters that they most likely are, and not without end."""
    text = _BYTE.sub(lambda byte: bytes([ord(byte[0]) - 0xDC00]).decode(_LIKELIEST, "replace"), text)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def _is_plain_html(name: str, raw: bytes) -> bool:
    """All others are read by a generator, and those read UTF-8 alone."""
    return name.endswith((".html", ".htm")) and not raw.startswith(_FENCES)


def _declared(raw: bytes) -> str | None:
    if raw.startswith(codecs.BOM_UTF8):
        return UTF8
    found = _DECLARED.search(raw[:_SEARCHED])
    if found is None:
        return None
    try:
        name = codecs.lookup(found[1].decode("ascii")).name
    except (LookupError, UnicodeDecodeError):
        return None
    if name in ("ascii", "iso8859-1"):
        return _LIKELIEST  # browsers read these so
    return name if name.startswith(_KNOWN) else UTF8 if name == UTF8 else None


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode(UTF8)
    except UnicodeDecodeError:
        return False
    return True


def _byte_or_reference(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return b"".join(
        bytes([ord(c) - 0xDC00]) if _BYTE.match(c) else as_references(c).encode() for c in letters
    ), error.end


codecs.register_error("webordinary.bytes-and-references", _byte_or_reference)


_RAW_OR_BRACE = re.compile(r"<(script|style)\b[^>]*+(?:>.*?(?:</\1\s*+>|\Z)|\Z)|<!--.*?(?:-->|\Z)|\{", re.S | re.I)
_NEXT = re.compile(r"/\*|//[^\n]*+|[\"'`{}]")
_LITERALS = {
    "/*": re.compile(r"/\*.*?(?:(?P<end>\*/)|\Z)", re.S),
    '"': re.compile(r"\"(?:[^\"\\\n]|\\.)*+(?P<end>\")?+", re.S),
    "'": re.compile(r"'(?:[^'\\\n]|\\.)*+(?P<end>')?+", re.S),
    "`": re.compile(r"`(?:[^`\\]|\\.)*+(?P<end>`)?+", re.S),
}
"""Comments and strings, in which a brace means nothing; without its `end`, a quote is one in running text: don't."""


def without_expressions(text: str) -> str:
    """As long as the text; scripts, styles and comments keep their braces."""
    parts, position, expressions = [], 0, _Expressions(text)
    while (found := _RAW_OR_BRACE.search(text, position)) is not None:
        end = expressions.end(found.start()) if found[0] == "{" else found.end()
        inner = text[found.start() : end]
        parts += [text[position : found.start()], hidden(inner) if found[0] == "{" else inner]
        position = end
    return "".join([*parts, text[position:]])


class _Expressions:
    """Remembers how far it looked for the end of a literal in vain, so as not to look again from within."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed = dict.fromkeys(_LITERALS, 0)

    def end(self, start: int) -> int:
        """After the brace that closes the one at `start`; the end of the text if none does."""
        depth, position = 0, start
        while (found := _NEXT.search(self._text, position)) is not None:
            position = found.end()
            if found[0] == "{":
                depth += 1
            elif found[0] == "}":
                depth -= 1
                if depth == 0:
                    return position
            elif found[0] in _LITERALS:
                position = self._after_literal(found)
        return len(self._text)

    def _after_literal(self, begin: re.Match[str]) -> int:
        mark = begin[0]
        if begin.start() < self._unclosed[mark]:
            return begin.end()
        literal = _LITERALS[mark].match(self._text, begin.start())
        assert literal is not None  # it begins with its mark
        if literal["end"]:
            return literal.end()
        self._unclosed[mark] = literal.end()
        return len(self._text) if mark == "`" else begin.end()
