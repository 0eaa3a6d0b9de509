"""Quoted text in a mail is taken literally: set aside before the sentences around it are read."""

from __future__ import annotations

import re

_OPENING = re.compile(r"[“\"«„]|(?<![\w'\u2019])[\u2018']")
_CLOSING = {
    "“": re.compile(r"”|\n"),
    '"': re.compile(r"\"|\n"),
    "«": re.compile(r"»|\n"),
    "„": re.compile(r"[“”]|\n"),
    "\u2018": (_SINGLE := re.compile(r"[\u2019'](?!\w)|[\u2018\n]")),
    "'": _SINGLE,
}
"""What ends a quotation, or shows that it was none."""
_LONGEST = 2_000
# What follows `add a paragraph to the about page:` is text up to the next empty line, however many sentences.
_AFTER_COLON = re.compile(
    r"(\b(?:paragraph|page\s+(?:called|named|titled))\b[^:\n]{0,100}:)[ \t]*\n?(\S[^\n]*(?:\n[ \t]*\S[^\n]*)*)",
    re.IGNORECASE,
)
_FIRST = 0xE000  # a private-use character stands for each quotation
_LAST = 0xF8FF
MARK = f"[{chr(_FIRST)}-{chr(_LAST)}]"


class _Ahead:
    """Where the next closing mark of each kind is; looked for once, however many opening marks stand before it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, re.Match[str] | None] = {}

    def closing(self, mark: str, start: int) -> int:
        """Where a quotation that begins at `start` ends; before `start` if it is none."""
        first, found = start, self._found.get(mark)
        if _CLOSING[mark] is _SINGLE:
            first += self._text[start : start + 1] in ("'", "\u2019")  # it may begin with an apostrophe
        if mark not in self._found or (found is not None and found.start() < first):
            found = self._found[mark] = _CLOSING[mark].search(self._text, first)
        if found is None or found[0] in "\n\u2018":
            return -1
        return found.start()


class Quotes:
    """The quotations of one mail."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def set_aside(self, text: str) -> str:
        """The text with a mark in place of each quotation."""
        return _AFTER_COLON.sub(self._mark_rest, self._marked(re.sub(MARK, "", text)))

    def _marked(self, text: str) -> str:
        parts, done, ahead = [], 0, _Ahead(text)
        for opening in _OPENING.finditer(text):
            begin = opening.end()
            end = ahead.closing(opening[0], begin)
            if opening.start() < done or not 0 < end - begin <= _LONGEST or self._full:
                continue
            parts += [
                text[done : opening.start()],
                self._mark(text[begin:end].strip() if opening[0] == "«" else text[begin:end]),
            ]
            done = end + 1
        return "".join([*parts, text[done:]])

    def _mark_rest(self, match: re.Match[str]) -> str:
        if self._full or re.match(MARK, match[2]):
            return match[0]
        return f"{match[1]} {self._mark(' '.join(self.shown(match[2]).split()))}"

    @property
    def _full(self) -> bool:
        return len(self._texts) > _LAST - _FIRST

    def _mark(self, quotation: str) -> str:
        self._texts.append(quotation)
        return chr(_FIRST + len(self._texts) - 1)

    def literal(self, text: str) -> str:
        """The text that is meant: one quotation exactly, or words with their end punctuation taken off."""
        text = text.strip()
        core = text.rstrip(".,; ")
        if re.fullmatch(MARK, core):
            return self._texts[ord(core) - _FIRST]
        return self.shown(core)

    def is_quoted(self, text: str) -> bool:
        """Whether the text is one quotation."""
        return re.fullmatch(MARK, text.strip().rstrip(".,; ")) is not None

    def shown(self, text: str) -> str:
        """The text with its quotations put back, for people."""
        return re.sub(MARK, lambda mark: f"“{self._texts[ord(mark[0]) - _FIRST]}”", text).strip()
