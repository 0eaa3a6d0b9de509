"""The header lines of a mail, read from bytes: bounded, linear in time, and never raising.

The standard library's header classes take seconds and gigabytes on hostile headers; we need a handful of
fields and read these ourselves.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass

from webordinary.mail.charsets import decode
from webordinary.model.text import clean

MAX_HEADER_BYTES = 64 * 1024
MAX_FIELD_BYTES = 8 * 1024
MAX_IDS = 200

_FIELD_NAME = re.compile(rb"[!-9;-~]{1,200}[ \t]*:")
_BLANK_LINES = (b"\n\r\n", b"\n\n", b"\r\r")
_ENCODED_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*)\?=")
_BETWEEN_WORDS = re.compile(r"(\?=)\s+(?==\?[^?\s]{1,60}\?[bBqQ]\?)")
_MESSAGE_ID = re.compile(r"<[^<>\s]{1,500}>")


@dataclass(frozen=True, slots=True)
class Headers:
    """Names in lower case with their unfolded values, in the order of the mail."""

    fields: tuple[tuple[str, str], ...]

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field."""
        return tuple(value for field, value in self.fields if field == name)

    def first(self, name: str) -> str:
        """The first value of a field, or nothing."""
        return next(iter(self.all(name)), "")

    def text(self, name: str) -> str:
        """The first value of a field as people read it."""
        return decode_words(self.first(name))

    def message_ids(self, name: str) -> tuple[str, ...]:
        """The Message-IDs in a field, in order, each once."""
        found = _MESSAGE_ID.findall(" ".join(self.all(name)))
        return tuple(dict.fromkeys(found))[:MAX_IDS]


def split(raw: bytes) -> tuple[bytes, bytes]:
    """The header block and the body of a mail."""
    if raw[:1] in (b"\n", b"\r"):
        return b"", raw.lstrip(b"\r\n")
    found = [(raw.find(end), len(end)) for end in _BLANK_LINES]
    at, length = min(((at, length) for at, length in found if at >= 0), default=(len(raw), 0))
    return raw[:at].removesuffix(b"\r"), raw[at + length :]


def read_headers(raw: bytes) -> Headers:
    """Read the first 64 kB of header lines; what is longer was refused by the pre-scan."""
    block = split(raw[: MAX_HEADER_BYTES + 4])[0][:MAX_HEADER_BYTES]
    return Headers(tuple(_unfolded(block)))


def _unfolded(block: bytes) -> Iterator[tuple[str, str]]:
    name, parts = "", list[bytes]()
    for line in [*block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b"end:"]:
        if line[:1] in (b" ", b"\t"):
            parts.append(line)
            continue
        if name:
            yield name, clean(decode(b" ".join(part.strip() for part in parts), "utf-8"))
        name, parts = "", []
        if match := _FIELD_NAME.match(line):
            name, parts = match.group()[:-1].strip().lower().decode("ascii"), [line[match.end() :]]


def decode_words(text: str) -> str:
    """Decode `=?utf-8?q?…?=`; what cannot be decoded stays as it is."""
    joined = _BETWEEN_WORDS.sub(r"\1", text[:MAX_FIELD_BYTES])
    return clean(_ENCODED_WORD.sub(_decode_word, joined))


def _decode_word(match: re.Match[str]) -> str:
    charset, encoding, payload = match.groups()
    data = _bytes_of(payload, charset)
    try:
        decoded = (
            base64.b64decode(data + b"=" * (-len(data) % 4))
            if encoding in "bB"
            else quopri.decodestring(data, header=True)
        )
    except (binascii.Error, ValueError):
        return match.group()
    return decode(decoded, charset.partition("*")[0])


def _bytes_of(payload: str, charset: str) -> bytes:
    """Some programs put raw bytes of the charset into an encoded word; these were read as text before."""
    try:
        return payload.encode("ascii" if payload.isascii() else charset)
    except (LookupError, UnicodeError):
        return payload.encode("utf-8", "replace")
