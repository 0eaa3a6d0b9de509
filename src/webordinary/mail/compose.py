"""A Reply in the customer's thread. Composing twice gives the same bytes, so that a retry changes nothing."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime

from webordinary.mail import mime
from webordinary.mail.addresses import ascii_address, with_token
from webordinary.mail.answers import Answer
from webordinary.mail.layout import as_html, as_text
from webordinary.mail.subjects import reply_subject
from webordinary.model.mail import ParsedMail, Reply

ANSWER = "answer"
"""The kind of every final reply: a mail gets one of them, whatever it says."""
HELD = "held"
"""The kind of a notice that a mail has to wait; its answer follows."""
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
) -> Reply:
    """Lay an answer out as a mail to the sender of `mail`; the mailbox is where it comes from.

    Its Reply-To names the thread: the answer to it finds back even where a transport gave it another Message-ID
    and the customer's program dropped the references.
    """
    digest = hashlib.sha256(f"{email_id}/{kind}".encode()).hexdigest()
    message_id = f"<{digest[:32]}@{mailbox.rpartition('@')[2]}>"
    parts = (mime.text("plain", as_text(answer)), mime.text("html", as_html(answer)))
    fields = (
        ("From", f"{SENDER_NAME} <{mailbox}>"),
        ("Reply-To", f"{SENDER_NAME} <{with_token(mailbox, thread_id)}>" if thread_id else ""),
        ("To", ascii_address(mail.sender)),
        ("Subject", mime.words(reply_subject(mail.subject), "Subject")),
        ("Date", mime.date(sent_at)),
        ("Message-ID", message_id),
        ("In-Reply-To", mime.message_ids(_well_formed((mail.message_id,)))),
        ("References", mime.message_ids(references(mail))),
        ("Auto-Submitted", "auto-replied"),
        ("X-Auto-Response-Suppress", "All"),
    )
    content = mime.multipart("alternative", f"=_{digest[32:]}", parts)
    if pictures := answer.pictures[-len(PICTURE_NAMES) :]:
        named = zip(PICTURE_NAMES[-len(pictures) :], pictures, strict=True)
        shown = [mime.file(name, "image/png", data) for name, data in named]
        content = mime.multipart("mixed", f"=_{digest[:32]}", (content, *shown))
    raw = mime.message(fields, content)
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
