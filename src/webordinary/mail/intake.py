"""A mail is accepted: kept durably, once per recipient, before anybody is told so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webordinary.mail.headers import read_headers, split
from webordinary.mail.identity import message_id_of, sender_of
from webordinary.mail.ports import RawMails
from webordinary.model.events import Event, Events
from webordinary.model.mail import Email, Envelope
from webordinary.model.names import email_id_of


@dataclass(frozen=True, slots=True)
class Accepted:
    """One mail that is ours now; `is_new` is False for a mail that we had already."""

    email_id: str
    is_new: bool


def accept(raw: bytes, envelopes: Sequence[Envelope], mails: RawMails, events: Events) -> tuple[Accepted, ...]:
    """Keep one Email per recipient.

    Raises Transient where the disk is full: the sender will come again, and what was kept of this delivery is
    then recognised. Accepting a mail twice starts nothing twice.
    """
    return tuple(announce(email, events, is_new=mails.store(email)) for email in emails_of(raw, envelopes))


def emails_of(raw: bytes, envelopes: Sequence[Envelope]) -> tuple[Email, ...]:
    """One Email per recipient, each once."""
    emails: dict[str, Email] = {}
    for envelope in envelopes:
        email = Email(name_of(raw, envelope.recipient), envelope, raw)
        emails.setdefault(email.email_id, email)
    return tuple(emails.values())


def announce(email: Email, events: Events, *, is_new: bool) -> Accepted:
    """A mail was stored; a new one is told of."""
    if is_new:
        data = {"recipient": email.envelope.recipient, "peer": email.envelope.peer, "size": len(email.raw)}
        events.emit(Event("MailReceived", email_id=email.email_id, data=data))
    return Accepted(email.email_id, is_new)


def name_of(raw: bytes, recipient: str) -> str:
    """The email_id of a raw mail to a recipient."""
    headers = read_headers(raw)
    sender = sender_of(headers)[0] or headers.first("from")
    return email_id_of(message_id_of(raw, headers), sender, recipient.lower(), split(raw)[1])
