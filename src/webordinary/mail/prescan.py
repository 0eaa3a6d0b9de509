"""A look at the bytes before any parser sees them: what would cost too much to read is refused in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from webordinary.mail.errors import Unparseable
from webordinary.mail.headers import MAX_FIELD_BYTES, MAX_HEADER_BYTES, split


@dataclass(frozen=True, slots=True)
class Limits:
    """What a mail of a person never exceeds."""

    size: int = 40 * 1024 * 1024
    lines: int = 1_000_000
    header_bytes: int = MAX_HEADER_BYTES
    field_bytes: int = MAX_FIELD_BYTES
    encoded_words: int = 400
    recipients: int = 300
    multiparts: int = 50
    parts: int = 500
    open_brackets: int = 200


DEFAULT_LIMITS = Limits()

_FIELDS = re.compile(rb"^([!-9;-~]+)[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*", re.M)
# These look through the whole mail in lower case; each begins with letters, which makes the search quick.
_PART_FIELDS = re.compile(rb"\ncontent-[a-z-]+[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*")
_BOUNDARY = re.compile(rb"boundary(?:\*[0-9]*\*?)?\s*=\s*(?:\"([^\"\n]*)\"|([^\s;\"]*))")
_NESTED_MAIL = re.compile(rb"\ncontent-type\s*:\s*message/")
_RECIPIENT_FIELDS = (b"to", b"cc", b"bcc", b"resent-to", b"resent-cc")
_READ_FIELDS = (
    b"from",
    b"subject",
    b"date",
    b"message-id",
    b"in-reply-to",
    b"content-type",
    b"auto-submitted",
)


def unix_lines(raw: bytes) -> bytes:
    """One kind of line end, so that the scan and the parser see the same lines."""
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def prescan(lines: bytes, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise Unparseable where a mail (with `unix_lines`) exceeds a limit."""
    _at_most(len(lines), limits.size, "bytes")
    _at_most(lines.count(b"\n"), limits.lines, "lines")
    block = split(lines)[0]
    _at_most(len(block), limits.header_bytes, "bytes of header")
    _at_most(block.count(b"=?"), limits.encoded_words, "encoded words in its header")
    _scan_fields(block, limits)
    _scan_parts(lines, limits)


def _scan_fields(block: bytes, limits: Limits) -> None:
    for match in _FIELDS.finditer(block):
        name, field = match.group(1).lower(), match.group()
        if name in _RECIPIENT_FIELDS:
            _at_most(field.count(b",") + 1, limits.recipients, "recipients")
        elif name in _READ_FIELDS:
            _at_most(len(field), limits.field_bytes, f"bytes in its header field {name.decode('ascii')[:60]}")
        _at_most(field.count(b"("), limits.open_brackets, "comments in a header field")


def _scan_parts(lines: bytes, limits: Limits) -> None:
    lower = b"\n" + lines.lower()
    for match in _PART_FIELDS.finditer(lower):
        _at_most(len(match.group()), limits.field_bytes, "bytes in the header field of a part")
    declared = [match.group(1) or match.group(2) or b"" for match in _BOUNDARY.finditer(lower)]
    nested_mails = len(_NESTED_MAIL.findall(lower))
    _at_most(len(declared) + nested_mails, limits.multiparts, "nested parts")
    parts = sum(lower.count(b"\n--" + boundary) for boundary in set(declared) if boundary)
    _at_most(parts, limits.parts, "parts")


def _at_most(found: int, allowed: int, what: str) -> None:
    if found > allowed:
        raise Unparseable(
            f"this mail has {found} {what}, and we read at most {allowed}: send it again in a simpler form"
        )
