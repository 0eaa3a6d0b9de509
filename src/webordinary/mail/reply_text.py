"""The part of a mail that its writer wrote now, apart from quoted history and signatures.

When in doubt the whole body is kept: a customer's words must not get lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.mail.reply_lines import MAX_LINE, SHARED_LINE, WRAPPED_BEGINNING, begins_mail, letter_of

MAX_LINES = 5000
MAX_WRAPPED = 5
"""An "On … wrote:" is wrapped over at most so many lines."""

_ANSWER_BELOW = re.compile(r"^[be]*b[ehqb]*q[eqb]*(t[^bhdq]*)$|^[be]*b[be]*(t[te]*)$")
_SIGNATURE = re.compile(r"g[teshr]{0,30}$")
# Where history begins, in the order in which we believe the signs. Text below a quote means: answered inside.
_HISTORY = (
    re.compile(r"d"),
    re.compile(r"s(?![qbe]*t[te]*q)"),  # the signature of a device ends what was written now
    re.compile(r"b[ehqb]*q[eqhbgs]*$"),  # "On … wrote:" and quotes to the end
    re.compile(r"b(?!.*q)"),  # "On … wrote:" over a history without quote marks
    re.compile(r"h(?:[te]?h){2,}"),  # From, Sent, To, Subject
    re.compile(r"b(?![ehqb]*q.*t)"),
    re.compile(r"b?[qe]*q[qegs]*$"),
    re.compile(r"[re]+$"),
    _SIGNATURE,
)


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
    if below := _ANSWER_BELOW.match(kinds):
        group = below.lastindex or 1
        return below.start(group), _cut(kinds, below.start(group), len(kinds), _SIGNATURE)
    end = len(kinds)
    if "f" in kinds.partition("d")[0]:  # a forwarded mail is something to work with, not history
        return 0, end
    end = _cut(kinds, 0, end, _SIGNATURE)
    for pattern in _HISTORY:
        end = _cut(kinds, 0, end, pattern)
    return 0, end


def _cut(kinds: str, start: int, end: int, pattern: re.Pattern[str]) -> int:
    """Where a sign of history stands, if some text stands before it."""
    found = pattern.search(kinds, start, end)
    return found.start() if found and "t" in kinds[start : found.start()] else end


def _split_lines(body: str) -> list[str]:
    lines: list[str] = []
    for line in body.strip("\n").split("\n"):
        shared = SHARED_LINE.search(line) if len(line) <= MAX_LINE else None
        lines.extend((line[: shared.start()], line[shared.start() :].lstrip(" -")) if shared else (line,))
    return lines


def _joined(lines: list[str]) -> list[str]:
    """Put an "On … wrote:" that was wrapped back on one line."""
    result: list[str] = []
    n = 0
    while n < len(lines):
        taken = _wrapped_over(lines, n)
        result.append(_one_line(lines[n : n + taken]) if taken > 1 else lines[n])
        n += taken
    return result


def _wrapped_over(lines: list[str], n: int) -> int:
    if not WRAPPED_BEGINNING.match(lines[n]) or begins_mail(lines[n]):
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
