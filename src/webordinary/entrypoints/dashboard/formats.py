"""Times, durations and sizes in the words of people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_LINK = re.compile(r"https?://[^\s<>\"'()]{1,2000}[^\s<>\"'().,;:!?]")


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, for machines and for people."""

    iso: str
    clock: str
    ago: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text; a link where `href` is set."""

    text: str
    href: str = ""


def moment(at: datetime, now: datetime) -> Moment:
    """Show the time of day here, with the date where it is not today's."""
    local = at.astimezone()
    today = local.date() == now.astimezone().date()
    clock = f"{local:%H:%M:%S}" if today else f"{local.day} {local:%b %Y, %H:%M}"
    return Moment(at.isoformat(timespec="milliseconds"), clock, ago(now - at))


def ago(span: timedelta) -> str:
    """How long since, roughly."""
    seconds = span.total_seconds()
    return "just now" if seconds < 5 else f"{duration(timedelta(seconds=int(seconds)))} ago"


def duration(span: timedelta) -> str:
    """How long it took, with two digits that matter."""
    seconds = max(0.0, span.total_seconds())
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10 and seconds % 1:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"


def size(count: int) -> str:
    """A file's size."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1_000_000:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1_000_000:.1f} MB"


def plural(count: int, one: str, many: str = "") -> str:
    """`1 mail`, `2 mails`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def pieces(text: str) -> tuple[Piece, ...]:
    """Cut text at its web addresses, so that the template can make links of them."""
    found: list[Piece] = []
    end = 0
    for link in _LINK.finditer(text):
        found += [Piece(text[end : link.start()]), Piece(link.group(), href=link.group())]
        end = link.end()
    return tuple(piece for piece in (*found, Piece(text[end:])) if piece.text)
