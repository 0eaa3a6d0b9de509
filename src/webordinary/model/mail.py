"""Mail as it travels: Email, then ParsedMail, then Instruction; and the Reply that goes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class TransportVerdicts:
    """What the transport found when it checked a mail, in its words (`pass`, `fail`, `gray`, …); empty = unsaid."""

    dmarc: str = ""
    dmarc_domain: str = ""
    """The domain of From that the DMARC check was about."""
    spam: str = ""
    virus: str = ""


class TransportKind(StrEnum):
    """How a mail reached us."""

    SMTP = "smtp"
    IMAP = "imap"
    HTTP = "http"
    FOLDER = "folder"
    PIPE = "pipe"
    SES = "ses"


@dataclass(frozen=True, slots=True)
class Delivery:
    """One mail as a transport hands it over: what the transport knows, apart from the bytes."""

    transport: TransportKind
    peer: str
    """Address of the host that handed the mail in; empty where the transport does not know one."""
    mail_from: str
    """Envelope sender; empty for a bounce."""
    recipients: tuple[str, ...]
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the transport knows of a mail; headers inside the mail cannot forge it."""

    peer: str
    mail_from: str
    recipient: str
    received_at: datetime
    verdicts: TransportVerdicts | None = None
    """None where the transport checks nothing, or its verdicts cannot be told from the sender's words."""


@dataclass(frozen=True, slots=True)
class Email:
    """The raw message as received; stored first, never changed."""

    email_id: str
    envelope: Envelope
    raw: bytes


class AttachmentKind(StrEnum):
    """The accepted kinds of attachments, by magic bytes and never by name."""

    IMAGE = "image"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of the customer's, kept by its content: `digest` is the SHA-256 of its bytes."""

    name: str
    media_type: str
    kind: AttachmentKind
    size: int
    digest: str
    sent_as: str = ""
    """Its name as the customer wrote it, on one line; for reading, never for a path."""
    webp: str = ""
    """The digest of the same photo as WebP; empty where there is none."""


@dataclass(frozen=True, slots=True)
class RefusedAttachment:
    """A file that is not given to the agent, with the reason for the customer."""

    name: str
    reason: str


class Command(StrEnum):
    """What a mail asks for; all but EDIT are exact words and free of AI."""

    EDIT = "edit"
    UNDO = "undo"
    PUBLISH = "publish"
    STATUS = "status"
    STOP = "stop"
    REMEMBER = "remember"
    FORGET = "forget"


QUEUED_COMMANDS = frozenset({Command.EDIT, Command.UNDO, Command.PUBLISH})
"""Commands that become a job; the workflow answers all others itself."""


@dataclass(frozen=True, slots=True)
class ParsedMail:
    """The content of headers and body. Nothing here is trusted before AuthenticateSender."""

    message_id: str
    sender: str
    sender_name: str
    subject: str
    sent_at: datetime | None
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    text: str
    """The part the customer wrote now; the whole body where that was unclear."""
    elided: str
    """Quoted history and signature that were set aside."""
    command: Command
    attachment_count: int
    automatic: bool
    """An auto-reply, bounce or list mail: never answered (RFC 3834)."""
    refused_attachments: tuple[RefusedAttachment, ...] = ()
    doubt: str = ""
    """Why the header may name another author to another program; such a mail has no sender and is held."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """What a person asked for, drawn from an Email and ready for the agent."""

    text: str
    subject: str
    sender: str
    command: Command
    attachments: tuple[Attachment, ...] = field(default=())
    named: str = ""
    """Which change an `undo` names in words: a commit, a page or file, a title; of a `publish`, `all` or `both`."""
    answers: str = ""
    """The job of the mail that an `undo` or `publish` answers, or whose answer it answers; empty if unknown."""
    wish: str = ""
    """What was wished, where the text only answers a question about that."""
    rivals: tuple[Attachment, ...] = ()
    """Files of the mail that this one answers a question about, where it is not clear whether they are meant, too."""
    answers_failure: bool = False
    """Whether it answers a mail of ours that said that nothing was changed."""
    undone_since: bool = False
    """A “yes”, and the conversation's newest change was taken back after its last question."""
    confirms: bool = False
    """Whether a `publish` answers the question that another `publish` led to."""
    replies: bool = False
    """Whether an `undo` or `publish` goes on from an earlier mail, also from one that is not known any more."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer in the customer's thread; sent at most once per (email_id, kind)."""

    email_id: str
    kind: str
    recipient: str
    message_id: str
    raw: bytes
    thread_id: str = ""
    """The conversation it belongs to; empty where it belongs to none."""
