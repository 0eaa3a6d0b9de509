"""A mail is accepted: kept durably, once per recipient, before anybody is told so.

The envelope of a mail that another server has delivered already: read from the fields which that server added.

A mailbox, a drop folder and some HTTP senders give no SMTP envelope. Delivering servers note it in Return-Path,
Delivered-To and X-Original-To. A forged field does no harm: a recipient selects a project and never authorises, and
the sender is proven by other means.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from webordinary.mail.addresses import MAX_ADDRESS, Mailbox
from webordinary.mail.auth import Admitted, AwaitsConfirmation, Load, Verdict
from webordinary.mail.confirm import without_token
from webordinary.mail.parsing.headers import MAX_FIELD_BYTES, Headers, author_of, body_view, message_id_of, read_headers
from webordinary.mail.parsing.message import outline
from webordinary.mail.ports import RawMails
from webordinary.model.errors import Transient
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.mail import Delivery, Email, Envelope, ParsedMail, TransportKind, TransportVerdicts
from webordinary.model.names import email_id_of


@dataclass(frozen=True, slots=True)
class Accepted:
    """One mail that is ours now; `is_new` is False for a mail that we had already."""

    email_id: str
    is_new: bool


_PATH = re.compile(r"\S*/\S*")


class RefusalLog:
    """Logs the first mail that has to come again for a reason, then their number once a mail is taken. Thread-safe.

    On a full disk each sender comes again every few minutes: a line for each mail would fill it further.
    """

    def __init__(self, log: logging.Logger, name: str) -> None:
        self._log, self._name, self._guard = log, name, threading.Lock()
        self._reason, self._count = "", 0

    def refused(self, problem: Transient) -> None:
        """A mail was not taken; other files of the same fault are the same reason."""
        reason = _PATH.sub("…", str(problem))
        with self._guard:
            if reason == self._reason:
                self._count += 1
                return
            self._tell()
            self._reason, self._count = reason, 1
            self._log.warning("%s: not accepted for now: %s", self._name, problem)

    def taken(self) -> None:
        """A mail was taken: what was refused is over."""
        if self._reason:
            with self._guard:
                self._tell()
                self._reason = ""

    def _tell(self) -> None:
        if self._reason:
            mails = "1 mail was" if self._count == 1 else f"{self._count} mails were"
            self._log.warning("%s: %s not accepted: %s", self._name, mails, self._reason)


def accept(
    raw: bytes, delivery: Delivery, verdicts: TransportVerdicts | None = None, *, mails: RawMails, events: Events
) -> tuple[Accepted, ...]:
    """Store a mail durably, once per recipient: every transport ends here. Idempotent.

    `verdicts` are those that the transport itself vouches for, never words of a header that a sender may have written.
    Raises Transient where the disk is full: the sender will come again, and what was stored of this delivery is then
    recognised.
    """
    emails = emails_of(raw, envelopes_of_delivery(delivery, verdicts))
    return tuple(announce(email, events, is_new=mails.store(email)) for email in emails)


def envelopes_of_delivery(delivery: Delivery, verdicts: TransportVerdicts | None) -> tuple[Envelope, ...]:
    """One envelope per recipient."""
    d = delivery
    return tuple(Envelope(d.peer, d.mail_from, to.lower(), d.received_at, verdicts) for to in d.recipients)


def emails_of(raw: bytes, envelopes: Sequence[Envelope]) -> tuple[Email, ...]:
    """One Email per recipient, each once."""
    emails: dict[str, Email] = {}
    for envelope in envelopes:
        email = Email(name_of(raw, envelope.recipient), envelope, raw)
        emails.setdefault(email.email_id, email)
    return tuple(emails.values())


def announce(email: Email, events: Events, *, is_new: bool) -> Accepted:
    """Emit MailReceived for a new mail."""
    if is_new:
        to = without_token(email.envelope.recipient.encode()).decode()  # many people see events
        data = {"recipient": to, "peer": email.envelope.peer, "size": len(email.raw)}
        events.emit(Event(EventKind.MAIL_RECEIVED, email_id=email.email_id, data=data))
    return Accepted(email.email_id, is_new)


def name_of(raw: bytes, recipient: str) -> str:
    """The email_id of a raw mail to a recipient."""
    headers = read_headers(raw)
    sender = author_of(headers).address or headers.first("from")
    return email_id_of(message_id_of(raw, headers), sender, recipient.lower(), body_view(raw))


@dataclass(frozen=True, slots=True)
class UnadmittedQuota:
    """Judges a mail by its envelope and header as it arrives.

    An admitted sender always gets in. Strangers may fill half of the quota, so that a customer whose mail is held finds
    room beside them.
    """

    max_bytes: int
    used_bytes: Callable[[], int]
    judge: Callable[[Envelope, ParsedMail, Load], Verdict]

    def require_room(self, raw: bytes, envelopes: Sequence[Envelope]) -> None:
        """Raises Transient where the quota is used up: the sender's server tries again later."""
        needed = self.used_bytes() + len(raw) * len(envelopes)
        if needed <= self.max_bytes // 2:  # room for everyone: the sender is judged later, in the workflow
            return
        verdict = self.judge(envelopes[0], outline(raw), lambda: raw)
        if isinstance(verdict, Admitted):
            return
        if not isinstance(verdict, AwaitsConfirmation) or needed > self.max_bytes:
            raise Transient(
                f"mails that were not admitted fill their {self.max_bytes / 1e6:,.0f} MB: wait until the oldest are "
                "forgotten, or raise unadmitted_mail_mb"
            )


HERE_ALREADY = "which was here already: nothing is done twice"
"""So ends our own intake's answer to a mail that it had accepted before."""


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
