"""The grammar of wishes: which sentences the built-in agent understands.

A wish is understood only if one template consumes all of its words. Text in quotation marks is taken as it is. Text
without them is taken only if it cannot be prose: see `is_plain`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from webordinary.adapters.agents.builtin.colours import colour_of
from webordinary.adapters.agents.builtin.remarks import is_remark, without_reason
from webordinary.mail.parsing.commands import publishes_or_undoes
from webordinary.mail.parsing.small_talk import MARK, Clause, Quotations, clauses_of, word_set

CLASSES = {
    "CHANGE": "change|set|update|make|rename|replace|swap|switch|correct|fix|edit|amend|modify|turn|exchange|adjust"
    "|alter|raise|lower|increase|reduce",
    "TO": r"to|to say|to read|to be|into|with|by|for|as|say|read|:|to :|->|=>|→|=",
    "SHOULD": "should(?: now)?(?: be| say| read| become| be called| be changed to| be replaced (?:by|with))"
    "|must(?: be| say| read| become)"
    "|(?:needs|has) to (?:be|say|read|become)|becomes|is now|say|read|become|be",
    "THE": "the|our|my|your|this|that|its",
    "A": "(?:a|an|another|one|the|this|that|my|our|your|these)(?: new| following| second)?|new|following",
    "TITLE": "(?:main )?title|page title|(?:web ?site|site)(?:'s)? title|title of (?:the|our|my) (?:web ?site|site)",
    "HEADING": "(?:main |big |sub ?)?(?:heading|headline)|header text|subheading",
    "NOUN": "(?:(?:text|label|wording|name) (?:of|on|in) the )?(?:old |current )?(?:text|words?|section"
    "|phrase|sentence|line|name|price|address|date|year|time|number|paragraph"
    "|(?:phone|telephone|mobile) number|e-?mail(?: address)?|opening (?:hours|times)|hours|caption|slogan"
    "|(?:list )?item|bullet(?: point)?|list entry|spelling|button|link|menu item)(?: of)?",
    "ADD": "add|put|place|insert|use|include|show|post|upload|display",
    "PHOTO": "(?:(?:this|the|these|my|our|a|an|attached|enclosed|new|following) )*"
    "(?:photo|picture|image|pic|photograph)s?(?: (?:that |which )?(?:i(?:'ve| have)? )?(?:attached|enclosed)| here)?",
    "NEWPHOTO": "(?:(?:this|the|my|our|a|attached|enclosed|new) )*(?:one|photo|picture|image|pic)"
    "(?: (?:that |which )?(?:i(?:'ve| have)? )?attached)?",
    "PARAGRAPH": "paragraph|text|sentence|line|note|notice|words",
    "ITEM": "(?:list )?(?:item|entry|point)|bullet(?: point)?",
    "SAYING": "saying|that says|which says|that reads|reading|with the text|with the words|called|:|saying :|with",
    "REMOVE": "remove|delete|take out|get rid of|erase|drop|cut",
    "BEGINNING": "(?:(?:that|which) )?(?:starts|begins|starting|beginning)(?: with)?",
    "NTH": "first|second|third|fourth|fifth|sixth|last",
    "COUNTED": "paragraph|(?:list )?(?:item|entry|point)|bullet(?: point)?|list entry",
    "KIND": "paragraph|sentence|text|words?|line|phrase|(?:list )?item|bullet(?: point)?|list entry|heading",
    "UNDER": "under|below|beneath|after|underneath",
    "WRITE": "write|put|use|have|say",
    "PART": r"(?:page |site |website )?background|(?:main |big |all )?headings?|(?:all )?(?:the )?headings|headlines?"
    r"|links?|text|font|buttons?|header|footer|menu|accent|--[\w-]+(?: in \S+)?|[\w.#-]+ background|[\w.#-]+ text",
    "COLOUR": "colou?rs?",
    "END": "at the (?:very )?(?:end|bottom)",
}  # fmt: skip
_LIST = (
    "[END of] [(to|on|in|onto|into|from|off)] [THE] [<name>] list [(of|under|called) [THE] [HEADING] <name2>] "
    "[that (begins|starts) with <first>]"
)
_AFTER = "[UNDER [THE] ([HEADING] <named>|[(HEADING|paragraph|item|bullet)] <spot>|<nth> <counted>)]"
_OF_LIST = "[(of|in|from|on) [THE] list]"
TEMPLATES: tuple[tuple[str, str], ...] = (
    ("title", "[CHANGE] [THE] [new] TITLE [[from] <oldquote>] TO <new>"),
    ("title", "[THE] [new] TITLE SHOULD <new> [instead]"),
    ("title", "instead of <oldquote> [,] [THE] TITLE SHOULD <newquote>"),
    ("heading", "instead of <oldquote> [,] [THE] HEADING SHOULD <newquote>"),
    ("title", "[THE] TITLE (says|reads|is) <oldquote> [,] [but] it SHOULD <newquote>"),
    ("heading", "[THE] HEADING (says|reads|is) <oldquote> [,] [but] it SHOULD <newquote>"),
    ("text", "[THE] [NOUN] (says|reads|is) <oldquote> [,] [but] it SHOULD <newquote>"),
    ("title", "WRITE <new> as [THE] TITLE"),
    ("title", "(give [it]|make) [THE] TITLE <newquote>"),
    ("title", "[THE] TITLE : make it <newquote>"),
    ("heading", "[THE] HEADING : make it <newquote>"),
    ("title", "[(should|must|could|can)] have [THE] TITLE <newquote>"),
    ("title", "(should|must) be (titled|called) <newquote>"),
    ("heading", "[(should|must|could|can)] have [THE] HEADING <newquote>"),
    ("heading", "[CHANGE] [THE] [new] HEADING [[from] <oldquote>] TO <new>"),
    ("heading", "[CHANGE] [THE] <oldquote> HEADING TO <new>"),
    ("heading", "CHANGE <oldquote> TO <newquote> (in|as) [THE] HEADING"),
    ("heading", "[THE] HEADING [<oldquote>] SHOULD <new> [instead]"),
    ("heading", "WRITE <new> as [THE] HEADING"),
    ("heading", "(give [it]|make) [THE] HEADING <newquote>"),
    ("text", "CHANGE [THE] [NOUN] [from] <old> TO [the (text|words|sentence|line)] <new>"),
    ("text", "CHANGE [THE] [NOUN] <oldquote> [,] it SHOULD <newquote>"),
    ("text", "CHANGE [THE] NOUN (of|for) [THE] <near> from <old> TO <new>"),
    ("text", "CHANGE [THE] <oldquote> NOUN TO <new>"),
    ("text", "<oldquote> (->|=>|→|to|to read|to say|into) <new>"),
    ("text", "make <oldquote> <newquote>"),
    ("block", "CHANGE [THE] <kind> BEGINNING <begins> TO <newquote>"),
    ("block", "[THE] <kind> BEGINNING <begins> SHOULD <newquote>"),
    ("block", f"CHANGE [THE] <nth> <counted> {_OF_LIST} TO <newquote>"),
    ("block", f"[THE] <nth> <counted> {_OF_LIST} SHOULD <newquote>"),
    ("text", "[THE] [NOUN] <oldquote> SHOULD <new> [instead]"),
    ("text", "[where] it says <oldquote> [,] [but] [it] SHOULD <new> [instead]"),
    ("text", "where it says <oldquote> [,] WRITE <new>"),
    ("text", "instead of <oldquote> [,] [it] (SHOULD|WRITE) <new>"),
    ("text", "[THE] [NOUN] SHOULD <new> instead of <oldquote>"),
    ("text", "WRITE <new> instead of <oldquote>"),
    (
        "text",
        "(have|i need|we need|i want|we want|i would like|we would like) [THE] [NOUN] <oldquote> changed to <new>",
    ),
    ("title", "(have|i want|we want|i need|we need) [THE] TITLE changed to <new>"),
    ("heading", "(have|i want|we want|i need|we need) [THE] HEADING changed to <new>"),
    ("photo", "ADD PHOTO [of <alt>] [(<end>|(UNDER|next to) [THE] [HEADING] <under>)]"),
    ("photo", "ADD PHOTO [of <alt>] (to|in|into) [THE] [section] <under> [section]"),
    ("photo", "PHOTO (should|must|can) (go|be added|be shown|be put|appear|be) [(UNDER) [THE] [HEADING] <under>]"),
    ("attached", "[with] PHOTO [is] attached"),
    (
        "attached",
        "(i|we|my (son|daughter|wife|husband|sister|brother|friend)) (took|made) PHOTO "
        "[(today|yesterday|this (morning|week)|last (week|month|summer|winter|year))]",
    ),
    ("attached", "([i] have|i've|i) attached PHOTO [of <alt>]"),
    ("attached", "(attached|here|enclosed) (is|are) PHOTO [of <alt>]"),
    ("it", "ADD (it|them) [there] [(UNDER) [THE] [HEADING] <under>]"),
    ("swap", "ADD NEWPHOTO instead of ([THE] one|PHOTO) [(of|showing) <subject>]"),
    ("alt", "PHOTO (shows|is) <newquote>"),
    ("alt", "CHANGE [THE] (alt text|alt|description) [of PHOTO] [[from] <oldquote>] TO <newquote>"),
    ("unphoto", "REMOVE PHOTO [(of|showing) <subject>]"),
    ("unphoto", "REMOVE [THE] <subject> (photo|picture|image)"),
    ("swap", "CHANGE PHOTO [(of|showing) <subject>] [TO NEWPHOTO]"),
    ("swap", "CHANGE [THE] <subject> (photo|picture|image) [TO NEWPHOTO]"),
    ("paragraph", f"[ADD] [A] PARAGRAPH [SAYING] <quote> [END] {_AFTER}"),
    ("paragraph", "ADD [A] PARAGRAPH END [SAYING] <quote>"),
    ("paragraph", f"ADD <quote> as [A] PARAGRAPH [END] {_AFTER}"),
    ("add", f"ADD <quote> [END] {_AFTER}"),
    ("item", f"ADD [A] [ITEM] [SAYING] <quote> {_LIST}"),
    ("item", "ADD [A] ITEM [SAYING] <quote> [(UNDER|to|on) [THE] [HEADING] <name>]"),
    ("item", "ADD [A] line [SAYING] <quote> (to|on|in) [THE] list"),
    ("item", "A ITEM [SAYING] <quote>"),
    ("item", f"ADD [A] ITEM {_LIST} [SAYING] <quote>"),
    ("remove", f"REMOVE [THE] [<kind>] [:] <quote> [{_LIST}]"),
    ("remove", "take [THE] [<kind>] <quote> (out|off|away) [[THE] [<name>] list]"),
    ("remove", "[THE] [<kind>] <quote> (should|can|must|may) (go|be removed|be deleted|be taken out)"),
    ("remove", "REMOVE [THE] <kind> BEGINNING <begins>"),
    ("remove", f"REMOVE [THE] <nth> <counted> {_OF_LIST}"),
    ("remove", "[THE] [<kind>] <quote> (gone|removed|deleted|taken out)"),
    ("colour", "[CHANGE] [THE] <part> COLOUR TO <tint>"),
    ("colour", "[CHANGE] [THE] COLOUR of [THE] <part> TO <tint>"),
    ("colour", "(make|paint|colour|color) [THE] <part> [COLOUR] <tint>"),
    ("colour", "[THE] <part> [COLOUR] SHOULD <tint>"),
    ("colour", "[THE] COLOUR of [THE] <part> SHOULD <tint>"),
    ("colour", "A <tint> <plainpart>"),
    ("colour", "[CHANGE|want|like] [THE] <plainpart> TO <tint>"),
)
"""Each kind of wish with the sentences for it: CLASSES in capitals, [optional] and (this|or that), <slots>."""
_TINT = r"#\w{1,8}|[a-z]+(?:[ -][a-z]+){0,2}"
_NAME = (
    r"(?!NOT|NTH\b|(?:the|a|an|our|my|this|that) (?:photo|picture|image)\b)[\w'&-]+(?: (?!NOT)[\w'&-]+){0,5}".replace(
        "NTH", CLASSES["NTH"]
    ).replace("NOT", r"(?:with|to|by|for|into|and|on|in|at|under|below|list|section)\b")
)
_WORDS = r"[\w'&.,+@/%€$£-]+(?: [\w'&.,+@/%€$£-]+){0,7}"
SLOTS = {
    **dict.fromkeys(("old", "new"), f"{MARK}|{_WORDS}"),
    **dict.fromkeys(("oldquote", "newquote", "quote", "begins", "first", "spot"), MARK),
    **dict.fromkeys(("alt", "under", "subject", "name", "name2", "near"), f"{MARK}|{_NAME}"),
    **{name: CLASSES[name.upper()] for name in ("kind", "nth", "counted")}, "end": CLASSES["END"], "named": _NAME,
    "part": CLASSES["PART"], "tint": _TINT,
    "plainpart": r"(?:page |site |website )?background|links?|buttons?|--[\w-]+(?: in \S+)?|[\w.#-]+ background",
}  # fmt: skip
_MOST_JOINTS, _MOST_WISHES = 8, 4
"""In one sentence."""
_LONGEST_CLAUSE = 500  # characters, each quotation counted as one
_POLITE = re.compile(
    r"(?:please|pls|plz|kindly|just|simply|also|and|then|now|so|next|first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|lastly"
    r"|ok|actually|do|(?:can|could)(?= (?:the|our|my) )|(?:(?P<request>would you (?:please )?mind"
    r"|(?:(?:would|could) you )?be so (?:kind|good) (?:as to|to|and)|(?:can|could|would|will) (?:you|we)"
    r"|i was wondering (?:if|whether) you (?:could|can|would)|(?:is|would) it (?:be )?possible to"
    r"|it would be (?:great|nice|lovely|good|wonderful) if you (?:could|can)"
    r"|(?:i|we) would (?:be grateful|appreciate it) if you (?:could|can)|may i ask you to))"
    r"|(?:i|we)(?:'d| would) like(?: you)?(?: to)?(?! .* changed)"
    r"|(?:i|we) (?:want|need)(?: you)?(?: to)?(?! .* changed))(?: ,)?(?= )",
    re.I,
)
_POLITE_END = re.compile(
    r"(?: ,)? (?:please|pls|plz|thanks|thank you|thx|for me|for us|too|as well|now|from now on"
    r"|(?:it's|this is|that's) (?:the|our|my) new (?:one|[a-z]+)|(?:as soon as|when) you can"
    r"|when you (?:have|get|find) (?:a|the|some)? ?(?:minute|moment|chance|time|second)|as soon as possible|asap"
    r"|if (?:possible|you can|you could|you don't mind|that's ok(?:ay)?|that is ok(?:ay)?))\Z",
    re.I,
)
_GERUNDS = re.compile(r"\A(add|chang|remov|replac|delet|updat|mak|putt|sett|renam|swapp)ing\b", re.I)
_INFINITIVES = {"chang": "change", "remov": "remove", "replac": "replace", "delet": "delete", "updat": "update"} | {
    "mak": "make", "putt": "put", "sett": "set", "renam": "rename", "swapp": "swap", "add": "add"
}  # fmt: skip
_EVERYWHERE = re.compile(
    r" (?:everywhere|(?:on|across|in) (?:all|every|each)(?: of the)?(?: our| my)? pages?"
    r"|(?:on|across|throughout|all over) (?:the|my|our) (?:whole|entire) (?:web ?)?site"
    r"|throughout the (?:web ?)?site)(?= )",
    re.I,
)
_REGION = re.compile(r" (?:in|at|of|from) (?:the|our) (?P<region>footer|header|menu)(?= )", re.I)
_ON_SITE = re.compile(r" (?:on|in|of) (?:the|my|our) (?:web ?)?site(?= )", re.I)
_HOME = r"home ?page|home-page|(?:home|index|front|main|landing|start|welcome) page|index\.(?:html?|md|astro)"
_AND = re.compile(r"(?: ,)? (?:and then|and also|and please|and|then|plus|also|as well as)(?: ,)? | , ")
STARTS = re.compile(
    rf"(?:(?:please|also|and|then|can|could|i|we|on|the|title|heading) )*(?:{CLASSES['CHANGE']}|{CLASSES['ADD']}"
    rf"|{CLASSES['REMOVE']})\b|[\w ]{{1,30}}:|{MARK}|on ",
    re.I,
)
"""A line that begins so is a wish of its own, also in small letters."""

PROSE = word_set(
    "a about above after again all also an and any anything april arial as asap august back be because before below "
    "best better big bigger bit black bold bolder both brighter but by capital capitals caps case central centre "
    "centred cheaper cheers choice color colour comic darker day december deleted different dutch each else english "
    "every everything except february fewer first font for french friday friendlier from georgia german gone "
    "heading helvetica here hidden how if in instead into is it italian italic italics its january july june just "
    "larger last later least less letters lighter like little longer love lowercase march may maybe monday more "
    "most new next nice nicer no not november now number october of on once one ones only option or other page "
    "perhaps photo plan please possible regards removed roboto same sans saturday see sentence september shorter "
    "should simple simpler small smaller smth so some someone something soon spanish still such sunday tbc tbd text "
    "than thanks that the their them then there these they thing this those thursday times title to today tomorrow "
    "tonight too tuesday two underlined unless until up uppercase urgent usual various verdana version very "
    "wednesday week weeks well what whatever when where which while whole with without year years yes yesterday "
    "your"
)
"""Words that make text without quotation marks look like a description of the text."""
_LONGEST_PLAIN = 5
_TITLE_WORDS = word_set(
    "a about after all an and before best big day every for from here how in just last little more new nice no now "
    "number of on one only other our page simple small the this time times to two up very week well where with year "
    "your love"
)
"""Words of PROSE that may be part of a title if they begin with a capital."""
_SMALL_WORDS = word_set("we are of the our your my is for in and with from & a an at")


_AMOUNT = re.compile(
    r"[+€$£]? ?\d[\d.,:/ -]*(?:€|%| ?(?:euros?|eur|pounds?|dollars?|pm|am|cm|mm|m|km|kg|g|ml|l|%))?", re.I
)


def is_plain(text: str) -> bool:
    """Whether text without quotation marks is surely the text itself: an amount, or a name in capitals.

    `Spring Sale`, `Who we are` and `30 euros` are; `something nicer`, `Spring Sale next Monday` and `Red` are not.
    """
    words = text.split()
    if _AMOUNT.fullmatch(text):
        return True
    if not words or len(words) > _LONGEST_PLAIN or not re.fullmatch(r"[^\W\d_][\w'&. -]*", text) or " - " in text:
        return False
    if colour_of(text) or any(map(_is_prose, words)):
        return False
    small = [word for word in words if not word[0].isupper() and not word[0].isdigit() and word != "&"]
    ends_well = words[-1] not in small or words[-1] in ("are", "is", "do")
    return words[0] not in small and ends_well and all(word in _SMALL_WORDS for word in small)


def _is_prose(word: str) -> bool:
    plain = word.lower().strip(".")
    return plain in PROSE - _SMALL_WORDS and not (word[0].isupper() and plain in _TITLE_WORDS)


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing to do. `page` is a file name, empty where the wish names none; `pick` chooses among several places."""

    kind: str
    said: str
    slots: Mapping[str, str]
    page: str = ""
    everywhere: bool = False
    pick: int = 0
    region: str = ""
    """`footer`, `header` or `menu`, if the text is to be looked for there alone."""
    doubt: str = ""
    """A slot whose text may be prose: its customer is asked."""

    def get(self, *names: str) -> str:
        """The first of these slots that has a text."""
        return next((self.slots[name] for name in names if self.slots.get(name)), "")


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """The part of a mail that no template consumes."""

    said: str


class Grammar:
    """Reads the wishes of a mail about a site with these pages, each under all of its names."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages
        names = "|".join(re.escape(name) for name in sorted(pages, key=len, reverse=True) if name) or "(?!)"
        files = "|".join(re.escape(name) for name in pages if "." in name) or "(?!)"
        named = rf"(?P<name>{names})(?:'s)? page|page (?P<called>{names})|(?P<file>{files})"
        bare = "|".join(re.escape(name) for name in pages if re.fullmatch(r"[a-z-]+", name)) or "(?!)"
        self._place = re.compile(
            rf"(?:(?<={MARK}) (?:on|in|from|to|at) (?:the )?|\A (?:on|in) (?=\w+ ,))(?P<bare>{bare})(?= \Z| ,|\Z)|"
            rf"(?P<end> (?:at|to|on) the (?:very )?(?:end|bottom)(?= of))?(?: only)?"
            rf"(?: (?:on|of|in|for|from|at|to|onto|into))?(?: (?:the|our|my|your))?"
            rf" (?:(?P<home>{_HOME})|{named})(?:'s)?(?: only)?(?: ,)?(?= |\Z)",
            re.I,
        )

    def read(self, text: str, quotes: Quotations, aside: Collection[str] = ()) -> list[Wish] | Misunderstood:
        """The wishes of a mail in order, without the parts left aside, or its first part that is not understood."""
        wishes: list[Wish] = []
        scope, blocks, remark = "", range(0), ""
        text = _SHOULD_BELOW.sub(" , ", _QUOTE_BELOW.sub(": ", quotes.set_aside(text)))
        for clause in clauses_of(text, "", STARTS, name_below=True):
            if quotes.shown(clause.text) in aside:
                continue
            if len(clause.text) > _LONGEST_CLAUSE:
                return Misunderstood(quotes.shown(clause.text))
            said = _normal(_without_introduction(clause.text))
            if not said.strip():
                continue
            rest, page = self._without_place(said)
            if page and (not rest.strip(" :,") or _CHANGES.fullmatch(rest.strip(" :,"))):
                scope, blocks = page, range(clause.block, clause.block + 2)
                continue
            found = self._readings(clause, said, quotes)
            if found is None and not wishes and not clause.asks and is_remark(said):
                remark = remark or clause.text
                continue
            if found is None:
                return Misunderstood(quotes.shown(clause.text))
            leading = page if (at := self._place.match(said)) and at.start() == 0 else ""
            wishes += [
                one if one.page else replace(one, page=leading or (scope if clause.block in blocks else ""))
                for one in found
            ]
            blocks = range(clause.block, clause.block + 1) if clause.block in blocks else range(0)
        return _joined(wishes) if wishes or not remark else Misunderstood(quotes.shown(remark))

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
        found = self._several(said, quotes)
        wish = without_reason(said) if found is None else ""
        return self._several(wish, quotes) if wish else found

    def _several(self, said: str, quotes: Quotations, depth: int = 0) -> list[Wish] | None:
        """One wish, or wishes joined by `and`; a verb holds for those after it that have none."""
        whole = self._single(said, quotes)
        if (whole is not None and not whole.doubt) or depth >= _MOST_WISHES:
            return [whole] if whole is not None else None
        for joint in islice(_AND.finditer(said), _MOST_JOINTS):
            before = said[: joint.start()] + " "
            left = self._single(before, quotes) or self._single(without_reason(before), quotes)
            if left is None:
                continue
            rest, verb = " " + said[joint.end() :].lstrip(), _without_politeness(said).split()[0]
            right = self._several(rest, quotes, depth + 1) or self._several(f" {verb}{rest}", quotes, depth + 1)
            if right is not None and not left.doubt:
                return [left, *(_on_page_of(left, one) for one in right)]
        return [whole] if whole is not None else None

    def _single(self, said: str, quotes: Quotations) -> Wish | None:
        command = publishes_or_undoes(Clause(said.strip()))
        if command is not None:
            return Wish(str(command), said.strip(), {})
        rest, page = self._without_place(f" {_without_politeness(said).strip()} ")
        if page is None:
            return None
        rest = _GERUNDS.sub(lambda verb: _INFINITIVES[verb[1].lower()], _without_politeness(rest).strip())
        rest = f" {rest} "
        everywhere, region = _EVERYWHERE.search(rest), _REGION.search(rest)
        for part in (_EVERYWHERE, _REGION, _ON_SITE):
            rest = part.sub("", rest, count=1)
        rest = rest.strip(" ,") + " "
        shown = quotes.shown(said.strip())
        found = {
            _key(wish): wish
            for kind, pattern in PATTERNS
            if (match := pattern.fullmatch(rest))
            and (wish := _wish(kind, match, quotes, shown, page, everywhere is not None))
        }
        if region:
            found = {
                key: replace(wish, region=region["region"].lower())
                for key, wish in found.items()
                if wish.kind in ("text", "remove")
            }
        clear = [wish for wish in found.values() if not wish.doubt]
        found_wishes = clear or list(found.values())
        return found_wishes[0] if len(found_wishes) == 1 else None

    def _without_place(self, said: str) -> tuple[str, str | None]:
        """The wish without the page that it names, and that page; None for it where two are named."""
        found = list(self._place.finditer(said))
        if len(found) != 1:
            return said, "" if not found else None
        name = found[0]["name"] or found[0]["called"] or found[0]["file"] or found[0]["bare"]
        page = self._pages[""] if found[0]["home"] else self._pages[name.lower()]
        end = " at the end " if found[0]["end"] else " "
        rest = said[found[0].end() :].lstrip(" " if found[0].start() else " :")
        return said[: found[0].start()] + end + rest, page


def _on_page_of(left: Wish, wish: Wish) -> Wish:
    """`… on the about page and add this photo` means that page, and so does `…, photo attached`."""
    if wish.kind == "attached":
        wish = replace(wish, kind="photo")
    inherits = not wish.page and wish.kind in ("photo", "paragraph", "item", "heading")
    return replace(wish, page=left.page) if inherits else wish


def _key(wish: Wish) -> tuple[object, ...]:
    return (wish.kind, *sorted((name.rstrip("2"), text) for name, text in wish.slots.items()))


def _wish(kind: str, match: re.Match[str], quotes: Quotations, said: str, page: str, everywhere: bool) -> Wish | None:
    """The wish of a match; None if it names a place or a text that this kind does not have."""
    slots = {name: value.strip() for name, value in match.groupdict().items() if value}
    quoted = {name for name, value in slots.items() if re.fullmatch(MARK, value)}
    texts = {_slot(name): quotes.text(value) if name in quoted else value for name, value in slots.items()}
    doubt = ""
    if "new" in slots and "new" not in quoted and not is_plain(slots["new"]):
        doubt = "" if _same_shape(texts.get("old", ""), slots["new"]) else "new"
    if doubt and re.search(r" and | or |,", slots["new"]):
        return None
    if "old" in slots and "old" not in quoted and (kind != "text" or not _same_shape(slots["old"], texts["new"])):
        return None
    if kind == "colour" and (page or colour_of(texts["tint"]) is None or _HEADING_COLOUR.search(match[0])):
        return None  # `the heading colour` may be that of one heading or of all
    if any(re.search(MARK, value) for name, value in slots.items() if name not in quoted):
        return None
    if everywhere and kind not in ("text", "remove"):
        return None
    return Wish(kind, said, texts, page, everywhere, doubt=doubt)


_HEADING_COLOUR = re.compile(r"(?<!main )(?<!big )head(?:ing|line) colou?r", re.I)


_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w|https?://\S+", re.I)
_QUOTE_BELOW = re.compile(rf":[ \t]*\n\s*(?={MARK}\.?[ \t]*(?:\n|\Z))")
"""`Add this paragraph:`, and the quotation on a line of its own."""
_SHOULD_BELOW = re.compile(rf"(?<={MARK})\. (?=[Ii]t (?:should|must|needs to) )")
"""`The heading says “…”.`, and what it should say as a sentence of its own."""


def _same_shape(old: str, new: str) -> bool:
    """Whether two texts differ in numbers only, or are addresses; other words may describe the old text."""
    if _ADDRESS.fullmatch(old) and _ADDRESS.fullmatch(new):
        return True
    return re.sub(r"\d+", "0", old) == re.sub(r"\d+", "0", new) and any(map(str.isdigit, old))


def _joined(wishes: list[Wish]) -> list[Wish]:
    """The wishes with `I attached a photo. Please add it …` as one."""
    found: list[Wish] = []
    for wish in wishes:
        if wish.kind in ("it", "photo") and found and found[-1].kind == "attached":
            note = found.pop()
            slots, page = {**note.slots, **wish.slots}, wish.page or note.page
            found.append(replace(wish, kind="photo", slots=slots, page=page))
        else:
            found.append(wish)
    return found


_PLEASE = re.compile(r"\b(?:pl(?:ea?s?e?|ease|aese|eaes)|pls|plz|kindly)\b", re.I)


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


_CHANGES = re.compile(
    r"(?:(?:hi|hello|please|i|we|you|have|here|are|is|my|our|the|a|an|few|two|three|four|five|some|couple|of|small|little"
    r"|quick|tiny|more|following|new|change|update|correct|move|these|would|like|need|want|could|can|do|make|for|me|us|today|to|on|this|just|also|with"
    r"|site|website|one|another|simple|easy|minor|it's|its|next) )*"
    r"(?:changes?|updates?|edits?|things?|requests?|wish(?:es)?|points?|tweaks?|corrections?|favours?|one|following"
    r"|prices?|hours|opening (?:hours|times)|address|date|number|(?:phone|telephone) number|e-?mail(?: address)?|text)"
    r"(?: (?:for|to|on|from) (?:me|us|you|today|the|my|our|site|website|make|do|be done))*(?: please)? ?:?",
    re.I,
)


def _without_introduction(text: str) -> str:
    """The clause without `Three small changes please:`, which says that wishes follow and nothing else."""
    intro, colon, rest = text.partition(":")
    if not _CHANGES.fullmatch(" ".join(intro.split()).strip(" ,.")):
        return text
    return rest.strip() if colon else ""


def _compiled(template: str) -> re.Pattern[str]:
    """The pattern of a template, for a text in which a blank follows each word."""
    parts = {"[": "(?:", "]": ")?", "(": "(?:", ")": ")", "|": "|"}
    tokens = re.findall(r"<\w+>|[\[\]()|]|[^\s\[\]()|]+", template)
    return re.compile("".join(parts.get(token) or f"{_token(token)} " for token in tokens), re.I)


def _token(token: str) -> str:
    if token.startswith("<"):
        return f"(?P{token}{SLOTS[token[1:-1]]})"
    return f"(?:{CLASSES[token]})" if token in CLASSES else re.escape(token)


PATTERNS = tuple((kind, _compiled(template)) for kind, template in TEMPLATES)
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


def _slot(name: str) -> str:
    """`oldquote` is an `old` that must be quoted."""
    return name.removesuffix("quote") or name
