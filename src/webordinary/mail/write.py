"""A customer's mail as bytes, for the page's form, the command line and tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from webordinary.mail.addresses import is_address
from webordinary.mail.replies import compose
from webordinary.model.errors import Permanent


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """A file to send along."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CustomerMail:
    """What a customer writes. `message_id` with angle brackets; empty = the mail has none."""

    sender: str
    recipient: str
    subject: str
    text: str
    files: Sequence[OutgoingFile] = ()
    message_id: str = ""
    in_reply_to: str = ""
    references: Sequence[str] = ()


def write_mail(mail: CustomerMail, sent_at: datetime) -> bytes:
    """The mail on the wire; raises Permanent where an address is none."""
    for address in (mail.sender, mail.recipient):
        if not is_address(address):
            raise Permanent(f"{address!r} is no mail address: write it like scott@example.com")
    fields = (
        ("From", mail.sender),
        ("To", mail.recipient),
        ("Subject", compose.words(mail.subject, "Subject")),
        ("Date", compose.date(sent_at)),
        ("Message-ID", compose.message_ids([mail.message_id])),
        ("In-Reply-To", compose.message_ids([mail.in_reply_to])),
        ("References", compose.message_ids(mail.references)),
    )
    return compose.message(fields, _content(mail))


def _content(mail: CustomerMail) -> compose.Entity:
    text = compose.text("plain", mail.text)
    if not mail.files:
        return text
    files = [compose.file(file.name, file.media_type, file.data) for file in mail.files]
    digest = hashlib.sha256(b"".join(part.body for part in (text, *files))).hexdigest()
    return compose.multipart("mixed", f"=_{digest[:32]}", (text, *files))
