"""Quoted text in a mail is taken literally: set aside before the sentences around it are read."""

from __future__ import annotations

import re

_QUOTED = re.compile(
    r"“([^”\n]{1,2000})”|\"([^\"\n]{1,2000})\"|«\s?([^»\n]{1,2000}?)\s?»|„([^“”\n]{1,2000})[“”]"
    r"|(?<![\w'\u2019])[\u2018']([^\u2018\n]{1,2000}?)[\u2019'](?![\w])"
)
# What follows `add a paragraph to the about page:` is text up to the next empty line, however many sentences.
_AFTER_COLON = re.compile(
    r"(\b(?:paragraph|page\s+(?:called|named|titled))\b[^:\n]{0,100}:)[ \t]*\n?(\S[^\n]*(?:\n[ \t]*\S[^\n]*)*)",
    re.IGNORECASE,
)
_FIRST = 0xE000  # a private-use character stands for each quotation
_LAST = 0xF8FF
MARK = f"[{chr(_FIRST)}-{chr(_LAST)}]"


class Quotes:
    """The quotations of one mail."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def set_aside(self, text: str) -> str:
        """The text with a mark in place of each quotation."""
        clean = _QUOTED.sub(self._mark, re.sub(MARK, "", text))
        return _AFTER_COLON.sub(self._mark_rest, clean)

    def _mark_rest(self, match: re.Match[str]) -> str:
        if re.match(MARK, match[2]):
            return match[0]
        self._texts.append(" ".join(self.shown(match[2]).split()))
        return f"{match[1]} {chr(_FIRST + len(self._texts) - 1)}"

    def _mark(self, match: re.Match[str]) -> str:
        if len(self._texts) > _LAST - _FIRST:
            return match[0]
        inner = next(group for group in match.groups() if group is not None)
        self._texts.append(inner)
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
