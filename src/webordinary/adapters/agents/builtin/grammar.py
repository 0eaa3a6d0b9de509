"""The grammar of wishes: each word of a sentence has one role, and the set of roles says what is wished.

A sentence is understood only if each of its words has a role in one frame. Text in quotation marks is taken as it is;
text without them only if it cannot be prose, see `is_plain`.
"""

from __future__ import annotations

# ruff: noqa: RUF001  dashes of all kinds
import re
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field, replace

from webordinary.adapters.agents.builtin.colours import colour_of
from webordinary.adapters.agents.builtin.told import MONEY, is_news, only_tells, read_fact, without_news
from webordinary.adapters.agents.builtin.words import LANGUAGES, NUMERALS, STOP, Vocabulary, tint_at
from webordinary.mail.parsing.commands import publishes_or_undoes
from webordinary.mail.parsing.small_talk import MARK, Clause, Quotations, clauses_of, word_set

EXAMPLES = (
    "change the homepage title to Spring Sale",
    "set the heading on the homepage to “Who we are”",
    "change “open on Mondays” to “open every day”",
    "add this photo to the homepage (and attach it)",
    "replace the photo on the homepage (and attach the new one)",
    "add a paragraph “We are closed in May.” to the homepage",
    "remove the paragraph “We are closed in May.”",
    "change the background colour to white",
)
_MOST_WISHES, _LONGEST_CLAUSE, _LONGEST_PLAIN, _LONGEST_SHAPE = 8, 500, 5, 8
_SMALL_WORDS = word_set("we are of the our your my is for in and with from & a an at")
_PROSE = word_set(
    "above again also any anything april arial as asap august back be because below better bigger bit black bold "
    "bolder both brighter but by capital capitals caps case central centre centred cheaper cheers choice color colour "
    "comic darker december deleted different dutch each else english everything except february fewer first font "
    "french friday friendlier georgia german gone heading helvetica hidden if instead into it italian italic italics "
    "its january july june larger later least less letters lighter like longer lowercase march may maybe monday most "
    "next nicer not november october once ones option or perhaps photo plan please possible regards removed roboto "
    "same sans saturday say says see sentence september shorter should simpler smaller smth so some someone something "
    "soon spanish still such suggested suggestion sunday tbc tbd text than thanks that their them then there these "
    "they thing those thursday title today tomorrow tonight too tuesday underlined unless until uppercase urgent "
    "usual various verdana version wednesday weeks what whatever when which while whole without years yes yesterday"
)
"""Words that make text without quotation marks look like a description of the text, also with a capital."""
_AMOUNT = re.compile(
    r"[+€$£]? ?\d[\d.,:/ -]*(?:€|%| ?(?:euros?|eur|pounds?|dollars?|pm|am|cm|mm|km|kg|g|ml|l|%))?", re.I
)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w|https?://\S+", re.I)
_VALUE = re.compile(
    rf"(?<![\w.+-])(?:{MONEY.pattern}"
    r"|[\w.+-]+@[\w-]+\.[\w.-]*\w|[+(]?\d[\d ()/-]{6,}\d)(?![\w-])"
)


def is_plain(text: str) -> bool:
    """Whether text without quotation marks is surely the text itself: an amount, or a name in capitals.

    `Spring Sale`, `Who we are` and `30 euros` are; `something nicer`, `Spring Sale next Monday` and `Red` are not.
    """
    words = text.split()
    if _AMOUNT.fullmatch(text):
        return True
    if not 0 < len(words) <= _LONGEST_PLAIN or not re.fullmatch(r"[^\W\d_][\w'& ]*", text) or colour_of(text):
        return False
    small = {word for word in words if not word[0].isupper() and not word[0].isdigit()}
    prose = any(word.lower() in _PROSE for word in words)
    return not prose and small <= _SMALL_WORDS and words[0] not in small and words[-1] not in small - {"are", "is"}


def _same_shape(old: str, new: str) -> bool:
    """Whether two texts differ in numbers only, or are addresses; other words may describe the old text."""
    if _ADDRESS.fullmatch(old) and _ADDRESS.fullmatch(new):
        return True
    return re.sub(r"\d+", "0", old) == re.sub(r"\d+", "0", new) and any(map(str.isdigit, old))


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing to do. `page` is a file name, empty where the wish names none; `pick` chooses among several places."""

    kind: str
    said: str
    slots: Mapping[str, str]
    page: str = ""
    everywhere: bool = False
    region: str = ""
    """`footer`, `header` or `menu`, if the text is to be looked for there alone."""
    pick: int = 0
    doubt: bool = False
    """Whether its new text may be prose: its customer is asked."""

    def get(self, name: str) -> str:
        """The text of a slot, or nothing."""
        return self.slots.get(name, "")

    @property
    def target(self) -> str:
        """What it gives one value to; two wishes of a mail with the same target contradict each other."""
        if self.kind not in ("title", "heading", "colour"):
            return self.said
        return f"{self.kind} {self.page} {self.get('old')} {self.get('part')}"


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """The part of a mail that has no reading."""

    said: str


@dataclass(frozen=True, slots=True)
class Token:
    """One word or several with one role: `is_` the role, `text` a quotation, a name, or the word itself."""

    role: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Roles:
    """The parts of a sentence by their roles, and its literal texts in order, each with the role that stands before."""

    roles: set[str] = field(default_factory=set)
    texts: list[tuple[str, str, bool]] = field(default_factory=list)
    """Role, text, and whether it is in quotation marks or as exact."""
    slots: dict[str, str] = field(default_factory=dict)
    photos: list[set[str]] = field(default_factory=list)
    """The photos that are mentioned, each with the roles of its words."""
    pages: set[str] = field(default_factory=set)
    doubt: bool = False

    def only(self, *roles: str) -> bool:
        """Whether no word has a role other than these and those of any sentence."""
        return self.roles <= _EVERYWHERE_ALLOWED.union(*(one.split() for one in roles))


_EVERYWHERE_ALLOWED = word_set("PLEASE REQUEST PAGE SITE IN COMMA HOMEWORD MAY COLON A MAIN")
_DO = word_set("CHANGE RAISE MAKE PUT ADD")
_EDIT = (
    "CHANGE RAISE MAKE PUT ADD SHOULD BE BECOME WRONG CHANGED NEW OLD WAS INSTEAD SAYS AS IT OLDER NEWER EVERYWHERE "
    "REGION"
)
_TEXTS = "LITERAL SENTENCE NOUN PARAGRAPH ITEM LIST BUTTON LINK SECTION NAME"
_ABOUT_PHOTOS = word_set("PHOTO PHOTOS ATTACHED ATTACHEDS ONE OLDER NEWER NEWIT IT")
_FLEXIBLE = {"TO": "NEW", "WITH": "NEW", "FROM": "OLD"}
"""What a preposition means before a text; else it leads to a place."""
_PASSED = word_set("SENTENCE NOUN PARAGRAPH NEWER BE COLON PLEASE")
_PLACES = word_set("IN FROM TO OFF")
SAME = "="
"""In place of a page: the page of the wish before."""
_HOME = (
    r"home ?page|home-page|(?:home|index|front|main|landing|start|welcome) page|start-?seite|haupt-?seite|home-?pagina"
    r"|page d'accueil|página (?:de inicio|principal)|pagina (?:iniziale|principale)|start-?pagina"
    r"|index\.(?:html?|md|astro)"
)
_KIND, _END_OF_PAGE = r"(?:page|seite|página|pagina)", r"(?:'s|s)?(?: only)?(?!-?\w)"
_KNOWN_PAGE = re.compile(rf"(?:(?P<home>{_HOME})|(?P<same>same page)){_END_OF_PAGE}", re.I)
_PAGE_AFTER = re.compile(rf"(?:'s)?[ -]?{_KIND}{_END_OF_PAGE}", re.I)
_PAGE_END = re.compile(_END_OF_PAGE, re.I)
_OF_IT, _THE = r"(?:of|called|des?|du|de l'|de la|del|de los|dei|della|dell'|von|der|van) ", r"(?:the|l'|la) ?"
_PAGE_CALLED = [re.compile(f"{_KIND} {lead}", re.I) for lead in (_OF_IT + _THE, _OF_IT, _THE, "")]
_ALIKE_PAGE = re.compile(
    rf"(?:{_KIND} (?:{_OF_IT})?(?:{_THE})?(?P<alike>[\w-]{{3,30}})|(?P<compound>[\w-]{{3,30}}?)-?(?:seite|pagina))"
    rf"{_END_OF_PAGE}",
    re.I,
)
_NAMES_A_PAGE = re.compile(
    r"\b(?:on|to|of|in|from) (?:the|our|my) ((?:(?! (?:on|to|of|in|from) )[\w' -]){1,30}?) page\b"
    r"|\b(?:auf|in|von) der (?!start|home|haupt|web)([\w-]{3,30}?)-?seite\b",
    re.I,
)
_STARTS = re.compile(
    rf"(?:(?:please|also|and|then|can|could|i|we|on|the|title|heading|bitte|merci|por favor) )*(?:change|set|update"
    rf"|make|rename|replace|swap|switch|correct|add|put|insert|remove|delete|take)\b|[\w ]{{1,30}}:|{MARK}|on ",
    re.I,
)
"""A line that begins so is a wish of its own, also in small letters."""
_DOTTED = re.compile(r"\b(?:a\.u\.b|s\.v\.p|s\.t\.p|p\.f)\.", re.I)
_GOES_ON = re.compile(
    r"(?:[.?]\)?|\s[-–—])\s+(?=(?:it|this|that) (?:should|must|needs to|ought to|has to)\b"
    rf"|(?:please,? )?(?:change|correct|update|make|let) (?:it|this|that)(?: to)?(?: be| say| read)? {MARK})",
    re.I,
)
"""`It says “…”. It should say “…”`, as one sentence."""
_NEW_BELOW = re.compile(rf"(?<={MARK})\.?\s+(?=new(?: text| version| wording)?\s*:)", re.I)
"""`Old: “…”`, and `New: “…”` after it."""
_QUOTE_BELOW = re.compile(rf"(?<=[\w:])[ \t]*\n\s*(?={MARK}\.?[ \t]*(?:\n|\Z))")
"""`Add this paragraph:`, and the quotation on a line of its own …"""
_BELOW_QUOTE = re.compile(rf"(?<={MARK})[ \t]*\n\s*(?=(?:to|by|with|into|on|in|from)\b)")
"""… and `to` on the next one."""


def _joined_to_a_quotation(found: re.Match[str]) -> str:
    before = re.split(r"[.?!]\s|\n", found.string[: found.start()])[-1]
    return ", " if re.search(rf"{MARK}|\b(?:add|new)\b", before) else found[0]


class Grammar:
    """Reads the wishes of a mail about a site with these pages, each under all of its names; the homepage under ""."""

    def __init__(self, pages: Mapping[str, str], words: Container[str] = ()) -> None:
        self._pages = pages
        self._lengths: dict[str, list[int]] = {}
        for length, first in sorted({(len(name), name[0]) for name in pages if name}, reverse=True):
            self._lengths.setdefault(first, []).append(length)

    def read(self, text: str, quotes: Quotations, aside: Collection[str] = ()) -> list[Wish] | Misunderstood:
        """The wishes of a mail in order, without the parts left aside, or its first part that is not understood."""
        wishes: list[Wish] = []
        scope, blocks, opened, told = "", range(0), "", ""
        said = _NEW_BELOW.sub(", ", quotes.set_aside(_DOTTED.sub(lambda word: word[0].replace(".", ""), text)))
        said = _GOES_ON.sub(_joined_to_a_quotation, _BELOW_QUOTE.sub(" ", _QUOTE_BELOW.sub(" ", said)))
        for clause in clauses_of(said, "", _STARTS, name_below=True):
            shown = quotes.shown(clause.text)
            if shown in aside:
                continue
            if len(clause.text) > _LONGEST_CLAUSE:
                return Misunderstood(shown)
            if is_news(clause.text) and not clause.asks:
                told = told or shown
                continue
            text = without_news(self._with_page_names(_normal(clause.text), quotes))
            page, rest = self._introduced(text)
            if page:
                if opened:
                    break
                scope, blocks, opened = page, range(clause.block, clause.block + 2), shown
            if not rest.strip(" ,:"):
                continue
            found = self._readings(rest.strip(), clause.asks, quotes)
            here = scope if clause.block in blocks else ""
            if found is None or not self._takes(wishes, found, shown, here):
                return Misunderstood(shown)
            opened = opened if found[0].kind == "echo" else ""
            blocks = range(clause.block, clause.block + 1) if clause.block in blocks else range(0)
        unread = opened or (told if not wishes else "")
        return Misunderstood(unread) if unread else _joined(wishes)

    @staticmethod
    def _takes(wishes: list[Wish], found: list[Wish], shown: str, here: str) -> bool:
        """Add the wishes of a clause; whether they can stand behind those before it. `here` is their page."""
        first, last = found[0], wishes[-1] if wishes else None
        if "implied" in first.slots and (last is None or last.kind != "note"):
            return False
        if first.kind == "echo":
            if last is not None and last.kind == "value" and (first.page or first.everywhere):
                wishes[-1] = replace(last, page=last.page or first.page, everywhere=first.everywhere)
                return True
            return last is not None and not re.search(r"(?i)\b(?:too|also|as well|again)\b", shown)
        for one in found:
            if one.page == SAME and not (wishes and wishes[-1].page):
                return False
            wishes.append(replace(one, page=wishes[-1].page if one.page == SAME else one.page or here))
        return True

    def page_of(self, said: str) -> str:
        """The page that these words name, also without the word page; empty if they name none."""
        for language in LANGUAGES:
            tokens = self._tokens(_normal(said), language, Quotations())
            pages = {one.text for one in tokens if one.role == "PAGE"}
            if {one.role for one in tokens} <= {"IN", "TO", "FROM", "PAGE", "PLEASE", "ONE"} and len(pages) == 1:
                return pages.pop()
        return self._pages.get(said.lower().removeprefix("the "), "") if said else ""

    def unknown_page(self, said: str) -> str:
        """The page that a wish names and the site does not have."""
        found = _NAMES_A_PAGE.search(said)
        if found is None:
            return ""
        known = self._page_at(found[0], found.start(1 if found[1] else 2) - found.start())
        return "" if known else next(filter(None, found.groups()))

    def _with_page_names(self, text: str, quotes: Quotations) -> str:
        """`the page “About”` as `the page About`, if the site has such a page."""

        def named(found: re.Match[str]) -> str:
            name = quotes.text(found["mark"])
            return name if name.lower() in self._pages else found[0]

        return re.sub(rf"(?i)(?<=page |eite |gina )(?P<mark>{MARK})", named, text)

    def _introduced(self, text: str) -> tuple[str, str]:
        """The page of `On the about page:`, and the clause without it and without `Three changes please:`."""
        intro, colon, rest = text.partition(" :")
        if re.search(MARK, intro) or re.fullmatch(MARK, rest.strip()):
            return "", text
        for language in LANGUAGES:
            tokens = self._tokens(intro, language, Quotations())
            roles = {one.role for one in tokens}
            pages = {one.text for one in tokens if one.role == "PAGE"}
            named = roles & {"TITLE", "HEADING", "BACKGROUND", "COLOUR"}
            place = bool(pages) and roles <= {"PAGE", "IN", "TO", "FROM", "PLEASE"}
            opens = (
                place or bool(colon and not named) or ("NTH" in roles if colon else "CHANGES" in roles and not named)
            )
            if opens and roles <= _INTRODUCES and len(pages) < 2 and (colon or not roles & {"REMOVE", "ADD"}):
                return (pages.pop() if pages else ""), rest
        return "", text

    def _readings(self, text: str, asks: bool, quotes: Quotations) -> list[Wish] | None:
        """The only way to read a sentence as one wish or several; None if there is none."""
        command = publishes_or_undoes(Clause(text, asks))
        if command is not None:
            return [Wish(str(command), text, {})]
        told = re.match(" ?(.+?) [:,] (.+)", text)
        value = only_tells(told[1]) if told else ""
        found = self._readings(told[2], asks, quotes) if told and value else None
        if found and [(one.kind, one.get("new")) for one in found] == [("text", value)]:
            return found
        bare = re.sub(MARK, lambda mark: value if _VALUE.fullmatch(value := quotes.text(mark[0])) else mark[0], text)
        fact = None if asks or re.search(MARK, bare) else self._fact(bare)
        text = _with_exact_texts(text, quotes)
        readings = [self._tokens(text, language, quotes) for language in LANGUAGES]
        names = [sum(one.end - one.start for one in tokens if one.role == "NAME") for tokens in readings]
        for tokens, unknown in zip(readings, names, strict=True):
            if unknown > min(names):
                continue
            if asks and not _is_request(tokens):
                continue
            if (found := self._several(tokens, text, quotes, set())) is not None:
                return found
        return [fact] if fact else None

    def _fact(self, text: str) -> Wish | None:
        """A new value told as a fact, with its page if it names one."""
        page, rest = "", text
        for place in re.finditer(
            r"\b(?:on|at|auf|in|sur|dans|en|nella|sulla|op)(?: (?:the|our|my|der|la|de|het))? ", text
        ):
            found = self._page_at(text, place.end())
            if found is not None and not page:
                page, rest = found.text, text[: place.start()] + text[found.end :]
        told = read_fact(rest)
        if told is None or page == SAME:
            return None
        return Wish("value", text, told, page=page, everywhere="everywhere" in told and not page)

    def _tokens(self, text: str, language: Vocabulary, quotes: Quotations) -> list[Token]:
        """The words of a sentence with their roles in one language; fillers are left out."""
        found: list[Token] = []
        at = 0
        while at < len(text):
            if text[at] == " ":
                at += 1
                continue
            token = self._token(text, at, language, quotes, found)
            at = token.end
            if token.role != ".":
                found.append(token)
        return found

    def _token(self, text: str, at: int, language: Vocabulary, quotes: Quotations, before: list[Token]) -> Token:
        if re.match(MARK, text[at]):
            return Token("LITERAL", text[at], at, at + 1)
        last = before[-1].role if before else ""
        end, role = language.role_at(text, at)
        names = role in _PART_NOUNS and any(one.role == "LITERAL" for one in before)  # `in die Liste` behind a text
        if not names and (new := self._plain(text, at, before)):
            return new
        if (page := self._page_at(text, at)) is not None:
            return page
        if value := _VALUE.match(text, at):
            return Token("LITERAL", quotes.mark(value[0]), at, value.end())
        bare = next((end for end in self._names_at(text, at) if not re.match(r"-?\w", text[end:])), at)
        if last in _PLACES and bare > at and not _OF_A_LIST.match(text, bare):
            return Token("PAGE", self._pages[text[at:bare].lower()], at, bare)
        tinted, colour = tint_at(text, at)
        if colour and tinted >= end:
            return Token("TINT", colour, at, tinted)
        if role:
            return Token(role, text[at:end], at, end)
        word = re.compile(r"[^\s,;:()]+|.").match(text, at)
        assert word is not None
        known = word[0].lower().strip(".!?")
        return Token("STOP" if known in STOP else "NAME" if known else ".", word[0], at, word.end())

    def _plain(self, text: str, at: int, before: list[Token]) -> Token | None:
        """A new text without quotation marks."""
        roles = [one.role for one in before]
        said = set(roles) & {"TITLE", "HEADING", "LITERAL"}
        exact = text[at].isupper() or text[at].isdigit()
        if {"COLOUR", "HEADINGS"} & set(roles) and tint_at(text, at)[1]:
            return None
        if not said or not roles or roles.count("LITERAL") > 1 or "ADD" in roles:
            return None
        marks = roles[-1] in ("NEW", "TO") or (roles[-1] == "BE" and "SHOULD" in roles)
        if not marks or self._page_at(text, at) or re.search(MARK, text[at:]):
            return None
        words = list(re.compile(r"[^\s,;:()]+").finditer(text, at))[:_LONGEST_PLAIN]
        for word in reversed(words if exact else []):
            if is_plain(text[at : word.end()]) and not re.search("[,;:()]", text[at : word.end()]):
                return Token("PLAIN", text[at : word.end()], at, word.end())
        rest = text[at:].strip(" ,.")
        if "LITERAL" in said:
            return None
        if re.fullmatch(r"[\w'&.+@/%€$£-]+(?: [\w'&.+@/%€$£-]+){0,7}", rest) and not re.search(r" and | or ", rest):
            return Token("DOUBT", rest, at, len(text))
        return None

    def _page_at(self, text: str, at: int) -> Token | None:
        if (found := _KNOWN_PAGE.match(text, at)) is not None:
            page = SAME if found["same"] else self._pages.get("", "")
            return Token("PAGE", page, at, found.end()) if page else None
        called = [one.end() for lead in _PAGE_CALLED if (one := lead.match(text, at))]
        places = [(at, end, _PAGE_AFTER) for end in self._names_at(text, at)]
        places += [(start, end, _PAGE_END) for start in called for end in self._names_at(text, start)]
        places += [(at, end, _PAGE_END) for end in self._names_at(text, at) if "." in text[at:end]]
        for start, end, rest in places:
            if (after := rest.match(text, end)) is not None:
                return Token("PAGE", self._pages[text[start:end].lower()], at, after.end())
        found = _ALIKE_PAGE.match(text, at)
        page = self._pages.get(self._compound(found["alike"] or found["compound"]), "") if found else ""
        return Token("PAGE", page, at, found.end()) if found and page else None

    def _names_at(self, text: str, at: int) -> list[int]:
        """Where the names of pages end that begin here, the longest first."""
        lengths = self._lengths.get(text[at : at + 1].lower(), ())
        return [at + length for length in lengths if text[at : at + length].lower() in self._pages]

    def _compound(self, said: str) -> str:
        """`Preisseite` as `preise`, where that is the only page whose name differs by an ending."""
        name = said.rstrip("-").replace("-", " ").lower()
        name = name if name in self._pages else _ALSO_CALLED.get(name, name)
        alike = [one for one in self._pages if one and (one.startswith(name) or name.startswith(one))]
        alike = [one for one in alike if abs(len(one) - len(name)) <= _LONGEST_ENDING]
        return name if name in self._pages or len({self._pages[one] for one in alike}) != 1 else alike[0]

    def _several(
        self, tokens: list[Token], text: str, quotes: Quotations, failed: set[tuple[int, int]], depth: int = 0
    ) -> list[Wish] | None:
        """One wish, or wishes joined by `and` or a comma; the verb holds for those that have none."""
        if not tokens or (key := (len(tokens), tokens[0].start)) in failed:
            return None
        lead = next((n for n, one in enumerate(tokens) if one.role not in _LEADS), 0)
        if tokens[lead].role == "NTH" and lead + 1 < len(tokens) and tokens[lead + 1].role in (*_LEADS, "CHANGE"):
            tokens = tokens[:lead] + tokens[lead + 1 :]
        tokens = [one for n, one in enumerate(tokens) if n >= lead or one.role in ("PLEASE", "REQUEST")]
        said = text[tokens[0].start : tokens[-1].end]
        if (command := publishes_or_undoes(Clause(said))) is not None:
            return [Wish(str(command), said, {})]
        whole = _single([one for one in tokens if one.role != "COMMA"], text, quotes)
        if whole is not None and (not whole.doubt or depth >= _MOST_WISHES):
            return [whole]
        verbs = [one for one in tokens if one.role in ("CHANGE", "REMOVE", "ADD")]
        place = tokens[:2] if len(tokens) > 1 and tokens[0].role in _PLACES and tokens[1].role == "PAGE" else []
        for at in [n for n, one in enumerate(tokens) if one.role in ("AND", "COMMA")] if depth < _MOST_WISHES else []:
            left, right = tokens[:at], tokens[at + 1 :]
            if right and right[0].role == "AND":
                right = right[1:]
            if not left or not right:
                continue
            if not any(one.role in _VERBS or one.role == "HERE" for one in left):
                left = [*verbs[:1], *left]
            first = _single([one for one in left if one.role != "COMMA"], text, quotes)
            if first is None or first.doubt:
                continue
            rest = self._several(right, text, quotes, failed, depth + 1)
            if rest is None and not any(one.role in _VERBS for one in right):
                rest = self._several([one for one in verbs if one in left][:1] + right, text, quotes, failed, depth + 1)
            if rest is not None:
                page = first.page if place else ""
                return [first, *(_on_page_of(first, one, page) for one in rest)]
        failed.add(key)
        return [whole] if whole is not None else None


_LEADS = word_set("AND COMMA PLEASE REQUEST")
_PART_NOUNS = word_set("LIST ITEM PARAGRAPH PHOTO TITLE HEADING SECTION SENTENCE NOUN REGION BACKGROUND SITE")
_VERBS = _DO | word_set("REMOVE TAKE SHOULD BECOME ADDIT GONE")
_LONGEST_ENDING = 2
_ALSO_CALLED = {
    "kontakt": "contact", "contacto": "contact", "contatti": "contact", "contatto": "contact", "über uns": "about",
    "à propos": "about", "sobre nosotros": "about", "chi siamo": "about", "over ons": "about",
}  # fmt: skip
_OF_A_LIST = re.compile(r" (?:list|liste|lista|lijst|section|photo|picture|heading)\b", re.I)
_INTRODUCES = word_set(
    "CHANGES PAGE IN TO FROM WITH PLEASE REQUEST CHANGE ECHO NTH HEADING NOUN SENTENCE MAKE ADD NEWER COMMA IT SITE A "
    "HERE PUT"
)


def _normal(text: str) -> str:
    """Words with one blank between them and punctuation apart."""
    said = re.sub(rf"\s*(,(?=\s|$|{MARK})|:(?=\s|$|{MARK})|->|=>|→)\s*", r" \1 ", text.replace("\u2019", "'"))
    said = re.sub(r"(?<=\w)'s(?= (?:page|title|heading|headline|price|photo)\b)", "", said)
    return " ".join(re.sub("[¿¡]", " ", said).split()).strip(" ,")


_TO_WORDS = re.compile(r" (?:to|with|by|auf|in|durch|zu|en|par|por|a|con|door|naar|->|=>|→) ", re.I)


def _with_exact_texts(text: str, quotes: Quotations) -> str:
    """`7 River Lane to 9 River Lane`: texts that differ in their numbers only need no quotation marks."""
    best: tuple[int, int, int, int] | None = None
    for to in _TO_WORDS.finditer(text):
        before, after = text[: to.start()].split(" "), text[to.end() :].split(" ")
        for count in range(min(len(before), len(after), _LONGEST_SHAPE), 0, -1):
            old, new = " ".join(before[-count:]), " ".join(after[:count]).rstrip(".!?,")
            if re.search(rf"{MARK}|,(?!\d)", old + new) or not _same_shape(old, new) or old == new:
                continue
            if best is None or count > best[0]:
                best = (count, to.start() - len(old), to.end(), to.end() + len(new))
            break
    if best is None:
        return text
    _, start, middle, end = best
    joint = text[start:middle].split(" ")
    old = " ".join(joint[: best[0]])
    rest = _with_exact_texts(text[end:], quotes)
    return f"{text[:start]}{quotes.mark(old)} {' '.join(joint[best[0] :])}{quotes.mark(text[middle:end])}{rest}"


def _is_request(tokens: list[Token]) -> bool:
    """Whether a sentence with a question mark asks for what it says."""
    roles = [one.role for one in tokens]
    if "REQUEST" in roles[:4] or "PLEASE" in roles or set(roles) <= {"CHANGE", "ECHO", "IT"}:
        return True
    return roles[:1] == ["MAY"] and any(one.text.lower() in ("become", "say", "read") for one in tokens)


class _Reader:
    """Gives each word of one wish its part; `role` is that of the next text."""

    def __init__(self, tokens: list[Token], text: str, quotes: Quotations) -> None:
        self._tokens, self._text, self._quotes = _with_places(tokens), text, quotes
        self._at, self._role, self._parts = 0, "", Roles()

    def read(self) -> Roles | None:
        """The parts of all words; None if a word has none."""
        while self._at < len(self._tokens):
            one, after = self._tokens[self._at], self._role_at(self._at + 1)
            if one.role in ("STOP", "AND") or (one.role == "INSTEAD" and after in _VERBS):
                return None
            self._at += 1
            named = one.role == "NAME" or (one.role in ("TINT", "NEWER", "OLDER") and after == "NAME")
            named = named or (one.role == "NOUN" and after == "LIST" and "ADD" in self._parts.roles)
            self._parts.roles.add(one.role)
            if one.role in _TEXT:
                self._literal(one, after)
            elif named and (one.role in ("NAME", "NOUN") or self._role != "new"):
                if not self._name(one):
                    return None
            elif one.role in _ABOUT_PHOTOS - {"IT"} and _mentions_photo(self._tokens[self._at - 1 : self._at + 3]):
                self._photo(one)
            elif not self._other(one, after):
                return None
        return self._parts

    def _role_at(self, at: int) -> str:
        return self._tokens[at].role if 0 <= at < len(self._tokens) else ""

    def _literal(self, one: Token, after: str) -> None:
        """A text: the old one, the new one, or the name of a list, a section or a row."""
        words = self._quotes.text(one.text) if one.role == "LITERAL" else one.text
        before, parts = self._role_at(self._at - 2), self._parts
        parts.doubt |= one.role == "DOUBT"
        more = [later.role for later in self._tokens[self._at :]].count("LITERAL")
        slot = "old" if self._role == "begins" else self._role if self._role == "under" else ""
        if after == "SECTION":
            slot = "under"
        elif (before == "LIST" and self._role != "new") or (self._role == "begins" and "LIST" in parts.roles):
            slot = "name"
        elif before == "IN" and self._role_at(self._at - 3) == "NOUN" and more > 1:
            slot = "near"
        if slot:
            parts.slots[slot] = words
        else:
            parts.texts.append((self._role, words, one.role == "LITERAL"))
        self._role = ""

    def _name(self, one: Token) -> bool:
        """Words without quotation marks that name something; whether it is clear what."""
        parts, tokens, first = self._parts, self._tokens, self._at - 1
        while self._role_at(self._at) in ("NAME", "TINT") or (
            "SHOWS" in parts.roles and self._role_at(self._at) == "IN" and self._role_at(self._at + 1) == "NAME"
        ):
            self._at += 1
        name = self._text[tokens[first].start : tokens[self._at - 1].end].strip(" .")
        parts.roles = (parts.roles - {one.role}) | {"NAME"}
        after = self._role_at(self._at)
        slot = _slot_of_name(tokens[:first], self._role, after)
        of_photo = parts.photos or "SHOWS" in parts.roles or _mentions_photo(tokens[self._at :])
        if slot in parts.slots or not slot or (slot == "subject" and not of_photo):
            return False
        if slot == "subject" and after in ("PHOTO", "PHOTOS") and "HERE" in parts.roles:
            return True  # `here is a better photo`
        begin = tokens[first - 1].end if first else 0
        if slot == "subject" and re.search("[,:;]", self._text[begin : tokens[self._at - 1].end]):
            return False
        parts.slots[slot] = self._text[begin : tokens[self._at - 1].end].strip(" .") if slot == "subject" else name
        parts.slots |= {"heading": name} if slot == "under" else {}
        self._role = "" if self._role == "under" else self._role
        return True

    def _photo(self, one: Token) -> None:
        """All words about one photo: `the new photo that I attached`."""
        words = {one.role} | ({"A"} if self._role_at(self._at - 2) == "A" else set())
        count = _COUNTS.get(one.text.lower().split()[-1], "")
        while one.role != "NEWIT" and self._role_at(self._at) in _ABOUT_PHOTOS - {"NEWIT"}:
            words.add(self._role_at(self._at))
            self._at += 1
        self._parts.roles |= words - {"A"}
        self._parts.photos.append(words | {count})
        self._role = ""

    def _other(self, one: Token, after: str) -> bool:
        """A page, a place, or a word that says what the next text is; whether it may stand here."""
        parts, before = self._parts, self._tokens[: self._at - 1]
        if one.role == "PAGE":
            parts.pages.add(one.text)
        elif one.role in ("REGION", "EVERYWHERE", "NTH", "END", "TOP", "TINT"):
            if one.role.lower() in parts.slots and one.role != "EVERYWHERE":
                return False
            parts.slots[one.role.lower()] = NUMERALS.get(one.text.lower(), one.text.lower())
        elif one.role in _MARKERS:
            self._role = _MARKERS[one.role]
        elif one.role == "MAY":
            goes = {"GONE", "REMOVE"} & {later.role for later in self._tokens[self._at :]}
            return bool(goes) or all(other.role in _LEADS for other in before)
        elif one.role == "HAS_TEXT":
            self._role = "new" if parts.texts else ""
        elif one.role == "BE" and self._role not in ("should", "new"):
            self._role = "should" if "MAY" in parts.roles else "says"
        elif one.role == "COLON":
            marks = "".join({"OLDER": "old", "NEWER": "new"}.get(other.role, "") for other in before[-2:])
            heads = parts.roles & {"TITLE", "HEADING", "COLOUR", "BACKGROUND"} and not parts.texts
            self._role = marks or ("new" if heads else self._role if self._role in ("should", "new", "under") else "")
        elif one.role == "HEADING" and re.match("(?i)main|big", one.text):
            parts.roles.add("MAIN")
        elif one.role == "A" and after in ("HEADING", "TITLE", "NEWER"):
            parts.slots["indefinite"] = "yes"
        return True


_COUNTS = dict.fromkeys(word_set("two zwei beiden deux dos due twee"), "2")
_COUNTS |= dict.fromkeys(word_set("three drei trois tres tre drie"), "3")
_TEXT = word_set("LITERAL PLAIN DOUBT")
_MARKERS = {
    "NEW": "new", "AS": "new", "OLD": "old", "WAS": "was", "INSTEAD": "old", "SAYS": "old", "UNDER": "under",
    "BEGINS": "begins", "SHOULD": "should", "BECOME": "should",
}  # fmt: skip
_OF = word_set("of showing von vom des de du d' del della dello dell' di da van")


def _mentions_photo(tokens: list[Token]) -> bool:
    for one in tokens:
        if one.role in ("PHOTO", "PHOTOS", "ONE", "NEWIT", "ATTACHED"):
            return True
        if one.role not in _ABOUT_PHOTOS:
            return False
    return False


def _with_places(tokens: list[Token]) -> list[Token]:
    """Each preposition with the role that it has before what follows it."""
    found = []
    for n, one in enumerate(tokens):
        role = one.role
        if role in _FLEXIBLE:
            rest = [later for later in tokens[n + 1 :] if later.role not in _PASSED]
            texts = bool(rest) and rest[0].role in ("LITERAL", "TINT", "PLAIN", "DOUBT")
            texts = texts and not (len(rest) > 1 and rest[1].role == "SECTION")
            photo = role != "FROM" and _mentions_photo(rest[:3])
            role = _FLEXIBLE[role] if texts or photo else "IN"
            if one.role == "WITH" and any(other.role == "RAISE" for other in tokens):
                role = "STOP"
        found.append(replace(one, role=role))
    return found


def _slot_of_name(before: list[Token], role: str, after: str) -> str:
    """What a name without quotation marks is the name of."""
    roles = [one.role for one in before if one.role not in ("A", "NEWER", "PLEASE")]
    last = roles[-1] if roles else ""
    place = last in ("IN", "FROM", "OLD", "UNDER")
    owner = next((one for one in reversed(roles[:-1]) if one != "A"), "") if place else last
    if after == "SECTION":
        return "under"
    if after == "LIST" or (owner == "LIST" and role != "new"):
        return "name"
    if role == "under":
        return "under"
    if after == "HEADING" or last == "HEADING":
        return "heading"
    of = not place or before[-1].text.lower() in _OF
    if after in ("PHOTO", "PHOTOS") or owner == "SHOWS" or (of and place and owner in _ABOUT_PHOTOS):
        return "subject"
    if owner == "NOUN":
        return "near"
    if place and owner == "LITERAL":
        return "section"
    if last in ("CHANGE", "RAISE", "PUT", "REMOVE", "TAKE", "NOUN", "SHOWS"):
        return "about"
    return "about" if not last and after in ("SHOULD", "BE", "OLD", "NOUN", "LITERAL", "IN") else ""


def _single(tokens: list[Token], text: str, quotes: Quotations) -> Wish | None:
    """The one wish that these words are."""
    if not tokens or not any(one.role in ("LITERAL", "PAGE") or one.role for one in tokens):
        return None
    parts = _Reader(tokens, text, quotes).read()
    if parts is None or len(parts.pages) > 1:
        return None
    found = [wish for frame in _FRAMES if (wish := frame(parts)) is not None]
    if len({(one.kind, *sorted(one.slots.items())) for one in found}) != 1:
        return None
    wish, slots = found[0], parts.slots
    if ("everywhere" in slots or "region" in slots) and wish.kind not in ("text", "remove", "colour", "echo"):
        return None
    said = quotes.shown(text[min(one.start for one in tokens) : max(one.end for one in tokens)])
    region = slots.get("region", "") if wish.kind != "colour" else ""
    page = next(iter(parts.pages), "")
    return replace(wish, said=said, page=page, everywhere="everywhere" in slots, region=region, doubt=parts.doubt)


def _old_and_new(parts: Roles) -> tuple[str, str] | None:
    """Which of the texts is the old one and which the new one; "" for one that is not there."""
    roles, texts = tuple(role for role, _, _ in parts.texts), [text for _, text, _ in parts.texts]
    does = parts.roles & _DO
    if len(texts) == 2:
        first, second = roles
        forward = (
            (second in ("new", "should") and first in ("", "says", "old", "should") and roles != ("should", "should"))
            or (first == "old" and second == "" and (does or parts.roles & {"PLEASE", "SHOULD"}))
            or (first == "says" and second == "" and parts.roles & {"PUT", "MAKE"})
            or (roles == ("", "says") and "WRONG" in parts.roles)
            or (
                roles == ("", "")
                and "MAKE" in parts.roles
                and parts.roles <= {"MAKE", "LITERAL", "PLEASE", "PAGE", "IN"}
            )
        )
        backward = (
            (first in ("new", "should") and second in ("old", "was"))
            or ((first in ("", "says") and second == "was") or (first == "new" and second == "says"))
            or (roles == ("", "old") and parts.roles & {"PUT", "MAKE", "ADD"})
        )
        if bool(forward) == bool(backward):
            return None
        return (texts[0], texts[1]) if forward else (texts[1], texts[0])
    if len(texts) == 1:
        makes = "MAKE" in parts.roles or (parts.roles & {"PUT", "CHANGE"} and "AS" in parts.roles)
        if roles[0] in ("new", "should") or (makes and roles[0] in ("", "says")):
            return "", texts[0]
    return None


def _replaces(parts: Roles) -> Wish | None:
    """An old text and a new one, wherever it stands."""
    if parts.photos or not parts.only(_EDIT, _TEXTS, "PLAIN DOUBT HEADING NTH SECTION HAS_TEXT BEGINS"):
        return None
    pair = _old_and_new(parts)
    names = dict(parts.slots)
    for key in ("region", "everywhere", "indefinite"):
        names.pop(key, None)
    if pair is None or not pair[1]:
        return None
    old, new = pair
    if "CHANGED" in parts.roles and not parts.roles & {"SHOULD", "MAKE", "MAY", "REQUEST", "BECOME"}:
        return None
    about = {key: names.pop(key) for key in ("near", "about", "section") if key in names}
    if old and about.get("about") and word_set(about["about"].lower()) <= word_set(re.sub(r"\W+", " ", old.lower())):
        about.pop("about")
    if "HEADING" in parts.roles:
        head = names.pop("heading", "")
        names.pop("nth", "") if old else None
        if names or about or (head and old and head != old) or "indefinite" in parts.slots:
            return None
        if not old and not head and "ADD" in parts.roles:
            return None
        return Wish("heading", "", {"new": new} | ({"old": old or head} if old or head else {}))
    if not old and not names and about and MONEY.fullmatch(new) and parts.texts[0][0] in ("new", "should"):
        return Wish("value", "", {"new": new, "near": about.get("near") or about.get("about", "")})
    if old and not names and not parts.doubt:
        return Wish("text", "", {"old": old, "new": new} | about)
    kind = "item" if "ITEM" in parts.roles else "paragraph" if "PARAGRAPH" in parts.roles else ""
    if kind and not about and names.keys() in ({"old"}, {"nth"}) and not old:
        return Wish("block", "", {"new": new, "kind": kind} | names)
    return None


def _titles(parts: Roles) -> Wish | None:
    """The title of a page."""
    if parts.photos or not parts.only(_EDIT, "LITERAL PLAIN DOUBT TITLE SENTENCE") or "TITLE" not in parts.roles:
        return None
    pair = _old_and_new(parts)
    if pair is None or not pair[1] or parts.slots.keys() - {"indefinite"}:
        return None
    if parts.roles & {"CHANGED"} and not parts.roles & {"SHOULD", "MAKE", "MAY", "REQUEST", "BECOME"}:
        return None
    return Wish("title", "", {"new": pair[1]} | ({"old": pair[0]} if pair[0] else {}))


def _removes(parts: Roles) -> Wish | None:
    """A text that goes."""
    roles = parts.roles
    goes = "REMOVE" in roles or ("TAKE" in roles and roles & {"OFF", "IN"}) or "GONE" in roles
    if not goes or parts.photos or roles & _DO - {"MAKE"}:
        return None
    if not parts.only(
        _TEXTS, "REMOVE TAKE OFF GONE SHOULD MAKE BE IT REGION HEADING NTH BEGINS OLDER WRONG NEEDLESS FROM"
    ):
        return None
    if "GONE" in roles and not roles & {"SHOULD", "MAY", "MAKE", "REMOVE"}:
        return None
    slots = {key: value for key, value in parts.slots.items() if key in ("nth", "old", "name", "under", "section")}
    kind = next((one.lower() for one in ("ITEM", "PARAGRAPH", "HEADING", "SENTENCE") if one in roles), "")
    slots |= {"kind": kind} if kind else {}
    about = parts.slots.get("about", parts.slots.get("heading", ""))
    if parts.slots.keys() - slots.keys() - {"about", "heading", "region"}:
        return None
    if len(parts.texts) == 1 and parts.texts[0][0] in ("", "says") and "old" not in slots and "nth" not in slots:
        text = parts.texts[0][1]
        if about and not word_set(about.lower()) <= word_set(re.sub(r"[^\w']+", " ", text.lower())):
            return None
        slots["text"] = text
    elif not parts.texts and about and "LIST" in roles and not slots.keys() & {"old", "nth"}:
        slots["label"] = about
    elif parts.texts or about or not slots.keys() & {"old", "nth"}:
        return None
    return Wish("remove", "", slots | ({"list": "list"} if "LIST" in roles else {}))


def _adds(parts: Roles) -> Wish | None:
    """A paragraph or an item that is new."""
    roles = parts.roles
    adds = roles & {"ADD", "PUT"} or ("TAKE" in roles and "UP" in roles)
    adds = (
        adds
        or ("NEWER" in roles and not roles & _DO)
        or ("MAKE" in roles and roles & {"PARAGRAPH", "ITEM", "LIST", "TOP"})
    )
    if not adds or parts.photos or roles & {"CHANGE", "REMOVE", "INSTEAD", "OLD"} or len(parts.texts) != 1:
        return None
    if not parts.only(
        _TEXTS, "ADD PUT MAKE TAKE UP BE NEW AS HAS_TEXT BEGINS UNDER END TOP NTH NEWER SHOULD HEADING IT NOUN OFF"
    ):
        return None
    if not parts.texts[0][2] or roles & {"OFF"} - {"OFF" if "ADD" in roles else ""}:
        return None
    named = {key: value for key, value in parts.slots.items() if key not in ("about", "indefinite", "near")}
    if "top" in named and "LIST" in roles:
        return None
    about = parts.slots.get("about", "")
    if about or parts.slots.keys() & {"near", "section"} or ("heading" in named and "under" not in named):
        return None
    kind = next((one.lower() for one in ("ITEM", "PARAGRAPH", "SENTENCE") if one in roles), "")
    if "HEADING" in roles and "UNDER" not in roles:
        return None
    if "nth" in named and "UNDER" not in roles:
        return None
    slots = {"text": parts.texts[0][1]} | named | ({"kind": kind} if kind else {})
    return Wish("add", "", slots | ({"list": "list"} if "LIST" in roles else {}))


_PHOTO_ROLES = "PHOTO PHOTOS ATTACHED ATTACHEDS ONE OLDER NEWER NEWIT IT SUBJECT NAME LITERAL"


def _photos(parts: Roles) -> Wish | None:
    """The photos of the mail, or one of the site."""
    roles, photos = parts.roles, parts.photos
    slots = {key: value for key, value in parts.slots.items() if key != "indefinite"}
    subject = slots.pop("subject", "")
    if roles & {"TITLE", "COLOUR", "TINT", "PARAGRAPH", "SENTENCE", "ITEM"}:
        return None
    if "SHOWS" in roles and not roles & (_DO | {"REMOVE", "TAKE"}):
        told = parts.texts[0][1] if len(parts.texts) == 1 else slots.pop("about", subject)
        kind = "alt" if photos and parts.texts else "shows"
        return Wish(kind, "", {"text": told, "shown": told}) if told and not slots else None
    if parts.texts:
        if len(parts.texts) > 1 or subject or parts.texts[0][0] not in ("", "old"):
            return None
        subject = parts.texts[0][1]
    if slots.keys() & {"about", "near", "section"}:
        return None
    if "INSTEAD" in roles or roles & {"CHANGE", "REMOVE", "TAKE"}:
        return None if slots else _changes_photo(parts, {"subject": subject} if subject else {})
    many = "many" if any(one & {"PHOTOS", "ATTACHEDS"} for one in photos) else "one"
    many = next((count for one in photos for count in one & {"2", "3"}), many)
    return _adds_photo(parts, {"photos": many} | ({"alt": subject} if subject else {}) | slots)


_BROUGHT = word_set("ATTACHED ATTACHEDS NEWER NEWIT")


def _changes_photo(parts: Roles, wanted: dict[str, str]) -> Wish | None:
    """A photo of the site that goes, or gives its place to the one of the mail."""
    roles, new = parts.roles, [one for one in parts.photos if one & _BROUGHT]
    if len(parts.photos) - len(new) != 1 or len(new) > 1:
        return None
    if roles & {"REMOVE", "TAKE"}:
        return Wish("unphoto", "", wanted) if not new and parts.only(_PHOTO_ROLES, "REMOVE TAKE OFF FROM") else None
    if "INSTEAD" in roles and not new and "IT" not in roles:
        return None
    fits = parts.only(_PHOTO_ROLES, "CHANGE MAKE PUT ADD INSTEAD NEW SHOULD CHANGED WITH REQUEST FROM")
    return Wish("swap", "", wanted) if fits else None


def _adds_photo(parts: Roles, slots: dict[str, str]) -> Wish | None:
    """The photos of the mail and where they go, or that they are there."""
    roles, photos = parts.roles, parts.photos
    new = any(one & _BROUGHT for one in photos)
    if not roles & (_DO | {"ADDIT", "SHOULD"}):
        note = photos and roles & {"HERE", "ATTACHED"} and parts.only(_PHOTO_ROLES, "HERE A BE WHEN")
        return Wish("note", "", slots) if note and slots.keys() <= {"photos", "alt"} else None
    if "LIST" in roles or len(photos) > 1 or ("heading" in slots and "under" not in slots):
        return None
    if not parts.only(_PHOTO_ROLES, "ADD PUT MAKE ADDIT SHOULD GONE BE UNDER END TOP NTH HEADING SECTION HERE NEW"):
        return None
    if not photos and not roles & {"IT", "ADDIT"}:
        implied = "ADD" in roles and slots.keys() == {"photos"} and not parts.texts
        return Wish("photo", "", {"implied": "yes"}) if implied else None
    if ("MAKE" in roles and not new and "IT" not in roles) or (photos and "A" in photos[0] and not new):
        return None
    return Wish("photo", "", slots)


_PARTS_WITH_COLOUR = {
    "BACKGROUND": "background", "HEADINGS": "headings", "HEADING": "heading", "LINK": "link", "BUTTON": "button",
    "BODY": "text",
}  # fmt: skip


def _colours(parts: Roles) -> Wish | None:
    """The colour of a part of all pages."""
    roles = parts.roles
    if "TINT" not in roles or parts.texts or parts.photos or parts.pages:
        return None
    if not parts.only(
        "TINT CHANGE MAKE SHOULD BE NEW COLOUR BGCOLOUR REGION BECOME IT INSTEAD OLD", *_PARTS_WITH_COLOUR
    ):
        return None
    named = [part for role, part in _PARTS_WITH_COLOUR.items() if role in roles]
    named += ["background"] if "BGCOLOUR" in roles and "BACKGROUND" not in roles else []
    named += [parts.slots["region"]] if "region" in parts.slots else []
    if len(named) != 1 or named[0] == "menu" or parts.slots.keys() - {"tint", "region", "indefinite"}:
        return None
    if (
        not roles & {"CHANGE", "MAKE", "SHOULD", "MAY", "COLON", "BECOME"}
        and not {"COLOUR", "NEW"} <= roles
        and "REQUEST" not in roles
    ):
        return None
    if named[0] == "heading" and "MAIN" not in roles and not ("MAKE" in roles and "COLOUR" not in roles):
        return None
    return Wish("colour", "", {"part": named[0], "tint": parts.slots["tint"]})


def _echoes(parts: Roles) -> Wish | None:
    """`Could you do that for me?`, after a wish."""
    named = parts.roles & {"ECHO", "IT", "PAGE", "EVERYWHERE", "SITE"} or parts.roles <= {"CHANGE", "REQUEST", "PLEASE"}
    if (
        parts.only("ECHO CHANGE IT EVERYWHERE")
        and parts.roles & {"ECHO", "CHANGE"}
        and named
        and not parts.slots.keys() - {"everywhere"}
    ):
        return Wish("echo", "", {})
    return None


_FRAMES = (_replaces, _titles, _removes, _adds, _photos, _colours, _echoes)


def _on_page_of(left: Wish, wish: Wish, page: str) -> Wish:
    """`… on the about page and add this photo` means that page, and so does `…, photo attached`."""
    if wish.kind == "note":
        wish = replace(wish, kind="photo", slots={**wish.slots, "photos": "one"})
    inherits = not wish.page and (wish.kind in ("photo", "add", "heading") or page)
    return replace(wish, page=left.page) if inherits else wish


def _joined(wishes: list[Wish]) -> list[Wish]:
    """The wishes with `I attached a photo. Please add it … It shows …` as one."""
    found: list[Wish] = []
    for one in wishes:
        if one.get("name").lower() == "same" and found and found[-1].page:
            kept = {key: value for key, value in one.slots.items() if key != "name"}
            found.append(replace(one, page=found[-1].page, slots=kept))
            continue
        wish = replace(one, kind="alt", slots={"text": one.get("shown")}) if one.kind == "shows" else one
        if one.kind == "shows" and found and found[-1].kind in ("photo", "swap", "note"):
            found[-1] = replace(found[-1], slots={"alt": one.get("shown"), **found[-1].slots})
            continue
        note = found.pop() if wish.kind in ("photo", "swap") and found and found[-1].kind == "note" else wish
        found.append(replace(wish, slots={**note.slots, **wish.slots}, page=wish.page or note.page))
    return found
