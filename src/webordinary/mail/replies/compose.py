"""A Reply in the customer's thread. Composing twice gives the same bytes, so that a retry changes nothing."""

from __future__ import annotations

import base64
import hashlib
import quopri
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.utils import format_datetime
from urllib.parse import quote

from webordinary.mail.addresses import ascii_address, conversation_token, is_address, with_token
from webordinary.mail.parsing.commands import reply_subject
from webordinary.mail.replies.answers import Answer
from webordinary.mail.replies.languages import ENGLISH, language_of
from webordinary.mail.replies.rendering import SENDER_NAME, Brand, Button, as_html, as_text, mail_link, translated
from webordinary.model.mail import Command, ParsedMail, Reply


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


def shown(name: str, media_type: str, data: bytes, content_id: str) -> Entity:
    """A file that the HTML shows."""
    attached = file(name, media_type, data)
    fields = [(key, value.replace("attachment", "inline", 1)) for key, value in attached.fields]
    return Entity((*fields, ("Content-ID", f"<{content_id}>")), attached.body)


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
    return "\r\n ".join(filter(str.isascii, ids))


def date(at: datetime) -> str:
    """A point in time as mails write it."""
    return format_datetime(at.replace(microsecond=0))


def one_line(value: str) -> str:
    """No line ends: what a customer wrote must not become a header field."""
    return " ".join(value.split())


ANSWER = "answer"
"""The kind of every final reply: a mail gets one of them, whatever it says."""
CONFIRM = "confirm"
"""The kind of the question whether the sender wrote a mail; if so, its answer follows."""
HELD = "held"
"""The kind of a notice that a mail has to wait; its answer follows."""
LATER, UNTIL = "later", "until"
"""The kinds of the answers that name a date: when it is done, and until when a change stays."""
WAITING = "waiting"
"""The kind of an acknowledgement: the mail waits in line, and its answer follows."""
APPROVAL = "approval"
"""The kind of the mail that shows a change to the person who may publish it."""
BY_OPERATOR = "operator"
"""The kind of what an operator writes to the customer, before its number."""
MAX_REFERENCES = 20
PICTURE_NAMES = ("before.png", "after.png")
_LABELS = ("Before", "Now")
_ACTIONS = {Command.PUBLISH: "Publish it", Command.UNDO: "Take it back"}

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
    brand: Brand = Brand(),  # noqa: B008  frozen
    earlier: Iterable[ParsedMail] = (),
    subject: str = "",
) -> Reply:
    """Lay an answer out as a mail to the sender of `mail`, in its language; the mailbox is where it comes from.

    A mail too short to tell its language is answered in that of the `earlier` ones of its conversation.

    Its Reply-To names the thread: the answer to it finds back even where a transport gave it another Message-ID
    and the customer's program dropped the references. With a `subject` of its own it answers nothing.
    """
    digest = hashlib.sha256(f"{email_id}/{kind}".encode()).hexdigest()
    message_id = f"<{digest[:32]}@{mailbox.rpartition('@')[2]}>"
    reply_to = reply_to or (with_token(mailbox, thread_id) if thread_id else "")
    spoken = language_of(mail, brand.catalogues, earlier)
    say = spoken.say if spoken else str
    subject = say(subject) if subject else reply_subject(mail.subject)
    if spoken:
        answer = translated(answer, say)
    # A mail program writes a new mail for a button: without this it would not say which change was shown.
    shown_here = with_token(mailbox, conversation_token(thread_id, email_id))
    button_to = shown_here if thread_id and is_address(shown_here) else reply_to or mailbox
    buttons = [
        Button(say(_ACTIONS[action]), mail_link(button_to, subject, say(str(action)))) for action in answer.actions
    ]
    content = _content(
        answer, brand, buttons, digest, [say(label) for label in _LABELS], spoken.language if spoken else ENGLISH
    )
    name = (
        words(brand.name, "From")
        if brand.name.isascii() and brand.name.replace(" ", "").isalnum()
        else _phrase(brand.name)
    )
    fields = (
        ("From", f"{name} <{mailbox}>"),
        ("Reply-To", f"{name} <{reply_to}>" if reply_to else ""),
        ("To", ascii_address(mail.sender)),
        ("Subject", words(subject, "Subject")),
        ("Date", date(sent_at)),
        ("Message-ID", message_id),
        ("In-Reply-To", message_ids(_well_formed((mail.message_id,)))),
        ("References", message_ids(references(mail))),
        ("Auto-Submitted", "auto-replied"),
        ("X-Auto-Response-Suppress", "All"),
    )
    raw = message(fields, content)
    return Reply(email_id, kind, mail.sender, message_id, raw, thread_id)


def _phrase(name: str) -> str:
    """A display name that is more than letters: quoted, or encoded where it has others than ASCII."""
    plain = one_line(name)
    return words(plain, "From") if not plain.isascii() else '"' + re.sub(r'(["\\\\])', r"\\\1", plain) + '"'


def _content(
    answer: Answer, brand: Brand, buttons: Sequence[Button], digest: str, labels: Sequence[str], language: str
) -> Entity:
    """The text, and beside it the HTML with the pictures that it shows."""
    pictures = answer.pictures[-len(PICTURE_NAMES) :]
    first = len(PICTURE_NAMES) - len(pictures)
    ids = [f"{digest[:24]}.{number}@webordinary" for number in range(len(pictures))]
    logo = f"{digest[:24]}.logo@webordinary" if brand.logo else ""
    html = text("html", as_html(answer, brand, buttons, list(zip(labels[first:], ids, strict=False)), logo, language))
    files = [
        shown(name, "image/png", data, one)
        for name, data, one in zip(PICTURE_NAMES[first:], pictures, ids, strict=True)
    ]
    if logo:
        kind = "png" if brand.logo.startswith(b"\x89PNG") else "jpeg"
        files.append(shown(f"logo.{kind}", f"image/{kind}", brand.logo, logo))
    if files:
        html = multipart("related", f"=_{digest[:32]}", (html, *files))
    return multipart(
        "alternative", f"=_{digest[32:]}", (text("plain", as_text(answer, brand, buttons, language)), html)
    )


def answer_kind(redrive: int) -> str:
    """A mail that is redriven gets a second answer: the first one said that it was given up."""
    return f"{ANSWER}-r{redrive}" if redrive else ANSWER


def references(mail: ParsedMail) -> tuple[str, ...]:
    """The thread's chain: its root and its newest members, ending in the mail we answer."""
    chain = _well_formed(dict.fromkeys((*(mail.references or mail.in_reply_to), mail.message_id)))
    return chain if len(chain) <= MAX_REFERENCES else (chain[0], *chain[1 - MAX_REFERENCES :])


def _well_formed(ids: tuple[str, ...] | dict[str, None]) -> tuple[str, ...]:
    return tuple(filter(_WELL_FORMED.fullmatch, ids))


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
