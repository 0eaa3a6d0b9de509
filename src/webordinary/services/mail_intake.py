"""Takes mails from places where they wait, such as a mailbox or a drop folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from webordinary.mail.addresses import Mailbox
from webordinary.mail.delivered import WaitingMail, delivery_of
from webordinary.mail.intake import Accepted
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.mail import Delivery, TransportKind

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Intake:
    """Accepts a mail and starts its workflow."""

    accept: Callable[[bytes, Delivery], Sequence[Accepted]]
    begin: Callable[[str], None]

    def take(self, raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        """Returns when the mail is durable; raises Transient or Permanent where it is not accepted.

        A workflow that cannot be started now does not fail the mail: the sweep starts it later.
        """
        accepted = self.accept(raw, delivery)
        for mail in accepted:
            if mail.is_new:
                self._begin(mail.email_id)
        return accepted

    def _begin(self, email_id: str) -> None:
        try:
            self.begin(email_id)
        except Exception:
            _log.exception("%s: accepted, but its workflow could not be started yet", email_id)


class MailSource(Protocol):
    """A place where mails wait. A mail that was taken is moved or marked, never deleted."""

    def batches(self, now: datetime) -> Iterable[Sequence[WaitingMail]]:
        """All mails that wait, the oldest first, in batches that fit into memory; raises Transient."""

    def mark_taken(self, refs: Sequence[str]) -> None:
        """These do not wait any more; raises Transient."""


@dataclass(frozen=True, slots=True)
class MailReader:
    """Takes every mail that waits at a source.

    A mail is stored durably, then marked. A process that is killed in between leaves it unmarked; it is read again and
    recognised by its content. One that cannot be stored now stays where it is and holds no other up.
    """

    transport: TransportKind
    source: MailSource
    intake: Intake
    mailbox: Mailbox
    events: Events

    @property
    def name(self) -> str:
        return f"mail-{self.transport}"

    def run_once(self, now: datetime) -> int:
        taken = 0
        try:
            for batch in self.source.batches(now):
                done = [mail.ref for at, mail in enumerate(batch) if self._take(mail, now + timedelta(microseconds=at))]
                self.source.mark_taken(done)
                taken += len(done)
        except Transient as problem:
            _log.warning("%s: %s", self.name, problem)
        return taken

    def _take(self, mail: WaitingMail, now: datetime) -> bool:
        """Whether the mail is done with here."""
        try:
            if mail.refusal:
                raise Permanent(mail.refusal)
            self.intake.take(mail.raw, delivery_of(mail.raw, self.transport, self.mailbox, now))
        except Transient as problem:
            _log.warning("%s: mail %s waits: %s", self.name, mail.ref, problem)
            return False
        except Permanent as problem:
            data = {"reason": f"{self.name}: mail {mail.ref} was not taken: {problem}"}
            self.events.emit(Event(EventKind.MAIL_REFUSED, data=data))
        return True
