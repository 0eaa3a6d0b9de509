"""A mail's text taken apart into single wishes, without the greeting, the thanks and the name below."""

from __future__ import annotations

import re

_OPENING = re.compile(r"[“\"«„]|(?<![\w'\u2019])[\u2018']")
_QUOTES_CLOSING = {
    "“": re.compile(r"”|\n"),
    '"': re.compile(r"\"|\n"),
    "«": re.compile(r"»|\n"),
    "„": re.compile(r"[“”]|\n"),
    "\u2018": (_SINGLE := re.compile(r"[\u2019'](?!\w)|[\u2018\n]")),
    "'": _SINGLE,
}
"""What ends a quotation, or shows that it was none."""
_LONGEST = 2_000
# What follows `add a paragraph to the about page:` is text up to the next empty line, however many sentences.
_AFTER_COLON = re.compile(
    r"(\b(?:paragraph|page\s+(?:called|named|titled))\b[^:\n]{0,100}:)[ \t]*\n?(\S[^\n]*(?:\n[ \t]*\S[^\n]*)*)",
    re.IGNORECASE,
)
_FIRST = 0xE000  # a private-use character stands for each quotation
_LAST = 0xF8FF
MARK = f"[{chr(_FIRST)}-{chr(_LAST)}]"


class _Ahead:
    """Where the next closing mark of each kind is; looked for once, however many opening marks stand before it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, re.Match[str] | None] = {}

    def closing(self, mark: str, start: int) -> int:
        """Where a quotation that begins at `start` ends; before `start` if it is none."""
        first, found = start, self._found.get(mark)
        if _QUOTES_CLOSING[mark] is _SINGLE:
            first += self._text[start : start + 1] in ("'", "\u2019")  # it may begin with an apostrophe
        if mark not in self._found or (found is not None and found.start() < first):
            found = self._found[mark] = _QUOTES_CLOSING[mark].search(self._text, first)
        if found is None or found[0] in "\n\u2018":
            return -1
        return found.start()


class Quotes:
    """The quotations of one mail."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def set_aside(self, text: str) -> str:
        """The text with a mark in place of each quotation."""
        return _AFTER_COLON.sub(self._mark_rest, self._marked(re.sub(MARK, "", text)))

    def _marked(self, text: str) -> str:
        parts, done, ahead = [], 0, _Ahead(text)
        for opening in _OPENING.finditer(text):
            begin = opening.end()
            end = ahead.closing(opening[0], begin)
            if opening.start() < done or not 0 < end - begin <= _LONGEST or self._full:
                continue
            parts += [
                text[done : opening.start()],
                self._mark(text[begin:end].strip() if opening[0] == "«" else text[begin:end]),
            ]
            done = end + 1
        return "".join([*parts, text[done:]])

    def _mark_rest(self, match: re.Match[str]) -> str:
        if self._full or re.match(MARK, match[2]):
            return match[0]
        return f"{match[1]} {self._mark(' '.join(self.shown(match[2]).split()))}"

    @property
    def _full(self) -> bool:
        return len(self._texts) > _LAST - _FIRST

    def _mark(self, quotation: str) -> str:
        self._texts.append(quotation)
        return chr(_FIRST + len(self._texts) - 1)

    def literal(self, text: str) -> str:
        """The text that is meant: one quotation exactly, or words with their end punctuation taken off."""
        text = text.strip()
        core = text.rstrip(".,; ")
        if re.fullmatch(MARK, core):
            return self._texts[ord(core) - _FIRST]
        return self.shown(core)

    def is_quoted(self, text: str) -> bool:
        """Whether the text is one quotation."""
        return re.fullmatch(MARK, text.strip().rstrip(".,; ")) is not None

    def shown(self, text: str) -> str:
        """The text with its quotations put back, for people."""
        return re.sub(MARK, lambda mark: f"“{self._texts[ord(mark[0]) - _FIRST]}”", text).strip()


VERBS = (
    "add|create|change|replace|set|update|make|put|place|insert|use|include|show|post|rename|swap|correct|fix|"
    "remove|delete"
)
_PICTURE = r"(?:photo|picture|image|pic)s?"
_GREETING = re.compile(
    r"\A\s*(?:hi|hello|hey|dear|good\s+(?:morning|afternoon|evening|day))\b[^\n.!?,:]{0,40}[\n.!?,:]\s*",
    re.IGNORECASE,
)
_THANKS = (
    "many thanks|thanks|thank you|thx|cheers|best|best wishes|kind regards|regards|"
    "yours|sincerely|greetings|warmly|love|sent from"
)
_CLOSING = re.compile(rf"(?:\A|(?<=[.!?])[ ])(?:{_THANKS})\b(?P<rest>.{{0,60}})\Z", re.IGNORECASE)
_LINES_BELOW = 4
_LONGEST_BELOW = 60
_POSTSCRIPT = re.compile(r"^(?:p\.?){1,2}s\b[.:,]{0,3}[ ]?", re.IGNORECASE | re.MULTILINE)
_ASKS = re.compile(
    rf"\A(?:{VERBS})[ ].{{1,200}}?[ ](?:to|with|into|by|on|from)[ ]"
    rf"|\b(?:{VERBS})[ ](?:(?:the|my|our|this|these|an?|another)\b|{MARK})",
    re.IGNORECASE,
)
"""A wish, though it stands below the thanks; `Market Place 5` is none."""
_SPLIT = re.compile(
    r"\s*(?:;|\n[ \t]*\n|\n[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+)\s*"
    r"|(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bNo\.)(?<=[.!?])\s+(?=[A-Z])"
    rf"|,?\s+(?:and|then|and\s+then|also|and\s+also|and\s+please)\s+(?=(?:please\s+)?(?:{VERBS})\b)"
    rf"|,\s+(?=(?:please\s+)?(?:{VERBS})\b)"
    rf"|,?\s+(?:and\s+)?(?=(?:with\s+)?(?:the\s+|a\s+|my\s+)?{_PICTURE}\s+(?:is\s+|are\s+)?attached\b)",
    re.IGNORECASE,
)
_WOULD_LIKE = r"(?:i|we)(?:['\u2019]d|\s+would)\s+like\s+(?:you\s+)?to|(?:i|we)\s+want\s+(?:you\s+)?to"
_POLITE = re.compile(
    r"\A(?:(?:please|pls|kindly|also|and|then|now|first|next|finally|(?:could|can|would|will)\s+you|"
    rf"{_WOULD_LIKE}|let['\u2019]s)\b\s*,?\s*)++",
    re.IGNORECASE,
)
_POLITE_END = re.compile(r",?\s(?:please|thanks|thank\syou)\Z", re.IGNORECASE)
_BULLET = re.compile(r"\A\s*(?:[-*•]|\d{1,2}[.)])\s+")
_EMPTY = re.compile(r"\A(?:thanks|thank you|cheers|that['\u2019]s all|that is all)?[\s.!]*\Z", re.IGNORECASE)
MAX_WISHES = 30
MAX_WISH_LENGTH = 20_000  # characters, each quotation counted as one


def wishes_of(text: str) -> list[str]:
    """The single wishes of a mail, in order."""
    text = _squeezed(text)
    body = _POSTSCRIPT.sub("\n\n", _without_closings(_GREETING.sub("", text, count=1)))
    parts = (_bare(part) for part in _SPLIT.split(_BULLET.sub("", body)))
    return [part for part in parts if not _EMPTY.match(part)][: MAX_WISHES + 1]


def _squeezed(text: str) -> str:
    """One blank between words and one empty line between paragraphs: no pattern below meets a long run of either."""
    lines = "\n".join(" ".join(line.split()) for line in text.strip().split("\n"))
    return re.sub(r"\n{3,}+", "\n\n", lines)


def _without_closings(text: str) -> str:
    """The text without thanks and the few lines below them, up to the end or to a line that asks for something."""
    lines, kept, at = text.split("\n"), [], 0
    while at < len(lines):
        closing, end = _CLOSING.search(lines[at]), at + 1
        while end <= at + _LINES_BELOW and end < len(lines) and _is_below(lines[end]):
            end += 1
        ends = end == len(lines) or (closing and closing.start() == 0 and _asks(lines[end]))
        if closing and ends and not _asks(closing["rest"]):
            kept += [lines[at][: closing.start()], ""]
            at = end
        else:
            kept.append(lines[at])
            at += 1
    return "\n".join(kept).strip()


def _asks(line: str) -> bool:
    line = line.lstrip(" ,.!?:-*•")
    return bool(_POSTSCRIPT.match(line) or _ASKS.search(_POLITE.sub("", line)))


def _is_below(line: str) -> bool:
    """Whether this may be a line of a name and an address."""
    return len(line) <= _LONGEST_BELOW and not _asks(line)


def _bare(part: str) -> str:
    part = _POLITE.sub("", " ".join(part.split()))
    stripped = _POLITE_END.sub("", part.rstrip(".!?").rstrip())
    # `… to Spring Sale!` means the exclamation mark; `… please!` does not.
    return stripped + "!" if part == stripped + "!" else stripped
