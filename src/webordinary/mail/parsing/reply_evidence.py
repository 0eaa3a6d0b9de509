"""Which signs of history and signatures count: those that only a program writes, or that fit the text above them.

A sign of history is strong where only a program writes it so: an introduction with an address, header fields with a
date, the markup of a mail program. People write what resembles the others, too: these count in an answer only, apart
from a text that is finished above them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from webordinary.mail.parsing.phrases import any_of
from webordinary.mail.parsing.reply_lines import (
    ADDRESS,
    DASHES,
    HEADERS_IN_A_LINE,
    LINK,
    MAX_LINE,
    MAX_SIGNED,
    MIN_WRAPPED_QUOTE,
    ORIGINAL,
    QUOTE,
    TIME,
    TITLE,
    delimits,
    introduces,
    is_dated,
    is_long_rule,
    is_name,
    names_sending,
    one_line,
    role_of,
    tells_when_it_was_sent,
)
from webordinary.mail.parsing.small_talk import clauses_of

# ruff: noqa: RUF001  colons and dashes of other alphabets


@dataclass(frozen=True, slots=True)
class MailBody:
    """The lines of a mail, and what else tells whether a sign in them is a program's."""

    texts: Sequence[str]
    marked: Set[int]
    """Lines whose kind the markup names."""
    author: str
    replied: bool
    introductions: int


def is_believable(body: MailBody, kinds: str, cut: int, end: int) -> bool:
    """Is the sign of history at line `cut` one that a program has written?"""
    texts = body.texts
    letter = kinds[cut]
    if letter == "g":
        return cut in body.marked or is_signature(body, kinds, cut, end)
    if letter == "s":
        return cut in body.marked or _is_device(body, kinds, cut, end)
    if letter == "r":
        return end < len(kinds) or _is_idle_ruler(texts, kinds, cut)
    if cut in body.marked:
        return True
    if letter == "H" and is_announced(texts, kinds, cut) and not is_finished(texts, kinds, cut):
        return False
    if body.replied:
        return _is_strong(texts, kinds, cut, end) or _is_plausible(body, kinds, cut, end)
    titled = letter == "d" and texts[cut].strip(DASHES).lower() in ORIGINAL
    return _is_strong(texts, kinds, cut, end) and not (titled and _next_kind(kinds, cut) not in "Hhb")


def _next_kind(kinds: str, cut: int) -> str:
    return next((kind for kind in kinds[cut + 1 :] if kind not in "er"), "t")


def end_of_run(kinds: str, cut: int, end: int, letters: str) -> int:
    """The first line after these that has none of the letters."""
    last = cut
    while last < end and kinds[last] in letters:
        last += 1
    return last


def _is_strong(texts: Sequence[str], kinds: str, cut: int, end: int) -> bool:
    """Does only a program write it like this?"""
    letter = kinds[cut]
    if letter == "b":
        introduction = one_line(texts[cut : end_of_run(kinds, cut, end, "b")])
        timed = TIME.search(introduction) is not None and _is_quoted(kinds, cut, end)
        return timed or bool(ADDRESS.search(introduction) or HEADERS_IN_A_LINE.match(introduction))
    if letter == "H":
        return _is_programs_header([texts[n] for n in range(cut, end) if kinds[n] in "Hh"][:MAX_FIELDS])
    if letter == "d":
        return bool(TITLE.match(texts[cut].strip()) or ADDRESS.fullmatch(texts[cut].strip()))
    return any(_is_of_a_program(texts[n]) for n in range(cut, min(end, cut + MAX_QUOTES)) if kinds[n] == "q")


def _is_quoted(kinds: str, introduction: int, end: int) -> bool:
    """Do quotes stand right below the introduction?"""
    return kinds[end_of_run(kinds, introduction, end, "be") : end][:1] == "q"


MAX_FIELDS = 8
MAX_QUOTES = 100
"""Lines of a quote that are examined."""


def _is_programs_header(fields: Sequence[str]) -> bool:
    roles = {role_of(field) for field in fields}
    timed = any(role_of(field) == "sent" and TIME.search(field) for field in fields)
    addressed = any(ADDRESS.search(field) for field in fields)
    dated = any(tells_when_it_was_sent(field) for field in fields)
    return addressed and (timed or ("sender" in roles and dated))


def _is_of_a_program(quoted: str) -> bool:
    """A line of a quote: a quote in it, an introduction, a header field with an address, a delimiter."""
    inner = _QUOTE_MARK.sub("", quoted[:MAX_LINE])
    if QUOTE.match(inner):
        return True
    return introduces(inner) or bool(role_of(inner) and ADDRESS.search(inner)) or delimits(inner) != ""


_QUOTE_MARK = re.compile(r"^\s*(?:>|&gt;|\uff1e|[A-Z]{1,3}>)\s?")
_TO_READER = re.compile(r"(?i)\b(?:you|sie|du|ihr|vous|tu|usted|lei|je|ni)\b")


def _is_plausible(body: MailBody, kinds: str, cut: int, end: int) -> bool:
    """Of an answer: is this history, where its signs alone do not prove it?"""
    texts = body.texts
    finished = is_finished(texts, kinds, cut)
    if kinds[cut] == "b":
        introduction = one_line(texts[cut : end_of_run(kinds, cut, end, "b")])
        named = TIME.search(introduction) or _TO_READER.search(introduction)
        if not named and body.introductions > 1:
            return False  # several guests wrote something
        return _is_quoted(kinds, cut, end) or (finished and named is not None)
    if kinds[cut] == "H":
        fields = [texts[n] for n in range(cut, end_of_run(kinds, cut, end, "Hht")) if texts[n].strip()][:MAX_FIELDS]
        timed = any(TIME.search(field) for field in fields)
        if timed and len({role_of(field) for field in fields} - {""}) >= 3:
            return True
        sent = timed or any(ADDRESS.search(line) or names_sending(line) or _names_weekday(line) for line in fields)
        return finished and kinds[cut - 1] != "t" and (sent or kinds[cut - 1] in "dr")
    if kinds[cut] != "q":
        return finished and kinds[cut - 1] != "t"
    quotes = [quoted for n in range(cut, end) if kinds[n] == "q" and (quoted := _QUOTE_MARK.sub("", texts[n]).strip())]
    if "b" in kinds[:cut] or not quotes or kinds[:cut].rstrip("e").endswith("r"):
        return True
    if kinds[:cut].endswith("t") or "q" in kinds[:cut]:
        return False
    asked = any(quote.endswith("?") or LINK.search(quote) or ADDRESS.search(quote) for quote in quotes)
    sentences = finished and any(quote.endswith((".", "!", ":", ",")) for quote in quotes)
    return asked or (len(quotes) > 1 and (sentences or any(len(quote) >= MIN_WRAPPED_QUOTE for quote in quotes)))


def _names_weekday(field: str) -> bool:
    """Date: Tuesday, January 5, 2016"""
    return role_of(field) == "sent" and "," in field and is_dated(field)


def is_finished(texts: Sequence[str], kinds: str, cut: int) -> bool:
    """Is the text above complete: a sentence, a closing or a name, so that it announces nothing?"""
    above = next((n for n in range(cut - 1, -1, -1) if kinds[n] != "e"), -1)
    if above < 0 or kinds[above] != "t":
        return True
    line = texts[above].strip()[-MAX_LINE:]
    return line.endswith(_ENDS) or (is_name(line) and len(line.split()) <= MAX_SIGNED) or not clauses_of(line)


_ENDS = (".", "!", "?", "…", ")", "”", '"', "»", "。", "！", "？", "؟", "।")


def _is_device(body: MailBody, kinds: str, cut: int, end: int) -> bool:
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
    return brand and kinds[cut - 1] != "t" and is_finished(texts, kinds, cut)


MIN_UNMARKED = 200
_BRAND = re.compile(r"^\W*\w+ \w+(?: (?:my|mein\w*|mon|ma|mi|mio|mijn|min|meu))? [A-Z][\w-]*(?: [A-Z\d][\w-]*)*\W*$")
"""A name in capitals: "Sent with Sparrow", "Sent from my Wiko RIDGE"."""


def _is_card_text(below: Sequence[str]) -> bool:
    return not any(is_sentence(text) for text in below) and (
        is_name(below[0].strip()) or _CONTACT.search("\n".join(below)) is not None or not clauses_of("\n".join(below))
    )


def _is_idle_ruler(texts: Sequence[str], kinds: str, cut: int) -> bool:
    """Is a ruler at the end the rest of a history, and not the frame or the divider of a text?"""
    rulers = {texts[n].strip() for n in range(cut, len(kinds)) if kinds[n] == "r"}
    return kinds[cut - 1] == "e" and not rulers & {text.strip() for text in texts[:cut]}


def is_signature(body: MailBody, kinds: str, cut: int, end: int) -> bool:
    """Does what stands below the mark look like a name, a card, a device or the footer of a list, and like no wish?"""
    texts = body.texts
    if _in_announced_text(texts, kinds, cut, end) or _goes_on(texts[cut:end], kinds[cut:end]):
        return False
    is_mark = not texts[cut].strip(DASHES)
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
    if names_author(lines, body.author):
        return True
    goes_on = lines[0][:1].islower() and len(lines[0].split()) > 2 and not contact
    if texts[cut] == "-- " and not goes_on:
        return True  # with its space, programs write it (RFC 3676)
    if not is_finished(texts, kinds, cut):
        return False
    first = lines[0].strip("*_ ")
    named = is_name(first) and not any(char.isdigit() for char in first)
    footer = _ABOUT_MAIL.search("\n".join(lines)) is not None
    return named or contact or footer or not clauses_of(first.replace("/", "."))


def _is_repeated(texts: Sequence[str], kinds: str, cut: int) -> bool:
    """Stands the same mark a second time, as between the verses of a poem?"""
    mark = texts[cut].strip()
    return any(text.strip() == mark for n, text in enumerate(texts) if n != cut and kinds[n] in "tgr")


def names_author(lines: Sequence[str], author: str) -> bool:
    """Does a word of the sender's name stand in the first of these lines?"""
    text = " ".join(lines[:3]).lower()
    return any(len(word) > 2 and word in text for word in author.lower().split())


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


def _in_announced_text(texts: Sequence[str], kinds: str, cut: int, end: int) -> bool:
    """Whether the dashes stand between two lines of a text for the site, below which its writer goes on."""
    first = cut
    while first > 0 and texts[first - 1].strip():
        first -= 1
    return (
        first < cut and texts[cut] == "--" and "te" in kinds[cut:end].rstrip("e") and is_announced(texts, kinds, first)
    )


def _goes_on(texts: Sequence[str], kinds: str) -> bool:
    """Whether a sentence or an item, not a name, stands below dashes: they part two wishes, or the lines of a poem.

    People draw a longer rule between two wishes: after an empty line stands a signature only if it looks like one.
    """
    below = [n for n, kind in enumerate(kinds) if kind == "t"]
    if not below or len(texts[0].strip()) > len("--"):
        return bool(below) and is_long_rule(texts[0]) and kinds[1] == "e" and not _is_card(texts[below[0] :])
    if _ABOUT_MAIL.search(texts[below[0]]):
        return False
    if is_sentence(texts[below[0]]) or _ITEM.match(texts[below[0]]):
        return True
    paragraphs = [texts[n] for n in below[1:] if kinds[n - 1] == "e"]
    return texts[0] == "--" and any(is_sentence(text) and not _DISCLAIMS.search(text) for text in paragraphs)


_ITEM = re.compile(r"\s*(?:[-—–•]|\d{1,2}[.)])\s+\S")
_CONTACT = re.compile(r"@|www\.|https?:|\d(?:[\s./()-]{0,3}\d){5}")


def _is_card(lines: Sequence[str]) -> bool:
    """A name above an address or a telephone number, a legal notice, or what a mailing list adds."""
    text = "\n".join(lines)
    names = is_name(lines[0].strip()) or "list" in text.lower()
    return (names and _CONTACT.search(text) is not None) or len(disclaimers(text)) > 1


def is_sentence(line: str) -> bool:
    """Four words or more with a full stop; neither a name nor a quotation."""
    line = line.strip()
    ends = line.endswith((".", "!", "?")) and line[:1] not in "\"“„«'"
    return ends and len(line.split()) >= MIN_SENTENCE and not is_name(line)


MIN_SENTENCE = 4
"""Words; fewer are a name, a company, a slogan."""

_DISCLAIMS = re.compile(any_of("disclaimer"), re.I)


def disclaimers(text: str) -> set[str]:
    """The phrases of legal notices in a text."""
    return {match.group().lower() for match in _DISCLAIMS.finditer(text)}


def is_announced(texts: Sequence[str], kinds: Sequence[str], cut: int) -> bool:
    """Do quotes follow a line such as "Replace the slogan with:"? They are a part of what was written."""
    last = next((n for n in range(cut - 1, -1, -1) if kinds[n] != "e"), -1)
    return last >= 0 and kinds[last] == "t" and texts[last].rstrip().endswith((":", "："))
