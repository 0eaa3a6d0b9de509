"""A data folder that takes mails from places where they wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.fakes.events import EventRecorder
from webordinary.adapters.mailboxes import ImapMailbox, ImapSettings
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import SqliteRawMails
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted, accept
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.mail import Delivery, TransportKind
from webordinary.services.mail_intake import Intake, MailReader, MailSource

EDIT = Mailbox.parse("edit@example.com")
SCOTT = "scott@example.com"


def now() -> datetime:
    return datetime.now(UTC)


def letter(text: str, to: str = EDIT.address) -> bytes:
    return write_mail(CustomerMail(SCOTT, to, "Title", text, message_id=f"<{text}@example.com>"), now())


@dataclass
class IntakeHarness:
    """A data folder, and what was accepted there."""

    mails: SqliteRawMails
    events: EventRecorder = field(default_factory=EventRecorder)
    started: list[str] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    opened: list[ImapMailbox] = field(default_factory=list)

    def open(self, settings: ImapSettings) -> ImapMailbox:
        self.opened.append(ImapMailbox(settings))
        return self.opened[-1]

    def begin(self, email_id: str) -> None:
        self.started.append(email_id)
        self.arrived.release()

    def accept(self, raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        return accept(raw, delivery, mails=self.mails, events=self.events)

    def reader(self, source: MailSource, accept: Callable[..., Sequence[Accepted]] | None = None) -> MailReader:
        kind = TransportKind.IMAP if isinstance(source, ImapMailbox) else TransportKind.FOLDER
        return MailReader(kind, source, Intake(accept or self.accept, self.begin), EDIT, self.events)

    def texts(self) -> list[str]:
        return [self.mails.load(one).raw.rpartition(b"\r\n\r\n")[2].decode().strip() for one in self.started]


def open_intake(data: Path) -> Iterator[IntakeHarness]:
    db = Database(data / "webordinary.db")
    db.migrate()
    harness = IntakeHarness(SqliteRawMails(db, data))
    yield harness
    for source in harness.opened:
        source.close()
    db.close()
