"""The vocabulary of wishes in six languages: which words have which role. A word that is not here is not understood.

A negation, a condition, a doubt or a date has no entry but among STOP, so that its sentence is asked about.
"""

from __future__ import annotations

import re
from importlib.resources import files

from webordinary.adapters.agents.builtin.colours import colour_of
from webordinary.mail.parsing.small_talk import MARK, MEANINGFUL, word_set

_MARK = "\ufffc"
"""In the tables: where a quotation stands."""

_ORDINALS = (
    "first premier première erste ersten erster erstes primer primera primero primo prima eerste",
    "second deuxième seconde zweite zweiten zweiter zweites segundo segunda secondo seconda tweede",
    "third troisième dritte dritten dritter drittes tercer tercera tercero terzo terza derde",
    "fourth", "fifth", "sixth",
    "last dernier dernière letzte letzten letzter letztes último última ultimo ultima laatste",
)  # fmt: skip
NUMERALS = {word: line.split()[0] for line in _ORDINALS for word in line.split()}
_BASES = {
    "white": "weiß weiss weiße weißen weißer blanc blanche blanco blanca bianco bianca wit witte",
    "black": "schwarz schwarze schwarzen noir noire negro negra nero nera zwart zwarte",
    "red": "rot rote roten rouge rojo roja rosso rossa rood rode",
    "blue": "blau blaue blauen bleu bleue azul blu blauw blauwe",
    "green": "grün grüne grünen vert verte verde verdi groen groene verdes",
    "yellow": "gelb gelbe jaune amarillo amarilla giallo gialla geel gele",
    "grey": "grau graue gris grise grigio grigia grijs grijze",
    "orange": "naranja arancione oranje", "pink": "rosa rose roze", "brown": "braun marron marrón marrone bruin",
    "purple": "lila violett violet morado viola paars", "beige": "", "turquoise": "türkis turquesa turchese",
}  # fmt: skip
_COLOURS = {word: english for english, words in _BASES.items() for word in (english, *words.split())}
_SHADES = {
    "light": "light hell helle heller clair claire claro clara chiaro chiara licht lichte",
    "dark": "dark dunkel dunkle foncé foncée oscuro oscura scuro scura donker donkere",
}
_SHADE = {word: english for english, words in _SHADES.items() for word in words.split()}
_ANY_COLOUR, _ANY_SHADE = "|".join(sorted(_COLOURS, key=len, reverse=True)), "|".join(_SHADE)
_TINT = re.compile(
    rf"(?:(?P<before>{_ANY_SHADE})[ -]?)?(?P<base>{_ANY_COLOUR})(?: (?P<after>{_ANY_SHADE}))?(?![\w-])", re.I
)
_CSS = re.compile(r"#\w{1,8}|[a-z]+(?:[ -][a-z]+){0,2}", re.I)


def tint_at(text: str, at: int) -> tuple[int, str]:
    """Where a colour ends that begins here, and its name in English; the beginning itself if there is none."""
    if (found := _TINT.match(text, at)) is not None:
        shade = (found["before"] or found["after"] or "").lower()
        english = f"{_SHADE[shade]} {_COLOURS[found['base'].lower()]}" if shade else _COLOURS[found["base"].lower()]
        if colour_of(english):
            return found.end(), english
    words = _CSS.match(text, at)
    while words is not None and words[0]:
        if colour_of(words[0]) and not re.match(r"\w", text[words.end() :]):
            return words.end(), words[0]
        cut = re.search(r"[ -][a-z]+\Z", words[0], re.I)
        words = _CSS.match(text, at, at + cut.start()) if cut else None
    return at, ""


_ALTERNATIVE = re.compile(r"(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[[^\]]*\]|\\.|[^|()])+")
"""Each alternative of a line is tried by itself, so that the longest is found."""


class Vocabulary:
    """The words of one language by their roles."""

    def __init__(self, table: str) -> None:
        lines = [line.split(" = ", 1) for line in table.splitlines() if " = " in line]
        self.told, self.news = (word_set(" ".join(words for role, words in lines if role == one)) for one in _NEWS)
        self.roles = [
            (role, re.compile(rf"(?:{words.replace(_MARK, MARK)})(?:(?<=')|(?<=\W)|(?!-?\w))", re.I))
            for role, alternatives in lines
            if role not in _NEWS
            for words in _ALTERNATIVE.findall(alternatives)
        ]

    def role_at(self, text: str, at: int) -> tuple[int, str]:
        """Where the longest word or phrase that begins here ends, and its role; the beginning and "" without one."""
        found = [(match.end(), role) for role, words in self.roles if (match := words.match(text, at)) and match[0]]
        return max(found, key=lambda one: one[0], default=(at, ""))


_NEWS = ("TOLD", "NEWS")
_FILE = files("webordinary.adapters.agents.builtin") / "words.txt"
_COMMON, _BINDING, *_TABLES = re.split(r"^\[\w+\]\n", _FILE.read_text("utf-8"), flags=re.M)[1:]
_NO_STOP = word_set(
    "from please also plus after add change remove delete replace bitte next first mais non ma ne maar erst"
)
STOP = (MEANINGFUL - _NO_STOP) | word_set(_BINDING)
"""Words that bind a wish or take it back: never part of a name or of what a photo shows."""
LANGUAGES = [Vocabulary(_COMMON + table) for table in _TABLES]
"""English, German, French, Spanish, Italian, Dutch, as small talk has them."""
