"""A mail's text taken apart into single wishes, without the greeting, the thanks and the name below."""

from __future__ import annotations

import re

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
_CLOSING = re.compile(
    rf"(?:\A|\n|(?<=[.!?])[ ])[ \t]*(?:{_THANKS})\b[^\n]{{0,60}}(?:\n[^\n]{{0,60}}){{0,4}}\Z", re.IGNORECASE
)
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
    r"\A(?:please|pls|kindly|also|and|then|now|first|next|finally|(?:could|can|would|will)\s+you|"
    rf"{_WOULD_LIKE}|let['\u2019]s)\b\s*,?\s*",
    re.IGNORECASE,
)
_POLITE_END = re.compile(r"(?:,?\s+(?:please|thanks|thank\s+you))?\s*[.!?]*\Z", re.IGNORECASE)
_BULLET = re.compile(r"\A\s*(?:[-*•]|\d{1,2}[.)])\s+")
_EMPTY = re.compile(r"\A(?:thanks|thank you|cheers|that['\u2019]s all|that is all)?[\s.!]*\Z", re.IGNORECASE)
MAX_WISHES = 30


def wishes_of(text: str) -> list[str]:
    """The single wishes of a mail, in order."""
    text = text.replace("\r\n", "\n").strip()
    body = _CLOSING.sub("", _GREETING.sub("", text, count=1))
    parts = (_bare(part) for part in _SPLIT.split(_BULLET.sub("", body)))
    return [part for part in parts if not _EMPTY.match(part)][: MAX_WISHES + 1]


def _bare(part: str) -> str:
    part = " ".join(part.split())
    while (shorter := _POLITE.sub("", part, count=1)) != part:
        part = shorter
    stripped = _POLITE_END.sub("", part)
    # `… to Spring Sale!` means the exclamation mark; `… please!` does not.
    return stripped + "!" if part == stripped + "!" else stripped
