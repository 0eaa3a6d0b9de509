"""The part of a mail that its writer wrote now, apart from quoted history and signatures.

Each line gets a letter for its kind; the rules look for history in the string of letters. Where a rule is in doubt, the
text is kept: a customer's words must not get lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from webordinary.mail.parsing.phrases import DATE_FIELDS, alternatives, any_of, any_word_of
from webordinary.mail.parsing.small_talk import clauses_of

# ruff: noqa: RUF001  colons and dashes of other alphabets

MAX_LINE = 400
"""A longer line is a paragraph."""
MAX_LINES = 5000
MAX_INTRODUCTIONS = 300
"""So many lines are tried as the last of an introduction that is wrapped over several."""
MAX_NAME = 6
"""Words of a name."""
MAX_WRAPPED = 5
"""An introduction is wrapped over at most so many lines."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a body."""

    text: str
    kind: str = ""
    """The letter that the markup of an HTML mail gives to it; empty: its words decide."""


# The kind of a line by its own words.

EMPTY = re.compile(r"[\s\u00a0\u00ad\u034f\u200b-\u200f\u2060\ufeff]*$")
QUOTE = re.compile(r"(?!.*<<$)\s*(?:>|&gt;|\uff1e|[A-Z]{1,3}>(?:\s|$))")
SIGNATURE_MARK = re.compile(r"(?:--|—|–|―|__|_{20,})\s*$")
RULER = re.compile(r"\s*(?:[-=_*~#+—–‐‑‒―]{3,}|[—–]{2,}|ᐧ)\s*$")
_DASHES = "-=_*~#+—–‐‑‒― \t"
_TITLE = re.compile(r"[\s*]{0,4}[-=_*~#+—–‐‑‒―]{2,60}+")
_FORWARDED = frozenset(alternatives("forwarded"))
_ORIGINAL = frozenset(alternatives("original"))
_ABOVE = tuple(tuple(phrase.split("…")) for phrase in alternatives("above"))
_THIS_LINE = tuple({pieces[-1] for pieces in _ABOVE})
_TITLE_AND_HEADER = re.compile(r"[-=_]{2,60}+\s?([^-=_]{4,60})[-=_]{2,60}+\s*(?=\S)")
"""A phone puts the title of the history and its header on one line."""
_FRAMED = re.compile(r">>>\s?([^>].{2,200}?)\s?>>>$")
"""GroupWise: `>>> Ann <ann@shop.example> 1/5/2023 10:20 AM >>>`."""
MAX_DELIMITER = 200
DEVICE = re.compile(rf"(?i)^[\s*<(_[]{{0,4}}{any_of('device')}[\s*.>)_\]]{{0,8}}$")
_LINK = re.compile(r"\[([^\[\]]{1,100})\]\(http[^()\s]{1,300}\)|[\s<(]{0,2}https?:[^\s<>()]{1,300}[>)]?")

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
    if (framed := _FRAMED.match(line)) and (is_dated(framed[1]) or _ADDRESS.search(framed[1])):
        return "b"
    found = next((letter for letter, pattern in _TABLE if pattern.match(line)), "") or _delimits(line)
    if not found and "http" in line and DEVICE.match(_LINK.sub(r"\1", line)):
        found = "s"
    return found or ("b" if introduces(line) else "h" if role_of(line) else "t")


def _delimits(line: str) -> str:
    """Does this line announce a forwarded mail (f), or delimit history (d)?"""
    title = _TITLE_AND_HEADER.match(line)
    if title and title[1].strip().lower() in _ORIGINAL and role_of(line[title.end() :]):
        return "d"
    if len(line) > MAX_DELIMITER:
        return ""
    words, dashed = line.strip(_DASHES).lower(), _TITLE.match(line) is not None
    if words.rstrip(":： ") in _FORWARDED and (dashed or words.endswith((":", "："))):
        return "f"
    ruled = dashed and line.endswith(("--", "__", "==", "~~", "##", "—", "‐", "―", "-*", "- *"))
    if ruled and (words in _ORIGINAL or _ends_with_verb(words)):
        return "d"
    if dashed and any(piece in words for piece in _THIS_LINE):
        return "d"
    return "d" if any(_contains_in_order(words, pieces) for pieces in _ABOVE) else ""


def _ends_with_verb(words: str) -> bool:
    return any(verb.end() == len(words) for verb in _WROTE.finditer(words))


def _contains_in_order(words: str, pieces: Sequence[str]) -> bool:
    at = 0
    for piece in pieces:
        at = words.find(piece, at)
        if at < 0:
            return False
    return True


# Introductions: "On 5 Jan 2023 at 10:20, Ann <ann@shop.example> wrote:" in any language and order.

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_WROTE = re.compile(any_word_of("wrote"), re.I)
_ADDRESS = re.compile(r"[^\s<>()\[\]\"«»,;:]{1,80}@[^\s<>()\[\]\"«»,;:]{1,200}")
_BRACKETED = re.compile(r"[<(\[]\s?(?:mailto:)?[^\s<>()@]{1,80}@[^\s<>()@]{1,200}\s?[>)\]]")
_TIME = re.compile(r"(?<![\d.])\d{1,2}[:.h]\d{2}(?!\d|\.\s?\d)")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_NUMERIC_DATE = re.compile(r"\d{1,4}(?:[/-]|\.\s?)\d{1,2}(?:[/-]|\.\s?)\d{1,4}")
_LEAD = re.compile(r"(?:[^\W\d]+\W+){0,4}(?:[^\W\d]+\W*)?\d")
"""Few words, then the first number of a date."""
_ISO_LEAD = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b")
_CJK_DATE_LEAD = re.compile(r"\d{4}\s?[年년]\s?\d{1,2}\s?[月월]")
_ISO_NAME = re.compile(r"\d{4}-\d\d-\d\d \d{1,2}:\d\d GMT[+-]\d\d:\d\d \S.{0,80}$")
_ENGLISH_DAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? ", re.I)
_QUOTING = re.compile(r"(?:quoting|zitat von|citando|citing|citat|citát|cytat|citação de|citazione)\b.{2,200}$", re.I)
_ON_SENT = re.compile(r"on\b.{4,200}\bsent$", re.I)
_NUMBER_END = re.compile(r"(?:\d|\b\w{1,4})\.$")
"""Of a date: "5." or "Jan."."""
_REST_OF_ADDRESS = re.compile(rf"\s*>,?\s*(?:{any_word_of('wrote')}\s?[:：]?|[:：])\s*$", re.I)
"""The `>` closes an address that was broken over two lines."""
_PARTICLES = {
    "van", "von", "de", "der", "den", "del", "da", "di", "du", "la", "le", "dos", "af", "av", "via", "bin", "al", "el",
    "und", "and", "dit", "het", "volgende", "följande", "følgende",
}  # fmt: skip
_HEADERS_IN_A_LINE = re.compile(r"(?i)^[\s*]{0,4}from:?\s.{2,100}\b(?:sent|date)\s?:.{4,200}$")


def introduces(line: str) -> bool:
    """Is this line an introduction, whatever follows it?"""
    line, closed = _undecorated(line)
    if not line or len(line) > MAX_LINE:
        return False
    if verb := _WROTE.search(line):
        return _tells_who_wrote(line, line[: verb.start()], line[verb.end() :].strip(" :.,)"), closed)
    if _QUOTING.match(line) and (closed or (_TIME.search(line) and _YEAR.search(line))):
        return True
    if closed:
        return bool(_TIME.search(line) and _BRACKETED.search(line))
    dated = bool(_ISO_LEAD.match(line) or _ENGLISH_DAY.match(line) or _CJK_DATE_LEAD.match(line))
    ends_with_address = any(found.end() == len(line) for found in _BRACKETED.finditer(line))
    others = (_ISO_NAME, _ON_SENT, _HEADERS_IN_A_LINE)
    return (dated and ends_with_address) or any(pattern.match(line) for pattern in others)


def _tells_who_wrote(line: str, before: str, after: str, closed: bool) -> bool:
    if not (closed or not after) or len(after) > 150:
        return False
    dated, addressed = is_dated(line), bool(_ADDRESS.search(line))
    if addressed:
        return dated or not after
    if not dated:
        return False
    if leads(line):
        timed = _TIME.search(line) is not None and after.count(" ") < MAX_NAME
        return not after or timed or is_name(after) or is_dated(after)
    return is_name(before) and (not after or is_dated(after))


def is_name(text: str) -> bool:
    """A few words that all begin with a capital, or are written without capitals."""
    words = [word.strip("\"'“”„«»()[],.-") for word in text.split()]
    return len(words) <= MAX_NAME and all(not word[:1].islower() or word in _PARTICLES for word in words)


def is_dated(text: str) -> bool:
    """A time, a date in digits, or a year and a day."""
    year = _YEAR.search(text)
    others = year and re.search(r"\d", text[: year.start()] + text[year.end() :])
    return bool(others or _TIME.search(text) or _NUMERIC_DATE.search(text))


def leads(line: str) -> bool:
    """Does this line begin with a date, after a few words such as "Am Donnerstag,"?"""
    return _LEAD.match(line[:60]) is not None


def _undecorated(line: str) -> tuple[str, bool]:
    """Without emphasis, dashes and marks of direction; whether it ended with a colon."""
    bare = _INVISIBLE.sub("", line).strip().strip("*_-–— \t")
    closed = bare.endswith((":", "："))
    return (bare.rstrip(":： ") if closed else bare), closed


def may_introduce(line: str) -> bool:
    """Is this an introduction, where quotes follow it: a colon, and a verb, a date or an address before it?"""
    line, closed = _undecorated(line)
    if not closed or len(line) > MAX_LINE:
        return False
    return bool(_WROTE.search(line) or _ADDRESS.search(line)) or is_dated(line)


# Header fields that a mail program repeats above the mail that is answered.

_ROLES = {name: role for role in ("subject", "recipient", "sent", "sender") for name in alternatives(role)}
_FIELD = re.compile(r"[\s*_>|]{0,6}([^\s:：*<>@][^:：*<>@]{0,24}?)[\s*_]{0,4}[:：]")


def role_of(line: str) -> str:
    """What the header field in this line names; empty if there is none."""
    field = _FIELD.match(_INVISIBLE.sub("", line[:80]))
    return _ROLES.get(field[1].lower(), "") if field else ""


def _is_header(lines: Sequence[str], *, announced: bool) -> bool:
    """Are these header fields of a mail, and no list such as "From: 9, To: 17", nor an announced text for a form?"""
    roles = {role_of(line) for line in lines} - {""}
    if announced and not any(_tells_when_it_was_sent(line) for line in lines):
        return False
    if not roles & {"sender", "sent"} or len(roles) < 2:
        return False
    if any(_HOURS.match(line) for line in lines) and not any(map(_tells_day_and_time_of_sending, lines)):
        return False  # a stranger, whose mail is answered, chooses its subject and its first lines
    addressed = any(_ADDRESS.search(line) for line in lines)
    if len(roles) == 2 and all(_BRACKETED.search(line) for line in lines if role_of(line) != "subject"):
        return True
    if len(roles) >= 3:
        return addressed or "subject" in roles or any(_names_sending(line) for line in lines)
    return addressed and any(role_of(line) == "sent" and is_dated(line) for line in lines)


_HOURS = re.compile(r"[^\s:：]{1,12}\s?[:：]\s*\d{1,2}(?:[:.h]\d\d)?(?:\s?(?:[ap]m|uhr|h))?\s*$", re.I)
"""From: 10:00"""


def _tells_day_and_time_of_sending(line: str) -> bool:
    dated = _TIME.search(line) and (_YEAR.search(line) or _NUMERIC_DATE.search(line))
    return role_of(line) == "sent" and bool(dated)


def _tells_when_it_was_sent(line: str) -> bool:
    return role_of(line) == "sent" and (is_dated(line) or _names_sending(line))


def _names_sending(line: str) -> bool:
    field = _FIELD.match(line[:80])
    return role_of(line) == "sent" and field is not None and field[1].lower() not in DATE_FIELDS


Finder = Callable[[str], int]

_SIGNATURE = re.compile(r"g{1,3}[teshr]{0,30}$")
_DELIMITER = re.compile(r"d")
_FORWARD = re.compile(r"f")
_FORWARDED_HEAD = re.compile(r"e*fe*H[ht]{0,20}e+(?=t)")
"""Of a mail that was sent on with nothing above it."""
_DEVICE = re.compile(r"s(?![qbe]*t[te]*q)")  # the line of a phone ends what was written now
_HEADER_START = re.compile(r"H")
_HEADER_RUN = re.compile(r"h(?:[te]?h)*")
_MARKED_RUN = re.compile(r"S[Se]*")
_TITLED = re.compile(r"t(?=e{0,2}[Hb])")
_TEXT_BELOW = re.compile(r"[erg]*t")
_QUOTED_RUN = re.compile(r"[ehqb]+")
_QUOTES = re.compile(r"[qe]+")


@dataclass(frozen=True, slots=True)
class ReplyText:
    """What was written now, and what was set aside."""

    text: str
    elided: str


def reply_text(
    body: str | Sequence[Line], *, author: str = "", forwarded: bool = False, replied: bool = False
) -> ReplyText:
    """Split a body; the text is empty only where the body is, or has nothing but an introduction and quotes.

    `author` is the display name of the sender, which a signature repeats. A mail that was `forwarded` shows another
    mail on purpose: that is something to work with, not history. In one that `replied`, a forwarded mail is history,
    unless the text above points to it, and what a person may have written counts as history more readily.
    """
    given = [Line(text) for text in body.strip("\n").split("\n")] if isinstance(body, str) else list(body)
    whole = "\n".join(line.text for line in given).strip()
    if len(given) > MAX_LINES:
        return ReplyText(whole, "")
    lines = list(_separated(given))
    texts = [line.text for line in lines]
    kinds = "".join(_kinds(lines, author))
    marked = frozenset(n for n, line in enumerate(lines) if line.kind not in ("", "i"))
    mail = _Body(texts, marked, author, replied, len(re.findall("b+", kinds)))
    if _says_nothing(mail, kinds):
        return ReplyText("", whole)
    start, end, kinds = _span(mail, kinds, forwarded)
    inside = set() if forwarded else _left_out(texts, kinds, start, end)
    kept = [n for n in range(start, _before_disclaimer(texts, kinds, start, end)) if n not in inside]
    text, shown = "\n".join(texts[n] for n in kept).strip(), set(kept)
    if not text:
        return ReplyText(whole, "")
    return ReplyText(text, "\n".join(line for n, line in enumerate(texts) if n not in shown).strip())


def _says_nothing(mail: _Body, kinds: str) -> bool:
    """Is this an empty answer: the line of a phone, introductions and quotes alone, or a signature?"""
    if _SIGNATURE.match(kinds.strip("e")) and not any(map(_is_a_sentence, mail.texts)):
        return _is_signature(mail, kinds, kinds.find("g"), len(kinds))
    said = "".join(kind for text, kind in zip(mail.texts, kinds, strict=True) if text.strip("> \t\u00a0"))
    return said.lstrip("s").startswith("b") and not said.strip("sbq")


SHARED_LINE = re.compile(r"(?<=\S)[ -]{0,5}\bOn \w{3,9}, \w{3,9} \d{1,2}, \d{4}.{0,200}\bwrote:\s*$")


def _separated(lines: Sequence[Line]) -> Iterator[Line]:
    """A reply that shares its line with the introduction that follows it gets a line of its own."""
    for line in lines:
        shared = SHARED_LINE.search(line.text) if len(line.text) <= MAX_LINE else None
        if shared:
            yield Line(line.text[: shared.start()])
            yield Line(line.text[shared.start() :].lstrip(" -"))
        else:
            yield line


# The kind of a line by its neighbours.


def _kinds(lines: Sequence[Line], author: str) -> list[str]:
    texts = [line.text for line in lines]
    kinds = [_kind_of(line) for line in lines]
    _find_indented(kinds)
    _find_wrapped_quotes(texts, kinds)
    _find_wrapped_introductions(texts, kinds)
    _find_introductions_of_quotes(texts, kinds)
    _find_wrapped_end(texts, kinds)
    _find_headers(texts, kinds)
    _find_forwards(texts, kinds)
    _find_titles(texts, kinds)
    _find_named_signatures(texts, kinds, author)
    _find_signed_lines(texts, kinds, author)
    _find_marked_signatures(kinds)
    return kinds


def _kind_of(line: Line) -> str:
    """Markup does not name a forwarded mail; its words do."""
    kind = "t" if _REST_OF_ADDRESS.match(line.text) else letter_of(line.text)
    return line.kind if line.kind and kind not in "ef" else kind


def _find_indented(kinds: list[str]) -> None:
    """Indented lines (i) are a quote where they end the mail; else their writer indented them."""
    last = len("".join(kinds).rstrip("ei"))
    kinds[:] = [("q" if n >= last else "t") if kind == "i" else kind for n, kind in enumerate(kinds)]


MIN_WRAPPED_QUOTE = 60
MAX_REST_OF_QUOTE = 40
MAX_WRAPPED_LINE = 80


def _find_wrapped_quotes(texts: Sequence[str], kinds: list[str]) -> None:
    """The rest of a quoted line that a mail server broke stands without a mark between two lines with one."""
    for n in range(1, len(kinds) - 1):
        if kinds[n] != "t" or kinds[n - 1] != "q" or kinds[n + 1] not in "qe":
            continue
        rest = texts[n].strip()
        goes_on = len(rest) <= MAX_REST_OF_QUOTE or (rest[:1].islower() and len(rest) < MAX_WRAPPED_LINE)
        if _breaks_off(texts[n - 1]) and goes_on and "q" in kinds[n + 1 : n + 3]:
            kinds[n] = "q"


def _find_wrapped_end(texts: Sequence[str], kinds: list[str]) -> None:
    """The same at the end of a mail, where it may be an answer: in small letters, below an answer above the quotes."""
    joined = "".join(kinds).rstrip("e")
    answer, quotes = joined.find("t"), joined.find("b")
    if not 0 <= answer < quotes or not joined.endswith("qt"):
        return
    rest = texts[len(joined) - 1].strip()
    if _breaks_off(texts[len(joined) - 2]) and len(rest) <= MAX_REST_OF_QUOTE and rest[:1].islower():
        kinds[len(joined) - 1] = "q"


def _breaks_off(quoted: str) -> bool:
    quoted = quoted.rstrip()
    return len(quoted) >= MIN_WRAPPED_QUOTE and not quoted.endswith((".", "!", "?", ":"))


def _find_wrapped_introductions(texts: Sequence[str], kinds: list[str]) -> None:
    tried = 0
    for last in range(len(kinds)):
        if kinds[last] not in "tbh" or len(texts[last]) > MAX_LINE or tried >= MAX_INTRODUCTIONS:
            continue
        if not (kinds[last] == "b" or _may_end_introduction(texts[last])):
            continue
        tried += 1
        first = _first_line_of_introduction(texts, kinds, last)
        kinds[first : last + 1] = "b" * (last + 1 - first)


def _may_end_introduction(line: str) -> bool:
    line, closed = _undecorated(line)
    return closed or bool(_BRACKETED.search(line)) or any(not line[verb.end() :] for verb in _WROTE.finditer(line))


def _first_line_of_introduction(texts: Sequence[str], kinds: Sequence[str], last: int) -> int:
    """The first line of the introduction that ends with this line; the line after it if there is none.

    The latest line that makes it one, and from there up to the line that completes it.
    """
    found = last if kinds[last] == "b" else last + 1
    for first in range(last - 1, max(-1, last - MAX_WRAPPED), -1):
        if found <= last and _is_complete(_joined(texts[found : last + 1])):
            break
        if not _may_wrap(texts, kinds, first):
            break
        begins = found > last or _says_when_or_who(texts[first])
        found = first if begins and introduces(_joined(texts[first : last + 1])) else found
    return found


def _joined(texts: Sequence[str]) -> str:
    return " ".join(text.strip() for text in texts)


def _is_complete(introduction: str) -> bool:
    line = _undecorated(introduction)[0]
    dated = bool(_YEAR.search(line) or _NUMERIC_DATE.search(line))
    told = bool(_WROTE.search(line)), leads(line), bool(_ADDRESS.search(line))
    return dated and sum(told) >= 2


def _says_when_or_who(line: str) -> bool:
    return leads(_undecorated(line)[0]) or bool(_WROTE.search(line) or _ADDRESS.search(line))


def _may_wrap(texts: Sequence[str], kinds: Sequence[str], n: int) -> bool:
    """May this line be in an introduction with the next one? An empty one only before an address in brackets."""
    if kinds[n] == "e":
        return texts[n + 1].lstrip().startswith("<")
    line = texts[n].rstrip()
    if kinds[n] not in "tb" or len(line) > MAX_LINE or line.endswith(("!", "?")):
        return False
    return not line.endswith((".", ":")) or bool(_NUMBER_END.search(line) or _ADDRESS.search(line))


def _find_introductions_of_quotes(texts: Sequence[str], kinds: list[str]) -> None:
    """A line with a colon, over quotes: its words need not be in the table."""
    joined = "".join(kinds)
    for quotes in re.finditer(r"(?<=[te])e{0,2}q", joined):
        last = len(joined[: quotes.start()].rstrip("e")) - 1
        if last < 0 or quotes.end() - last > 4 or kinds[last] != "t" or not _undecorated(texts[last])[1]:
            continue
        for first in range(last, max(-1, last - 3), -1):
            if first < last and not _may_wrap(texts, kinds, first):
                break
            if may_introduce(_joined(texts[first : last + 1])):
                kinds[first : last + 1] = "b" * (last + 1 - first)
                break


def _find_headers(texts: Sequence[str], kinds: list[str]) -> None:
    """The first field of a mail's header becomes H; fields of no header become text."""
    for run in _HEADER_RUN.finditer("".join(kinds)):
        fields = [n for n in range(*run.span()) if kinds[n] == "h"]
        header = _is_header([texts[n] for n in fields], announced=_announced(texts, kinds, run.start()))
        for n in fields:
            kinds[n] = "h" if header else "t"
        if header:
            kinds[run.start()] = "H"
            above = len("".join(kinds[: run.start()]).rstrip("e")) - 1
            if above >= 0 and kinds[above] == "g" and _is_long_rule(texts[above]):
                kinds[above] = "r"


def _find_forwards(texts: Sequence[str], kinds: list[str]) -> None:
    """A title without dashes announces a forwarded mail only if a header follows."""
    for n, kind in enumerate(kinds):
        if kind == "f" and not _TITLE.match(texts[n]):
            following = next((other for other in kinds[n + 1 :] if other != "e"), "")
            kinds[n] = "f" if following and following in "Hhq" else "t"


def _is_long_rule(line: str) -> bool:
    return len(line.strip()) > len("--") and not line.strip().strip("_-—–―")


def _find_titles(texts: Sequence[str], kinds: list[str]) -> None:
    """Right above a header or an introduction: the title of a history needs no dashes, two header fields no others.

    Foxmail puts the address of the mail's author there.
    """
    for below in _TITLED.finditer("".join(kinds)):
        n = first = below.start()
        if _ADDRESS.fullmatch(texts[n].strip()) and "b" not in kinds[n + 1 : n + 3] and not _announced(texts, kinds, n):
            kinds[n] = "d"
        if texts[n].strip(_DASHES + ":：").lower() in _ORIGINAL:
            kinds[n] = "d"
        while first >= 0 and kinds[first] == "t" and role_of(texts[first]):
            first -= 1
        if n - first > 1:
            kinds[first + 1 : n + 1] = "b" * (n - first)


def _find_named_signatures(texts: Sequence[str], kinds: list[str], author: str) -> None:
    """A ruler begins a signature where the sender's name stands right below it."""
    if len(author) < 4:
        return
    for n, kind in enumerate(kinds):
        if kind == "r" and author.lower() in "\n".join(texts[n + 1 : n + 3]).lower():
            kinds[n] = "g"


_SIGNED = re.compile(r"\s*(?:--|__)\s?([^\W\d_].{0,40})$")


def _find_signed_lines(texts: Sequence[str], kinds: list[str], author: str) -> None:
    """A name behind two dashes is a signature below the last sentence, and no item of a list.

    The name is the sender's, or a card stands below it: else it may be the author of a quotation.
    """
    history = next((n for n, kind in enumerate(kinds) if kind in "bdHg"), len(kinds))
    written = [n for n in range(history) if kinds[n] == "t"]
    signed = [(at, found[1]) for at, n in enumerate(written) if (found := _SIGNED.match(texts[n]))]
    if len(signed) != 1 or signed[0][0] == 0 or len(written) - signed[0][0] > MAX_CARD:
        return
    at, name = signed[0]
    above = texts[written[at - 1]].rstrip()
    ends = above.endswith((".", "!", "?", "…", ")")) or not clauses_of(above)
    ends = ends and (at + 1 < len(written) or _names_author([name], author))
    if ends and kinds[written[at] - 1] == "e" and is_name(name) and len(name.split()) <= MAX_SIGNED:
        kinds[written[at]] = "g"


MAX_SIGNED = 3
MAX_CARD = 6
"""Lines of a signed name: company, telephone."""


def _find_marked_signatures(kinds: list[str]) -> None:
    """Markup of a signature (S) counts where no text follows; some people write on below it, or in it."""
    joined = "".join(kinds)
    for run in _MARKED_RUN.finditer(joined):
        below = _TEXT_BELOW.match(joined, run.end())
        for n in range(*run.span()):
            kinds[n] = kinds[n] if kinds[n] == "e" else "t" if below else "s"
        if not below:
            kinds[run.start()] = "g"


# Which lines were written now. A sign of history is strong where only a program writes it so: an introduction with an
# address, header fields with a date, the markup of a mail program. People write what resembles the others, too: these
# count in an answer only, apart from a text that is finished above them.


@dataclass(frozen=True, slots=True)
class _Body:
    """The lines of a mail, and what else tells whether a sign in them is a program's."""

    texts: Sequence[str]
    marked: Set[int]
    """Lines whose kind the markup names."""
    author: str
    replied: bool
    introductions: int


def _is_believable(body: _Body, kinds: str, finder: Finder, cut: int, end: int) -> bool:
    texts = body.texts
    if _may_be_announced(texts, finder, cut) and _announced(texts, kinds, cut):
        return False
    letter = kinds[cut]
    if letter == "g":
        return cut in body.marked or _is_signature(body, kinds, cut, end)
    if letter == "s":
        return cut in body.marked or _is_device(body, kinds, cut, end)
    if letter == "r":
        return end < len(kinds) or _is_idle_ruler(texts, kinds, cut)
    if cut in body.marked:
        return True
    if letter == "H" and _announced(texts, kinds, cut) and not _is_finished(texts, kinds, cut):
        return False
    if body.replied:
        return _is_strong(texts, kinds, cut, end) or _is_plausible(body, kinds, cut, end)
    titled = letter == "d" and texts[cut].strip(_DASHES).lower() in _ORIGINAL
    return _is_strong(texts, kinds, cut, end) and not (titled and _next_kind(kinds, cut) not in "Hhb")


def _next_kind(kinds: str, cut: int) -> str:
    return next((kind for kind in kinds[cut + 1 :] if kind not in "er"), "t")


def _run(kinds: str, cut: int, end: int, letters: str) -> int:
    """The first line after these that has none of the letters."""
    last = cut
    while last < end and kinds[last] in letters:
        last += 1
    return last


def _is_strong(texts: Sequence[str], kinds: str, cut: int, end: int) -> bool:
    """Does only a program write it like this?"""
    letter = kinds[cut]
    if letter == "b":
        introduction = _joined(texts[cut : _run(kinds, cut, end, "b")])
        timed = _TIME.search(introduction) is not None and _is_quoted(kinds, cut, end)
        return timed or bool(_ADDRESS.search(introduction) or _HEADERS_IN_A_LINE.match(introduction))
    if letter == "H":
        return _is_programs_header([texts[n] for n in range(cut, end) if kinds[n] in "Hh"][:MAX_FIELDS])
    if letter == "d":
        return bool(_TITLE.match(texts[cut].strip()) or _ADDRESS.fullmatch(texts[cut].strip()))
    return any(_is_of_a_program(texts[n]) for n in range(cut, min(end, cut + MAX_QUOTES)) if kinds[n] == "q")


def _is_quoted(kinds: str, introduction: int, end: int) -> bool:
    """Do quotes stand right below the introduction?"""
    return kinds[_run(kinds, introduction, end, "be") : end][:1] == "q"


MAX_FIELDS = 8
MAX_QUOTES = 100
"""Lines of a quote that are examined."""


def _is_programs_header(fields: Sequence[str]) -> bool:
    roles = {role_of(field) for field in fields}
    timed = any(role_of(field) == "sent" and _TIME.search(field) for field in fields)
    addressed = any(_ADDRESS.search(field) for field in fields)
    dated = any(_tells_when_it_was_sent(field) for field in fields)
    return addressed and (timed or ("sender" in roles and dated))


def _is_of_a_program(quoted: str) -> bool:
    """A line of a quote: a quote in it, an introduction, a header field with an address, a delimiter."""
    inner = _QUOTE_MARK.sub("", quoted[:MAX_LINE])
    if QUOTE.match(inner):
        return True
    return introduces(inner) or bool(role_of(inner) and _ADDRESS.search(inner)) or _delimits(inner) != ""


_QUOTE_MARK = re.compile(r"^\s*(?:>|&gt;|\uff1e|[A-Z]{1,3}>)\s?")
_TO_READER = re.compile(r"(?i)\b(?:you|sie|du|ihr|vous|tu|usted|lei|je|ni)\b")


def _is_plausible(body: _Body, kinds: str, cut: int, end: int) -> bool:
    """Of an answer: is this history, where its signs alone do not prove it?"""
    texts = body.texts
    finished = _is_finished(texts, kinds, cut)
    if kinds[cut] == "b":
        introduction = _joined(texts[cut : _run(kinds, cut, end, "b")])
        named = _TIME.search(introduction) or _TO_READER.search(introduction)
        if not named and body.introductions > 1:
            return False  # several guests wrote something
        return _is_quoted(kinds, cut, end) or (finished and named is not None)
    if kinds[cut] == "H":
        fields = [texts[n] for n in range(cut, _run(kinds, cut, end, "Hht")) if texts[n].strip()][:MAX_FIELDS]
        timed = any(_TIME.search(field) for field in fields)
        if timed and len({role_of(field) for field in fields} - {""}) >= 3:
            return True
        sent = timed or any(_ADDRESS.search(line) or _names_sending(line) or _names_weekday(line) for line in fields)
        return finished and kinds[cut - 1] != "t" and (sent or kinds[cut - 1] in "dr")
    if kinds[cut] != "q":
        return finished and kinds[cut - 1] != "t"
    said = [quoted for n in range(cut, end) if kinds[n] == "q" and (quoted := _QUOTE_MARK.sub("", texts[n]).strip())]
    if "b" in kinds[:cut] or not said or kinds[:cut].rstrip("e").endswith("r"):
        return True
    if kinds[:cut].endswith("t") or "q" in kinds[:cut]:
        return False
    asked = any(quote.endswith("?") or _LINK.search(quote) or _ADDRESS.search(quote) for quote in said)
    sentences = finished and any(quote.endswith((".", "!", ":", ",")) for quote in said)
    return asked or (len(said) > 1 and (sentences or any(len(quote) >= MIN_WRAPPED_QUOTE for quote in said)))


def _names_weekday(field: str) -> bool:
    """Date: Tuesday, January 5, 2016"""
    return role_of(field) == "sent" and "," in field and is_dated(field)


def _is_finished(texts: Sequence[str], kinds: str, cut: int) -> bool:
    """Is the text above complete: a sentence, a closing or a name, so that it announces nothing?"""
    above = next((n for n in range(cut - 1, -1, -1) if kinds[n] != "e"), -1)
    if above < 0 or kinds[above] != "t":
        return True
    line = texts[above].strip()[-MAX_LINE:]
    return line.endswith(_ENDS) or (is_name(line) and len(line.split()) <= MAX_SIGNED) or not clauses_of(line)


_ENDS = (".", "!", "?", "…", ")", "”", '"', "»", "。", "！", "？", "؟", "।")


def _is_device(body: _Body, kinds: str, cut: int, end: int) -> bool:
    """Is this the line of a phone or a program, with nothing below it but a name and a telephone number?

    An answer mostly carries its history: where no other sign of it is found, a long text below is it.
    """
    texts, line = body.texts, body.texts[cut]
    below = [texts[n] for n in range(cut + 1, end) if kinds[n] == "t"]
    unmarked = body.replied and end == len(kinds) and len(below) >= 3 and len("".join(below)) >= MIN_UNMARKED
    if below and not unmarked and not _is_card_text(below):
        return False
    if _PROGRAM.search(line):
        return True
    brand = _BRAND.search(line) is not None
    return brand and kinds[cut - 1] != "t" and _is_finished(texts, kinds, cut)


MIN_UNMARKED = 200
_BRAND = re.compile(r"^\W*\w+ \w+(?: (?:my|mein\w*|mon|ma|mi|mio|mijn|min|meu))? [A-Z][\w-]*(?: [A-Z\d][\w-]*)*\W*$")
"""A name in capitals: "Sent with Sparrow", "Sent from my Wiko RIDGE"."""


def _is_card_text(below: Sequence[str]) -> bool:
    return not any(_is_a_sentence(text) for text in below) and (
        is_name(below[0].strip()) or _CONTACT.search("\n".join(below)) is not None or not clauses_of("\n".join(below))
    )


def _is_idle_ruler(texts: Sequence[str], kinds: str, cut: int) -> bool:
    """Is a ruler at the end the rest of a history, and not the frame or the divider of a text?"""
    rulers = {texts[n].strip() for n in range(cut, len(kinds)) if kinds[n] == "r"}
    return kinds[cut - 1] == "e" and not rulers & {text.strip() for text in texts[:cut]}


def _is_signature(body: _Body, kinds: str, cut: int, end: int) -> bool:
    """Does what stands below the mark look like a name, a card, a device or the footer of a list, and like no wish?"""
    texts = body.texts
    if _in_announced_text(texts, kinds, cut, end) or _goes_on(texts[cut:end], kinds[cut:end]):
        return False
    is_mark = not texts[cut].strip(_DASHES)
    below = [n for n in range(cut + is_mark, end) if kinds[n] not in "e"]
    if not below:
        return not _is_repeated(texts, kinds, cut)
    lines = [texts[n].strip() for n in below if kinds[n] in "tg"]
    if any(_POSTSCRIPT.match(line) for line in lines):
        return False
    if not lines:
        return True
    contact = _CONTACT.search("\n".join(lines)) is not None
    if _is_repeated(texts, kinds, cut) and not contact:
        return False
    if _names_author(lines, body.author):
        return True
    goes_on = lines[0][:1].islower() and len(lines[0].split()) > 2 and not contact
    if texts[cut] == "-- " and not goes_on:
        return True  # with its space, programs write it (RFC 3676)
    if not _is_finished(texts, kinds, cut):
        return False
    first = lines[0].strip("*_ ")
    named = is_name(first) and not any(char.isdigit() for char in first)
    footer = _ABOUT_MAIL.search("\n".join(lines)) is not None
    return named or contact or footer or not clauses_of(first.replace("/", "."))


def _is_repeated(texts: Sequence[str], kinds: str, cut: int) -> bool:
    """Stands the same mark a second time, as between the verses of a poem?"""
    mark = texts[cut].strip()
    return any(text.strip() == mark for n, text in enumerate(texts) if n != cut and kinds[n] in "tgr")


def _names_author(lines: Sequence[str], author: str) -> bool:
    said = " ".join(lines[:3]).lower()
    return any(len(word) > 2 and word in said for word in author.lower().split())


_POSTSCRIPT = re.compile(r"(?i)(?:p\.?\s?p?\.?s|n\.?b)\b\.?\s?[:.]?\s")
_ABOUT_MAIL = re.compile(
    r"(?i)\bthis (?:e-?mail|message)|mailing list|subscrib|abonnier|abonné|my signature|\bsigned\b"
)
_PROGRAM = re.compile(
    r"(?i)phon|i-?pad|ipod|android|galaxy|samsung|huawei|xiaomi|pixel|nokia|blackberry|windows|outlook|mail|gmx"
    r"|web\.de|proton|tuta|yahoo|thunderbird|spark|superhuman|mobil|handy|tablet|smart|device|gerät|appareil"
    r"|dispositivo|apparaat|app\b|watch|unterwegs|https?:|手机|手機|virus|brevity|typo|e/os"
)
"""What a line of a phone names: a device, a program or an address. "Sent from my heart" names none."""


def _span(body: _Body, kinds: str, forwarded: bool) -> tuple[int, int, str]:
    """First line of what was written now, the first one after it, and the kinds as far as they are believed."""
    texts, replied = body.texts, body.replied
    below = answer_below(kinds)
    if below and ("q" in kinds[:below] or _ADDRESS.search(" ".join(texts[:below]))):
        return below, _cut(kinds[below:], _found(_SIGNATURE)) + below, kinds
    if replied and not forwarded and (head := _FORWARDED_HEAD.match(kinds)):
        return head.end(), _cut(kinds[head.end() :], _found(_SIGNATURE)) + head.end(), kinds
    end, signed = len(kinds), -1
    if forwarded or _forwards(kinds):
        forward = _cut(kinds, _found(_FORWARD)) if replied and not forwarded else end
        meant = _announced(texts, kinds, forward) or _POINTS.search("\n".join(texts[:forward]))
        return 0, end if meant else forward, kinds
    for finder in (_SIGNED_END, *_HISTORY, _SIGNED_END):
        if finder is _SIGNED_END and signed == end:
            continue
        kinds, cut = _believed(body, kinds, finder, end)
        signed = cut if finder is _SIGNED_END and cut < end else signed
        end = cut
    return 0, end, kinds


MAX_DOUBTS = 20
"""Signs of one kind that are examined; the text below them is kept."""


def _believed(body: _Body, kinds: str, finder: Finder, end: int) -> tuple[str, int]:
    """Where the first believable sign stands; those above it become text, as their writer meant them."""
    for _ in range(MAX_DOUBTS):
        cut = _cut(kinds[:end], finder)
        sign = _run(kinds, cut, end, "e")
        if sign == end or _is_believable(body, kinds, finder, sign, end):
            return kinds, cut
        last = _run(kinds, sign, end, "Hh" if kinds[sign] == "H" else kinds[sign])
        kinds = kinds[:sign] + "t" * (last - sign) + kinds[last:]
    return kinds, end


def _in_announced_text(texts: Sequence[str], kinds: str, cut: int, end: int) -> bool:
    """Whether the dashes stand between two lines of a text for the site, below which its writer goes on."""
    first = cut
    while first > 0 and texts[first - 1].strip():
        first -= 1
    return first < cut and texts[cut] == "--" and "te" in kinds[cut:end].rstrip("e") and _announced(texts, kinds, first)


def _goes_on(texts: Sequence[str], kinds: str) -> bool:
    """Whether a sentence or an item, not a name, stands below dashes: they part two wishes, or the lines of a poem.

    People draw a longer rule between two wishes: after an empty line stands a signature only if it looks like one.
    """
    below = [n for n, kind in enumerate(kinds) if kind == "t"]
    if not below or len(texts[0].strip()) > len("--"):
        return bool(below) and _is_long_rule(texts[0]) and kinds[1] == "e" and not _is_card(texts[below[0] :])
    if _ABOUT_MAIL.search(texts[below[0]]):
        return False
    if _is_a_sentence(texts[below[0]]) or _ITEM.match(texts[below[0]]):
        return True
    paragraphs = [texts[n] for n in below[1:] if kinds[n - 1] == "e"]
    return texts[0] == "--" and any(_is_a_sentence(text) and not _DISCLAIMS.search(text) for text in paragraphs)


_ITEM = re.compile(r"\s*(?:[-—–•]|\d{1,2}[.)])\s+\S")
_CONTACT = re.compile(r"@|www\.|https?:|\d(?:[\s./()-]{0,3}\d){5}")


def _is_card(lines: Sequence[str]) -> bool:
    """A name above an address or a telephone number, a legal notice, or what a mailing list adds."""
    said = "\n".join(lines)
    names = is_name(lines[0].strip()) or "list" in said.lower()
    return (names and _CONTACT.search(said) is not None) or len(_disclaimers(said)) > 1


def _is_a_sentence(line: str) -> bool:
    line = line.strip()
    ends = line.endswith((".", "!", "?")) and line[:1] not in "\"“„«'"
    return ends and len(line.split()) >= MIN_SENTENCE and not is_name(line)


MIN_SENTENCE = 4
"""Words; fewer are a name, a company, a slogan."""


def _may_be_announced(texts: Sequence[str], finder: Finder, cut: int) -> bool:
    """Quotes, an introduction without address ("On 5 May, Mrs Smith wrote:") and dashes may be a text for the site."""
    if finder is _SIGNED_END:
        return True
    return finder is quotes_to_the_end or (
        finder in (begin_without_quotes, begin_unanswered) and not _ADDRESS.search(texts[cut])
    )


def _forwards(kinds: str) -> bool:
    """A forwarded mail before any history."""
    forward = kinds.find("f")
    return forward >= 0 and not set(kinds[:forward]) & set("bdH")


_POINTS = re.compile(
    r"(?i)\b(?:fyi|th(?:is|ese|at)|below|following|forward\w*|dies\w*|unten\w*|folgend\w*|weiter\w*|ce(?:t|tte|s|ci)?"
    r"|suivant\w*|dessous|est[aeo]s?|siguiente\w*|abajo|quest\w+|seguente\w*|sotto|dit|deze|volgende\w*|onder\w*"
    r"|(?:de(?:tta|nn[ae]|ss[ae]|tte))|nedan\w*|nedenfor)\b"
)
"""A word that may mean the mail below."""


MAX_CLOSING = 1_000


def _left_out(texts: Sequence[str], kinds: str, start: int, end: int) -> set[int]:
    """Lines between the first and the last one that were not written now.

    The introductions of quotes that are answered below, and a whole quote below which nothing but a closing stands.
    """
    last = kinds.rfind("q", start, end)
    if last < 0:
        return set()
    first = len(kinds[start : last + 1].rstrip("behq")) + start
    above, below = kinds[start:first], "\n".join(texts[last + 1 : end]).strip()
    only_closes = 0 < len(below) <= MAX_CLOSING and not clauses_of(below)
    if "t" in above and "q" not in above and "b" in kinds[first:last] and only_closes:
        return set(range(first, last + 1))
    return {n for n in range(start, last) if kinds[n] == "b"}


MIN_DISCLAIMER = 80
_DISCLAIMS = re.compile(any_of("disclaimer"), re.I)


def _disclaimers(text: str) -> set[str]:
    return {match.group().lower() for match in _DISCLAIMS.finditer(text)}


def _before_disclaimer(texts: Sequence[str], kinds: str, start: int, end: int) -> int:
    """The first line of the legal notice at the end, if there is one that was not announced as a text for the site."""
    while True:
        last = end
        while last > start and not texts[last - 1].strip():
            last -= 1
        first = last
        while first > start and texts[first - 1].strip():
            first -= 1
        notice = " ".join(texts[first:last])
        above = any(text.strip() for text in texts[start:first])
        long = len(notice) >= MIN_DISCLAIMER and len(_disclaimers(notice)) >= 3
        if not long or not above or not _is_finished(texts, kinds, first):
            return end
        end = first


def _announced(texts: Sequence[str], kinds: Sequence[str], cut: int) -> bool:
    """Do quotes follow a line such as "Replace the slogan with:"? They are a part of what was written."""
    last = next((n for n in range(cut - 1, -1, -1) if kinds[n] != "e"), -1)
    return last >= 0 and kinds[last] == "t" and texts[last].rstrip().endswith((":", "："))


def _cut(kinds: str, finder: Finder) -> int:
    """Where a sign of history stands, if some text stands before it; else the end."""
    found = finder(kinds)
    return found if found >= 0 and "t" in kinds[:found] else len(kinds)


# Where history begins, each in linear time: as regular expressions the nested repetitions took a minute for 80 kB.
# A finder returns the first line of the history, or -1.


def _found(pattern: re.Pattern[str]) -> Finder:
    def find(kinds: str) -> int:
        match = pattern.search(kinds)
        return match.start() if match else -1

    return find


def answer_below(kinds: str) -> int:
    """`[be]*b[ehqb]*q[eqb]*` then text without history, or `[be]*b[be]*` then text: the first line of the text."""
    at = max(kinds.find("t"), 0)
    above, below = kinds[:at], kinds[at:]
    if "q" in above:
        above = above.replace("H", "b", 1)
    if not above.lstrip("e").startswith("b") or above.strip("behq"):
        return 0
    if above.rfind("q") > above.rfind("h"):
        return 0 if set(below) & set("bhdq") else at
    return at if not above.strip("be") and not below.strip("te") else 0


def begin_and_quotes(kinds: str) -> int:
    """`b[ehqb]*q[eqhbgs]*$`: an introduction and quotes to the end."""
    tail = len(kinds.rstrip("eqhbgs"))
    for run in _QUOTED_RUN.finditer(kinds, tail):
        begin = kinds.find("b", *run.span())
        if 0 <= begin < kinds.rfind("q", *run.span()):
            return begin
    return -1


def begin_without_quotes(kinds: str) -> int:
    """`b(?!.*q)`: an introduction over a history without quote marks."""
    return kinds.find("b", kinds.rfind("q") + 1)


def begin_unanswered(kinds: str) -> int:
    """`b(?![ehqb]*q.*t)`: an introduction with no quotes below it, or no text below these."""
    last_text = kinds.rfind("t")
    for run in _QUOTED_RUN.finditer(kinds):
        start, end = run.span()
        answered = kinds.rfind("q", start, end) if last_text > start else -1
        begin = kinds.find("b", start if answered < 0 else answered, end)
        if begin >= 0:
            return begin
    return -1


def quotes_to_the_end(kinds: str) -> int:
    """`b?[qe]*q[qegs]*$`."""
    tail = len(kinds.rstrip("qegs"))
    run = next((run for run in _QUOTES.finditer(kinds, tail) if "q" in run.group()), None)
    if run is None:
        return -1
    return tail - 1 if run.start() == tail and kinds[:tail].endswith("b") else run.start()


def rulers_to_the_end(kinds: str) -> int:
    """`[re]+$`."""
    start = len(kinds.rstrip("re"))
    return start if start < len(kinds) else -1


_SIGNED_END = _found(_SIGNATURE)

# In the order in which we believe the signs. Text below a quote means: answered inside.
_HISTORY: tuple[Finder, ...] = (
    _found(_DELIMITER),
    begin_and_quotes,
    begin_without_quotes,
    _found(_HEADER_START),
    begin_unanswered,
    quotes_to_the_end,
    rulers_to_the_end,
    _found(_DEVICE),
    rulers_to_the_end,
)
