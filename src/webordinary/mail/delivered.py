"""The envelope of a mail that another server has delivered already: read from the fields which that server added.

A mailbox, a drop folder and some HTTP senders give no SMTP envelope. Delivering servers note it in Return-Path,
Delivered-To and X-Original-To. A forged field does no harm: a recipient selects a project and never authorises, and
the sender is proven by other means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from webordinary.mail.addresses import MAX_ADDRESS, Mailbox
from webordinary.mail.parsing.headers import MAX_FIELD_BYTES, Headers, author_of, read_headers
from webordinary.model.mail import Delivery, TransportKind

MAX_RECIPIENTS = 20
_BY_THE_SERVER = ("delivered-to", "x-original-to", "envelope-to", "x-envelope-to")
_BY_THE_SENDER = ("to", "cc")
_QUOTED_NAME = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKETED = re.compile(r"<([^<>\s]*)>")


@dataclass(frozen=True, slots=True)
class WaitingMail:
    """A mail at a place that mails wait in; `ref` is its name there."""

    ref: str
    raw: bytes
    refusal: str = ""
    """Why it is not taken, although it is for us; then `raw` is empty."""


def delivery_of(raw: bytes, transport: TransportKind, mailbox: Mailbox, received_at: datetime) -> Delivery:
    """The delivery to each of our addresses that the mail names; to our plain address if it names none."""
    headers = read_headers(raw)
    return Delivery(transport, "", return_path(headers), _recipients(headers, mailbox), received_at)


def return_path(headers: Headers) -> str:
    """The envelope sender: empty for a bounce, the author where the server noted none."""
    noted = headers.all("return-path")
    if not noted:
        return author_of(headers).address
    bracketed = _BRACKETED.search(noted[0])
    return (bracketed[1] if bracketed else noted[0].strip())[:MAX_ADDRESS]


def _recipients(headers: Headers, mailbox: Mailbox) -> tuple[str, ...]:
    """The server's word counts first: To may name other projects of the sender, which got copies of their own."""
    for fields in (_BY_THE_SERVER, _BY_THE_SENDER):
        ours = dict.fromkeys(address for address in _addresses(headers, fields) if mailbox.accepts(address))
        with_token = [address for address in ours if mailbox.token(address)]
        if with_token or (ours and fields is _BY_THE_SENDER):
            return tuple(with_token or ours)[:MAX_RECIPIENTS]
    return (mailbox.address,)


def _addresses(headers: Headers, fields: tuple[str, ...]) -> Iterator[str]:
    for value in (value for field in fields for value in headers.all(field)):
        for part in _QUOTED_NAME.sub("", value[:MAX_FIELD_BYTES]).split(","):
            bracketed = _BRACKETED.search(part)
            yield (bracketed[1] if bracketed else part.strip()).lower()
