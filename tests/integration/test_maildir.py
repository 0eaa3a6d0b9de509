"""Replies leave the house: into a real Maildir, and through a real relay."""

from __future__ import annotations

import mailbox
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from webordinary.adapters.files.transports import MaildirTransport, RelaySettings, RelayTransport
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.mails import SqliteThreads
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.entrypoints.smtp.server import SmtpServer, SmtpSettings
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted
from webordinary.mail.outbox import MAX_TRIES, deliver_due, next_try
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event
from webordinary.model.mail import Delivery, Reply

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
RAW = b"Subject: Re: Title\r\nMessage-ID: <a@localhost>\r\n\r\nDone.\r\n"
REPLY = Reply("e1", "answer", "scott@example.com", "<a@localhost>", RAW)


class Told(list[Event]):
    def emit(self, event: Event) -> None:
        self.append(event)


def delivered(folder: Path) -> list[str]:
    return [message["subject"] for message in mailbox.Maildir(folder, create=False)]


def test_a_reply_becomes_one_mail_that_any_reader_understands(tmp_path: Path) -> None:
    MaildirTransport(tmp_path / "outbox").send(REPLY)
    assert delivered(tmp_path / "outbox") == ["Re: Title"]
    assert list((tmp_path / "outbox" / "tmp").iterdir()) == []


def test_a_crash_after_delivery_does_not_deliver_twice(tmp_path: Path) -> None:
    outbox, transport, events = SqliteOutbox(MemoryDatabase()), MaildirTransport(tmp_path), Told()
    outbox.put(REPLY, NOON)
    transport.send(REPLY)  # and the process died before it could note that
    assert deliver_due(outbox, transport, SqliteThreads(MemoryDatabase()), NOON, events) == 1
    assert deliver_due(outbox, transport, SqliteThreads(MemoryDatabase()), NOON, events) == 0
    assert len(delivered(tmp_path)) == 1
    assert [event.kind for event in events] == ["ReplySent"]


def test_a_reply_that_somebody_has_read_is_not_delivered_again(tmp_path: Path) -> None:
    transport = MaildirTransport(tmp_path)
    transport.send(REPLY)
    (new,) = (tmp_path / "new").iterdir()
    new.rename(tmp_path / "cur" / f"{new.name}:2,S")
    transport.send(REPLY)
    assert len(delivered(tmp_path)) == 1


def test_two_replies_are_two_mails(tmp_path: Path) -> None:
    transport = MaildirTransport(tmp_path)
    transport.send(REPLY)
    transport.send(Reply("e2", "answer", "scott@example.com", "<b@localhost>", RAW))
    assert len(delivered(tmp_path)) == 2


def test_what_a_killed_delivery_left_in_tmp_is_no_mail(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "half").write_bytes(RAW[:10])
    MaildirTransport(tmp_path).send(REPLY)
    assert len(list((tmp_path / "new").iterdir())) == 1


def test_a_folder_that_cannot_be_used_is_worth_another_try(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    outbox, events = SqliteOutbox(MemoryDatabase()), Told()
    outbox.put(REPLY, NOON)
    assert deliver_due(outbox, MaildirTransport(tmp_path / "file"), SqliteThreads(MemoryDatabase()), NOON, events) == 0
    (entry,) = outbox.of("e1")
    assert entry.next_try_at > NOON
    assert "file" in (entry.last_error or "")


def test_tries_are_bounded_and_further_apart_each_time() -> None:
    tries = [next_try(attempts, NOON) for attempts in range(1, MAX_TRIES + 1)]
    assert tries[0] == NOON + timedelta(seconds=2)
    assert tries[-1] is None
    waits = [at - NOON for at in tries if at]
    assert waits == sorted(waits)


class Remote:
    """Somebody's mail server, which takes or refuses."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.problem: Exception | None = None

    def accept(self, raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        if self.problem:
            raise self.problem
        self.taken.append(raw)
        return (Accepted("f" * 64, is_new=True),)


@pytest.fixture
def remote() -> Remote:
    return Remote()


@pytest.fixture
def relay(remote: Remote) -> Iterator[RelayTransport]:
    settings = SmtpSettings(Mailbox.parse("scott@example.com"), port=0)
    server = SmtpServer(settings, remote.accept, lambda _: None, lambda: NOON)
    server.start()
    yield RelayTransport(RelaySettings("127.0.0.1", server.port, "edit@localhost", timeout_seconds=30))
    server.stop()


def test_a_relay_takes_the_reply_as_it_is(remote: Remote, relay: RelayTransport) -> None:
    relay.send(REPLY)
    assert remote.taken == [RAW]


def test_a_relay_that_is_busy_is_tried_again(remote: Remote, relay: RelayTransport) -> None:
    remote.problem = Transient("full")
    with pytest.raises(Transient, match="452"):
        relay.send(REPLY)


def test_a_reply_that_the_relay_refuses_is_given_up(remote: Remote, relay: RelayTransport) -> None:
    remote.problem = Permanent("spam")
    with pytest.raises(Permanent, match="554"):
        relay.send(REPLY)
    outbox, events = SqliteOutbox(MemoryDatabase()), Told()
    outbox.put(REPLY, NOON)
    deliver_due(outbox, relay, SqliteThreads(MemoryDatabase()), NOON, events)
    assert outbox.of("e1")[0].given_up
    assert [event.kind for event in events] == ["DeadLettered"]


def test_an_address_that_the_relay_does_not_know_is_given_up(relay: RelayTransport) -> None:
    unknown = Reply("e1", "answer", "nobody@elsewhere.example", "<a@localhost>", RAW)
    with pytest.raises(Permanent, match=r"refused nobody@elsewhere.example"):
        relay.send(unknown)


def test_a_relay_that_is_away_is_tried_again() -> None:
    settings = RelaySettings("127.0.0.1", 9, "edit@localhost", timeout_seconds=5)
    with pytest.raises(Transient, match=r"127\.0\.0\.1:9"):
        RelayTransport(settings).send(REPLY)
