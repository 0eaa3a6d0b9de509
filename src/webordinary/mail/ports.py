"""The ports of mail: stores of mails, threads and replies, transports, parser, directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from webordinary.mail.auth import AwaitsConfirmation, Refused
from webordinary.mail.confirm import SenderQuestion
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import (
    Attachment,
    AttachmentKind,
    Email,
    Envelope,
    ParsedMail,
    RefusedAttachment,
    Reply,
)
from webordinary.model.projects import Project, Sender, SenderRole, Thread, existing


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A written reply on its way out."""

    reply: Reply
    created_at: datetime
    next_try_at: datetime
    attempts: int = 0
    sent_at: datetime | None = None
    last_error: str | None = None
    given_up: bool = False
    sent_as: str | None = None
    """The Message-ID under which it left, where the transport replaced ours."""
    bounced: str | None = None
    """Why it came back, or what its receiver complained of."""


class Confirmations(Protocol):
    """Questions to senders of held mails; see `mail.confirm`."""

    def ask(self, question: SenderQuestion, daily_limit: int) -> bool:
        """Record a question before it is sent. False = its address was asked about so many mails on this day."""

    def find(self, digest: str, now: datetime) -> str:
        """The held mail that a token is for; empty where the token is unknown, used or expired."""

    def use(self, digest: str, now: datetime) -> None:
        """The token is worth nothing from now on; again is harmless."""


class HourlyRates(Protocol):
    """Counts admitted mails by scope (a domain of senders, a project) and clock hour."""

    def admit(self, scope: str, email_id: str, limit: int, now: datetime) -> bool:
        """Count a mail; False = `limit` other mails were counted in this hour. The same mail counts once."""

    def counted(self, scope: str, since: datetime, now: datetime) -> Sequence[str]:
        """The mails that were counted in the hours from `since` to `now`, which may lie a day apart."""


class RawMails(Protocol):
    """Accepted mails, byte for byte; what is stored here is promised to the sender."""

    def store(self, email: Email) -> bool:
        """Keep a mail durably before returning; on failure nothing is left. False = it was here already."""

    def load(self, email_id: str) -> Email:
        """The mail as it came; raises UnknownMail."""

    def head(self, email_id: str) -> Email:
        """The mail with its first HEAD_BYTES + 1 bytes only: enough to judge its sender; raises UnknownMail."""

    def envelope(self, email_id: str) -> Envelope:
        """What the transport knew of it, without its bytes; raises UnknownMail."""

    def mark_started(self, email_id: str) -> None:
        """Note that its workflow runs; again is harmless."""

    def mark_placed(self, email_id: str, stopped: AwaitsConfirmation | Refused | None = None) -> None:
        """Note that it has its place among its sender's jobs, or will never get one; again is harmless.

        One that was `stopped` goes no further: that is for people who ask what became of it.
        """

    def release(self, email_id: str) -> bool:
        """Let a held mail act for its sender: its workflow is due again. False = it is not held."""

    def drop(self, email_id: str) -> bool:
        """A held mail will never act. False = it is not held."""

    def is_released(self, email_id: str) -> bool:
        """Whether it was held and released."""

    def reconsider(self, email_id: str) -> None:
        """Forget that a mail was refused, as it is judged again; one that was not refused stays as it is."""

    def note_closed(self, email_id: str) -> None:
        """Note that an operator closed it, for stores that keep no events. Idempotent."""

    def is_closed(self, email_id: str) -> bool:
        """Whether an operator closed it, or its sender's next mail did."""

    def waits_for_earlier(self, email_id: str, since: datetime) -> bool:
        """Was an earlier mail of the same envelope sender, accepted after `since`, not placed yet?"""

    def without_workflow(self, limit: int) -> tuple[str, ...]:
        """Accepted mails whose workflow was not started, oldest first."""


@dataclass(frozen=True, slots=True)
class ExtractedFile:
    """A file of the customer's, ready to be stored."""

    name: str
    media_type: str
    kind: AttachmentKind
    data: bytes
    sent_as: str = ""
    webp: bytes = b""
    """The same photo as WebP, where that is worth a file."""


@dataclass(frozen=True, slots=True)
class ReturnedMail:
    """What a report says: the mails that it may be about, the addresses that failed, and why."""

    message_ids: tuple[str, ...]
    recipients: tuple[str, ...]
    reason: str


class MailParser(Protocol):
    """Reads mails of entitled senders, each within limits on processor time and memory."""

    def parse(self, raw: bytes) -> ParsedMail:
        """Read a mail; raises Unparseable, also where it exceeds a limit, or ParserBusy."""

    def files(self, raw: bytes) -> Iterator[ExtractedFile | RefusedAttachment]:
        """The files of a mail in their order, one at a time; raises as `parse` does."""

    def returned(self, raw: bytes) -> ReturnedMail | None:
        """What a delivery report or complaint says; None for any other mail. Raises as `parse` does."""

    def warm(self) -> None:
        """Start what takes time to start, so that the next mail does not wait for it."""


class ParsedMails(Protocol):
    """What was read out of each mail. The first reading stays: saving again changes nothing."""

    def save(self, email_id: str, mail: ParsedMail, now: datetime) -> None:
        """Store a parsed mail."""

    def load(self, email_id: str) -> ParsedMail | None:
        """The reading of a mail, or None where there is none yet."""


class AttachmentManifest(Protocol):
    """Which files came with a mail, by position; the bytes are in Blobs."""

    def save(self, email_id: str, position: int, record: Attachment | RefusedAttachment) -> None:
        """Keep one line of the manifest; again is harmless."""

    def of(self, email_id: str) -> tuple[Attachment | RefusedAttachment, ...]:
        """All lines of a mail, in the order of the mail."""


class Blobs(Protocol):
    """Files by content: the name is the SHA-256 of the bytes."""

    def put(self, data: bytes) -> str:
        """Keep the bytes durably and return their digest; again is harmless."""

    def get(self, digest: str) -> bytes:
        """The bytes of a digest; raises Permanent where it is unknown."""


class Threads(Protocol):
    """Mail conversations, and which Message-IDs belong to them. A Message-ID never changes its thread."""

    def find(self, message_ids: Sequence[str]) -> Thread | None:
        """The thread of the first of these Message-IDs that is known."""

    def get(self, thread_id: str) -> Thread | None:
        """The thread of that name."""

    def record(self, thread: Thread, message_id: str, now: datetime, email_id: str = "") -> Thread:
        """Begin a thread, or find it begun, and file this mail under it; returns what is stored."""

    def add_message(self, thread_id: str, message_id: str, email_id: str = "") -> None:
        """File our answer to a mail under its thread, so that an answer to it is recognised."""

    def mail_of(self, message_ids: Sequence[str]) -> str:
        """The mail that the first known of these Message-IDs belongs to, as its own or as our answer's; else empty."""

    def save_session(self, thread_id: str, agent_session: str) -> None:
        """Keep the agent's session, so that the next mail of the thread continues it."""


class Directory(Protocol):
    """Projects and the addresses that may change them, as the operator onboarded them."""

    def entries(self, address: str) -> tuple[Sender, ...]:
        """What this address may change; empty for a stranger. Case does not matter."""

    def project(self, project_id: str) -> Project | None:
        """The project of that name."""

    def projects(self) -> tuple[Project, ...]:
        """All projects by name."""

    def senders(self) -> tuple[Sender, ...]:
        """All entitled addresses, by project and address."""

    def add_project(self, project: Project, now: datetime) -> None:
        """Onboard a project; again replaces its settings."""

    def change_project(self, before: Project, after: Project) -> bool:
        """Replace the settings of a project; False if they are not `before` any more, or it is gone."""

    def add_sender(self, sender: Sender, now: datetime) -> None:
        """Entitle an address; again replaces its user and keeps its role. Its project must be there."""

    def set_role(self, address: str, project_id: str, role: SenderRole) -> bool:
        """Say what an address may do with a project; False if it may change nothing of it."""

    def remove_sender(self, address: str, project_id: str) -> None:
        """From now on this address changes nothing of the project; again is harmless."""

    def remove_project(self, project_id: str) -> None:
        """Forget a project, after everybody who could change it; again is harmless."""


def sender_of(directory: Directory, project_id: str, address: str) -> Sender | None:
    """What this address may do with a project; None for nothing."""
    return next((one for one in directory.entries(address) if one.key.project_id == project_id), None)


CHANGE_TRIES = 5


def change_project(directory: Directory, project_id: str, change: Callable[[Project], Project]) -> Project:
    """Change settings of a project, anew where another change came between, so that neither is lost.

    Raises Permanent where it is gone.
    """
    for _ in range(CHANGE_TRIES):
        project = existing(directory.project(project_id), project_id)
        changed = change(project)
        if changed == project or directory.change_project(project, changed):
            return changed
    raise Transient(f"the settings of {project_id} were changed by others {CHANGE_TRIES} times meanwhile")


class Outbox(Protocol):
    """Written replies. One per (mail, kind), delivered until done or given up."""

    def put(self, reply: Reply, now: datetime) -> bool:
        """Keep a reply for delivery. False = this mail has one of this kind already, which stays as it is."""

    def due(self, now: datetime, limit: int) -> tuple[OutboxEntry, ...]:
        """Replies to deliver now, the longest due first."""

    def mark_sent(self, reply: Reply, now: datetime, sent_as: str | None = None, kept: bytes | None = None) -> None:
        """Delivered: never due again. `sent_as` is the Message-ID that it got on its way out, if another.

        An answer names that one: it is filed under the reply's thread in the same step, if that thread is recorded.
        `kept` replaces the stored bytes, which have a secret of the receiver.
        """

    def mark_failed(self, reply: Reply, error: str, next_try_at: datetime | None) -> None:
        """Count a failed try; None = given up."""

    def mark_bounced(self, reply: Reply, reason: str) -> None:
        """It left, but did not arrive, or was not wanted. Nothing follows from it: a person sees the reason."""

    def of(self, email_id: str) -> tuple[OutboxEntry, ...]:
        """Every reply written to a mail, oldest first."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """One reply that failed at least once; `next_try_at` is None once it is given up."""

    email_id: str
    kind: str
    recipient: str
    written_at: datetime
    next_try_at: datetime | None
    attempts: int
    error: str


class UndeliveredReplies(Protocol):
    """The outbox's failures, for an operator who has mended their reason."""

    def all(self, limit: int) -> Sequence[Undelivered]:
        """The newest first."""

    def send_again(self, reply: Undelivered, now: datetime) -> bool:
        """It is due now, with all its tries before it; False if it has left meanwhile."""


class Transport(Protocol):
    """Delivers replies."""

    def send(self, reply: Reply) -> str | None:
        """Deliver once, as far as the transport can tell; raises Transient, PerhapsSent or Permanent.

        Returns the Message-ID under which it left, or None if that is ours.
        """


class Unparseable(Permanent):
    """A mail that we will not or cannot read; says what is wrong with it."""


class UnknownMail(Permanent):
    """No mail of this name was ever accepted here."""

    def __init__(self, email_id: str) -> None:
        super().__init__(f"no mail {email_id} is stored here: check the id, or restore a backup")
        self.email_id = email_id


class PerhapsSent(Transient):
    """The transport did not answer after it was given a reply. It may have left: send it again, but late."""


class ParserBusy(Transient):
    """As many large mails are being read as may be at once; the workflow tries again in a moment."""


class EarlierMailFirst(Transient):
    """An earlier mail of the same sender is still being read: a correction must not overtake what it corrects."""
