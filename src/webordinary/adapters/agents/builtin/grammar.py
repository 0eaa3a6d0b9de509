"""The grammar of wishes: which sentences the built-in agent understands.

A sentence is understood only if one rule consumes all of its words, and all rules that do so mean the same. Text in
quotation marks is taken as it is; text without them only if it cannot be prose, see `is_plain`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from webordinary.adapters.agents.builtin.colours import colour_of
from webordinary.mail.parsing.commands import publishes_or_undoes
from webordinary.mail.parsing.small_talk import MARK, Clause, Quotations, clauses_of, word_set

_ATTACHED_PHOTO = (
    "(?:(?:this|the|these|my|our|a|an|attached|enclosed|new|following) )*(?:photo|picture|image|pic|photograph)"
)
_WITH_MAIL = "(?: (?:that |which )?(?:i(?:'ve| have)? )?(?:attached|enclosed)| here)?"
RULES = """
words    CHANGE the [new] [<what>] [[from] <old>] TO <new>
words    CHANGE the [<what>] <quoted> TO the SENTENCE <text>
words    CHANGE the <quoted> <what> TO <new>
words    CHANGE <quoted> TO <new> (in|as) the <what>
words    CHANGE the [<what>] <quoted> [,] it SHOULD <new>
words    CHANGE the <thing> (of|for) the <near> [from] <old> TO <new>
words    the [new] [<what>] [[from] <quoted>] (SHOULD|BECOMES|changed to) <new> [instead]
words    the [new] <title> (:|: make it|=) <new>
words    the (<what>|<thing> (of|for) the <near>) SHOULD <new> instead of <quoted>
words    instead of <quoted> [,] (it|the <what>) SHOULD <new>
words    [instead of <quoted> [,]] WRITE <new> [as the <what>]
words    WRITE <new> instead of <quoted>
words    (it|where it|the [<what>]) SAYS <quoted> [,] [but] [it] (SHOULD|WRITE) <new>
words    ([should|must|could|can] have|give [it]|make) the <what> <text>
words    have the [<what>] [<quoted>] changed to <new>
words    make <quoted> <text>
block    CHANGE the BLOCK TO <text>
block    the BLOCK SHOULD <text>
add      (ADD a <kind.added>|a new <kind.new>) [SAYING] <text> [PLACE]
add      (ADD a <kind.added>|a new <kind.new>) PLACE [SAYING] <text>
add      ADD <text> [as a <kind.added>] [PLACE]
remove   REMOVE the [<kind>] [:] <text> [(of|from|off) the [<name>] <list>]
remove   take the [<kind>] <text> (out|off|away) [[of] the [<name>] <list>]
remove   the [<kind>] <text> ((should|can|must|may) (go|be GONE)|GONE)
remove   REMOVE the BLOCK
photo    ADD PHOTOS [of <alt>] [SPOT]
photo    ADD (it|them) [there] [SPOT]
photo    PHOTOS (should|must|can) (go|be (added|shown|put)) [SPOT]
note     [with] PHOTOS [is|are] attached
note     (here|here's|attached|enclosed|find attached) [is|are] PHOTOS [of <alt>]
note     ([i] have|i've|i) attached PHOTOS [of <alt>]
swap     SWAP PHOTO [(of|showing) <subject>] [TO IT]
swap     SWAP the <subject> (photo|picture|image) [TO IT]
swap     ADD IT instead of (the one|PHOTO) [(of|showing) <subject>]
unphoto  (REMOVE PHOTO [(of|showing) <subject>]|take PHOTO [(of|showing) <subject>] (off|away|out))
unphoto  REMOVE the <subject> (photo|picture|image)
alt      PHOTO (shows|is) <text>
colour   [CHANGE] the <part> COLOUR (TO|SHOULD) <tint>
colour   [CHANGE] the COLOUR of the <part> (TO|SHOULD) <tint>
colour   (make|paint|colour|color) the (<part>|<heading>) [COLOUR] <tint>
colour   [CHANGE] the <plain> (TO|SHOULD) <tint>
colour   a <tint> background
"""
"""Each kind of wish with its sentences: [may be left out], (this|or that), <slot>, WORDS in capitals; `the` and `a`
stand for any article or none. Greetings, small talk, politeness and the name of a page are taken away before."""
WORDS = {
    "the": "(?:the|our|my|your|this|that|its) ",
    "a": "(?:(?:a|an|another|one|the|this|that|my|our|your|following)(?: new| following)?|new|following) ",
    "CHANGE": "change|set|update|make|rename|replace|swap|switch|correct|fix|edit|amend|modify|turn|exchange|adjust"
    "|alter|raise|lower|increase|reduce",
    "SWAP": "change|replace|swap|switch|exchange|update",
    "TO": "be changed to|to say|to read|to be|to|into|with|by|for|as|say|read|be|:|to :|->|=>|→|=",
    "BECOMES": "to say|to read|to be|to become|to|becomes?|into|->|=>|→",
    "SHOULD": "(?:should|must|needs to|has to)(?: now)? be (?:changed to|replaced (?:by|with)|called)"
    "|(?:should|must|needs to|has to)(?: now)?(?: be| say| read| become| have)?",
    "SAYS": "says|reads|is",
    "WRITE": "write|put|use|have|say",
    "ADD": "add|put|place|insert|use|include|show|post|upload|display",
    "REMOVE": "remove|delete|take out|get rid of|erase|drop|cut",
    "GONE": "gone|removed|deleted|taken out",
    "SENTENCE": "text|words?|sentence|line",
    "SAYING": "saying|that says|which says|that reads|reading|with the (?:text|words)|called|:|saying :|with",
    "PHOTO": f"{_ATTACHED_PHOTO}{_WITH_MAIL}",
    "PHOTOS": f"{_ATTACHED_PHOTO}s?{_WITH_MAIL}",
    "IT": f"{_ATTACHED_PHOTO[:-1]}|one){_WITH_MAIL}",
    "UNDER": "under|below|beneath|after|underneath",
    "BEGINS": "(?:(?:that|which) )?(?:starts|begins|starting|beginning)(?: with)?",
    "COLOUR": "colou?rs?",
}
_ITEM = r"(?:list )?(?:item|entry|point)|bullet(?: point)?|list entry"
_PARAGRAPH = "paragraph|text|sentence|line|note|notice|words?|phrase"
_TITLE = "(?:main )?title|(?:page|(?:web ?)?site(?:'s)?) title|title of the (?:web ?)?site"
_HEADING = "(?:main |big |sub ?)?(?:heading|headline)"
_NOUN = (
    f"(?:(?:text|label|wording|name) (?:of|on|in) the )?(?:old |current )?(?:{_PARAGRAPH}|{_ITEM}|section|name|price"
    "|address|date|year|time|number|(?:phone|telephone|mobile) number|e-?mail(?: address)?|opening (?:hours|times)"
    "|hours|caption|slogan|spelling|button(?: text)?|link|menu item)(?: of)?"
)
_NAME = (
    r"(?!(?:with|to|by|for|from|into|and|on|in|at|under|below|list|section|instead|should|the|a|an|our|my|first|second"
    r"|third|last)\b)[\w'&-]+"
)
_PLAIN = r"[\w'&.,+@/%€$£-]+(?: [\w'&.,+@/%€$£-]+){0,7}"
SLOTS = {
    "what": f"{_TITLE}|{_HEADING}|{_NOUN}",
    "thing": "price|date|time|year|number|name|hours",
    "title": f"{_TITLE}|{_HEADING}",
    "kind": f"{_PARAGRAPH}|{_ITEM}|heading",
    "kind.new": f"paragraph|sentence|{_ITEM}",
    "kind.added": f"{_PARAGRAPH}|{_ITEM}",
    "nth": "first|second|third|fourth|fifth|sixth|last",
    **dict.fromkeys(("old", "new"), f"{MARK}|{_PLAIN}"),
    **dict.fromkeys(("quoted", "text"), MARK),
    **dict.fromkeys(
        ("near", "under", "name", "alt", "subject"), f"{MARK}|(?:(?:the|our|my) )?{_NAME}(?: {_NAME}){{0,5}}"
    ),
    "end": "at the (?:very )?(?:end|bottom)",
    "list": "list",
    "part": "(?:page |site |website )?background|(?:main |big )heading|(?:all )?(?:the )?(?:headings|links?|buttons?)"
    "|text",
    "heading": "heading",
    "plain": "(?:page |site |website )?background|(?:all )?(?:the )?(?:headings|links?|buttons?)",
    "tint": r"#\w{1,8}|[a-z]+(?:[ -][a-z]+){0,2}",
}
_PLACES = {
    "BLOCK": "(<kind> BEGINS <quoted>|<nth> <kind> [(of|in|from|on) the list])",
    "PLACE": "((<end> of|to|on|in|into|of) the [<name>] <list> [(of|under|called|BEGINS) the [heading] <name>]|SPOT)",
    "SPOT": "(<end>|UNDER the (<nth> <kind>|[heading|paragraph|item] <under>)"
    "|(to|in|into) the [section] <under> section)",
}


def _compiled(rule: str) -> tuple[str, re.Pattern[str]]:
    """The kind and the pattern of a rule, for a text in which a blank follows each word."""
    kind, template = rule.split(maxsplit=1)
    for name, place in _PLACES.items():
        template = template.replace(name, place)
    parts = {"[": "(?:", "]": ")?", "(": "(?:", ")": ")", "|": "|"}
    tokens = re.findall(r"<[\w.]+>|[\[\]()|]|[^\s\[\]()|]+", template)
    return kind, re.compile("".join(parts.get(one) or _token(one, f"_{n}") for n, one in enumerate(tokens)), re.I)


def _token(token: str, number: str) -> str:
    if token.startswith("<"):
        return f"(?P<{token[1:-1].partition('.')[0]}{number}>{SLOTS[token[1:-1]]}) "
    return f"(?:{WORDS[token]})?" if token in ("the", "a") else f"(?:{WORDS.get(token, re.escape(token))}) "


PATTERNS = tuple(map(_compiled, RULES.strip().splitlines()))
EXAMPLES = (
    "change the homepage title to Spring Sale",
    "set the heading on the about page to “Who we are”",
    "change “open on Mondays” to “open every day”",
    "add this photo to the about page (and attach it)",
    "replace the photo of the kiln (and attach the new one)",
    "add a paragraph “We are closed in May.” to the contact page",
    "add “Blue bowl, 30 €” to the list on the pots page",
    "remove the paragraph “We are closed in May.”",
    "change the background colour to dark green",
)
_REQUEST = (
    r"(?P<request>would you (?:please )?mind|(?:(?:would|could) you )?be so (?:kind|good) (?:as to|to|and)"
    r"|(?:can|could|would|will) (?:you|we)|i was wondering (?:if|whether) you (?:could|can|would)"
    r"|(?:is|would) it (?:be )?possible to|it would be (?:great|nice|lovely|good|wonderful) if you (?:could|can)"
    r"|(?:i|we) would (?:be grateful|appreciate it) if you (?:could|can)|may i ask you to)"
)
_POLITE = re.compile(
    rf"(?:please|kindly|just|simply|also|and|then|now|so|next|first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|lastly|ok"
    rf"|actually|(?:can|could)(?= (?:the|our|my) )|{_REQUEST}|(?:i|we)(?:'d| would) (?:like|love)(?: you)?(?: to)?"
    rf"|(?:i|we) (?:want|need)(?: you)?(?: to)?)(?: ,)?(?= )",
    re.I,
)
_POLITE_END = re.compile(
    r"(?: ,)? (?:please|thanks|thank you|thx|for (?:me|us)|too|as well|now|from now on"
    r"|(?:it's|this is|that's) (?:the|our|my) new [a-z]+|(?:as soon as|when|if) (?:you (?:can|could)|possible)|asap"
    r"|when you (?:have|get|find) (?:a|the|some)? ?(?:minute|moment|chance|time|second)"
    r"|if you don't mind|if that's ok(?:ay)?)\Z",
    re.I,
)
_PLEASE = re.compile(r"\b(?:pl(?:ea?s?e?|ease|aese|eaes)|pls|plz|kindly)\b", re.I)
_GERUNDS = {
    "adding": "add", "changing": "change", "removing": "remove", "replacing": "replace", "deleting": "delete",
    "updating": "update", "making": "make", "putting": "put", "setting": "set", "renaming": "rename",
    "swapping": "swap",
}  # fmt: skip
_EVERYWHERE = re.compile(
    r" (?:everywhere|(?:on|across|in|throughout) (?:all|every|each|the (?:whole|entire))(?: of the)?(?: our| my)?"
    r" (?:pages?|(?:web ?)?site))(?= )",
    re.I,
)
_REGION = re.compile(r" (?:in|at|of|from) the (?P<region>footer|header|menu)(?= )", re.I)
_ON_SITE = re.compile(r" (?:on|in|of) (?:the|my|our) (?:web ?)?site(?= )", re.I)
_HOME = r"home ?page|home-page|(?:home|index|front|main|landing|start|welcome) page|index\.(?:html?|md|astro)"
_AND = re.compile(r"(?: ,)? (?:and then|and also|and please|and|then|plus|also|as well as)(?: ,)? | , ")
_STARTS = re.compile(
    rf"(?:(?:please|also|and|then|can|could|i|we|on|the|title|heading) )*(?:{WORDS['CHANGE']}|{WORDS['ADD']}"
    rf"|{WORDS['REMOVE']})\b|[\w ]{{1,30}}:|{MARK}|on ",
    re.I,
)
"""A line that begins so is a wish of its own, also in small letters."""
_QUOTE_BELOW = re.compile(rf":[ \t]*\n\s*(?={MARK}\.?[ \t]*(?:\n|\Z))")
"""`Add this paragraph:`, and the quotation on a line of its own."""
_INTRODUCTION = word_set(
    "i we you have here are is my our the a an few two three four five some couple of small little quick tiny more new "
    "following move date just change update edit make these would like need want could can do for me us to on "
    "site website one another simple minor next prices hours opening please"
)
_BEFORE_A_PAGE = word_set("on in for the our my please")
_CHANGES = word_set("changes updates edits things requests wishes tweaks corrections")
"""`Three small changes please:` says that wishes follow, and nothing else."""
_MOST_JOINTS, _MOST_WISHES = 8, 4
"""In one sentence."""
_LONGEST_CLAUSE, _LONGEST_PLAIN = 500, 5

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


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """The part of a mail that no rule consumes."""

    said: str


class Grammar:
    """Reads the wishes of a mail about a site with these pages, each under all of its names; the homepage under ""."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages
        names = "|".join(re.escape(name) for name in sorted(pages, key=len, reverse=True) if name) or "(?!)"
        files = "|".join(re.escape(name) for name in pages if "." in name) or "(?!)"
        self._place = re.compile(
            rf"(?P<end> (?:at|to|on) the (?:very )?(?:end|bottom)(?= of))?"
            rf"(?: (?:on|of|in|for|from|at|to|onto|into))?(?: (?:the|our|my|your))?"
            rf" (?:(?P<home>{_HOME})|(?P<name>{names})(?:'s)? page|page (?P<called>{names})|(?P<file>{files}))"
            rf"(?:'s)?(?: only)?(?: ,)?(?= |\Z)",
            re.I,
        )

    def read(self, text: str, quotes: Quotations, aside: Collection[str] = ()) -> list[Wish] | Misunderstood:
        """The wishes of a mail in order, without the parts left aside, or its first part that is not understood."""
        wishes: list[Wish] = []
        scope, blocks, opened = "", range(0), ""
        for clause in clauses_of(_QUOTE_BELOW.sub(": ", quotes.set_aside(text)), "", _STARTS, name_below=True):
            shown = quotes.shown(clause.text)
            if shown in aside:
                continue
            if len(clause.text) > _LONGEST_CLAUSE:
                return Misunderstood(shown)
            page, rest = self._introduced(clause.text)
            if page:
                if opened:
                    break
                scope, blocks, opened = page, range(clause.block, clause.block + 2), shown
            if not rest.strip():
                continue
            found = self._readings(replace(clause, text=rest), _normal(rest), quotes)
            if found is None:
                return Misunderstood(shown)
            here, opened = scope if clause.block in blocks else "", ""
            wishes += [one if one.page else replace(one, page=here) for one in found]
            blocks = range(clause.block, clause.block + 1) if clause.block in blocks else range(0)
        return Misunderstood(opened) if opened else _joined(wishes)

    def _introduced(self, text: str) -> tuple[str, str]:
        """The page of `On the about page:`, and the clause without it and without `Three changes please:`."""
        intro, colon, rest = text.partition(":")
        words, page = self._without_place(_normal(intro))
        said = set(re.findall(r"[^\s,.]+", words.lower()))
        if said <= _INTRODUCTION | _CHANGES and (colon or said & _CHANGES or (page and said <= _BEFORE_A_PAGE)):
            return page or "", rest
        return "", text

    def page_of(self, said: str) -> str:
        """The page that these words name, also without the word page; empty if they name none."""
        rest, page = self._without_place(f" {said} ")
        if page and not rest.strip():
            return page
        return self._pages.get(said.lower().removeprefix("the "), "") if said else ""

    def unknown_page(self, said: str) -> str:
        """The page that a wish names and the site does not have."""
        found = re.search(r"\b(?:on|to|of|in|from) (?:the|our|my) ([\w' -]{1,30}?) page\b", said, re.I)
        return found[1] if found and not self._place.search(_normal(said)) else ""

    def _readings(self, clause: Clause, said: str, quotes: Quotations) -> list[Wish] | None:
        """The only way to read a sentence as one wish or several; None if there is none, or more than one."""
        command = publishes_or_undoes(Clause(clause.text, clause.asks))
        if command is not None:
            return [Wish(str(command), clause.text, {})]
        polite = _POLITE.match(self._without_place(said)[0].strip(" ,") + " ")
        if clause.asks and not (polite and polite["request"]) and not _PLEASE.search(clause.text):
            return None
        return self._several(said, quotes)

    def _several(self, said: str, quotes: Quotations, depth: int = 0) -> list[Wish] | None:
        """One wish, or wishes joined by `and`; verb and page hold for those after it that have none."""
        whole = self._single(said, quotes)
        if whole is not None and (not whole.doubt or depth >= _MOST_WISHES):
            return [whole]
        for joint in islice(_AND.finditer(said), _MOST_JOINTS if depth < _MOST_WISHES else 0):
            left = self._single(said[: joint.start()] + " ", quotes)
            if left is None or left.doubt:
                continue
            rest, verb = f" {said[joint.end() :].lstrip()}", _without_politeness(said).split()[0]
            right = self._several(rest, quotes, depth + 1) or self._several(f" {verb}{rest}", quotes, depth + 1)
            if right is not None:
                return [left, *(_on_page_of(left, one) for one in right)]
        return [whole] if whole is not None else None

    def _single(self, said: str, quotes: Quotations) -> Wish | None:
        command = publishes_or_undoes(Clause(said.strip()))
        if command is not None:
            return Wish(str(command), said.strip(), {})
        rest, page = self._without_place(f" {_without_politeness(said).strip()} ")
        if page is None:
            return None
        rest = f" {_without_politeness(rest).strip()} "
        everywhere, region = _EVERYWHERE.search(rest), _REGION.search(rest)
        for part in (_EVERYWHERE, _REGION, _ON_SITE):
            rest = part.sub("", rest, count=1)
        verb, _, tail = rest.strip(" ,").partition(" ")
        rest = f"{_GERUNDS.get(verb.lower(), verb)} {tail}".strip() + " "
        matches = [(kind, match) for kind, pattern in PATTERNS if (match := pattern.fullmatch(rest))]
        wishes = [_wish(kind, match, quotes) for kind, match in matches]
        found = {repr(sorted(one.slots.items())) + one.kind: one for one in wishes if one is not None}
        clear = [one for one in found.values() if not one.doubt] or list(found.values())
        if len(clear) != 1:
            return None
        (wish,) = clear
        if ((everywhere or region) and wish.kind not in ("text", "remove")) or (wish.kind == "colour" and page):
            return None
        where = region["region"].lower() if region else ""
        return replace(wish, said=quotes.shown(said), page=page, everywhere=bool(everywhere), region=where)

    def _without_place(self, said: str) -> tuple[str, str | None]:
        """The wish without the page that it names, and that page; None for it where two are named."""
        found = list(self._place.finditer(said))
        if len(found) != 1:
            return said, "" if not found else None
        name = found[0]["name"] or found[0]["called"] or found[0]["file"]
        page = self._pages[""] if found[0]["home"] else self._pages[name.lower()]
        rest = said[found[0].end() :].lstrip(" " if found[0].start() else " :")
        return said[: found[0].start()] + (" at the end " if found[0]["end"] else " ") + rest, page


def _wish(kind: str, match: re.Match[str], quotes: Quotations) -> Wish | None:
    """The wish of a match; None if a slot has a text that this kind cannot have."""
    slots = {name.partition("_")[0]: value.strip() for name, value in match.groupdict().items() if value}
    quoted = {name for name, value in slots.items() if re.fullmatch(MARK, value)}
    if any(re.search(MARK, value) for name, value in slots.items() if name not in quoted):
        return None
    texts = {name: quotes.text(value) if name in quoted else value for name, value in slots.items()}
    if "quoted" in texts:
        texts["old"] = texts.pop("quoted")
        quoted.add("old")
    if kind in ("words", "block") and "text" in texts:
        texts["new"] = texts.pop("text")
        quoted.add("new")
    new, old, doubt = texts.get("new", ""), texts.get("old", ""), False
    if kind == "words":
        what = texts.pop("what", texts.pop("title", ""))
        kind = (
            "title" if re.fullmatch(_TITLE, what, re.I) else "heading" if re.fullmatch(_HEADING, what, re.I) else "text"
        )
        if (kind == "text" and not old) or (kind != "text" and "near" in texts):
            return None
    if old and "old" not in quoted and (kind != "text" or not _same_shape(old, new)):
        return None
    if new and "new" not in quoted and not is_plain(new) and not _same_shape(old, new):
        if re.search(r" and | or |,", new):
            return None
        doubt = True
    if kind == "colour" and colour_of(texts["tint"]) is None:
        return None
    texts |= {"heading": texts["under"]} if "under" in texts and "under" not in quoted else {}
    if kind == "photo":
        texts["photos"] = (
            "many" if re.search(r"\b(?:them|these|(?:photo|picture|image|pic)s)\b", match[0], re.I) else "one"
        )
    return Wish(kind, "", texts, doubt=doubt)


def _on_page_of(left: Wish, wish: Wish) -> Wish:
    """`… on the about page and add this photo` means that page, and so does `…, photo attached`."""
    if wish.kind == "note":
        wish = replace(wish, kind="photo", slots={**wish.slots, "photos": "one"})
    inherits = not wish.page and wish.kind in ("photo", "add", "heading")
    return replace(wish, page=left.page) if inherits else wish


def _joined(wishes: list[Wish]) -> list[Wish]:
    """The wishes with `I attached a photo. Please add it …` as one."""
    found: list[Wish] = []
    for wish in wishes:
        note = found.pop() if wish.kind == "photo" and found and found[-1].kind == "note" else wish
        found.append(replace(wish, slots={**note.slots, **wish.slots}, page=wish.page or note.page))
    return found


def _normal(text: str) -> str:
    """Words with one blank between them and punctuation apart."""
    said = re.sub(rf"\s*(,(?=\s|$|{MARK})|:(?=\s|$|{MARK})|->|=>|→)\s*", r" \1 ", text.replace("\u2019", "'"))
    said = re.sub(r" , (?=, )", " ", " ".join(_PLEASE.sub(" ", said).split()))
    return f" {said.strip(' ,')} " if said.strip(" ,") else ""


def _without_politeness(said: str) -> str:
    said = said.strip() + " "
    while (polite := _POLITE.match(said)) is not None:
        said = said[polite.end() :].lstrip(" ,")
    said = said.rstrip()
    while (end := _POLITE_END.search(said)) is not None:
        said = said[: end.start()]
    return said
