"""A mail as a customer would write it, from the form on the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, getaddresses, make_msgid

from webordinary.entrypoints.dashboard.mail_view import reply_message
from webordinary.entrypoints.dashboard.ports import File
from webordinary.model.overview import MailDetail

MAX_SUBJECT = 300
MAX_TEXT = 200_000
MAX_FILES = 10
MAX_UPLOAD_BYTES = 20_000_000
MAX_REFERENCES = 20
_MEDIA_TYPE = re.compile(r"(image|audio|video|application|text|font)/[a-z0-9.+-]{1,100}")
_OCTETS = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail before it is sent; `references` ends with the mail that it answers."""

    sender: str
    recipient: str
    subject: str = ""
    text: str = ""
    references: tuple[str, ...] = ()
    files: tuple[File, ...] = ()


def answering(detail: MailDetail, mailbox: str) -> Letter:
    """A customer's reply, addressed as a mail program would: to the newest answer, or to the mail itself."""
    subject = detail.summary.subject or ""
    known = [*detail.text.references, detail.text.message_id] if detail.text else []
    recipient = mailbox
    if detail.replies:
        newest = detail.replies[-1]
        message = reply_message(newest)
        known.append(newest.message_id)
        recipient = _address(str(message.get("Reply-To") or message.get("From") or "")) or mailbox
    return Letter(
        sender=detail.summary.sender,
        recipient=recipient,
        subject=subject if subject.lower().startswith("re:") else f"Re: {subject}",
        references=tuple(dict.fromkeys(map(_bracketed, known)))[-MAX_REFERENCES:],
    )


def raw_mail(letter: Letter, now: datetime) -> bytes:
    """The bytes that a mail program would send."""
    message = EmailMessage(policy=SMTP)
    message["From"] = letter.sender
    message["To"] = letter.recipient
    message["Subject"] = _one_line(letter.subject)[:MAX_SUBJECT]
    message["Date"] = format_datetime(now)
    message["Message-ID"] = make_msgid(domain="customer.example")
    if letter.references:
        message["In-Reply-To"] = letter.references[-1]
        message["References"] = " ".join(letter.references)
    message.set_content(letter.text)
    for file in letter.files:
        media_type = file.media_type if _MEDIA_TYPE.fullmatch(file.media_type) else _OCTETS
        main, _, sub = media_type.partition("/")
        message.add_attachment(file.content, main, sub, filename=_one_line(file.name)[:200] or "file")
    return message.as_bytes()


def _address(header: str) -> str:
    found = [address for _, address in getaddresses([header]) if "@" in address]
    return found[0] if len(found) == 1 else ""


def _bracketed(message_id: str) -> str:
    return f"<{message_id.strip().strip('<>')}>"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
