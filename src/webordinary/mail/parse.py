"""A raw mail becomes a ParsedMail."""

from __future__ import annotations

from webordinary.mail.attachments import accepted_count, surplus
from webordinary.mail.automatic import is_automatic
from webordinary.mail.body import body_text
from webordinary.mail.commands import command_of
from webordinary.mail.headers import read_headers
from webordinary.mail.identity import message_id_of, sender_of, sent_at_of
from webordinary.mail.parts import Parts, take_apart
from webordinary.mail.prescan import DEFAULT_LIMITS, Limits
from webordinary.mail.reply_text import reply_text
from webordinary.model.mail import ParsedMail

MAX_SUBJECT = 500


def parse(raw: bytes, limits: Limits = DEFAULT_LIMITS) -> ParsedMail:
    """Read a mail; raises Unparseable and nothing else, and always says the same about the same bytes."""
    return _read(raw, take_apart(raw, limits))


def outline(raw: bytes) -> ParsedMail:
    """What the header alone says, to tell the sender of a mail that `parse` refused. Never raises."""
    return _read(raw, Parts((), (), ()))


def _read(raw: bytes, parts: Parts) -> ParsedMail:
    headers = read_headers(raw)
    sender, sender_name = sender_of(headers)
    subject = " ".join(headers.text("subject").split())[:MAX_SUBJECT]
    reply = reply_text(body_text(parts))
    return ParsedMail(
        message_id=message_id_of(raw, headers),
        sender=sender,
        sender_name=sender_name,
        subject=subject,
        sent_at=sent_at_of(headers),
        in_reply_to=headers.message_ids("in-reply-to"),
        references=headers.message_ids("references"),
        text=reply.text,
        elided=reply.elided,
        command=command_of(reply.text, subject),
        attachment_count=accepted_count(parts.files),
        automatic=is_automatic(headers, sender, report=parts.report),
        refused_attachments=surplus(parts.files),
    )
