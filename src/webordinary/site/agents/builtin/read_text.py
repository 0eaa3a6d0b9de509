"""A text of a page as it is read, and the way back from there to the characters of the source."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from webordinary.site.agents.builtin.tags import unescaped

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
