"""A Reply in the customer's thread. Composing twice gives the same bytes, so that a retry changes nothing."""

from __future__ import annotations

import base64
import hashlib
import quopri
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.utils import format_datetime
from html import escape
from textwrap import fill, indent
from urllib.parse import quote

from webordinary.mail.addresses import ascii_address, with_token
from webordinary.mail.parsing.commands import reply_subject
from webordinary.mail.replies.answers import Answer, Block, Excerpt, Link, Listing, Paragraph
from webordinary.model.mail import ParsedMail, Reply


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


_WIDTH = 76
_BODY = "margin:0;background:#f6f2ec;font:16px/1.5 system-ui,Helvetica,Arial,sans-serif;color:#2b2723"
_CARD = "max-width:560px;margin:0 auto;padding:28px 24px;background:#fff"
_HEADLINE = "margin:0 0 16px;font-size:22px;line-height:1.25"
_P = "margin:0 0 14px"
_SMALL = "margin:0 0 6px;font-size:13px;color:#6b6258"
_LIST = "margin:0 0 14px;padding-left:20px"
_QUOTED = "margin:0 0 14px;padding:8px 14px;border-left:3px solid #d9c7b3;background:#faf7f3"
_BUTTON = "display:inline-block;padding:9px 16px;background:#9a4a2f;color:#fff;text-decoration:none"
_SIGNED = "margin:24px 0 0;padding-top:14px;border-top:1px solid #e6dfd5;font-size:13px;color:#8a8177"


def as_text(answer: Answer) -> str:
    """For readers of plain text."""
    parts = [answer.headline, *(_text(block) for block in answer.blocks), f"-- \nWebOrdinary · {answer.closing}"]
    return "\n\n".join(part for part in parts if part)


def _text(block: Block) -> str:
    match block:
        case Paragraph(text):
            return "\n".join(
                fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False) for line in text.splitlines()
            )
        case Link(label, url):
            return f"{label}:\n{url}"
        case Listing(title, items):
            return "\n".join([f"{title}:", *(f"  - {item}" for item in items)])
        case Excerpt(title, text):
            return f"{title}:\n{indent(text, '> ', lambda _: True)}"


def as_html(answer: Answer) -> str:
    """For everybody else: no pictures, no scripts, nothing loaded from anywhere."""
    blocks = "\n".join(_html(block) for block in answer.blocks)
    return f"""<!doctype html>
<html><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"></head>
<body style="{_BODY}">
<div style="{_CARD}">
<h1 style="{_HEADLINE}">{escape(answer.headline)}</h1>
{blocks}
<p style="{_SIGNED}">WebOrdinary · {escape(answer.closing)}</p>
</div></body></html>
"""


def _html(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f'<p style="{_P}">{_lines(text)}</p>'
        case Link(label, url):
            shown = f'<a href="{escape(url)}" style="{_BUTTON}">{escape(label)}</a>'
            return f'<p style="{_P}">{shown}</p>' if url.startswith(("http://", "https://")) else ""
        case Listing(title, items):
            rows = "".join(f"<li>{escape(item)}</li>" for item in items)
            return f'{_title(title)}<ul style="{_LIST}">{rows}</ul>'
        case Excerpt(title, text):
            return f'{_title(title)}<blockquote style="{_QUOTED}">{_lines(text)}</blockquote>'


def _title(title: str) -> str:
    return f'<p style="{_SMALL}">{escape(title)}</p>\n'


def _lines(text: str) -> str:
    return escape(text.strip()).replace("\n", "<br>\n")


ANSWER = "answer"
"""The kind of every final reply: a mail gets one of them, whatever it says."""
CONFIRM = "confirm"
"""The kind of the question whether the sender wrote a mail; if so, its answer follows."""
HELD = "held"
"""The kind of a notice that a mail has to wait; its answer follows."""
WAITING = "waiting"
"""The kind of an acknowledgement: the mail waits in line, and its answer follows."""
MAX_REFERENCES = 20
PICTURE_NAMES = ("before.png", "after.png")
SENDER_NAME = "WebOrdinary"

_WELL_FORMED = re.compile(r"<[!-;=?-~]{1,250}>")


def compose(
    answer: Answer,
    *,
    email_id: str,
    mail: ParsedMail,
    mailbox: str,
    sent_at: datetime,
    kind: str = ANSWER,
    thread_id: str = "",
    reply_to: str = "",
) -> Reply:
    """Lay an answer out as a mail to the sender of `mail`; the mailbox is where it comes from.

    Its Reply-To names the thread: the answer to it finds back even where a transport gave it another Message-ID
    and the customer's program dropped the references.
    """
    digest = hashlib.sha256(f"{email_id}/{kind}".encode()).hexdigest()
    message_id = f"<{digest[:32]}@{mailbox.rpartition('@')[2]}>"
    reply_to = reply_to or (with_token(mailbox, thread_id) if thread_id else "")
    parts = (text("plain", as_text(answer)), text("html", as_html(answer)))
    fields = (
        ("From", f"{SENDER_NAME} <{mailbox}>"),
        ("Reply-To", f"{SENDER_NAME} <{reply_to}>" if reply_to else ""),
        ("To", ascii_address(mail.sender)),
        ("Subject", words(reply_subject(mail.subject), "Subject")),
        ("Date", date(sent_at)),
        ("Message-ID", message_id),
        ("In-Reply-To", message_ids(_well_formed((mail.message_id,)))),
        ("References", message_ids(references(mail))),
        ("Auto-Submitted", "auto-replied"),
        ("X-Auto-Response-Suppress", "All"),
    )
    content = multipart("alternative", f"=_{digest[32:]}", parts)
    if pictures := answer.pictures[-len(PICTURE_NAMES) :]:
        named = zip(PICTURE_NAMES[-len(pictures) :], pictures, strict=True)
        shown = [file(name, "image/png", data) for name, data in named]
        content = multipart("mixed", f"=_{digest[:32]}", (content, *shown))
    raw = message(fields, content)
    return Reply(email_id, kind, mail.sender, message_id, raw, thread_id)


def answer_kind(redrive: int) -> str:
    """A mail that is redriven gets a second answer: the first one said that it was given up."""
    return f"{ANSWER}-r{redrive}" if redrive else ANSWER


def references(mail: ParsedMail) -> tuple[str, ...]:
    """The thread's chain: its root and its newest members, ending in the mail we answer."""
    chain = _well_formed(dict.fromkeys((*(mail.references or mail.in_reply_to), mail.message_id)))
    return chain if len(chain) <= MAX_REFERENCES else (chain[0], *chain[1 - MAX_REFERENCES :])


def _well_formed(ids: tuple[str, ...] | dict[str, None]) -> tuple[str, ...]:
    return tuple(one for one in ids if _WELL_FORMED.fullmatch(one))


OPERATOR = "operator"
"""Stands in the outbox where a reply has the mail that it answers."""
MAX_LISTED = 20


def compose_notice(
    kind: str, what: Sequence[tuple[str, str]], *, recipient: str, mailbox: str, page: str, sent_at: datetime
) -> Reply:
    """`what` holds what happened, each with the command to run first; many are cut short."""
    digest = hashlib.sha256(f"{OPERATOR}/{kind}/{sent_at.isoformat()}".encode()).hexdigest()
    message_id = f"<{digest[:32]}@{mailbox.rpartition('@')[2]}>"
    subject = what[0][0] if len(what) == 1 else f"{len(what)} alarms"
    fields = (
        ("From", f"{SENDER_NAME} <{mailbox}>"),
        ("To", recipient),
        ("Subject", words(f"{SENDER_NAME}: {subject}"[:150], "Subject")),
        ("Date", date(sent_at)),
        ("Message-ID", message_id),
        ("Auto-Submitted", "auto-generated"),
        ("X-Auto-Response-Suppress", "All"),
    )
    raw = message(fields, text("plain", _notice_text(what, page)))
    return Reply(OPERATOR, kind, recipient, message_id, raw)


def _notice_text(what: Sequence[tuple[str, str]], page: str) -> str:
    parts = [f"{happened}\n  first: {command}" for happened, command in what[:MAX_LISTED]]
    if len(what) > MAX_LISTED:
        parts.append(f"and {len(what) - MAX_LISTED} more; `webordinary dlq list` and `webordinary queues` show all")
    parts.append(f"The page: {page}\nWhat each alarm means stands in docs/operations.md. This is told once.")
    return "\n\n".join(parts)
