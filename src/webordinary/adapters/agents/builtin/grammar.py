"""The grammar of wishes: which sentences the built-in agent understands.

A sentence is understood only if one rule consumes all of its words, and all rules that do so mean the same. Text in
quotation marks is taken as it is; text without them only if it cannot be prose, see `is_plain`.
"""

from __future__ import annotations

# ruff: noqa: RUF001  dashes of all kinds
import re
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from webordinary.adapters.agents.builtin.colours import colour_of
from webordinary.adapters.agents.builtin.languages import in_english
from webordinary.adapters.agents.builtin.replacing import read_replacement
from webordinary.mail.parsing.commands import publishes_or_undoes
from webordinary.mail.parsing.small_talk import MARK, Clause, Quotations, clauses_of, nearest_of, word_set

_ATTACHED_PHOTO = (
    "(?:(?:this|the|these|my|our|a|an|attached|enclosed|new|old|current|following) )*"
    "(?:photo|picture|image|pic|photograph)"
)
_MUST = "(?:should|must|needs? to|ha(?:s|ve) to|ought to)(?: now)?"
_WITH_MAIL = "(?: (?:that |which )?(?:i(?:'ve| have)? )?(?:attached|enclosed)| here)?"
RULES = """
words    CHANGE the [new] [<what>] [[from] <old> [(on|of|in) the <what>]] TO <new>
words    (CHANGE the|old) [<what>] [:] <quoted> [,] new [<what>|version] : <new>
words    like the <title> <new>
words    CHANGE the <thing> (of|for) the <near> [from] <old> TO <new>
words    (raise|lower|increase|reduce) the <thing> (of|for) the <near> [from] <old> to <new>
words    CHANGE the <about> from <quoted> TO <new>
words    the [new] [<what>] [,] [[from] <quoted>] [,] (SHOULD|BECOMES|changed to) <new> [instead]
words    a <title> (:|: make it|=) <new>
words    the (<what>|<thing> (of|for) the <near>) SHOULD <new> INSTEAD <quoted>
words    ([should|must|could|can] have|give [it]|make|let) the <what> [say|read|be] <text>
block    CHANGE the BLOCK TO <text>
block    the BLOCK SHOULD <text>
add      (ADD a <kind.added>|a new <kind.new>) [SAYING] <text> [as a <kind.added>] [PLACE] [as a <kind.added>]
add      ADD a <kind.added> [PLACE] [,] it SHOULD <text>
add      (ADD a <kind.added>|a new <kind.new>) PLACE [SAYING] <text>
add      PLACE [,] ADD [a <kind.added>] [SAYING] <text>
add      ADD (in|on) the <list> [SPOT] [a <kind.added>] <text>
add      ADD [:] <text> [as a <kind.added>] [PLACE] [as a <kind.added>]
remove   REMOVE the [whole|entire] [<kind>] [:] <text> [(of|from|off|in) the [<name>] <list>]
remove   take the [<kind>] <text> (out|off|away) [[of] the [<name>] <list>]
remove   the [<kind>] <text> ((should|can|must|may) (go|be GONE)|GONE)
remove   the [<kind>] <text> [is|are] WRONG [,] REMOVE (it|that|this)
remove   we (don't|no longer) (need|want) the [<kind>] <text> [any more|anymore] [,] REMOVE (it|that|this)
remove   have the [<kind>] <text> GONE
remove   REMOVE the BLOCK
photo    ADD PHOTOS [of <alt>] [SPOT]
photo    this (photo|picture|image) [of <alt>] [SPOT]
photo    ADD [(it|them)] [there] [SPOT]
photo    PHOTOS (should|must|can) (go|be (added|shown|put)) [SPOT]
note     [with] PHOTOS [is|are] attached
note     (here|here's|attached|enclosed|find attached) [is|are] [a <adjective>] PHOTOS [of <alt>]
note     ([i] have|i've|i|i'm) (attached|attach|attaching) PHOTOS [of <alt>]
swap     SWAP PHOTO [(of|showing) <subject>] [TO (IT|it|this|that)]
swap     (SWAP|use) (it|this) (TO|INSTEAD) (the [old|current|existing] one|PHOTO) [(of|showing) <subject>]
swap     SWAP TO (IT|it) PHOTO [(of|showing) <subject>]
swap     SWAP the <subject> (photo|picture|image) [TO IT]
swap     [ADD] (IT|it|PHOTO) (to|should|must) SWAP PHOTO [(of|showing) <subject>]
swap     ADD (IT|it) INSTEAD (the [old|current|existing] one|PHOTO) [(of|showing) <subject>]
unphoto  (REMOVE PHOTO [(of|showing) <subject>]|take PHOTO [(of|showing) <subject>] (off|away|out))
unphoto  REMOVE the <subject> (photo|picture|image)
alt      PHOTO (shows|is) <text>
echo     (CHANGE|do|(thanks|thank you) for (doing|fixing|changing|updating|adding|sorting)) (it|this|that|them|so)
shows    (it|they|PHOTOS) (shows|show) <shown>
colour   [CHANGE] the <part> COLOUR (TO|SHOULD) <tint>
colour   [CHANGE] the COLOUR of the <part> (TO|SHOULD) <tint>
colour   (make|paint|colour|color|turn|let) the (<part>|<heading>) [be] [COLOUR] <tint>
colour   [CHANGE] the <plain> (TO|SHOULD) <tint>
colour   a <tint> background
"""
"""Each kind of wish with its sentences: [may be left out], (this|or that), <slot>, WORDS in capitals; `the` and `a`
stand for any article or none. Greetings, small talk, politeness and the name of a page are taken away before."""
WORDS = {
    "the": "(?:the|our|my|your|this|that|its) ",
    "a": "(?:(?:a|an|another|one more|a further|one|the|this|that|my|our|your|following)(?: new| following)?"
    "|new|following) ",
    "CHANGE": "swap out|change|set|update|make|rename|replace|swap|switch|correct|fix|edit|amend|modify|exchange"
    "|adjust|alter|reword|rewrite|revise|convert|rephrase",
    "SWAP": "change|replace|swap|switch|exchange|update",
    "TO": "(?:to be |be )?changed to|to say|to read|to be|to|into|with|by|for|as|say|read|be|:|to :|->|=>|→|=",
    "INSTEAD": "instead of|in place of|rather than",
    "WRONG": "(?:is |are )?(?:wrong|(?:not|no longer) (?:true|right|correct|needed|valid)|out of date|outdated)",
    "BECOMES": "to be changed to|to say|to read|to be|to become|to|becomes?|into|->|=>|→",
    "SHOULD": f"(?:{_MUST} )?be (?:changed to|replaced (?:by|with)|called)|{_MUST}(?: be| say| read| become| have)?"
    "|be|say|read",
    "SAYS": "(?:now |currently |still )?(?:says|reads|is)(?: now| currently| at the moment)?",
    "WRITE": "write|put|use|have|say|(?:change|correct|update|make|let) (?:it|this|that)(?: to)?(?: be| say| read)?",
    "ADD": "add|put|place|insert|use|include|show|post|upload|display|have|append|enter",
    "REMOVE": "remove|delete|take out|get rid of|erase|drop|cut|strike|scrap|omit|strip|cross out|leave out",
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
    "|hours|caption|slogan|spelling|button(?: text)?|link|menu item|wording|part|passage|bit|quote|label"
    "|message|description|greeting|details|fee|cost|amount|figure|age|size|street|town|city|postcode|day)(?: of)?"
)
_NAME = (
    r"(?!(?:with|to|by|for|from|into|and|on|in|at|under|below|list|section|instead|should|the|a|an|our|my|first|second"
    r"|third|last)\b)[\w'&-]+"
)
_NAMES = f"{_NAME}(?: {_NAME}){{0,5}}"
_OF_ONE_THING = rf"(?!(?:x?or|not?|but|without|except|only|all|both|each|every|any|some|others?)\b){_NAME}"
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
    **dict.fromkeys(("near", "under", "name", "alt", "subject"), f"{MARK}|(?:(?:the|our|my) )?{_NAMES}"),
    "adjective": "[a-z]+",
    "about": rf"(?:{_OF_ONE_THING})(?: {_OF_ONE_THING}){{0,5}}",
    "end": "(?:at|to) (?:the )?(?:very )?(?:end|bottom)",
    "top": "(?:at|to) (?:the )?(?:very )?(?:top|beginning|start)",
    "shown": rf"(?:the|our|my|a|an) {_NAME}(?: [\w'&-]+){{0,7}}",
    "part": "(?:site |page |website )?background|(?:main |big )heading|(?:all )?(?:the )?(?:headings|links?|buttons?)"
    "|text|footer|header",
    **{word: word for word in ("list", "heading")},
    "plain": "(?:page |site |website )?background|(?:all )?(?:the )?(?:headings|links?|buttons?)",
    "tint": r"#\w{1,8}|[a-z]+(?:[ -][a-z]+){0,2}",
}
_PLACES = {
    "BLOCK": "(<kind> BEGINS <quoted>|<nth> <kind> [(of|in|from|on) the list])",
    "PLACE": "((<end> of|to|on|in|into|of|for) the [<name>] <list>"
    " [[(of|under|called|BEGINS)] the [heading] <name>]|SPOT)",
    "SPOT": "(<end>|<top>|UNDER the (<nth> <kind>|[heading|paragraph|sentence|text|line|item] <under>) [in the <list>]"
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
    "set the heading on the homepage to “Who we are”",
    "change “open on Mondays” to “open every day”",
    "add this photo to the homepage (and attach it)",
    "replace the photo on the homepage (and attach the new one)",
    "add a paragraph “We are closed in May.” to the homepage",
    "remove the paragraph “We are closed in May.”",
    "change the background colour to white",
)
_REQUEST = (
    r"(?P<request>would you (?:please )?mind|(?:(?:would|could) you )?be so (?:kind|good) (?:as to|to|and)"
    r"|(?:i was wondering (?:if|whether)|do you think|any chance) you (?:could|can|would)"
    r"|(?:would|are) you (?:be )?able to|(?:is|would) it (?:be )?possible to|(?:can|could|would|will) (?:you|we)"
    r"|it(?:'d| would) (?:be )?(?:great|nice|lovely|good|wonderful) if you (?:could|can)"
    r"|(?:i am|i'm|we are|we're) (?:writing|asking|hoping)(?: to ask)?(?: for)? (?:you )?(?:to|if you (?:could|can))"
    r"|(?:it would help|(?:i|we)(?:'d| would) (?:be grateful|appreciate it)) if you (?:could|can)|may i ask you to"
    r"|(?:i|we)(?:'d| would) like to ask (?:you )?(?:to|if you (?:could|can)))"
    r"(?: do (?:me|us) a favou?r and(?= ))?"
)
_BE = re.compile(r" be (?!changed|replaced|removed|deleted|added|corrected|updated|renamed)")
_NAMES_A_PAGE = re.compile(
    r"\b(?:on|to|of|in|from) (?:the|our|my) ([\w' -]{1,30}?) page\b"
    r"|\b(?:auf|in|von) der (?!start|home|haupt|web)([\w-]{3,30}?)-?seite\b",
    re.I,
)
_COULD = re.compile(rf" (?:please )?(?:can|could|may) (?=(?:the|our|my) |{MARK})", re.I)
_POLITE = re.compile(
    rf"(?:hi|hello|please|kindly|just|simply|also|and|then|now|so|next|first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|lastly|ok"
    rf"|actually|as (?:discussed|agreed|mentioned|promised|(?:i|we) (?:said|discussed))"
    rf"(?: on the phone| yesterday| earlier)?"
    rf"|(?:the|our|this)(?: [\w'-]+){{1,6}} (?:is|are) (?:wrong|incorrect|outdated|out of date|not (?:right|correct)) ,"
    rf"|{_REQUEST}|(?:i|we)(?:'d| would)(?= like the (?:{_TITLE}|{_HEADING}) {MARK})"
    rf"|(?:i|we)(?:'d| would) (?:like|love)(?: you)?(?: to)?"
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
_GERUNDS = {f"{one.rstrip('e')}ing": one for one in word_set("add change remove replace delete update make rename")}
_GERUNDS |= {"putting": "put", "setting": "set", "swapping": "swap"}
_EVERYWHERE = re.compile(
    r" (?:everywhere|(?:on|across|in|throughout) (?:all|every|each|the (?:whole|entire))(?: of the)?(?: our| my)?"
    r" (?:pages?|(?:web ?)?site))(?= )",
    re.I,
)
_REGION = re.compile(r" (?:in|at|of|from) the (?P<region>footer|header|menu)(?= )", re.I)
_ON_SITE = re.compile(r" (?:on|in|of|from) (?:the|my|our) (?:web ?)?(?:site|page)(?= )", re.I)
_HOME = r"home ?page|home-page|(?:home|index|front|main|landing|start|welcome) page|index\.(?:html?|md|astro)"
_AND = re.compile(r"(?: ,)? (?:and then|and also|and please|and|then|plus|also|as well as)(?: ,)? | , ")
_STARTS = re.compile(
    rf"(?:(?:please|also|and|then|can|could|i|we|on|the|title|heading) )*(?:{WORDS['CHANGE']}|{WORDS['ADD']}"
    rf"|{WORDS['REMOVE']})\b|[\w ]{{1,30}}:|{MARK}|on ",
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


def _joined_to_a_quotation(found: re.Match[str]) -> str:
    before = re.split(r"[.?!]\s|\n", found.string[: found.start()])[-1]
    return ", " if re.search(rf"{MARK}|\b(?:add|new)\b", before) else found[0]


_NEW_BELOW = re.compile(rf"(?<={MARK})\.?\s+(?=new(?: text| version| wording)?\s*:)", re.I)
"""`Old: “…”`, and `New: “…”` after it."""
_QUOTE_BELOW = re.compile(rf"(?<=[\w:])[ \t]*\n\s*(?={MARK}\.?[ \t]*(?:\n|\Z))")
"""`Add this paragraph:`, and the quotation on a line of its own …"""
_BELOW_QUOTE = re.compile(rf"(?<={MARK})[ \t]*\n\s*(?=(?:to|by|with|into|on|in|from)\b)")
"""… and `to` on the next one."""
_INTRODUCTION = word_set(
    "i we you have here are is my our the a an few two three four five some couple of small little quick tiny more new "
    "following move date just change update edit make these would like need want could can do for me us to on "
    "site website one another simple minor prices hours opening please fix correct this that these it "
    "again there there's it's noticed found seen last has needed required"
)
_FILLERS = word_set(
    "the our my your its it this that there which now currently just so then actually simply also too old "
    "current existing ,"
)
"""Words that a sentence means the same without, if all of its texts are in quotation marks."""
_NAMED = re.compile(rf"\b(?!(?:year|day|time|date|{SLOTS['kind']})s? )(?:{_NOUN}|{WORDS['CHANGE']})s?(?= )")
_BEFORE_A_PAGE = word_set("on in for the our my please")
_CHANGES = word_set(
    "changes updates edits thing things requests wishes tweaks corrections typo typos mistake mistakes error errors"
)
"""`Three small changes please:` says that wishes follow, and nothing else."""
SAME = "="
"""In place of a page: the page of the wish before."""
_AND_COMMAND = re.compile(
    r"(.{1,500}?)(?: ,)? (?:und|et|y|e|en) (?:(?:dann|ensuite|puis|luego|poi|dan) )?(\S+(?: \S+){0,4})", re.I
)
_MOST_JOINTS, _MOST_WISHES, _LONGEST_CLAUSE, _LONGEST_PLAIN = 8, 4, 500, 5
"""In one sentence."""

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

    @property
    def target(self) -> str:
        """What it gives one value to; two wishes of a mail with the same target contradict each other."""
        if self.kind not in ("title", "heading", "colour"):
            return self.said
        return (
            f"{self.kind} {self.page} {self.get('old')} {self.get('part') or self.get('plain') or self.get('heading')}"
        )


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """The part of a mail that no rule consumes."""

    said: str


class Grammar:
    """Reads the wishes of a mail about a site with these pages, each under all of its names; the homepage under ""."""

    def __init__(self, pages: Mapping[str, str], words: Container[str] = ()) -> None:
        self._pages, self._words = pages, words
        names = "|".join(re.escape(name) for name in sorted(pages, key=len, reverse=True) if name) or "(?!)"
        files = "|".join(re.escape(name) for name in pages if "." in name) or "(?!)"
        self._place = re.compile(
            rf"(?P<end> (?:at|to|on) the (?:very )?(?:end|bottom|top|beginning|start)(?= of))?"
            rf"(?: (?:on|of|in|for|from|at|to|onto|into))?(?: (?:the|our|my|your))?"
            rf" (?:(?P<home>{_HOME})(?: page)?|(?P<name>{names})(?:'s)? page|(?P<same>same page)"
            rf"|page (?:of (?:the )?)?(?P<called>{names})|(?P<file>{files}))"
            rf"(?:'s)?(?: only)?(?: ,)?(?= |\Z)",
            re.I,
        )

        self._bare_place = re.compile(rf" (?:on|of|in|from|at|to) (?:the|our|my) (?P<name>{names})(?: ,)?(?= )", re.I)

    def read(self, text: str, quotes: Quotations, aside: Collection[str] = ()) -> list[Wish] | Misunderstood:
        """The wishes of a mail in order, without the parts left aside, or its first part that is not understood."""
        wishes: list[Wish] = []
        scope, blocks, opened, news = "", range(0), "", ""
        said = _NEW_BELOW.sub(", ", quotes.set_aside(_DOTTED.sub(lambda word: word[0].replace(".", ""), text)))
        said = _GOES_ON.sub(_joined_to_a_quotation, _BELOW_QUOTE.sub(" ", _QUOTE_BELOW.sub(" ", said)))
        for clause in clauses_of(said, "", _STARTS, name_below=True):
            shown = quotes.shown(clause.text)
            if shown in aside:
                continue
            if len(clause.text) > _LONGEST_CLAUSE:
                return Misunderstood(shown)
            text = _PHOTO_OF.sub(lambda one, quotes=quotes: f"{one[1]} of {quotes.mark(one[2])}", clause.text)  # type: ignore[misc]
            text = _with_exact_texts(self._with_page_names(text, quotes), quotes)
            if not wishes and (reason := _NEWS.match(text)):
                news, text = shown, text[reason.end() :]
            page, rest = self._introduced(text)
            rest = self.in_english(rest)
            if page:
                if opened:
                    break
                scope, blocks, opened = page, range(clause.block, clause.block + 2), shown
            if not rest.strip():
                continue
            found = self._readings(replace(clause, text=rest), _normal(rest), quotes)
            if found is None:
                return Misunderstood(shown)
            if found[0].kind == "echo":
                if wishes and not re.search(r"(?i)\b(?:too|also|as well|again)\b", shown):
                    continue
                return Misunderstood(shown)
            here, opened = scope if clause.block in blocks else "", ""
            for one in found:
                if one.page == SAME and not (wishes and wishes[-1].page):
                    return Misunderstood(shown)
                wishes.append(replace(one, page=wishes[-1].page if one.page == SAME else one.page or here))
            blocks = range(clause.block, clause.block + 1) if clause.block in blocks else range(0)
        return Misunderstood(opened or news) if opened or (news and not wishes) else _joined(wishes)

    def _with_page_names(self, text: str, quotes: Quotations) -> str:
        """`the page “About”` as `the page About`, if the site has such a page."""

        def named(found: re.Match[str]) -> str:
            name = quotes.text(found["mark"])
            return found[0].replace(found["mark"], name) if name.lower() in self._pages else found[0]

        return re.sub(rf"(?i)(?<=page |eite |gina )(?P<mark>{MARK})", named, text)

    def _introduced(self, text: str) -> tuple[str, str]:
        """The page of `On the about page:`, and the clause without it and without `Three changes please:`."""
        intro, colon, rest = text.partition(":")
        words, page = self._without_place(_normal(_POLITE_END.sub("", self.in_english(intro).strip())))
        said = set(re.findall(r"[^\s,.]+", _NAMED.sub("", words.lower())))
        if said <= _INTRODUCTION | _CHANGES and (colon or said & _CHANGES or (page and said <= _BEFORE_A_PAGE)):
            return page or "", rest
        return "", text

    def in_english(self, text: str) -> str:
        """A clause of another language as an English one, with the command that it ends with; else as it is."""
        joined = _AND_COMMAND.fullmatch(text)
        command = publishes_or_undoes(Clause(joined[2])) if joined else None
        if joined and command and (wish := in_english(_normal(joined[1]), self._pages, self._words)):
            return f"{wish} and {command}"
        return in_english(_normal(text), self._pages, self._words) or text

    def page_of(self, said: str) -> str:
        """The page that these words name, also without the word page; empty if they name none."""
        rest, page = self._without_place(f" {said} ")
        if page and not rest.strip():
            return page
        return self._pages.get(said.lower().removeprefix("the "), "") if said else ""

    def unknown_page(self, said: str) -> str:
        """The page that a wish names and the site does not have."""
        found = _NAMES_A_PAGE.search(said)
        return next(filter(None, found.groups())) if found and not self._place.search(_normal(said)) else ""

    def _readings(self, clause: Clause, said: str, quotes: Quotations) -> list[Wish] | None:
        """The only way to read a sentence as one wish or several; None if there is none, or more than one."""
        command = publishes_or_undoes(Clause(clause.text, clause.asks))
        if command is not None:
            return [Wish(str(command), clause.text, {})]
        if clause.asks and (asked := _COULD.match(said)) and (_PLEASE.search(clause.text) or not _BE.search(said)):
            said, clause = f" let {said[asked.end() :]}", replace(clause, asks=False)
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
        rest = f"{_verb(verb.lower()) or verb} {tail}".strip() + " "
        core = " ".join(word for word in rest.split() if word.lower() not in _FILLERS) + " "
        wish = _replacement(rest, quotes) or _only_reading(rest, quotes)
        wish = wish or (_only_reading(core, quotes, exact=True) if core != rest else None)
        if wish is None:
            return None
        if ((everywhere or region) and wish.kind not in ("text", "remove")) or (wish.kind == "colour" and page):
            return None
        where = region["region"].lower() if region else ""
        return replace(wish, said=quotes.shown(said), page=page, everywhere=bool(everywhere), region=where)

    def _without_place(self, said: str) -> tuple[str, str | None]:
        """The wish without the page that it names, and that page; None for it where two are named."""
        found = list(self._place.finditer(said))
        if not found and (bare := self._bare_place.search(said)):
            return f"{said[: bare.start()]} {said[bare.end() :].lstrip()}", self._pages[bare["name"].lower()]
        if len(found) != 1:
            return said, "" if not found else None
        name = found[0]["name"] or found[0]["called"] or found[0]["file"]
        page = SAME if found[0]["same"] else self._pages[""] if found[0]["home"] else self._pages[name.lower()]
        rest = said[found[0].end() :].lstrip(" " if found[0].start() else " :")
        return said[: found[0].start()] + (
            f" at {found[0]['end'].split(maxsplit=1)[1]} " if found[0]["end"] else " "
        ) + rest, page


_SUBJECT = r" (?!(?:not?|n[oe]ver|nothing|none|neither|ha(?:s|ve|d)|is|are|was|were|may|might|could|of)\b)[\w'&-]+"
_NEWS = re.compile(
    rf"(?:(?:(?:the|our|my)(?:{_SUBJECT}){{1,4}}|(?:{_SUBJECT[1:]} ){{0,3}}(?:{_NOUN}|subs|subscriptions)s?) (?:"
    r"(?:has|have) (?:(?:just|now|finally|recently|been) )*(?:changed|moved|updated|postponed|gone up|gone down)"
    r"|(?:is|are) (?:now )?(?:different|changing|moving|new|going up|going down)|changed|moved|went (?:up|down))"
    rf"|we(?: have|'ve got|'ve)(?: got)? (?:a )?new (?:{_NOUN}|fee|subscription)s?"
    r"|we(?:'re| are)? (?:now )?(?:open|start|clos|meet)(?:e|ing)?(?: (?!on |in |at )[\w-]+){0,3} (?:earlier|later)"
    r"|we(?:'re| are|'ve| have)(?: had to)? (?:putt?|rais)(?:e|ed|ing)?(?: (?:the|our|up))* (?:prices|fees)(?: up)?)"
    r"(?: (?:again|now|on \w+days|from now on|these days|slightly|a (?:little|bit|tiny bit)))*(?: ?: ?| ?,? so |\Z)"
    r"|(?:(?:unsere?|die|der|das)(?: \w+){1,3} (?:(?:haben|hat) sich (?:etwas )?geändert|änder[nt]+ sich"
    r"|w(?:ird|urde) verschoben)"
    r"|wir haben (?:eine )?neue \w*(?:zeiten|preise|nummer|adresse))(?: ?: ?|\Z)"
    r"|(?:nos|notre|les?|la)(?: \w+){1,4} (?:(?:ont|a) (?:un peu )?changé|change(?:nt)?|est (?:reporté|déplacé)e?)"
    r"(?: ?: ?|\Z)"
    r"|(?:nuestr[oa]s?|los?|las?|el)(?: \w+){1,3} (?:han? cambiado|cambian?)(?: ?: ?|\Z)"
    r"|(?:i|il|gli|le|la|l')(?: ?\w+){1,3} (?:(?:è|sono) cambiat[oaie]|cambia(?:no)?)(?: ?: ?|\Z)"
    r"|(?:de|het|onze)(?: \w+){1,3} (?:(?:is|zijn) (?:veranderd|gewijzigd)|gaat (?:iets )?omhoog|verander(?:t|en))"
    r"(?: ?: ?|\Z)",
    re.I,
)
"""`Our hours have changed:` before the first wish gives its reason, and nothing else."""
_EXACT = re.compile(
    r"(?<![\w.+-])(?:[€£$] ?\d[\d.,]*\d|\d[\d.,]* ?(?:[€£$]|euros?\b)|[\w.+-]+@[\w-]+\.[\w.-]*\w"
    r"|[+(]?\d[\d ()/-]{6,}\d)(?![\w-])"
)


_PHOTO_OF = re.compile(
    r"((?:anbei|im anhang|hier|voici|ci-joint|adjunto|aquí|in allegato|ecco|allego|hierbij|bijgaand|bijgevoegd)\b"
    r".{1,30}?(?:foto|bild|photo|image|imagen|immagine|afbeelding)) (?:vo[nm]|d[eiu]|d'|del|dell[ao']|van) ?"
    r"(?:(?:der|dem|den|la|le|les|el|los|las|de|het) )?([\w'-]+(?: [\w'-]+){0,3})(?=,|\Z)",
    re.I,
)
"""What a photo shows, after `Here is`, in other languages than English: words of its own."""


def _with_exact_texts(text: str, quotes: Quotations) -> str:
    """Of two phone numbers, addresses or amounts one is the old text and one the new, also without quotation marks."""
    return _EXACT.sub(lambda found: quotes.mark(found[0]), text) if len(_EXACT.findall(text)) == 2 else text


def _verb(word: str) -> str:
    """`changing` and `chnge` as `change`, and not `changed`; nothing for any other word."""
    if not word or word in _GERUNDS:
        return _GERUNDS.get(word, "")
    return nearest_of(word, [verb for verb in _GERUNDS.values() if len(verb) > 4 and not word.startswith(verb)])


def _only_reading(said: str, quotes: Quotations, *, exact: bool = False) -> Wish | None:
    """What the rules that consume all of a sentence mean by it, if that is one thing. `exact` asks for quoted texts."""
    matches = [(kind, match) for kind, pattern in PATTERNS if (match := pattern.fullmatch(said))]
    if exact:
        matches = [one for one in matches if _is_exact(one[1])]
    wishes = [_wish(kind, match, quotes) for kind, match in matches]
    found = {repr(sorted(one.slots.items())) + one.kind: one for one in wishes if one is not None}
    clear = [one for one in found.values() if not one.doubt] or list(found.values())
    return clear[0] if len(clear) == 1 else None


def _replacement(said: str, quotes: Quotations) -> Wish | None:
    found = read_replacement(said)
    return Wish(found[0], "", {name: quotes.text(mark) for name, mark in found[1].items()}) if found else None


def _is_exact(match: re.Match[str]) -> bool:
    return all(
        re.fullmatch(MARK, value.strip())
        for name, value in match.groupdict().items()
        if value and name.partition("_")[0] in ("old", "new", "alt", "shown", "near")
    )


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
    named = kind == "heading" and "new" in quoted
    if old and "old" not in quoted and not named and (kind != "text" or not _same_shape(old, new)):
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
    """The wishes with `I attached a photo. Please add it … It shows …` as one."""
    found: list[Wish] = []
    for one in wishes:
        wish = replace(one, kind="alt", slots={"text": one.get("shown")}) if one.kind == "shows" else one
        if one.kind == "shows" and found and found[-1].kind in ("photo", "swap", "note"):
            found[-1] = replace(found[-1], slots={"alt": one.get("shown"), **found[-1].slots})
            continue
        note = found.pop() if wish.kind in ("photo", "swap") and found and found[-1].kind == "note" else wish
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
