from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from tests.fakes.events import EventRecorder
from tests.unit.mail.letters import NOON
from webordinary.adapters.files.transports import email_id_in
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.mails import SqliteThreads
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.mail.outbox import DOUBT_SECONDS, MAX_DOUBTFUL_TRIES, PromptOutbox, deliver_due
from webordinary.mail.ports import PerhapsSent
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Reply
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Thread

REPLY = Reply("e1", "answer", "scott@example.com", "<ours@localhost>", b"raw", "t1")
DOUBT = timedelta(seconds=DOUBT_SECONDS)
THEIRS = "<0100@email.amazonses.com>"


@dataclass
class Renaming:
    """A transport that gives every mail a name of its own, or fails as it is told."""

    problems: list[Exception] = field(default_factory=list)
    sent: list[Reply] = field(default_factory=list)

    def send(self, reply: Reply) -> str:
        if self.problems:
            raise self.problems.pop(0)
        self.sent.append(reply)
        return THEIRS


def test_an_answer_to_the_name_that_a_transport_gave_is_recognised() -> None:
    database = MemoryDatabase()
    outbox, threads = SqliteOutbox(database), SqliteThreads(database)
    threads.record(Thread("t1", ProjectUser("amelia", "scott"), "Title"), "<1@example.com>", NOON)
    outbox.put(REPLY, NOON)
    assert deliver_due(outbox, Renaming(), NOON, EventRecorder()) == 1
    assert outbox.of("e1")[0].sent_as == THEIRS
    found = threads.find((THEIRS,))
    assert found
    assert found.thread_id == "t1"


def test_a_reply_has_left_even_if_its_name_cannot_be_filed() -> None:
    outbox, events = SqliteOutbox(MemoryDatabase()), EventRecorder()
    outbox.put(REPLY, NOON)
    assert deliver_due(outbox, Renaming(), NOON, events) == 1
    assert [event.kind for event in events] == ["ReplySent"]


def test_a_doubtful_reply_waits_long_before_it_is_sent_again() -> None:
    outbox, transport = SqliteOutbox(MemoryDatabase()), Renaming([PerhapsSent("no answer")])
    outbox.put(REPLY, NOON)
    assert deliver_due(outbox, transport, NOON, EventRecorder()) == 0
    assert deliver_due(outbox, transport, NOON + DOUBT / 2, EventRecorder()) == 0
    assert deliver_due(outbox, transport, NOON + DOUBT, EventRecorder()) == 1


def test_a_reply_is_in_doubt_twice_at_most() -> None:
    outbox, events = SqliteOutbox(MemoryDatabase()), EventRecorder()
    transport = Renaming([PerhapsSent("no answer") for _ in range(MAX_DOUBTFUL_TRIES)])
    outbox.put(REPLY, NOON)
    for tries in range(MAX_DOUBTFUL_TRIES + 3):
        deliver_due(outbox, transport, NOON + tries * DOUBT, events)
    assert transport.sent == []
    assert outbox.of("e1")[0].given_up
    assert [event.kind for event in events] == ["DeadLettered"]


def test_who_writes_a_reply_delivers_it_at_once_and_alone() -> None:
    store, transport = SqliteOutbox(MemoryDatabase()), Renaming()
    mine, other = (PromptOutbox(store, transport, EventRecorder(), lambda: NOON) for _ in range(2))
    assert mine.put(REPLY, NOON)
    assert not other.put(REPLY, NOON)
    other.deliver_written()
    assert transport.sent == []
    mine.deliver_written()
    mine.deliver_written()
    assert transport.sent == [REPLY]
    assert mine.due(NOON, 10) == ()
    assert mine.of("e1")[0].sent_as == THEIRS


@pytest.mark.parametrize("problem", [Transient("busy"), Permanent("no such user"), PerhapsSent("no answer")])
def test_what_the_writer_could_not_deliver_is_left_to_others(problem: Exception) -> None:
    outbox = PromptOutbox(SqliteOutbox(MemoryDatabase()), Renaming([problem]), EventRecorder(), lambda: NOON)
    outbox.put(REPLY, NOON)
    outbox.deliver_written()
    (entry,) = outbox.of("e1")
    assert entry.last_error == str(problem)
    assert entry.given_up == isinstance(problem, Permanent)
    outbox.mark_failed(REPLY, "again", NOON)
    outbox.mark_sent(REPLY, NOON)
    outbox.mark_bounced(REPLY, "no such user")
    assert outbox.of("e1")[0].bounced == "no such user"


def test_the_answer_of_a_foreign_mail_server_names_no_mail_of_ours() -> None:
    assert email_id_in("2.0.0 Ok: queued as 4XyZ") == ""
    assert email_id_in(f"2.0.0 accepted as {'a' * 64}") == "a" * 64
