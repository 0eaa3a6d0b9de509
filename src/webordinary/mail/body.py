"""The text of a mail: plain where there is some, else from HTML."""

from __future__ import annotations

from webordinary.mail.html_text import html_to_text
from webordinary.mail.parts import Part, Parts
from webordinary.model.text import clean

MAX_TEXT = 200_000


def body_text(parts: Parts) -> str:
    """What the customer's mail program shows, as lines of text."""
    plain = "\n".join(_plain(part) for part in parts.plain)
    if plain.strip() or not parts.html:
        return _bounded(plain)
    return _bounded("\n".join(html_to_text(part.text) for part in parts.html))


def _plain(part: Part) -> str:
    text = part.text.replace("\r\n", "\n").replace("\r", "\n")
    return _unflowed(text) if part.flowed else text


def _unflowed(text: str) -> str:
    """Join the soft line breaks of format=flowed (RFC 3676) within the same depth of quoting."""
    lines: list[str] = []
    open_depth = -1
    for line in text.split("\n"):
        body = line.lstrip(">")
        depth = len(line) - len(body)
        words = body.removeprefix(" ")
        if depth == open_depth:
            lines[-1] += words
        else:
            lines.append(line if depth else words)
        open_depth = depth if words.endswith(" ") and words != "-- " else -1
    return "\n".join(lines)


def _bounded(text: str) -> str:
    return clean(text)[:MAX_TEXT].strip("\n").rstrip()
