"""The part of a mail that its writer wrote now, apart from quoted history and signatures.

Each line gets a letter for its kind; the rules look for history in the string of letters. Where a rule is in doubt, the
text is kept: a customer's words must not get lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from webordinary.mail.parsing.reply_evidence import (
    MailBody,
    disclaimers,
    end_of_run,
    is_announced,
    is_believable,
    is_finished,
    is_sentence,
    is_signature,
    names_author,
)
from webordinary.mail.parsing.reply_lines import (
    ADDRESS,
    BRACKETED,
    DASHES,
    MAX_LINE,
    MAX_SIGNED,
    MIN_WRAPPED_QUOTE,
    NUMBER_END,
    NUMERIC_DATE,
    ORIGINAL,
    REST_OF_ADDRESS,
    TITLE,
    WROTE,
    YEAR,
    Line,
    introduces,
    is_header,
    is_long_rule,
    is_name,
    leads,
    letter_of,
    may_introduce,
    one_line,
    role_of,
    undecorated,
)
from webordinary.mail.parsing.small_talk import clauses_of

MAX_LINES = 5000
MAX_INTRODUCTIONS = 300
"""So many lines are tried as the last of an introduction that is wrapped over several."""
MAX_WRAPPED = 5
"""An introduction is wrapped over at most so many lines."""


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
    mail = MailBody(texts, marked, author, replied, len(re.findall("b+", kinds)))
    if _says_nothing(mail, kinds):
        return ReplyText("", whole)
    start, end, kinds = _span(mail, kinds, forwarded)
    inside = set() if forwarded else _left_out(texts, kinds, start, end)
    kept = [n for n in range(start, _before_disclaimer(texts, kinds, start, end)) if n not in inside]
    text, shown = "\n".join(texts[n] for n in kept).strip(), set(kept)
    if not text:
        return ReplyText(whole, "")
    return ReplyText(text, "\n".join(line for n, line in enumerate(texts) if n not in shown).strip())


def _says_nothing(mail: MailBody, kinds: str) -> bool:
    """Is this an empty answer: the line of a phone, introductions and quotes alone, or a signature?"""
    if _SIGNATURE.match(kinds.strip("e")) and not any(map(is_sentence, mail.texts)):
        return is_signature(mail, kinds, kinds.find("g"), len(kinds))
    written = "".join(kind for text, kind in zip(mail.texts, kinds, strict=True) if text.strip("> \t\u00a0"))
    return written.lstrip("s").startswith("b") and not written.strip("sbq")


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
    kind = "t" if REST_OF_ADDRESS.match(line.text) else letter_of(line.text)
    return line.kind if line.kind and kind not in "ef" else kind


def _find_indented(kinds: list[str]) -> None:
    """Indented lines (i) are a quote where they end the mail; else their writer indented them."""
    last = len("".join(kinds).rstrip("ei"))
    kinds[:] = [("q" if n >= last else "t") if kind == "i" else kind for n, kind in enumerate(kinds)]


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
    line, closed = undecorated(line)
    return closed or bool(BRACKETED.search(line)) or any(not line[verb.end() :] for verb in WROTE.finditer(line))


def _first_line_of_introduction(texts: Sequence[str], kinds: Sequence[str], last: int) -> int:
    """The first line of the introduction that ends with this line; the line after it if there is none.

    The latest line that makes it one, and from there up to the line that completes it.
    """
    found = last if kinds[last] == "b" else last + 1
    for first in range(last - 1, max(-1, last - MAX_WRAPPED), -1):
        if found <= last and _is_complete(one_line(texts[found : last + 1])):
            break
        if not _may_wrap(texts, kinds, first):
            break
        begins = found > last or _says_when_or_who(texts[first])
        found = first if begins and introduces(one_line(texts[first : last + 1])) else found
    return found


def _is_complete(introduction: str) -> bool:
    line = undecorated(introduction)[0]
    dated = bool(YEAR.search(line) or NUMERIC_DATE.search(line))
    signs = bool(WROTE.search(line)), leads(line), bool(ADDRESS.search(line))
    return dated and sum(signs) >= 2


def _says_when_or_who(line: str) -> bool:
    return leads(undecorated(line)[0]) or bool(WROTE.search(line) or ADDRESS.search(line))


def _may_wrap(texts: Sequence[str], kinds: Sequence[str], n: int) -> bool:
    """May this line be in an introduction with the next one? An empty one only before an address in brackets."""
    if kinds[n] == "e":
        return texts[n + 1].lstrip().startswith("<")
    line = texts[n].rstrip()
    if kinds[n] not in "tb" or len(line) > MAX_LINE or line.endswith(("!", "?")):
        return False
    return not line.endswith((".", ":")) or bool(NUMBER_END.search(line) or ADDRESS.search(line))


def _find_introductions_of_quotes(texts: Sequence[str], kinds: list[str]) -> None:
    """A line with a colon, over quotes: its words need not be in the table."""
    joined = "".join(kinds)
    for quotes in re.finditer(r"(?<=[te])e{0,2}q", joined):
        last = len(joined[: quotes.start()].rstrip("e")) - 1
        if last < 0 or quotes.end() - last > 4 or kinds[last] != "t" or not undecorated(texts[last])[1]:
            continue
        for first in range(last, max(-1, last - 3), -1):
            if first < last and not _may_wrap(texts, kinds, first):
                break
            if may_introduce(one_line(texts[first : last + 1])):
                kinds[first : last + 1] = "b" * (last + 1 - first)
                break


def _find_headers(texts: Sequence[str], kinds: list[str]) -> None:
    """The first field of a mail's header becomes H; fields of no header become text."""
    for run in _HEADER_RUN.finditer("".join(kinds)):
        fields = [n for n in range(*run.span()) if kinds[n] == "h"]
        header = is_header([texts[n] for n in fields], announced=is_announced(texts, kinds, run.start()))
        for n in fields:
            kinds[n] = "h" if header else "t"
        if header:
            kinds[run.start()] = "H"
            above = len("".join(kinds[: run.start()]).rstrip("e")) - 1
            if above >= 0 and kinds[above] == "g" and is_long_rule(texts[above]):
                kinds[above] = "r"


def _find_forwards(texts: Sequence[str], kinds: list[str]) -> None:
    """A title without dashes announces a forwarded mail only if a header follows."""
    for n, kind in enumerate(kinds):
        if kind == "f" and not TITLE.match(texts[n]):
            following = next((other for other in kinds[n + 1 :] if other != "e"), "")
            kinds[n] = "f" if following and following in "Hhq" else "t"


def _find_titles(texts: Sequence[str], kinds: list[str]) -> None:
    """Right above a header or an introduction: the title of a history needs no dashes, two header fields no others.

    Foxmail puts the address of the mail's author there.
    """
    for below in _TITLED.finditer("".join(kinds)):
        n = first = below.start()
        if (
            ADDRESS.fullmatch(texts[n].strip())
            and "b" not in kinds[n + 1 : n + 3]
            and not is_announced(texts, kinds, n)
        ):
            kinds[n] = "d"
        if texts[n].strip(DASHES + ":：").lower() in ORIGINAL:  # noqa: RUF001
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
    ends = ends and (at + 1 < len(written) or names_author([name], author))
    if ends and kinds[written[at] - 1] == "e" and is_name(name) and len(name.split()) <= MAX_SIGNED:
        kinds[written[at]] = "g"


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


def _span(body: MailBody, kinds: str, forwarded: bool) -> tuple[int, int, str]:
    """First line of what was written now, the first one after it, and the kinds as far as they are believed."""
    texts, replied = body.texts, body.replied
    below = answer_below(kinds)
    if below and ("q" in kinds[:below] or ADDRESS.search(" ".join(texts[:below]))):
        return below, _cut(kinds[below:], _found(_SIGNATURE)) + below, kinds
    if replied and not forwarded and (head := _FORWARDED_HEAD.match(kinds)):
        return head.end(), _cut(kinds[head.end() :], _found(_SIGNATURE)) + head.end(), kinds
    end, signed = len(kinds), -1
    if forwarded or _forwards(kinds):
        forward = _cut(kinds, _found(_FORWARD)) if replied and not forwarded else end
        meant = is_announced(texts, kinds, forward) or _POINTS.search("\n".join(texts[:forward]))
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


def _believed(body: MailBody, kinds: str, finder: Finder, end: int) -> tuple[str, int]:
    """Where the first believable sign stands; those above it become text, as their writer meant them."""
    for _ in range(MAX_DOUBTS):
        cut = _cut(kinds[:end], finder)
        sign = end_of_run(kinds, cut, end, "e")
        if sign == end or _is_history(body, kinds, finder, sign, end):
            return kinds, cut
        last = end_of_run(kinds, sign, end, "Hh" if kinds[sign] == "H" else kinds[sign])
        kinds = kinds[:sign] + "t" * (last - sign) + kinds[last:]
    return kinds, end


def _is_history(body: MailBody, kinds: str, finder: Finder, sign: int, end: int) -> bool:
    if _may_be_announced(body.texts, finder, sign) and is_announced(body.texts, kinds, sign):
        return False
    return is_believable(body, kinds, sign, end)


def _may_be_announced(texts: Sequence[str], finder: Finder, cut: int) -> bool:
    """Quotes, an introduction without address ("On 5 May, Mrs Smith wrote:") and dashes may be a text for the site."""
    if finder is _SIGNED_END:
        return True
    return finder is quotes_to_the_end or (
        finder in (begin_without_quotes, begin_unanswered) and not ADDRESS.search(texts[cut])
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
        long = len(notice) >= MIN_DISCLAIMER and len(disclaimers(notice)) >= 3
        if not long or not above or not is_finished(texts, kinds, first):
            return end
        end = first


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
