"""Expressions in braces, as Astro and MDX have them, hidden from the readers of the page."""

from __future__ import annotations

import re

from webordinary.site.agents.builtin.page import hidden

_RAW_OR_BRACE = re.compile(r"<(script|style)\b[^>]*>.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|\{", re.S | re.I)
_NEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[{}`]", re.S)
_TEMPLATE = re.compile(r"`(?:[^`\\]|\\.)*`", re.S)


def without_expressions(text: str) -> str:
    """As long as the text; scripts, styles and comments keep their braces."""
    parts, position = [], 0
    while (found := _RAW_OR_BRACE.search(text, position)) is not None:
        end = _end_of_expression(text, found.start()) if found[0] == "{" else found.end()
        inner = text[found.start() : end]
        parts += [text[position : found.start()], hidden(inner) if found[0] == "{" else inner]
        position = end
    return "".join([*parts, text[position:]])


def _end_of_expression(text: str, start: int) -> int:
    """After the brace that closes the one at `start`; the end of the text if none does."""
    depth, position = 0, start
    while (found := _NEXT.search(text, position)) is not None:
        position = found.end()
        if found[0] == "{":
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if depth == 0:
                return position
        elif found[0] == "`":
            template = _TEMPLATE.match(text, found.start())
            position = template.end() if template else len(text)
    return len(text)
