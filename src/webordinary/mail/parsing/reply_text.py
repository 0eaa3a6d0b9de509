"""The part of a mail that its writer wrote now, apart from quoted history and signatures.

When in doubt the whole body is kept: a customer's words must not get lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# ruff: noqa: RUF001  other alphabets are the point of these tables


MAX_LINE = 400
"""A longer line is a paragraph."""

_WROTE = (
    r"(?:wrote|writes|said|schrieb|a écrit|escribi[oó]|ha scritto|escreveu|schreef|skrev|kirjoitti|yazdı|írta"
    r"|napsal(?:\(a\)|a)?|napisa[łl](?:\(a\)|a)?|pisze|a scris|написа[лв](?:\(а\)|а)?|geschreven|写道|작성)"
)
_DATED = r"(?=.{0,200}(?:\d{4}|\d{1,2}[:.]\d{2}|\d{1,2}[/.-]\d{1,2}[/.-]|@))"
"""Without it, "On the homepage it wrote:" would be taken for history."""
_MAIL = r"<\s?(?:mailto:)?[^<>\s@]{1,80}@[^<>\s@]{1,200}\s?>"

EMPTY = re.compile(r"[\s\u00a0\u200b\u200c\u200d\ufeff]*$")
QUOTE = re.compile(r"\s*(?:>|&gt;|\uff1e)")
SIGNATURE_MARK = re.compile(r"(?:--|—|–|_{2}|_{20,})\s*$")
RULER = re.compile(r"\s*[-=_*]{4,}\s*$")
FORWARD = re.compile(
    r"(?i)^[\s*_-]{0,40}(?:begin )?"
    r"(?:forwarded message|weitergeleitete nachricht|message (?:transf|réexp)\w+)[\s:*_-]*$"
)

DELIMITERS = re.compile(
    r"""(?ix)^[\s*_]{0,4}(?:
      -{2,}[\s*]*[^-]{0,30}(?:original\ (?:message|appointment)|nachricht|ursprüngliche\ e-?mail
        |message\ (?:d'origine|original)|mensaje\ original|mensagem\ original|messaggio\ originale
        |bericht|meddelelse|meddelande|melding|viesti|wiadomość|zpráva|üzenet|сообщение|reply\ message
        |原始邮件|元のメッセージ)[^-]{0,30}-{2,}.*
      |-{3,}\s?[^-]{2,60}\b(?:wrote|schrieb)\s?-{3,}
      |-{3,}\s?on\ .{4,100}\ wrote\s?-{3,}
      |.*\breply\ above\ this\ line.*
      |[-=\#~_\s]{0,40}(?:reply|respond|write|type|enter).{0,30}\ (?:above|between)\ th(?:is|e|ese)\ lines?.*
    )\s*$"""
)

BEGINNINGS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        # English, and the languages that follow its shape: a preposition, a date, a name, a verb
        r"^[\s*]{0,4}on\b" + _DATED + r".{4,300}\b(?:sent|" + _WROTE + r")\s*[:.]?[\s*]{0,8}$",
        r"^[\s*]{0,4}(?:at|in|le|el|il|am|em|op|den|på|dne|dnia|w dniu|pe data de|в)\b"
        + _DATED
        + r".{4,300}\b"
        + _WROTE
        + r"\b.{0,80}:?[\s*]{0,8}$",
        # any language: an address with a verb, or a time with an address, and a colon
        r"^.{0,200}" + _MAIL + r".{0,40}" + _WROTE + r".{0,40}[:：]?\s*$",
        r"^.{0,100}\d{1,2}[:.]\d{2}.{0,160}" + _MAIL + r"[^<>]{0,30}[:：]\s*$",
        r"^.{2,100}\b" + _WROTE + r"\b.{0,80}\d{4}.{0,80}[:：][\s*]{0,8}$",
        r"^[\s*]{0,4}\d{4}[-/.]\d{1,2}[-/.]\d{1,2}.{0,160}" + _MAIL + r".{0,20}:?\s*$",
        r"^[\s*]{0,4}(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .{4,80}" + _MAIL + r".{0,20}:?\s*$",
        r"^\s*\d{4}年\d{1,2}月\d{1,2}日.{0,200}[:：]?\s*$",
        r"^[\s*]{0,4}(?:quoting|zitat von|citando|citing|citat)\b.{2,200}:\s*$",
        r"^[\s*]{0,4}from:?\s.{2,100}\b(?:sent|date)\s?:.{4,200}$",
    )
)
WRAPPED_BEGINNING = re.compile(
    r"^[\s*]{0,4}(?:(?:on|at|am|le|el|il|em|op|den|på|dne|dnia|w dniu|pe data)\b.*\d"
    r"|\w{2,3}[.,]? \d{1,2}\b|\d{1,2}[. ]|\d{4}[-/.]\d|.{0,60}<\S+@)",
    re.I,
)
SHARED_LINE = re.compile(r"(?<=\S)[ -]{0,5}\bOn \w{3,9}, \w{3,9} \d{1,2}, \d{4}.{0,200}\bwrote:\s*$")
"""A reply that shares its line with the "On … wrote:" that follows it."""

HEADER = re.compile(
    r"""(?ix)^[\s*>|]{0,4}(?:
      from|sent|to|cc|date|subject|reply-?to|organization|importance
      |von|gesendet(?:\ am)?|an|datum|betreff|antwort(?:\ an)?|gesendet\ am
      |de|envoyé(?:\ le|\ par)?|à|objet|date\ d'envoi|répondre\ à
      |enviado(?:\ el|\ em)?|para|asunto|assunto|fecha|data
      |da|inviato|a|oggetto|van|verzonden|aan|onderwerp
      |fra|sendt|til|emne|från|skickat|till|ämne|lähettäjä|lähetetty|vastaanottaja|aihe|päivämäärä
      |message\ du|copie\ à|sujet|od|wysłano|wysłane|do|temat|odesláno|komu|předmět
      |kimden|gönderildi|kime|konu|gönderme\ tarihi
      |от|отправлено|кому|тема|дата|发件人|发送时间|收件人|主题|差出人|送信日時|宛先|件名
    )\ ?[\s*]*[:：][\s*]*(?:\S.*)?$"""
)

_REST = r"[^,;!?]{2,70}"
DEVICE = re.compile(
    rf"""(?ix)^[\s*<(]{{0,4}}(?:
      (?:sent|shared|written|typed)\ (?:from|with|via|using|by|on)\ {_REST}
      |from\ my\ (?:iphone|ipad|android){_REST}?
      |get\ \[?outlook\ for\ {_REST}|von\ mein(?:em|er)\ {_REST}|gesendet\ (?:von|mit)\ {_REST}
      |diese\ nachricht\ wurde\ von\ mein{_REST}|envoyé\ (?:de(?:puis)?|à\ partir\ de)\ {_REST}
      |enviado\ (?:desde|do|a\ partir\ do|de)\ {_REST}|inviato\ da\ {_REST}
      |(?:télécharger|obtener)\ outlook\ {_REST}
      |(?:verzonden|verstuurd)\ (?:vanaf|met|vanuit|via)\ {_REST}|skickat\ från\ {_REST}|sendt\ fra\ {_REST}
      |lähetetty\ {_REST}|wysłan[eo]\ z\ {_REST}|отправлено\ (?:с|из)\ {_REST}
      |i(?:phone|pad)(?:'?\w+)?\ gönderildi|i(?:phone|pad)から送信
      |[从從]我的.{{1,30}}[发發傳]送|发自我的.{{1,40}}
    )(?:<http[^<>]{{1,200}}>)?[\s*.>)]{{0,8}}$"""
)

# The first pattern that fits names the line.
_TABLE = (
    ("e", (EMPTY,)),
    ("q", (QUOTE,)),
    ("g", (SIGNATURE_MARK,)),
    ("r", (RULER,)),
    ("f", (FORWARD,)),
    ("d", (DELIMITERS,)),
    ("b", BEGINNINGS),
    ("s", (DEVICE,)),
    ("h", (HEADER,)),
)


def letter_of(line: str) -> str:
    """The kind of one line."""
    line = line.strip()
    if len(line) > MAX_LINE:
        return "q" if QUOTE.match(line) else "t"
    return next((letter for letter, patterns in _TABLE if any(p.match(line) for p in patterns)), "t")


def begins_mail(line: str) -> bool:
    """Is this an "On … wrote:"?"""
    return len(line) <= MAX_LINE and any(pattern.match(line.strip()) for pattern in BEGINNINGS)


Finder = Callable[[str], int]

MAX_LINES = 5000
MAX_BEGINNINGS = 300
"""So many lines are tried as the first of a wrapped "On … wrote:"."""
MAX_WRAPPED = 5
"""An "On … wrote:" is wrapped over at most so many lines."""

_SIGNATURE = re.compile(r"g[teshr]{0,30}$")
_DELIMITER = re.compile(r"d")
_DEVICE = re.compile(r"s(?![qbe]*t[te]*q)")  # the signature of a device ends what was written now
_EMBEDDED_HEADER = re.compile(r"h(?:[te]?h){2,}")  # From, Sent, To, Subject
_QUOTED_RUN = re.compile(r"[ehqb]+")
_QUOTES = re.compile(r"[qe]+")


@dataclass(frozen=True, slots=True)
class ReplyText:
    """What was written now, and what was set aside."""

    text: str
    elided: str


def reply_text(body: str) -> ReplyText:
    """Split a body; the text is empty only where the body is."""
    lines = _joined(_split_lines(body))
    if len(lines) > MAX_LINES:
        return ReplyText(body.strip(), "")
    kinds = "".join(letter_of(line) for line in lines)
    start, end = _span(kinds)
    text = "\n".join(lines[start:end]).strip()
    if not text:
        return ReplyText(body.strip(), "")
    return ReplyText(text, "\n".join(lines[:start] + lines[end:]).strip())


def _span(kinds: str) -> tuple[int, int]:
    """First line of what was written now, and the first one after it."""
    below = answer_below(kinds)
    if below:
        return below, _cut(kinds[below:], _found(_SIGNATURE)) + below
    end = len(kinds)
    if "f" in kinds.partition("d")[0]:  # a forwarded mail is something to work with, not history
        return 0, end
    for finder in (_found(_SIGNATURE), *_HISTORY):
        end = _cut(kinds[:end], finder)
    return 0, end


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
    if not above.lstrip("e").startswith("b") or above.strip("behq"):
        return 0
    if above.rfind("q") > above.rfind("h"):
        return 0 if set(below) & set("bhdq") else at
    return at if not above.strip("be") and not below.strip("te") else 0


def begin_and_quotes(kinds: str) -> int:
    """`b[ehqb]*q[eqhbgs]*$`: "On … wrote:" and quotes to the end."""
    tail = len(kinds.rstrip("eqhbgs"))
    for run in _QUOTED_RUN.finditer(kinds, tail):
        begin = kinds.find("b", *run.span())
        if 0 <= begin < kinds.rfind("q", *run.span()):
            return begin
    return -1


def begin_without_quotes(kinds: str) -> int:
    """`b(?!.*q)`: "On … wrote:" over a history without quote marks."""
    return kinds.find("b", kinds.rfind("q") + 1)


def begin_unanswered(kinds: str) -> int:
    """`b(?![ehqb]*q.*t)`: "On … wrote:" with no quotes below it, or no text below these."""
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


# In the order in which we believe the signs. Text below a quote means: answered inside.
_HISTORY: tuple[Finder, ...] = (
    _found(_DELIMITER),
    _found(_DEVICE),
    begin_and_quotes,
    begin_without_quotes,
    _found(_EMBEDDED_HEADER),
    begin_unanswered,
    quotes_to_the_end,
    rulers_to_the_end,
    _found(_SIGNATURE),
)


def _split_lines(body: str) -> list[str]:
    lines: list[str] = []
    for line in body.strip("\n").split("\n"):
        shared = SHARED_LINE.search(line) if len(line) <= MAX_LINE else None
        lines.extend((line[: shared.start()], line[shared.start() :].lstrip(" -")) if shared else (line,))
    return lines


def _joined(lines: list[str]) -> list[str]:
    """Put an "On … wrote:" that was wrapped back on one line."""
    result: list[str] = []
    n = tried = 0
    while n < len(lines):
        may_begin = tried < MAX_BEGINNINGS and WRAPPED_BEGINNING.match(lines[n]) is not None
        tried += may_begin
        taken = _wrapped_over(lines, n) if may_begin else 1
        result.append(_one_line(lines[n : n + taken]) if taken > 1 else lines[n])
        n += taken
    return result


def _wrapped_over(lines: list[str], n: int) -> int:
    if begins_mail(lines[n]):
        return 1
    for taken in range(2, MAX_WRAPPED + 1):
        wrapped = lines[n : n + taken]
        if not wrapped[-1].strip() and "<" not in "".join(lines[n + taken : n + taken + 1]):
            return 1
        if begins_mail(_one_line(wrapped)):
            return taken
    return 1


def _one_line(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
