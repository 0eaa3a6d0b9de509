"""The parts of a mail: which are its text, which are files that came with it.

A part is a view into the raw mail; its bytes are decoded when they are asked for. The standard library's parser makes
several copies of the whole mail and took 400 MB for one of 40 MB, so only the header of each part goes through it.
"""

from __future__ import annotations

import binascii
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email.errors import MessageError
from email.message import Message
from email.utils import collapse_rfc2231_value
from itertools import islice
from typing import Any

from webordinary.mail.parsing.headers import (
    MAX_FIELD_BYTES,
    MAX_HEADER_BYTES,
    Headers,
    body_view,
    decode,
    decode_words,
    read_fields,
    read_headers,
)
from webordinary.mail.ports import Unparseable

MAX_MAIL_BYTES = 40 * 1024 * 1024
MAX_STORED_BYTES = MAX_MAIL_BYTES + 1024 * 1024
"""A mail with the headers that its transport wrote before it."""


@dataclass(frozen=True, slots=True)
class MailLimits:
    """What a mail of a person never exceeds."""

    size: int = MAX_MAIL_BYTES
    lines: int = 1_000_000
    header_bytes: int = MAX_HEADER_BYTES
    field_bytes: int = MAX_FIELD_BYTES
    encoded_words: int = 400
    recipients: int = 300
    parameters: int = 100
    """`;` in one field: the standard library takes the square of them."""
    multiparts: int = 50
    depth: int = 20
    parts: int = 500
    part_header_bytes: int = 512 * 1024
    open_brackets: int = 200


DEFAULT_LIMITS = MailLimits()

_FIELDS = re.compile(rb"^([!-9;-~]+)[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*", re.M)
_RECIPIENT_FIELDS = (b"to", b"cc", b"bcc", b"resent-to", b"resent-cc")
_READ_FIELDS = (
    b"from",
    b"subject",
    b"date",
    b"message-id",
    b"in-reply-to",
    b"content-type",
    b"content-disposition",
    b"content-transfer-encoding",
    b"auto-submitted",
)


def prescan(raw: bytes, limits: MailLimits = DEFAULT_LIMITS) -> None:
    """Raise Unparseable where a mail, or its header, exceeds a limit; `scan_part` looks at its parts."""
    at_most(len(raw), limits.size, "bytes")
    at_most(raw.count(b"\n"), limits.lines, "lines")
    header_bytes = len(raw) - len(body_view(raw))
    at_most(header_bytes, limits.header_bytes, "bytes of header")
    block = raw[:header_bytes].replace(b"\r\n", b"\n")
    at_most(block.count(b"=?"), limits.encoded_words, "encoded words in its header")
    for match in _FIELDS.finditer(block):
        _scan_field(match.group(1).lower(), match.group(), limits)


def _scan_field(name: bytes, field: bytes, limits: MailLimits) -> None:
    if name in _RECIPIENT_FIELDS:
        at_most(field.count(b",") + 1, limits.recipients, "recipients")
    elif name in _READ_FIELDS:
        at_most(len(field), limits.field_bytes, f"bytes in its header field {name.decode('ascii')[:60]}")
        at_most(field.count(b";"), limits.parameters, f"parameters in its header field {name.decode('ascii')[:60]}")
    at_most(field.count(b"("), limits.open_brackets, "comments in a header field")


def scan_part(headers: Headers, limits: MailLimits) -> None:
    """Raise Unparseable where a header field of a part exceeds a limit."""
    for name, value in headers.fields:
        if name.startswith("content-"):
            at_most(len(value), limits.field_bytes, "bytes in the header field of a part")
            at_most(value.count(";"), limits.parameters, "parameters in the header field of a part")


def at_most(found: int, allowed: int, what: str) -> None:
    """Raise Unparseable beyond a limit."""
    if found > allowed:
        raise Unparseable(
            f"this mail has {found} {what}, and we read at most {allowed}: send it again in a simpler form"
        )


# What the standard library lets out on odd mails; none of it may reach the workflow under another name.
PARSER_RAISES = (
    LookupError, ValueError, TypeError, AttributeError, AssertionError, RecursionError, binascii.Error, MessageError,
)  # fmt: skip
_SIGNATURES = {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}
_UUENCODED = {"x-uuencode", "uuencode", "uue", "x-uue"}
_HEADER_LINES = re.compile(rb"(?:(?:[!-9;-~]+[ \t]*:|[ \t])[^\n]*(?:\n|\Z))*+")
_EMPTY_LINE = re.compile(rb"\r?\n")
_SMALL = 4096
_TEXTS = ("text/plain", "text/html", "text/enriched", "text/richtext")
_TEXT_TYPE = re.compile(r"\s*text/(?:plain|html)\b", re.I)
"""Also without the semicolon that should follow."""
_MULTIPART = re.compile(r"\s*multipart\b\s*(?:/\s*([a-z0-9.+-]{1,40}))?[\s,;]*", re.I)
"""The same: `multipart/mixed boundary=x`."""
_BOUNDARY_LINE = re.compile(rb"^--([^\r\n]{1,200}?)[ \t]*\r?\n(?=content-[a-z-]{1,40}[ \t]*:)", re.I | re.M)
"""Where a declared boundary is missing or wrong: a delimiter with the header of a part below it."""
_SEARCHED = 64 * 1024
_HEADER_BELOW = re.compile(rb"(?:\r?\n){1,3}(?=content-[a-z-]{1,40}[ \t]*:)", re.I)
_ENCODING = re.compile(r"[\s\"'(]*([a-z0-9_-]+)")
_ENCODINGS = {"base-64": "base64", "base_64": "base64", "b64": "base64", "quoted_printable": "quoted-printable"}
_BINARY_TYPES = {"application", "audio", "image", "video"}
_BINARY = re.compile(rb"\x89PNG\r|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|....ftyp|%PDF-|PK\x03\x04", re.S)
_BASE64_LINE = re.compile(rb"\s*[A-Za-z0-9+/]{60,76}\r?\n")
_UUENCODED_FILE = re.compile(
    rb"^begin [0-7]{3,4} ([^\r\n]{1,200})\r?\n(?:[ -`]{1,90}\r?\n)*+\r?\n?end[ \t]*(?:\r?\n|\Z)", re.M
)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset=[\"']?([a-z0-9._-]{1,40})", re.I)


@dataclass(frozen=True, slots=True)
class Part:
    """One leaf of the mail's tree, as declared; nothing of it is believed yet."""

    media_type: str
    name: str
    encoded: memoryview
    encoding: str
    charset: str = ""
    flowed: bool = False
    content_id: str = ""
    choice: int = 0
    """The number of the multipart/alternative that it is in; 0 where it stands for itself."""
    joins_spaces: bool = False
    """Of format=flowed: the space before a soft line break is no part of the text (`delsp`)."""

    @property
    def is_html(self) -> bool:
        """Text that has to be rendered."""
        return self.media_type != "text/plain"

    @property
    def data(self) -> bytes:
        """Its bytes, decoded anew each time."""
        return _decoded(self.encoded, self.encoding)

    @property
    def is_binary(self) -> bool:
        """A picture or a document that is declared as a text."""
        start = replace(self, encoded=self.encoded[:_SMALL]) if len(self.encoded) > _SMALL else self
        return _BINARY.match(start.data) is not None

    @property
    def is_blank(self) -> bool:
        """Nothing but white space."""
        return len(self.encoded) < _SMALL and not self.data.strip()

    def text(self, max_bytes: int) -> str:
        """Its first bytes as text; the rest is not even decoded."""
        if len(self.encoded) <= max_bytes:
            return self._decode(self.data)
        start = bytes(self.encoded[: max_bytes // 4 * 4])
        whole_lines = start[: start.rfind(b"\n") + 1] or start
        return self._decode(_decoded(memoryview(whole_lines), self.encoding))

    def _decode(self, data: bytes) -> str:
        """By the declared charset; an HTML part without one may name it in its head."""
        named = None if self.charset or self.media_type != "text/html" else _META_CHARSET.search(data, 0, _SMALL)
        return decode(data, named[1].decode("ascii") if named else self.charset)


@dataclass(frozen=True, slots=True)
class Parts:
    """A mail taken apart."""

    texts: tuple[Part, ...]
    files: tuple[Part, ...]
    forwarded: tuple[Part, ...] = ()
    """Files in a mail that is attached."""

    @property
    def all_files(self) -> tuple[Part, ...]:
        """The files of the mail, then those in attached mails."""
        return self.files + self.forwarded


def take_apart(raw: bytes, limits: MailLimits = DEFAULT_LIMITS) -> Parts:
    """Find the parts of a raw mail after the pre-scan; raises Unparseable and nothing else."""
    prescan(raw, limits)
    root = _Entity(read_headers(raw), (len(raw) - len(body_view(raw)), len(raw)))
    try:
        return _sorted_parts(raw, _PartWalk(raw, limits).leaves(root))
    except PARSER_RAISES as problem:
        raise Unparseable(
            f"this mail is built in a way that cannot be read ({type(problem).__name__}): "
            "send it again from another mail program, or as plain text"
        ) from problem


def _sorted_parts(raw: bytes, leaves: Iterator[_Entity]) -> Parts:
    texts: list[Part] = []
    files: list[Part] = []
    forwarded: list[Part] = []
    for leaf in leaves:
        part = leaf.part(raw)
        if part.media_type in _SIGNATURES:
            continue
        disposition = str(leaf.fields.get("content-disposition", "")).strip().lower()
        is_text = part.media_type in _TEXTS and not part.name and not disposition.startswith("attach")
        if leaf.is_forwarded:
            forwarded += [] if is_text else [part]  # a text stands in the attached mail, which is a file itself
        elif is_text and not part.is_binary:
            for piece in _without_uuencoded(part):
                (files if piece.name else texts).append(piece)
        else:
            files.append(part)
    named = [tuple(part for part in found if part.name or not part.is_blank) for found in (files, forwarded)]
    return Parts(tuple(texts), *named)


def _without_uuencoded(text: Part) -> Iterator[Part]:
    """A text, and the files that an old mail program wrote into it."""
    at, encoded = 0, text.encoded
    if text.media_type == "text/plain" and text.encoding not in ("base64", "quoted-printable"):
        for found in islice(_UUENCODED_FILE.finditer(encoded), DEFAULT_LIMITS.multiparts):
            yield replace(text, encoded=encoded[at : found.start()])
            name = found[1].decode("utf-8", "replace")
            yield Part("application/octet-stream", name, encoded[slice(*found.span())], "x-uuencode")
            at = found.end()
    if at < len(encoded) or not at:
        yield replace(text, encoded=encoded[at:])


def _repaired(kind: re.Match[str]) -> str:
    return f"multipart/{kind[1] or 'mixed'}; "


class _Entity:
    """A mail, or a part of one: header fields, and where its body stands in the raw mail."""

    def __init__(self, headers: Headers, span: tuple[int, int], default_type: str = "text/plain") -> None:
        self.span = span
        self.choice = 0
        self.is_forwarded = False
        """Is it in an attached mail?"""
        self.fields = Message()  # knows quoting, RFC 2231 and what mail programs write instead
        self.fields.set_default_type(default_type)
        for name in ("content-type", "content-disposition", "content-transfer-encoding", "content-id"):
            if value := headers.first(name):
                self.fields[name] = _MULTIPART.sub(_repaired, value, count=1) if name == "content-type" else value
        given = " ".join(headers.all("content-type")).lower()
        if self.fields.get_content_type() not in _TEXTS and (bare := _TEXT_TYPE.match(given)):
            self.fields.set_type(bare[0].lower())
        self.declares_parts = self.fields.get_content_maintype() == "multipart"
        self.may_begin_with_parts = not given or "multipart" in given or "boundary" in given

    def boundary(self) -> bytes:
        """Empty where it has no parts, or does not name it."""
        return (self.fields.get_boundary() or "").encode("utf-8", "replace") if self.declares_parts else b""

    def part(self, raw: bytes) -> Part:
        fields, named = self.fields, _ENCODING.match(str(self.fields.get("content-transfer-encoding", "")).lower())
        encoding = _ENCODINGS.get(named[1], named[1]) if named else ""
        if fields.get_content_maintype() in _BINARY_TYPES and _BASE64_LINE.match(raw, *self.span):
            encoding = "base64"  # whatever its header says
        flowed = str(fields.get_param("format", "") or "").lower() == "flowed"
        joins = str(fields.get_param("delsp", "") or "").lower() == "yes"
        charset, encoded = str(fields.get_content_charset() or ""), memoryview(raw)[slice(*self.span)]
        content_id = str(fields.get("content-id", "")).strip().strip("<>")
        type_, name = fields.get_content_type(), self._name()
        return Part(type_, name, encoded, encoding, charset, flowed, content_id, self.choice, joins)

    def _name(self) -> str:
        unnamed = "mail.eml" if self.fields.get_content_maintype() == "message" else ""
        try:
            return decode_words(self._extended_name() or str(self.fields.get_filename() or unnamed))
        except PARSER_RAISES:
            return "unnamed"

    def _extended_name(self) -> str:
        """`filename*`, which counts before a plain `filename` beside it (RFC 6266)."""
        given: list[tuple[str, Any]] = self.fields.get_params([], header="content-disposition")
        coded = [value for field, value in given if field.lower() == "filename" and isinstance(value, tuple)]
        return collapse_rfc2231_value(coded[0]) if coded else ""


class _PartWalk:
    """Goes through the tree of one mail and counts what it meets."""

    def __init__(self, raw: bytes, limits: MailLimits) -> None:
        self._raw, self._limits = raw, limits
        self._multiparts = self._parts = self._header_bytes = 0

    def leaves(self, entity: _Entity, depth: int = 0) -> Iterator[_Entity]:
        """Depth first, in the order a reader sees them; an attached mail stays one leaf."""
        pieces = self._pieces_of(entity)
        if not pieces:
            if entity.declares_parts and not depth:
                entity.fields.set_type("text/plain")
            yield entity
            yield from self._forwarded(entity, depth)
            return
        self._multiparts += 1
        at_most(self._multiparts, self._limits.multiparts, "nested parts")
        at_most(depth, self._limits.depth, "levels of nested parts")
        choice = entity.choice or (self._multiparts if entity.fields.get_content_subtype() == "alternative" else 0)
        default_type = "message/rfc822" if entity.fields.get_content_subtype() == "digest" else "text/plain"
        for piece in pieces:
            part = self._entity(piece, default_type)
            part.choice, part.is_forwarded = choice, entity.is_forwarded
            yield from self.leaves(part, depth + 1)

    def _forwarded(self, entity: _Entity, depth: int) -> Iterator[_Entity]:
        """The files in an attached mail: they came with this one, too."""
        encoding = str(entity.fields.get("content-transfer-encoding", "")).strip().lower()
        if entity.fields.get_content_type() != "message/rfc822" or encoding in ("base64", "quoted-printable"):
            return
        inner = self._entity(entity.span, "text/plain")
        inner.is_forwarded = True
        if inner.span[0] > entity.span[0]:  # it begins with a header
            at_most(depth, self._limits.depth, "levels of nested parts")
            yield from self.leaves(inner, depth + 1)

    def _pieces_of(self, entity: _Entity) -> list[tuple[int, int]]:
        """By the boundary that the header names, else by the one that its body shows."""
        boundary = entity.boundary()
        if boundary and (pieces := self._pieces(entity.span, boundary)):
            return pieces
        start, end = entity.span
        shown = None
        if entity.declares_parts:
            shown = _BOUNDARY_LINE.search(self._raw, start, min(end, start + _SEARCHED))
        elif entity.may_begin_with_parts:
            shown = _BOUNDARY_LINE.match(self._raw, start, end)
        return self._pieces(entity.span, shown[1]) if shown else []

    def _pieces(self, span: tuple[int, int], boundary: bytes) -> list[tuple[int, int]]:
        """What stands between the delimiter lines; the line end before a delimiter belongs to it."""
        pieces: list[tuple[int, int]] = []
        start = -1
        for before, after, closes in self._delimiters(span, b"--" + boundary):
            if start >= 0:
                pieces.append((start, max(start, before)))
                self._parts += 1
                at_most(self._parts, self._limits.parts, "parts")
            start = -1 if closes else after  # some programs write on below the last delimiter
        return [*pieces, (start, span[1])] if start >= 0 else pieces

    def _delimiters(self, span: tuple[int, int], mark: bytes) -> Iterator[tuple[int, int, bool]]:
        """Of each delimiter line: where the text before it ends, where that after it begins, whether it is the last."""
        raw, (start, end) = self._raw, span
        rest = rb"(?=(--)?[ \t]*+\r?(\n|\Z))"
        if first := re.compile(re.escape(mark) + rest).match(raw, start, end):
            yield start, first.end(2), first[1] is not None
        for line in re.compile(rb"\n" + re.escape(mark) + rest).finditer(raw, start, end):
            at = line.start()
            yield at - (raw[at - 1 : at] == b"\r"), line.end(2), line[1] is not None

    def _entity(self, span: tuple[int, int], default_type: str) -> _Entity:
        start, end = span
        if below := _HEADER_BELOW.match(self._raw, start, end):
            start = below.end()
        lines = _HEADER_LINES.match(self._raw, start, min(end, start + self._limits.header_bytes))
        body = lines.end() if lines else start
        self._header_bytes += body - start
        at_most(self._header_bytes, self._limits.part_header_bytes, "bytes in the headers of its parts")
        headers = read_fields(self._raw[start:body])
        scan_part(headers, self._limits)
        empty = _EMPTY_LINE.match(self._raw, body, end)
        return _Entity(headers, (empty.end() if empty else body, end), default_type)


_PADDED_BREAK = re.compile(rb"=[ \t]{1,100}(?=\n)")
"""A soft line break to which a mail server added spaces (RFC 2045, section 6.7)."""


def _decoded(encoded: memoryview, encoding: str) -> bytes:
    """Without its Content-Transfer-Encoding; what is not base64 has the line ends of files on this machine."""
    if encoding == "base64":
        return _from_base64(encoded)
    lines = bytes(encoded).replace(b"\r\n", b"\n")
    if encoding == "quoted-printable":
        return quopri.decodestring(_PADDED_BREAK.sub(b"=", lines))
    return _from_uuencode(lines, encoding) if encoding in _UUENCODED else lines


def _from_base64(encoded: memoryview) -> bytes:
    try:
        return binascii.a2b_base64(encoded)
    except binascii.Error:
        pass
    try:
        return binascii.a2b_base64(bytes(encoded) + b"==")  # its end is missing
    except binascii.Error:
        return bytes(encoded)


def _from_uuencode(lines: bytes, encoding: str) -> bytes:
    message = Message()
    message["content-transfer-encoding"] = encoding
    message.set_payload(lines.decode("latin-1"))
    payload = message.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""
