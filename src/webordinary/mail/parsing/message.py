"""A raw mail becomes a ParsedMail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from webordinary.mail.parsing.attachments import accepted_count, picture_names, surplus
from webordinary.mail.parsing.commands import command_of, is_forward, is_reply
from webordinary.mail.parsing.headers import Headers, author_of, message_id_of, read_headers, sent_at_of
from webordinary.mail.parsing.html import MAX_TAGS, html_to_lines
from webordinary.mail.parsing.parts import DEFAULT_LIMITS, MailLimits, Part, Parts, take_apart
from webordinary.mail.parsing.phrases import any_of
from webordinary.mail.parsing.reply_text import Line, reply_text
from webordinary.model.mail import ParsedMail
from webordinary.model.text import clean

# ruff: noqa: RUF001  colons of other alphabets

MAX_SUBJECT = 500
_LIST_FIELDS = ("list-id", "list-unsubscribe", "list-post", "x-mailing-list")
_ROBOT_FIELD = re.compile(
    r"(?!x-auto-response-suppress)(?:x-loop|x-failed-recipients|x-cron-env|x-machinegenerated|x-holidayreply"
    r"|(?:x-)?(?:mail-|ms-exchange-generated-message-source-)?auto[-_]?(?:repl|respon[ds]|generated).*)"
)
_BULK = {"bulk", "junk", "list", "auto_reply", "auto-reply"}
_ROBOT_SENDER = re.compile(
    r"(?:mailer[-_.]?daemon|post[-_.]?master|(?:no|do[-_.]?not|dont)[-_.]?reply|auto[-_.]?(?:reply|responder)|bounces?)(?:[-+_.].*)?"
)
_ROBOT_SUBJECT = re.compile(rf"\s*[\[(]?\s*{any_of('absent')}\s*[\])]?\s*(?:[:：]|$|(?<=[\])]))", re.I)


def is_automatic(headers: Headers, sender: str) -> bool:
    """An auto-reply, a bounce, a receipt or list mail. X-Auto-Response-Suppress alone is none of these."""
    submitted = headers.first("auto-submitted").partition(";")[0].strip().lower()
    return (
        headers.first("content-type").lower().startswith("multipart/report")
        or submitted not in ("", "no")
        or headers.first("return-path").strip() == "<>"
        or bool({headers.first(field).strip().lower() for field in ("precedence", "x-precedence")} & _BULK)
        or any(headers.first(field) for field in _LIST_FIELDS)
        or any(
            _ROBOT_FIELD.fullmatch(name) and value.strip().lower() not in ("", "no") for name, value in headers.fields
        )
        or _ROBOT_SENDER.fullmatch(sender.partition("@")[0].lower()) is not None
        or _ROBOT_SUBJECT.match(headers.text("subject")[:MAX_SUBJECT]) is not None
    )


MAX_TEXT = 200_000
MAX_ENCODED = 1_000_000
"""Bytes, over all plain parts and over all HTML parts of a mail; what follows is cut before it is decoded."""


def body_text(parts: Parts) -> str:
    """What the customer's mail program shows, as one text."""
    return "\n".join(line.text for line in body_lines(parts)).strip("\n").rstrip()


def body_lines(parts: Parts) -> list[Line]:
    """What the customer's mail program shows, line by line."""
    plain = "\n".join(_unflowed(text) if part.flowed else text for part, text in _texts(parts.plain))
    if plain.strip() or not parts.html:
        return [Line(text) for text in clean(plain)[:MAX_TEXT].strip("\n").rstrip().split("\n")]
    return list(_bounded(_from_html([text for _, text in _texts(parts.html)], picture_names(parts.files))))


def _from_html(documents: Iterable[str], pictures: Mapping[str, str]) -> Iterator[Line]:
    tags_left = MAX_TAGS
    for html in documents:
        yield from html_to_lines(html, pictures, max_tags=tags_left)
        tags_left = max(0, tags_left - html.count("<"))


def _bounded(lines: Iterable[Line]) -> Iterator[Line]:
    left = MAX_TEXT
    for line in lines:
        text = clean(line.text)[:left]
        yield Line(text, line.kind)
        left -= len(text) + 1
        if left <= 0:
            return


def _texts(parts: Sequence[Part]) -> Iterator[tuple[Part, str]]:
    left = MAX_ENCODED
    for part in parts:
        if left <= 0:
            return
        yield part, part.text(left).replace("\r\n", "\n").replace("\r", "\n")
        left -= len(part.encoded)


def _unflowed(text: str) -> str:
    """Join the soft line breaks of format=flowed (RFC 3676) within the same depth of quoting."""
    lines: list[list[str]] = []
    open_depth = -1
    for line in text.split("\n"):
        body = line.lstrip(">")
        depth = len(line) - len(body)
        words = body.removeprefix(" ")
        if depth == open_depth:
            lines[-1].append(words)
        else:
            lines.append([line if depth else words])
        open_depth = depth if words.endswith(" ") and words != "-- " else -1
    return "\n".join(map("".join, lines))


def parse(raw: bytes, limits: MailLimits = DEFAULT_LIMITS) -> ParsedMail:
    """Read a mail; raises Unparseable and nothing else, and always says the same about the same bytes."""
    return _read(raw, take_apart(raw, limits))


def outline(raw: bytes) -> ParsedMail:
    """What the header alone says: enough to judge the sender, before anything is parsed. Never raises.

    `raw` may be the first HEAD_BYTES + 1 bytes of the mail.
    """
    return _read(raw, Parts((), (), ()))


def _read(raw: bytes, parts: Parts) -> ParsedMail:
    headers = read_headers(raw)
    author = author_of(headers)
    subject = " ".join(headers.text("subject").split())[:MAX_SUBJECT]
    forwarded, replied = is_forward(subject), is_reply(subject)
    reply = reply_text(body_lines(parts), author=author.name, forwarded=forwarded, replied=replied)
    return ParsedMail(
        message_id=message_id_of(raw, headers),
        sender=author.address,
        sender_name=author.name,
        subject=subject,
        sent_at=sent_at_of(headers),
        in_reply_to=headers.message_ids("in-reply-to"),
        references=headers.message_ids("references"),
        text=reply.text,
        elided=reply.elided,
        command=command_of(reply.text, subject, author.name),
        attachment_count=accepted_count(parts.files),
        automatic=is_automatic(headers, author.address),
        refused_attachments=surplus(parts.files),
        doubt=author.doubt,
    )
