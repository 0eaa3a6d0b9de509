"""A raw mail becomes a ParsedMail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from itertools import groupby

from webordinary.mail.parsing.attachments import accepted_count, picture_names, surplus
from webordinary.mail.parsing.commands import command_of, is_forward, is_reply
from webordinary.mail.parsing.headers import Headers, author_of, message_id_of, read_headers, sent_at_of
from webordinary.mail.parsing.html import MAX_TAGS, html_to_lines, says_more
from webordinary.mail.parsing.parts import DEFAULT_LIMITS, MailLimits, Part, Parts, take_apart
from webordinary.mail.parsing.phrases import any_of
from webordinary.mail.parsing.reply_lines import Line
from webordinary.mail.parsing.reply_text import reply_text
from webordinary.mail.parsing.wishes import wish_in
from webordinary.model.mail import Command, ParsedMail
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
        or any(map(headers.first, _LIST_FIELDS))
        or any(
            _ROBOT_FIELD.fullmatch(name) and value.strip().lower() not in ("", "no") for name, value in headers.fields
        )
        or _ROBOT_SENDER.fullmatch(sender.partition("@")[0].lower()) is not None
        or _ROBOT_SUBJECT.match(headers.text("subject")[:MAX_SUBJECT]) is not None
    )


MAX_TEXT = 200_000
MAX_ENCODED = 1_000_000
"""Bytes, over all texts of a mail; what follows is cut before it is decoded."""
_SHORT = 2_000
_ANY_TAG = re.compile(r"<[^<>]{0,2000}>")
_HTML_DOCUMENT = re.compile(r"\s*<(?:!doctype html|html)\b", re.I)


def body_lines(parts: Parts) -> list[Line]:
    """What the customer's mail program shows, line by line."""
    return list(_bounded(_lines_of(_shown(parts.texts), picture_names(parts.all_files))))


def _shown(texts: Sequence[Part]) -> list[Part]:
    """Of alternatives the plain one, unless it is empty or says less than the HTML; of all other texts each."""
    shown: list[Part] = []
    for choice, members in groupby(texts, key=lambda part: part.choice):
        found = list(members)
        html = [part for part in found if part.is_html]
        plain = [part for part in found if not part.is_html and not (html and _is_blank(part))]
        if not choice:
            shown += [part for part in found if not (part.is_html and plain and _repeats(part, plain[0]))]
        elif html and (not plain or _asks_for_html(html[0], plain) or _says_more(html[0], plain)):
            shown += html
        else:
            shown += plain
    return shown


def _is_blank(part: Part) -> bool:
    return len(part.encoded) < _SHORT and not part.text(_SHORT).strip(" \t\r\n\u00a0\u200b\ufeff")


def _asks_for_html(html: Part, plain: Sequence[Part]) -> bool:
    if len(plain) > 1 or len(plain[0].encoded) > _SHORT or "html" not in plain[0].text(_SHORT).lower():
        return False
    return not _repeats(html, plain[0])


def _says_more(html: Part, plain: Sequence[Part]) -> bool:
    return says_more(html.text(MAX_ENCODED), "".join(part.text(MAX_ENCODED) for part in plain))


def _repeats(html: Part, plain: Part) -> bool:
    """Does an HTML part begin with the text of the plain one?"""
    words = "".join(plain.text(_SHORT).split())[:100]
    return words in "".join(unescape(_ANY_TAG.sub("", html.text(MAX_ENCODED))).split())


def _lines_of(parts: Sequence[Part], pictures: Mapping[str, str]) -> Iterator[Line]:
    tags_left = MAX_TAGS
    for n, (part, text) in enumerate(_texts(parts)):
        if n:
            yield Line("")
        if part.is_html or _HTML_DOCUMENT.match(text):
            for line in html_to_lines(text, pictures, max_tags=tags_left):
                yield Line(clean(line.text), line.kind)
            tags_left = max(0, tags_left - text.count("<"))
            continue
        plain = _unflowed(text, joins_spaces=part.joins_spaces) if part.flowed else text
        yield from map(Line, _unarmored(clean(plain)[:MAX_TEXT].strip("\n").rstrip()).split("\n"))


_ARMOR = re.compile(
    r"\s*-----BEGIN PGP SIGNED MESSAGE-----\n(?:Hash: [^\n]*\n)*\n?(.*?)-----BEGIN PGP SIGNATURE-----.*", re.S
)


def _unarmored(text: str) -> str:
    """Without the frame of OpenPGP around a text (RFC 9580, section 7)."""
    found = _ARMOR.match(text)
    return re.sub(r"^- ", "", found[1], flags=re.M).rstrip() if found else text


def _bounded(lines: Iterable[Line]) -> Iterator[Line]:
    left = MAX_TEXT
    for line in lines:
        text = line.text[:left]
        yield Line(text, line.kind)
        left -= len(text) + 1
        if left <= 0:
            return


def _texts(parts: Sequence[Part]) -> Iterator[tuple[Part, str]]:
    left = MAX_ENCODED
    for part in parts:
        if left <= 0:
            return
        yield part, part.text(left).replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
        left -= len(part.encoded)


def _unflowed(text: str, *, joins_spaces: bool = False) -> str:
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
        if joins_spaces and open_depth >= 0:
            lines[-1][-1] = lines[-1][-1].removesuffix(" ")
    return "\n".join(map("".join, lines))


def parse(raw: bytes, limits: MailLimits = DEFAULT_LIMITS) -> ParsedMail:
    """Read a mail; raises Unparseable and nothing else, and always says the same about the same bytes."""
    parts = take_apart(raw, limits)
    header = outline(raw)
    author, subject = header.sender_name, header.subject
    replied = is_reply(subject) or bool(header.in_reply_to or header.references)
    signer = author or " ".join(re.findall(r"[^\W\d_]+", header.sender.partition("@")[0]))
    reply = reply_text(body_lines(parts), author=signer, forwarded=is_forward(subject), replied=replied)
    wish = wish_in(reply.text, author)
    return replace(
        header,
        text=reply.text,
        elided=reply.elided,
        command=wish[0] if wish else command_of(reply.text, subject, author),
        attachment_count=accepted_count(parts.all_files),
        refused_attachments=surplus(parts.all_files),
    )


def outline(raw: bytes) -> ParsedMail:
    """What the header alone says: enough to judge the sender, before anything is parsed. Never raises.

    `raw` may be the first HEAD_BYTES + 1 bytes of the mail.
    """
    headers = read_headers(raw)
    author = author_of(headers)
    return ParsedMail(
        message_id=message_id_of(raw, headers),
        sender=author.address,
        sender_name=author.name,
        subject=" ".join(headers.text("subject").split())[:MAX_SUBJECT],
        sent_at=sent_at_of(headers),
        in_reply_to=headers.message_ids("in-reply-to"),
        references=headers.message_ids("references"),
        text="",
        elided="",
        command=Command.EDIT,
        attachment_count=0,
        automatic=is_automatic(headers, author.address),
        doubt=author.doubt,
    )
