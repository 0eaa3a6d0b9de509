"""A customer's mail as bytes, for the page's form, the command line and tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from webordinary.mail import mime
from webordinary.mail.addresses import is_address
from webordinary.model.errors import Permanent


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file to send along."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Letter:
    """What a customer writes. `message_id` with angle brackets; empty = the mail has none."""

    sender: str
    recipient: str
    subject: str
    text: str
    files: Sequence[AttachedFile] = ()
    message_id: str = ""
    in_reply_to: str = ""
    references: Sequence[str] = ()


def write_mail(letter: Letter, sent_at: datetime) -> bytes:
    """The mail on the wire; raises Permanent where an address is none."""
    for address in (letter.sender, letter.recipient):
        if not is_address(address):
            raise Permanent(f"{address!r} is no mail address: write it like scott@example.com")
    fields = (
        ("From", letter.sender),
        ("To", letter.recipient),
        ("Subject", mime.words(letter.subject, "Subject")),
        ("Date", mime.date(sent_at)),
        ("Message-ID", mime.message_ids([letter.message_id])),
        ("In-Reply-To", mime.message_ids([letter.in_reply_to])),
        ("References", mime.message_ids(letter.references)),
    )
    return mime.message(fields, _content(letter))


def _content(letter: Letter) -> mime.Entity:
    text = mime.text("plain", letter.text)
    if not letter.files:
        return text
    files = [mime.file(file.name, file.media_type, file.data) for file in letter.files]
    digest = hashlib.sha256(b"".join(part.body for part in (text, *files))).hexdigest()
    return mime.multipart("mixed", f"=_{digest[:32]}", (text, *files))
