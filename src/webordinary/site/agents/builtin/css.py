"""The colours that a style sheet declares, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.site.agents.builtin.colour_names import COLOUR_NAMES

_UNREAD = re.compile(r"/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|url\([^)]*\)", re.S)
_PIECE = re.compile(r"[^{};]*[{};]|[^{};]+\Z", re.S)
_DECLARATION = re.compile(r"\s*(?P<property>--[\w-]+|[a-z-]+)\s*:\s*(?P<value>.*?)\s*(?:;|\}|\Z)", re.S | re.I)
_NAMES = "|".join(sorted(COLOUR_NAMES, key=len, reverse=True)).replace("gray", "gr[ae]y")
_COLOUR = re.compile(
    r"#(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b|\b(?:rgba?|hsla?|oklch|oklab|lab|lch|hwb)\([^()]*\)"
    rf"|var\(\s*--[\w-]+\s*\)|(?<![\w-])(?:{_NAMES})(?![\w-])",
    re.I,
)
_MAX_DEPTH = 20
_HEX = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.I)


@dataclass(frozen=True, slots=True)
class Rule:
    """A block of declarations for some selectors; `within` names the condition that it stands under."""

    selectors: tuple[str, ...]
    within: str
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
    blocks: list[tuple[str, Rule | None]] = []
    for piece in _PIECE.finditer(readable):
        text = piece[0]
        if blocks and blocks[-1][1] is not None and text[-1:] != "{":
            colours += _colours(piece, start, blocks[-1][1])
        if len(blocks) > _MAX_DEPTH:
            break
        if text[-1:] == "{":
            prelude = " ".join(text[:-1].replace("\ue000", "").split())
            rule = None if prelude.startswith("@") else _rule(prelude, blocks, start + piece.end())
            blocks.append((prelude, rule))
            rules += [rule] if rule else []
        elif text[-1:] == "}" and blocks:
            blocks.pop()
    return rules, colours


def _rule(prelude: str, blocks: list[tuple[str, Rule | None]], body_start: int) -> Rule:
    within = " ".join(outer for outer, _ in blocks)
    return Rule(tuple(part.strip().lower() for part in prelude.split(",")), within, body_start)


def _colours(piece: re.Match[str], offset: int, rule: Rule) -> list[Declared]:
    declaration = _DECLARATION.match(piece[0])
    if declaration is None:
        return []
    found = list(_COLOUR.finditer(declaration["value"]))
    if len(found) != 1:
        return []  # none, or a gradient: not one colour
    begin = offset + piece.start() + declaration.start("value")
    return [Declared(rule, declaration["property"].lower(), begin + found[0].start(), begin + found[0].end())]
