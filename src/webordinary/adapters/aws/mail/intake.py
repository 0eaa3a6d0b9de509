"""A mail that SES put into the bucket is accepted: read, named as every mail is, and noted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from webordinary.adapters.aws.mail.raw_mails import ses_id_of
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted, announce, emails_of
from webordinary.mail.ses_inbound import envelopes_of
from webordinary.model.events import Event, Events
from webordinary.model.mail import Email


class Inbox(Protocol):
    """The bucket that SES fills, and the notes of what was taken out of it."""

    def read(self, key: str) -> bytes:
        """The bytes of an object that SES put there."""

    def note(self, key: str, emails: Sequence[Email]) -> tuple[bool, ...]:
        """Write down the mails that this object holds; which of them are new."""


class AwsIntake:
    """Called for every object that S3 tells of, as often as it tells, and for those that it forgot to tell of."""

    def __init__(self, mails: Inbox, mailbox: Mailbox, events: Events) -> None:
        self._mails, self._mailbox, self._events = mails, mailbox, events

    def take(self, key: str, received_at: datetime) -> tuple[Accepted, ...]:
        """Accept the mail at this key, once per recipient; none for objects that are no mails, or not for us.

        Start a workflow for each of them, new or not: one that is known may have died before it was started.
        """
        ses_id = ses_id_of(key)
        if not ses_id:
            return ()
        raw = self._mails.read(key)
        emails = emails_of(raw, envelopes_of(raw, ses_id, self._mailbox, received_at))
        new = self._mails.note(key, emails)
        if not emails:
            reason = f"{key} is for nobody here: let the receipt rule take mail to {self._mailbox.address} alone"
            self._events.emit(Event("MailRefused", data={"reason": reason}))
        return tuple(announce(email, self._events, is_new=is_new) for email, is_new in zip(emails, new, strict=True))
