"""What one line of a mail is by its own words: quoted text, an introduction of it, a header field, a mark, or text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from webordinary.mail.parsing.phrases import DATE_FIELDS, alternatives, any_of, any_word_of

# ruff: noqa: RUF001  colons and dashes of other alphabets

MAX_LINE = 400
"""A longer line is a paragraph."""

MAX_NAME = 6
"""Words of a name."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a body."""

    text: str
    kind: str = ""
    """The letter that the markup of an HTML mail gives to it; empty: its words decide."""


EMPTY = re.compile(r"[\s\u00a0\u00ad\u034f\u200b-\u200f\u2060\ufeff]*$")
QUOTE = re.compile(r"(?!.*<<$)\s*(?:>|&gt;|\uff1e|[A-Z]{1,3}>(?:\s|$))")
SIGNATURE_MARK = re.compile(r"(?:--|—|–|―|__|_{20,})\s*$")
RULER = re.compile(r"\s*(?:[-=_*~#+—–‐‑‒―]{3,}|[—–]{2,}|ᐧ)\s*$")
DASHES = "-=_*~#+—–‐‑‒― \t"
TITLE = re.compile(r"[\s*]{0,4}[-=_*~#+—–‐‑‒―]{2,60}+")
_FORWARDED = frozenset(alternatives("forwarded"))
ORIGINAL = frozenset(alternatives("original"))
_ABOVE = tuple(tuple(phrase.split("…")) for phrase in alternatives("above"))
_THIS_LINE = tuple({pieces[-1] for pieces in _ABOVE})
_TITLE_AND_HEADER = re.compile(r"[-=_]{2,60}+\s?([^-=_]{4,60})[-=_]{2,60}+\s*(?=\S)")
"""A phone puts the title of the history and its header on one line."""
_FRAMED = re.compile(r">>>\s?([^>].{2,200}?)\s?>>>$")
"""GroupWise: `>>> Ann <ann@shop.example> 1/5/2023 10:20 AM >>>`."""
MAX_DELIMITER = 200
DEVICE = re.compile(rf"(?i)^[\s*<(_[]{{0,4}}{any_of('device')}[\s*.>)_\]]{{0,8}}$")
LINK = re.compile(r"\[([^\[\]]{1,100})\]\(http[^()\s]{1,300}\)|[\s<(]{0,2}https?:[^\s<>()]{1,300}[>)]?")

_TABLE = (
    ("e", EMPTY),
    ("q", QUOTE),
    ("g", SIGNATURE_MARK),
    ("r", RULER),
    ("s", DEVICE),
)
"""The first pattern that fits names the line; then come introductions (b) and headers (h), and all else is text (t)."""


def letter_of(line: str) -> str:
    """The kind of one line, without its neighbours."""
    line = line.strip()
    if len(line) > MAX_LINE:
        return "q" if QUOTE.match(line) else "t"
    if (framed := _FRAMED.match(line)) and (is_dated(framed[1]) or ADDRESS.search(framed[1])):
        return "b"
    found = next((letter for letter, pattern in _TABLE if pattern.match(line)), "") or delimits(line)
    if not found and "http" in line and DEVICE.match(LINK.sub(r"\1", line)):
        found = "s"
    return found or ("b" if introduces(line) else "h" if role_of(line) else "t")


def delimits(line: str) -> str:
    """Does this line announce a forwarded mail (f), or delimit history (d)?"""
    title = _TITLE_AND_HEADER.match(line)
    if title and title[1].strip().lower() in ORIGINAL and role_of(line[title.end() :]):
        return "d"
    if len(line) > MAX_DELIMITER:
        return ""
    words, dashed = line.strip(DASHES).lower(), TITLE.match(line) is not None
    if words.rstrip(":： ") in _FORWARDED and (dashed or words.endswith((":", "："))):
        return "f"
    ruled = dashed and line.endswith(("--", "__", "==", "~~", "##", "—", "‐", "―", "-*", "- *"))
    if ruled and (words in ORIGINAL or _ends_with_verb(words)):
        return "d"
    if dashed and any(piece in words for piece in _THIS_LINE):
        return "d"
    return "d" if any(_contains_in_order(words, pieces) for pieces in _ABOVE) else ""


def _ends_with_verb(words: str) -> bool:
    return any(verb.end() == len(words) for verb in WROTE.finditer(words))


def _contains_in_order(words: str, pieces: Sequence[str]) -> bool:
    at = 0
    for piece in pieces:
        at = words.find(piece, at)
        if at < 0:
            return False
    return True


# Introductions: "On 5 Jan 2023 at 10:20, Ann <ann@shop.example> wrote:" in any language and order.

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
WROTE = re.compile(any_word_of("wrote"), re.I)
ADDRESS = re.compile(r"[^\s<>()\[\]\"«»,;:]{1,80}@[^\s<>()\[\]\"«»,;:]{1,200}")
BRACKETED = re.compile(r"[<(\[]\s?(?:mailto:)?[^\s<>()@]{1,80}@[^\s<>()@]{1,200}\s?[>)\]]")
TIME = re.compile(r"(?<![\d.])\d{1,2}[:.h]\d{2}(?!\d|\.\s?\d)")
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
NUMERIC_DATE = re.compile(r"\d{1,4}(?:[/-]|\.\s?)\d{1,2}(?:[/-]|\.\s?)\d{1,4}")
_LEAD = re.compile(r"(?:[^\W\d]+\W+){0,4}(?:[^\W\d]+\W*)?\d")
"""Few words, then the first number of a date."""
_ISO_LEAD = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b")
_CJK_DATE_LEAD = re.compile(r"\d{4}\s?[年년]\s?\d{1,2}\s?[月월]")
_ISO_NAME = re.compile(r"\d{4}-\d\d-\d\d \d{1,2}:\d\d GMT[+-]\d\d:\d\d \S.{0,80}$")
_ENGLISH_DAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? ", re.I)
_QUOTING = re.compile(r"(?:quoting|zitat von|citando|citing|citat|citát|cytat|citação de|citazione)\b.{2,200}$", re.I)
_ON_SENT = re.compile(r"on\b.{4,200}\bsent$", re.I)
NUMBER_END = re.compile(r"(?:\d|\b\w{1,4})\.$")
"""Of a date: "5." or "Jan."."""
REST_OF_ADDRESS = re.compile(rf"\s*>,?\s*(?:{any_word_of('wrote')}\s?[:：]?|[:：])\s*$", re.I)
"""The `>` closes an address that was broken over two lines."""
_PARTICLES = {
    "van", "von", "de", "der", "den", "del", "da", "di", "du", "la", "le", "dos", "af", "av", "via", "bin", "al", "el",
    "und", "and", "dit", "het", "volgende", "följande", "følgende",
}  # fmt: skip
HEADERS_IN_A_LINE = re.compile(r"(?i)^[\s*]{0,4}from:?\s.{2,100}\b(?:sent|date)\s?:.{4,200}$")


def introduces(line: str) -> bool:
    """Is this line an introduction, whatever follows it?"""
    line, closed = undecorated(line)
    if not line or len(line) > MAX_LINE:
        return False
    if verb := WROTE.search(line):
        return _tells_who_wrote(line, line[: verb.start()], line[verb.end() :].strip(" :.,)"), closed)
    if _QUOTING.match(line) and (closed or (TIME.search(line) and YEAR.search(line))):
        return True
    if closed:
        return bool(TIME.search(line) and BRACKETED.search(line))
    dated = bool(_ISO_LEAD.match(line) or _ENGLISH_DAY.match(line) or _CJK_DATE_LEAD.match(line))
    ends_with_address = any(found.end() == len(line) for found in BRACKETED.finditer(line))
    others = (_ISO_NAME, _ON_SENT, HEADERS_IN_A_LINE)
    return (dated and ends_with_address) or any(pattern.match(line) for pattern in others)


def _tells_who_wrote(line: str, before: str, after: str, closed: bool) -> bool:
    if not (closed or not after) or len(after) > 150:
        return False
    dated, addressed = is_dated(line), bool(ADDRESS.search(line))
    if addressed:
        return dated or not after
    if not dated:
        return False
    if leads(line):
        timed = TIME.search(line) is not None and after.count(" ") < MAX_NAME
        return not after or timed or is_name(after) or is_dated(after)
    return is_name(before) and (not after or is_dated(after))


def is_name(text: str) -> bool:
    """A few words that all begin with a capital, or are written without capitals."""
    words = [word.strip("\"'“”„«»()[],.-") for word in text.split()]
    return len(words) <= MAX_NAME and all(not word[:1].islower() or word in _PARTICLES for word in words)


def is_dated(text: str) -> bool:
    """A time, a date in digits, or a year and a day."""
    year = YEAR.search(text)
    others = year and re.search(r"\d", text[: year.start()] + text[year.end() :])
    return bool(others or TIME.search(text) or NUMERIC_DATE.search(text))


def leads(line: str) -> bool:
    """Does this line begin with a date, after a few words such as "Am Donnerstag,"?"""
    return _LEAD.match(line[:60]) is not None


def undecorated(line: str) -> tuple[str, bool]:
    """Without emphasis, dashes and marks of direction; whether it ended with a colon."""
    bare = _INVISIBLE.sub("", line).strip().strip("*_-–— \t")
    closed = bare.endswith((":", "："))
    return (bare.rstrip(":： ") if closed else bare), closed


def may_introduce(line: str) -> bool:
    """Is this an introduction, where quotes follow it: a colon, and a verb, a date or an address before it?"""
    line, closed = undecorated(line)
    if not closed or len(line) > MAX_LINE:
        return False
    return bool(WROTE.search(line) or ADDRESS.search(line)) or is_dated(line)


# Header fields that a mail program repeats above the mail that is answered.

_ROLES = {name: role for role in ("subject", "recipient", "sent", "sender") for name in alternatives(role)}
_FIELD = re.compile(r"[\s*_>|]{0,6}([^\s:：*<>@][^:：*<>@]{0,24}?)[\s*_]{0,4}[:：]")


def role_of(line: str) -> str:
    """What the header field in this line names; empty if there is none."""
    field = _FIELD.match(_INVISIBLE.sub("", line[:80]))
    return _ROLES.get(field[1].lower(), "") if field else ""


def is_header(lines: Sequence[str], *, announced: bool) -> bool:
    """Are these header fields of a mail, and no list such as "From: 9, To: 17", nor an announced text for a form?"""
    roles = {role_of(line) for line in lines} - {""}
    if announced and not any(tells_when_it_was_sent(line) for line in lines):
        return False
    if not roles & {"sender", "sent"} or len(roles) < 2:
        return False
    if any(_HOURS.match(line) for line in lines) and not any(map(_tells_day_and_time_of_sending, lines)):
        return False  # a stranger, whose mail is answered, chooses its subject and its first lines
    addressed = any(ADDRESS.search(line) for line in lines)
    if len(roles) == 2 and all(BRACKETED.search(line) for line in lines if role_of(line) != "subject"):
        return True
    if len(roles) >= 3:
        return addressed or "subject" in roles or any(names_sending(line) for line in lines)
    return addressed and any(role_of(line) == "sent" and is_dated(line) for line in lines)


_HOURS = re.compile(r"[^\s:：]{1,12}\s?[:：]\s*\d{1,2}(?:[:.h]\d\d)?(?:\s?(?:[ap]m|uhr|h))?\s*$", re.I)
"""From: 10:00"""


def _tells_day_and_time_of_sending(line: str) -> bool:
    dated = TIME.search(line) and (YEAR.search(line) or NUMERIC_DATE.search(line))
    return role_of(line) == "sent" and bool(dated)


def tells_when_it_was_sent(line: str) -> bool:
    """Is this the date field of a header, with a date or under a name that only mail has?"""
    return role_of(line) == "sent" and (is_dated(line) or names_sending(line))


def names_sending(line: str) -> bool:
    """Is this a date field called like "Sent:", and not "Date:", which people write as well?"""
    field = _FIELD.match(line[:80])
    return role_of(line) == "sent" and field is not None and field[1].lower() not in DATE_FIELDS


MIN_WRAPPED_QUOTE = 60


def one_line(texts: Sequence[str]) -> str:
    """Wrapped lines as one."""
    return " ".join(text.strip() for text in texts)


def is_long_rule(line: str) -> bool:
    """Dashes, more than the two of a signature."""
    return len(line.strip()) > len("--") and not line.strip().strip("_-—–―")


MAX_SIGNED = 3
