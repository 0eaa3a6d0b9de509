"""The parts of a mail: which are its text, which are files that came with it."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32

from webordinary.mail.charsets import decode
from webordinary.mail.errors import Unparseable
from webordinary.mail.headers import decode_words
from webordinary.mail.prescan import DEFAULT_LIMITS, Limits, prescan, unix_lines

# What the standard library lets out on odd mails; none of it may reach the workflow under another name.
PARSER_RAISES = (
    LookupError, ValueError, TypeError, AttributeError, AssertionError, RecursionError, binascii.Error,
)  # fmt: skip
_SIGNATURES = {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}


@dataclass(frozen=True, slots=True)
class Part:
    """One leaf of the mail's tree, as declared; nothing of it is believed yet."""

    media_type: str
    name: str
    data: bytes
    charset: str = ""
    flowed: bool = False

    @property
    def text(self) -> str:
        """Its bytes as text."""
        return decode(self.data, self.charset)


@dataclass(frozen=True, slots=True)
class Parts:
    """A mail taken apart."""

    plain: tuple[Part, ...]
    html: tuple[Part, ...]
    files: tuple[Part, ...]
    report: bool = False
    """A multipart/report: a bounce or receipt by a machine."""


def take_apart(raw: bytes, limits: Limits = DEFAULT_LIMITS) -> Parts:
    """Parse a raw mail after the pre-scan; raises Unparseable and nothing else."""
    lines = unix_lines(raw)
    prescan(lines, limits)
    try:
        message = BytesParser(policy=compat32).parsebytes(lines)
        return _sorted_parts(message)
    except PARSER_RAISES as problem:
        raise Unparseable(
            f"this mail is built in a way that cannot be read ({type(problem).__name__}): "
            "send it again from another mail program, or as plain text"
        ) from problem


def _sorted_parts(message: Message) -> Parts:
    texts: list[Part] = []
    files: list[Part] = []
    for leaf, may_be_text in _leaves(message, may_be_text=True):
        part = _part(leaf)
        if part.media_type in _SIGNATURES:
            continue
        if may_be_text and _is_text(leaf, part):
            texts.append(part)
        else:
            files.append(part)
    return Parts(
        plain=tuple(part for part in texts if part.media_type == "text/plain"),
        html=tuple(part for part in texts if part.media_type == "text/html"),
        files=tuple(part for part in files if part.data.strip()),
        report=message.get_content_type() == "multipart/report",
    )


def _leaves(message: Message, *, may_be_text: bool) -> Iterator[tuple[Message, bool]]:
    """Depth first, in the order a reader sees them; an attached mail stays one leaf."""
    if message.get_content_maintype() != "multipart" or not message.is_multipart():
        yield message, may_be_text
        return
    for child in message.get_payload():
        if isinstance(child, Message):
            yield from _leaves(child, may_be_text=may_be_text)


def _is_text(leaf: Message, part: Part) -> bool:
    disposition = str(leaf.get("content-disposition", "")).strip().lower()
    return part.media_type in ("text/plain", "text/html") and not part.name and not disposition.startswith("attach")


def _part(leaf: Message) -> Part:
    media_type = leaf.get_content_type()
    if leaf.is_multipart():  # an attached mail; its bytes are its own header and text
        return Part(media_type, _name(leaf) or "mail.eml", _bytes_of_mail(leaf))
    payload = leaf.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    flowed = str(leaf.get_param("format", "") or "").lower() == "flowed"
    return Part(media_type, _name(leaf), data, str(leaf.get_content_charset() or ""), flowed)


def _bytes_of_mail(leaf: Message) -> bytes:
    return b"".join(bytes(mail) for mail in leaf.get_payload() if isinstance(mail, Message))


def _name(leaf: Message) -> str:
    try:
        return decode_words(str(leaf.get_filename() or ""))
    except PARSER_RAISES:
        return "unnamed"
