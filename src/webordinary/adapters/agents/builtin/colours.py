"""Change a colour where the style sheets declare it: of the page, its text, headings, links or buttons."""

from __future__ import annotations

import re
from dataclasses import dataclass

from PIL import ImageColor

from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.page import HEADINGS, Patch

COLOUR_NAMES = frozenset(ImageColor.colormap)
_HEX = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.I)
_BACKGROUND = ("background-color", "background")
_PARTS = {
    "background": (("body", "html", ":root"), _BACKGROUND),
    "text": (("body", "html", ":root"), ("color",)),
    "heading": (("h1",), ("color",)),
    "headings": (HEADINGS, ("color",)),
    **{
        one: ((one, f".{one}", f"#{one}", f".site-{one[:4]}", f".site-{one}"), _BACKGROUND)
        for one in ("header", "footer")
    },
    "link": (("a", "a:link"), ("color",)),
    "button": (("button", ".button", ".btn"), _BACKGROUND),
    "button text": (("button", ".button", ".btn"), ("color",)),
}
"""What people call a part: the selectors that it has, and the properties that colour it."""
# What is not closed reaches to the end of its line or of the sheet, as in a browser; it is not tried again from within.
_UNREAD = re.compile(r"/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*+\"?+|'(?:[^'\\\n]|\\.)*+'?+|url\([^)]*+\)?+", re.S)
_PIECE = re.compile(r"[^{};]*+[{};]|[^{};]++\Z", re.S)
_COLOUR = re.compile(
    r"#(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b|\b(?:rgba?|hsla?|oklch|oklab|lab|lch|hwb)\([^()]*\)"
    rf"|var\(\s*--[\w-]+\s*\)|(?<![\w-])(?:{'|'.join(COLOUR_NAMES)})(?![\w-])",
    re.I,
)
_LONGEST_SELECTORS = 500
_UNKNOWN = "unknown"


def colour_of(words: str) -> str | None:
    """A colour as CSS writes it, from a name (`dark green`) or a hex number; None if it is neither."""
    if _HEX.fullmatch(words.strip()):
        return words.strip().lower()
    name = re.sub(r"[\s-]+", "", words.lower()).replace("grey", "gray").replace("navyblue", "navy")
    return name if name in COLOUR_NAMES else None


@dataclass(slots=True)
class Rule:
    """A block of declarations, not within `@media` or the like: which colours it declares, and where each stands."""

    selectors: tuple[str, ...]
    body_start: int
    colours: dict[str, tuple[int, int] | None]
    """By property; None for one that is not a single colour."""


def read_rules(source: str, start: int = 0, end: int | None = None) -> list[Rule]:
    """The rules of a style sheet, or of a part of a file that is one."""
    readable = _UNREAD.sub(lambda found: re.sub(r"[^\n]", "\ue000", found[0]), source[start:end])
    rules: list[Rule] = []
    depth, inside = 0, False
    for piece in _PIECE.finditer(readable):
        text, mark = piece[0], piece[0][-1]
        if inside and depth == 1 and mark != "{":
            _read_declaration(rules[-1], text.rstrip(";}"), start + piece.start())
        if mark == "{":
            prelude = " ".join(text[:-1].replace("\ue000", "").split()).lower()
            inside = inside if depth else not prelude.startswith("@") and len(prelude) < _LONGEST_SELECTORS
            if inside and not depth:
                rules.append(Rule(tuple(map(str.strip, prelude.split(","))), start + piece.end(), {}))
            depth += 1
        elif mark == "}":
            depth = max(0, depth - 1)
    return rules


def _read_declaration(rule: Rule, text: str, offset: int) -> None:
    name, colon, value = text.partition(":")
    if colon and ((name := name.strip().lower()) in ("color", *_BACKGROUND) or name.startswith("--")):
        found = list(_COLOUR.finditer(value))
        begin = offset + len(text) - len(value)
        rule.colours[name] = (begin + found[0].start(), begin + found[0].end()) if len(found) == 1 else None


def _part(said: str) -> str:
    words = re.sub(r"\A(?:all|the|main|big|page|site|website| )+ ", "", said.lower())
    return words if words in _PARTS else words.removesuffix("s")


def change_colour(part: str, tint: str, draft: Draft) -> str:
    """Change it in the only rule that colours the part, or in each rule of headings; the question if there is none."""
    words = _part(part)
    selectors, properties = _PARTS[words]
    rules = [(file, one) for file, one in _rules(draft) if set(one.selectors) <= set(selectors)]
    declared = [(file, one.colours[name]) for file, one in rules for name in properties if name in one.colours]
    if not declared:  # the rule for all of the part is given the colour
        widest = max((len(one.selectors) for _, one in rules), default=0)
        declared = [(file, (one.body_start,) * 2) for file, one in rules if len(one.selectors) == widest]
        new = f" {properties[0]}: {colour_of(tint)};"
    else:
        new = colour_of(tint) or ""
    places = [(file, place) for file, place in declared if place is not None]
    if len(places) != len(declared) or not places or (len(places) > 1 and (words != "headings" or new[0] == " ")):
        count = len(declared) or "no"
        return f"I found {count} places that colour the {words} in your site's styles, and can change one only."
    for file, (start, end) in reversed(places):
        draft.replace(file, Patch(start, end, new))
    return ""


READABLE = 4.5
"""The contrast that WCAG asks of text."""


def contrast(part: str, draft: Draft) -> float:
    """The lowest contrast of the texts that have this part as colour or background; 0 if the styles do not tell it."""
    declared: dict[tuple[str, str], str] = {}
    for file, rule in _rules(draft):
        for name, place in rule.colours.items():
            value = draft.text(file)[slice(*place)] if place else _UNKNOWN
            declared.update({(one, name): value for one in rule.selectors})

    def colours(of: str) -> list[str]:
        found = [declared[one, name] for one in _PARTS[of][0] for name in _PARTS[of][1] if (one, name) in declared]
        variables = [re.fullmatch(r"var\(\s*(--[\w-]+)\s*\)", one) for one in found]
        return [declared.get((":root", v[1]), _UNKNOWN) if v else one for one, v in zip(found, variables, strict=True)]

    words = _part(part)
    texts = {"background": ("text", "headings", "link"), "button": ("button text",)}.get(words, (words,))
    ground = (colours("button") or [_UNKNOWN])[0] if words == "button" else (colours("background") or ["white"])[0]
    shown = [one for text in texts for one in colours(text)] or ["black"]
    return min(_ratio(one, ground) for one in shown)


def _ratio(text: str, ground: str) -> float:
    try:
        light, dark = sorted(map(_luminance, (text, ground)), reverse=True)
    except ValueError:
        return 0
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue, *alpha = ImageColor.getrgb(colour)
    if alpha not in ([], [255]):
        raise ValueError(colour)
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _rules(draft: Draft) -> list[tuple[str, Rule]]:
    """Those of style sheets, and of the style parts of pages."""
    found = [(file, rule) for file in draft.styles() for rule in read_rules(draft.text(file))]
    for name in draft.pages():
        for style in draft.page(name).all("style") if "<style" in draft.text(name) else ():
            found += [(name, rule) for rule in read_rules(draft.text(name), style.inner_start, style.inner_end)]
    return found
