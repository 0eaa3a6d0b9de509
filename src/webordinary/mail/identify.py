"""Whose project is meant, and which conversation: by the address written to, by thread, by the sender's entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webordinary.mail.addresses import Mailbox, conversation_in, with_token
from webordinary.mail.ports import Threads
from webordinary.model.mail import Envelope, ParsedMail
from webordinary.model.names import ProjectUser, thread_id_of
from webordinary.model.projects import Sender, Thread


@dataclass(frozen=True, slots=True)
class Identified:
    """The key that the job runs for, and its thread, to be recorded by the caller."""

    thread: Thread
    is_new: bool

    @property
    def key(self) -> ProjectUser:
        """Project and user."""
        return self.thread.key


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The sender has several projects and named none of them, or named one that is not theirs."""

    project_ids: tuple[str, ...]
    addresses: tuple[str, ...]
    """Where to write instead, one per project."""
    named: str = ""
    """The one that they named."""


def identify(
    envelope: Envelope, mail: ParsedMail, entitled: Sequence[Sender], threads: Threads, mailbox: Mailbox
) -> Identified | Ambiguous:
    """`entitled` are the directory's entries of an admitted sender; the same answer on every retry."""
    token = mailbox.token(envelope.recipient)
    known = list(filter(None, _conversations(token, mail, entitled, threads)))
    for thread in known:
        if _entitled_to(thread, entitled):
            return Identified(thread, is_new=False)
    key = _chosen(token, entitled, elsewhere=bool(known))
    if key is None:
        project_ids = tuple(entry.key.project_id for entry in entitled)
        named = "" if conversation_in(token)[0] else token
        return Ambiguous(project_ids, tuple(with_token(mailbox.address, project) for project in project_ids), named)
    return _begin(mail, key, threads)


def _conversations(
    token: str, mail: ParsedMail, entitled: Sequence[Sender], threads: Threads
) -> Iterator[Thread | None]:
    """The conversation that the address names, then the one that the mail answers."""
    thread_id, _ = conversation_in(token)
    if thread_id and all(entry.key.project_id != token for entry in entitled):
        yield threads.get(thread_id)
    yield threads.find((*mail.in_reply_to, *reversed(mail.references)))


def _entitled_to(thread: Thread, entitled: Sequence[Sender]) -> bool:
    """A thread selects, it never authorises. Users of one project may join each other's threads."""
    return any(entry.key.project_id == thread.key.project_id for entry in entitled)


def _chosen(token: str, entitled: Sequence[Sender], *, elsewhere: bool) -> ProjectUser | None:
    """`elsewhere`: the mail goes on in a conversation about a site that is none of theirs, or not any more."""
    named = [entry.key for entry in entitled if entry.key.project_id == token]
    if named:
        return named[0]
    # Who names a site that is none of theirs means another one than their only one.
    meant = elsewhere or (token and not conversation_in(token)[0])
    return entitled[0].key if len(entitled) == 1 and not meant else None


def _begin(mail: ParsedMail, key: ProjectUser, threads: Threads) -> Identified:
    """A new thread is named after its root, and apart from a foreign thread of the same root."""
    root = next(iter((*mail.references, *mail.in_reply_to)), mail.message_id)
    for name in (root, f"{root} {key.text}"):
        thread_id = thread_id_of(name)
        there = threads.get(thread_id)
        if there is None:
            return Identified(Thread(thread_id, key, mail.subject), is_new=True)
        if there.key == key:
            return Identified(there, is_new=False)
    raise AssertionError(f"the thread name {root} {key} carries its key")
