"""Change a colour: of a named part of the pages, or of a custom property that a style sheet declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from webordinary.adapters.agents.builtin.draft import Draft
from webordinary.adapters.agents.builtin.page import Patch

_COLOUR_NAMES_NAMES = """
aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet brown burlywood
cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue darkcyan darkgoldenrod darkgray
darkgreen darkkhaki darkmagenta darkolivegreen darkorange darkorchid darkred darksalmon darkseagreen darkslateblue
darkslategray darkturquoise darkviolet deeppink deepskyblue dimgray dodgerblue firebrick floralwhite forestgreen
fuchsia gainsboro ghostwhite gold goldenrod gray green greenyellow honeydew hotpink indianred indigo ivory khaki
lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan lightgoldenrodyellow lightgray
lightgreen lightpink lightsalmon lightseagreen lightskyblue lightslategray lightsteelblue lightyellow lime limegreen
linen magenta maroon mediumaquamarine mediumblue mediumorchid mediumpurple mediumseagreen mediumslateblue
mediumspringgreen mediumturquoise mediumvioletred midnightblue mintcream mistyrose moccasin navajowhite navy oldlace
olive olivedrab orange orangered orchid palegoldenrod palegreen paleturquoise palevioletred papayawhip peachpuff
peru pink plum powderblue purple rebeccapurple red rosybrown royalblue saddlebrown salmon sandybrown seagreen
seashell sienna silver skyblue slateblue slategray snow springgreen steelblue tan teal thistle tomato turquoise
violet wheat white whitesmoke yellow yellowgreen
"""
COLOUR_NAMES = frozenset(_COLOUR_NAMES_NAMES.split())


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
class CssRule:
    """A block of declarations for some selectors.

    `always`: not only on small screens, in the dark, or within another rule.
    """

    selectors: tuple[str, ...]
    always: bool
    body_start: int


@dataclass(frozen=True, slots=True)
class Declared:
    """One colour in one declaration."""

    rule: CssRule
    name: str
    start: int
    end: int


def colour_of(words: str) -> str | None:
    """A colour as CSS writes it, from a name (`dark green`) or a hex number; None if it is neither."""
    if _HEX.fullmatch(words.strip()):
        return words.strip().lower()
    name = re.sub(r"[\s-]+", "", words.lower()).replace("grey", "gray")
    return name if name in COLOUR_NAMES else None


def read_rules(source: str, start: int = 0, end: int | None = None) -> tuple[list[CssRule], list[Declared]]:
    """The rules of a style sheet, or of a part of a file that is one, and the colours in them."""
    readable = _UNREAD.sub(lambda found: re.sub(r"[^\n]", "\ue000", found[0]), source[start:end])
    rules: list[CssRule] = []
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
    rule: CssRule | None
    is_layer: bool


def _block(prelude: str, always: bool, body_start: int) -> _Block:
    prelude = " ".join(prelude.replace("\ue000", "").split())
    if prelude.startswith("@") or len(prelude) > _MAX_SELECTORS:
        return _Block(None, prelude.startswith("@layer"))
    return _Block(CssRule(tuple(part.strip().lower() for part in prelude.split(",")), always, body_start), False)


def _colours(piece: re.Match[str], offset: int, rule: CssRule) -> list[Declared]:
    declaration = _DECLARATION.match(piece[0])
    if declaration is None:
        return []
    found = list(_COLOUR.finditer(declaration["value"]))
    if len(found) != 1:
        return []  # none, or a gradient: not one colour
    begin = offset + piece.start() + declaration.start("value")
    return [Declared(rule, declaration["property"].lower(), begin + found[0].start(), begin + found[0].end())]


_LISTED = 8
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_BACKGROUND = ("background-color", "background")


@dataclass(frozen=True, slots=True)
class _Part:
    """What people call a part: the selectors that it has, and the properties that colour it."""

    selectors: frozenset[str]
    properties: tuple[str, ...]
    synonyms: frozenset[str] = frozenset()


_BODY = frozenset(("body", "html", ":root"))
_PARTS = {
    "background": _Part(_BODY, _BACKGROUND, frozenset(("background", "bg", "page-background", "page-bg"))),
    "text": _Part(_BODY, ("color",), frozenset(("text", "fg", "foreground", "body-text", "font"))),
    "heading": _Part(frozenset(("h1",)), ("color",), frozenset(("heading", "headline", "title"))),
    "headings": _Part(_HEADINGS, ("color",), frozenset(("heading", "headings", "headline", "title"))),
    "link": _Part(frozenset(("a", "a:link")), ("color",), frozenset(("link", "links", "anchor"))),
    "button": _Part(frozenset(("button", ".button", ".btn")), _BACKGROUND, frozenset(("button", "btn", "buttons"))),
}
_ALIASES = {
    "page background": "background", "site background": "background", "website background": "background",
    "font": "text", "headline": "heading", "main heading": "heading", "big heading": "heading", "headlines": "headings",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Place:
    """A colour in a file, or a rule that could be given one."""

    file: str
    rule: CssRule
    name: str
    patch: Patch
    was: str

    @property
    def words(self) -> str:
        """How it is called in a reply, and can be called in the next mail."""
        owner = ", ".join(self.rule.selectors)
        if self.name.startswith("--"):
            return self.name if owner == ":root" else f"{self.name} in {owner}"
        return f"{owner} {self.name}"


def change_colour(part: str, tint: str, draft: Draft) -> tuple[bool | None, str]:
    """Change it where it is declared: True if done, False if it is so already, None with a question; and the words."""
    said, new = " ".join(part.lower().removeprefix("all ").split()), colour_of(tint)
    if new is None:
        return None, f"I do not know the colour “{tint}”. Please write a CSS name (dark green) or a number (#7a3b2e)."
    places = _places(draft, said, new)
    if not places:
        return None, f"I found no colour of “{said}” in your site's styles. {_known(draft, new)}".strip()
    if len(places) > 1 and not (said.endswith("s") and _all_headings(places)):
        listing = "\n".join(f"- {place.words} (now {place.was})" for place in places[:_LISTED])
        return None, f"“{said}” could be one of these colours:\n{listing}\nPlease name it as it stands here."
    if all(place.was == new for place in places):
        return False, f"The colour of “{said}” is {new} already."
    for file, within in groupby(places, key=lambda place: place.file):
        draft.replace(file, *(place.patch for place in within))
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    listing = ", ".join(place.words for place in places[:_LISTED])
    return True, f"Changed the colour of “{said}” to {new}: {listing}{more}."


def _places(draft: Draft, part: str, new: str) -> list[_Place]:
    """The colours that these words name: as they are declared, else by what people call the parts of a page."""
    sheets = [(file, *read) for file, read in _sheets(draft)]
    declared = [_place(draft, file, one, new) for file, _, colours in sheets for one in colours if one.rule.always]
    exact = [place for place in declared if part == place.words] or [
        place for place in declared if part == place.name and part.startswith("--")
    ]
    if exact:
        return exact
    known = _part(part)
    properties = [place for place in declared if _calls(place.name, part, known)]
    if properties:
        return properties
    direct = [
        place
        for place in declared
        if place.name in known.properties and frozenset(place.rule.selectors) <= known.selectors
    ]
    return direct or _undeclared(draft, sheets, known, new)


def _place(draft: Draft, file: str, one: Declared, new: str) -> _Place:
    was = draft.text(file)[one.start : one.end]
    return _Place(file, one.rule, one.name, Patch(one.start, one.end, new), was)


def _undeclared(
    draft: Draft, sheets: list[tuple[str, list[CssRule], list[Declared]]], known: _Part, new: str
) -> list[_Place]:
    """The rule for all of the part, if there is one: it is given the colour."""
    rules = [
        (file, rule)
        for file, found, _ in sheets
        for rule in found
        if rule.always and frozenset(rule.selectors) <= known.selectors
    ]
    widest = max((len(rule.selectors) for _, rule in rules), default=0)
    whole = [(file, rule) for file, rule in rules if len(rule.selectors) == widest]
    if len(whole) != 1:
        return []
    (file, rule), name = whole[0], known.properties[0]
    body = draft.text(file)[rule.body_start :].partition("}")[0]
    if re.search(rf"(?:\A|[;\s])(?:{'|'.join(known.properties)})\s*:", body):
        return []  # it has one already, which is not one plain colour
    return [_Place(file, rule, name, Patch(rule.body_start, rule.body_start, f" {name}: {new};"), "not set")]


def _part(words: str) -> _Part:
    """A part that people have a word for, or an element or class of that name."""
    words = _ALIASES.get(words, words)
    singular = words.removesuffix("s")
    if words in _PARTS or singular in _PARTS:
        return _PARTS.get(words) or _PARTS[singular]
    owner, _, rest = words.rpartition(" ")
    properties = {"background": _BACKGROUND, "text": ("color",)}.get(rest, (*_BACKGROUND, "color"))
    name = (owner if owner and rest in ("background", "text") else words).replace(" ", "-")
    if owner and rest in ("background", "text") and owner.removesuffix("s") in _PARTS:
        return _Part(_PARTS[owner.removesuffix("s")].selectors, properties)
    return _Part(frozenset((name, f".{name}", f"#{name}")), properties, frozenset((words.replace(" ", "-"),)))


def _calls(name: str, part: str, known: _Part) -> bool:
    """Whether a custom property is named after the part: `--accent`, `--accent-color`, `--color-accent`."""
    bare = re.sub(r"\A(?:colou?r|clr)-|-(?:colou?r|clr)\Z", "", name.removeprefix("--"))
    return name.startswith("--") and (bare in known.synonyms or bare == part.replace(" ", "-"))


def _all_headings(places: list[_Place]) -> bool:
    """`The headings` are all of them, whichever rules they have."""
    return all(frozenset(place.rule.selectors) <= _HEADINGS and not place.name.startswith("--") for place in places)


def _sheets(draft: Draft) -> list[tuple[str, tuple[list[CssRule], list[Declared]]]]:
    """Style sheets, and the style parts of pages."""
    found = [(file, read_rules(draft.text(file))) for file in draft.styles()]
    for name in draft.sources():
        if "<style" in draft.text(name):
            styles = draft.page(name).all("style")
            found += [(name, read_rules(draft.text(name), one.inner_start, one.inner_end)) for one in styles]
    return found


def _known(draft: Draft, new: str) -> str:
    names = {one.name for _, (_, colours) in _sheets(draft) for one in colours if one.name.startswith("--")}
    listed = ", ".join(sorted(names)[:_LISTED])
    return f"These have names: {listed}. For example: change {min(names)} to {new}." if names else ""
