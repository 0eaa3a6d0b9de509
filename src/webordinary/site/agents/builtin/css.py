"""The colours that a style sheet declares, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.site.agents.builtin.colour_names import COLOUR_NAMES

# What is not closed reaches to the end of its line or of the sheet, as in a browser; it is not tried again from within.
_UNREAD = re.compile(r"/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*+\"?+|'(?:[^'\\\n]|\\.)*+'?+|url\([^)]*+\)?+", re.S)
_PIECE = re.compile(r"[^{};]*[{};]|[^{};]+\Z", re.S)
_DECLARATION = re.compile(r"\s*+(?P<property>--[\w-]++|[a-z-]++)\s*+:(?P<value>[^;}]*+)", re.I)
_NAMES = "|".join(sorted(COLOUR_NAMES, key=len, reverse=True)).replace("gray", "gr[ae]y")
_COLOUR = re.compile(
    r"#(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b|\b(?:rgba?|hsla?|oklch|oklab|lab|lch|hwb)\([^()]*\)"
    rf"|var\(\s*--[\w-]+\s*\)|(?<![\w-])(?=[a-z])(?:{_NAMES})(?![\w-])",
    re.I,
)
_MAX_DEPTH = 20
_MAX_SELECTORS = 2_000  # characters; a longer list is none that a customer has a word for
_HEX = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.I)


@dataclass(frozen=True, slots=True)
class Rule:
    """A block of declarations for some selectors.

    `always`: not only on small screens, in the dark, or within another rule.
    """

    selectors: tuple[str, ...]
    always: bool
    body_start: int


@dataclass(frozen=True, slots=True)
class Declared:
    """One colour in one declaration."""

    rule: Rule
    name: str
    start: int
    end: int


def colour_of(words: str) -> str | None:
    """A colour as CSS writes it, from a name (`dark green`) or a hex number; None if it is neither."""
    if _HEX.fullmatch(words.strip()):
        return words.strip().lower()
    name = re.sub(r"[\s-]+", "", words.lower()).replace("grey", "gray")
    return name if name in COLOUR_NAMES else None


def read_rules(source: str, start: int = 0, end: int | None = None) -> tuple[list[Rule], list[Declared]]:
    """The rules of a style sheet, or of a part of a file that is one, and the colours in them."""
    readable = _UNREAD.sub(lambda found: re.sub(r"[^\n]", "\ue000", found[0]), source[start:end])
    rules: list[Rule] = []
    colours: list[Declared] = []
    blocks: list[_Block] = []
    for piece in _PIECE.finditer(readable):
        text = piece[0]
        if blocks and blocks[-1].rule is not None and text[-1:] != "{":
            colours += _colours(piece, start, blocks[-1].rule)
        if len(blocks) > _MAX_DEPTH:
            break
        if text[-1:] == "{":
            blocks.append(_block(text[:-1], all(outer.is_layer for outer in blocks), start + piece.end()))
            rules += [blocks[-1].rule] if blocks[-1].rule else []
        elif text[-1:] == "}" and blocks:
            blocks.pop()
    return rules, colours


@dataclass(frozen=True, slots=True)
class _Block:
    rule: Rule | None
    is_layer: bool


def _block(prelude: str, always: bool, body_start: int) -> _Block:
    prelude = " ".join(prelude.replace("\ue000", "").split())
    if prelude.startswith("@") or len(prelude) > _MAX_SELECTORS:
        return _Block(None, prelude.startswith("@layer"))
    return _Block(Rule(tuple(part.strip().lower() for part in prelude.split(",")), always, body_start), False)


def _colours(piece: re.Match[str], offset: int, rule: Rule) -> list[Declared]:
    declaration = _DECLARATION.match(piece[0])
    if declaration is None:
        return []
    found = list(_COLOUR.finditer(declaration["value"]))
    if len(found) != 1:
        return []  # none, or a gradient: not one colour
    begin = offset + piece.start() + declaration.start("value")
    return [Declared(rule, declaration["property"].lower(), begin + found[0].start(), begin + found[0].end())]
