"""Mails as tests write them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from tests.photos import picture
from webordinary.model.mail import Command, Delivery, Envelope, ParsedMail, TransportKind

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SCOTT = "scott@example.com"
PNG = picture("PNG")
JPEG = picture("JPEG")


def raw_mail(body: str = "hello", **fields: str) -> bytes:
    """A mail by its header fields; underscores stand for hyphens."""
    given = {"from": f"Scott <{SCOTT}>", "subject": "Title", "message_id": "<1@example.com>", **fields}
    header = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items() if value)
    return f"{header}\r\n{body}".encode()


def multipart(*parts: tuple[str, bytes], subtype: str = "mixed") -> bytes:
    """A mail of parts, each with its header lines."""
    body = b"".join(b"--b0\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n" for head, data in parts)
    return raw_mail("", content_type=f'multipart/{subtype}; boundary="b0"') + body + b"--b0--\r\n"


def parsed(**changes: object) -> ParsedMail:
    """A ParsedMail of a plain instruction."""
    plain = ParsedMail(
        message_id="<1@example.com>", sender=SCOTT, sender_name="Scott", subject="Title", sent_at=NOON,
        in_reply_to=(), references=(), text="change the title", elided="", command=Command.EDIT,
        attachment_count=0, automatic=False,
    )  # fmt: skip
    return replace(plain, **changes)  # type: ignore[arg-type]


def envelope(peer: str = "127.0.0.1", mail_from: str = SCOTT, recipient: str = "edit@localhost") -> Envelope:
    return Envelope(peer, mail_from, recipient, NOON)


def delivery(*recipients: str) -> Delivery:
    return Delivery(TransportKind.SMTP, "127.0.0.1", SCOTT, recipients or ("edit@localhost",), NOON)
