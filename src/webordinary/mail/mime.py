"""Mails as bytes, built so that the same words always give the same bytes."""

from __future__ import annotations

import base64
import quopri
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.utils import format_datetime
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Entity:
    """A MIME part: its own header fields and its encoded body, with CRLF line ends."""

    fields: tuple[tuple[str, str], ...]
    body: bytes


def text(subtype: str, words: str) -> Entity:
    """A text part that stays legible on the wire."""
    lines = quopri.encodestring(words.strip("\n").replace("\r", "").encode("utf-8", "replace") + b"\n")
    fields = (
        ("Content-Type", f"text/{subtype}; charset=utf-8"),
        ("Content-Transfer-Encoding", "quoted-printable"),
    )
    return Entity(fields, lines.replace(b"\n", b"\r\n"))


def file(name: str, media_type: str, data: bytes) -> Entity:
    """An attached file."""
    plain = "".join(char if char.isascii() and char.isprintable() and char not in '"\\' else "_" for char in name)
    exact = "" if plain == name else f"; filename*=utf-8''{quote(name, safe='')}"
    fields = (
        ("Content-Type", one_line(media_type)),
        ("Content-Transfer-Encoding", "base64"),
        ("Content-Disposition", f'attachment; filename="{plain}"{exact}'),
    )
    return Entity(fields, base64.encodebytes(data).replace(b"\n", b"\r\n"))


def multipart(subtype: str, boundary: str, parts: Sequence[Entity]) -> Entity:
    """Several parts in one. The boundary must not occur in them: derive it from a digest."""
    line = b"--" + boundary.encode("ascii")
    body = b"".join(line + b"\r\n" + to_bytes(part) + b"\r\n" for part in parts) + line + b"--\r\n"
    return Entity((("Content-Type", f'multipart/{subtype}; boundary="{boundary}"'),), body)


def message(fields: Sequence[tuple[str, str]], content: Entity) -> bytes:
    """A whole mail; fields without a value are left out."""
    given = tuple((name, value) for name, value in fields if value)
    return to_bytes(Entity((*given, ("MIME-Version", "1.0"), *content.fields), content.body))


def to_bytes(entity: Entity) -> bytes:
    """Header, empty line, body."""
    header = "".join(f"{name}: {value}\r\n" for name, value in entity.fields)
    return header.encode("ascii", "replace") + b"\r\n" + entity.body


def words(value: str, field: str) -> str:
    """Free text for a header field, encoded and folded."""
    flat = one_line(value)
    charset = "us-ascii" if flat.isascii() and "=?" not in flat else "utf-8"
    return Header(flat, charset, header_name=field, maxlinelen=76).encode(linesep="\r\n")


def message_ids(ids: Sequence[str]) -> str:
    """Message-IDs, one per line, so that none is ever broken in two."""
    return "\r\n ".join(one for one in ids if one.isascii())


def date(at: datetime) -> str:
    """A point in time as mails write it."""
    return format_datetime(at.replace(microsecond=0))


def one_line(value: str) -> str:
    """No line ends: what a customer wrote must not become a header field."""
    return " ".join(value.split())
