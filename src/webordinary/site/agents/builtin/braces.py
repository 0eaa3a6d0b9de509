"""Expressions in braces, as Astro and MDX have them, hidden from the readers of the page."""

from __future__ import annotations

import re

from webordinary.site.agents.builtin.page import hidden

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
