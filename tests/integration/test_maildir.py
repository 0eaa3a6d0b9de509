"""Replies leave the house: into a real Maildir, and through a real relay."""

from __future__ import annotations

import base64
import mailbox
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dkim
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from tests.fakes.events import EventRecorder
from tests.processes import own_port
from webordinary.adapters.files.transports import MaildirTransport, RelaySettings, RelayTransport, SigningTransport
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.outbox import SqliteOutbox
from webordinary.compose.mailboxes import relay_password
from webordinary.config import Config
from webordinary.entrypoints.smtp import SmtpServer, SmtpSettings
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted
from webordinary.mail.outbox import BATCH, LEAST_TRIES, deliver_due, next_try
from webordinary.mail.replies.answers import held
from webordinary.mail.replies.compose import compose
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Command, Delivery, ParsedMail, Reply

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
RAW = b"Subject: Re: Title\r\nMessage-ID: <a@localhost>\r\n\r\nDone.\r\n"
REPLY = Reply("e1", "answer", "scott@example.com", "<a@localhost>", RAW)


def delivered(folder: Path) -> list[str]:
    return [message["subject"] for message in mailbox.Maildir(folder, create=False)]


def test_a_reply_becomes_one_mail_that_any_reader_understands(tmp_path: Path) -> None:
    MaildirTransport(tmp_path / "outbox").send(REPLY)
    assert delivered(tmp_path / "outbox") == ["Re: Title"]
    assert list((tmp_path / "outbox" / "tmp").iterdir()) == []


def test_a_crash_after_delivery_does_not_deliver_twice(tmp_path: Path) -> None:
    outbox, transport, events = SqliteOutbox(MemoryDatabase()), MaildirTransport(tmp_path), EventRecorder()
    outbox.put(REPLY, NOON)
    transport.send(REPLY)  # and the process died before it could note that
    assert deliver_due(outbox, transport, NOON, events) == 1
    assert deliver_due(outbox, transport, NOON, events) == 0
    assert len(delivered(tmp_path)) == 1
    assert [event.kind for event in events] == ["ReplySent"]


def test_more_replies_than_one_batch_are_delivered_in_one_run(tmp_path: Path) -> None:
    outbox, events = SqliteOutbox(MemoryDatabase()), EventRecorder()
    for number in range(BATCH + 1):
        outbox.put(replace(REPLY, email_id=f"e{number}"), NOON)
    assert deliver_due(outbox, MaildirTransport(tmp_path), NOON, events) == BATCH + 1
    assert outbox.due(NOON, BATCH) == ()


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
    outbox, events = SqliteOutbox(MemoryDatabase()), EventRecorder()
    outbox.put(REPLY, NOON)
    assert deliver_due(outbox, MaildirTransport(tmp_path / "file"), NOON, events) == 0
    (entry,) = outbox.of("e1")
    assert entry.next_try_at > NOON
    assert "file" in (entry.last_error or "")


def test_an_outage_of_the_relay_is_waited_out_for_three_days_with_tries_further_and_further_apart() -> None:
    tries, now = 0, NOON
    waits = []
    while (following := next_try(tries + 1, NOON, now)) is not None:
        waits.append(following - now)
        tries, now = tries + 1, following
    assert waits[0] == timedelta(seconds=2)
    assert waits == sorted(waits)
    assert waits[-1] == timedelta(hours=1)
    assert timedelta(days=3) <= now - NOON < timedelta(days=3, hours=2)
    assert tries < 100


def test_an_old_reply_that_is_sent_again_gets_its_tries() -> None:
    late = NOON + timedelta(days=20)
    assert next_try(1, NOON, late) is not None
    assert next_try(LEAST_TRIES, NOON, late) is None


class Grudging:
    """A provider that does not send for us at the moment, in the words of real ones."""

    def __init__(self, command: str, answer: str) -> None:
        self._command, self._answer = command, answer

    async def handle_MAIL(  # noqa: N802
        self, server: object, session: object, envelope: object, address: str, _: object
    ) -> str:
        envelope.mail_from = address  # type: ignore[attr-defined]
        return self._answer if self._command == "MAIL" else "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: object, session: object, envelope: object, address: str, _: object
    ) -> str:
        envelope.rcpt_tos.append(address)  # type: ignore[attr-defined]
        return self._answer if self._command == "RCPT" else "250 OK"

    async def handle_DATA(self, server: object, session: object, envelope: object) -> str:  # noqa: N802
        return self._answer if self._command == "DATA" else "250 OK"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("MAIL", "550 5.4.5 Daily user sending limit exceeded"),
        ("MAIL", "554 Sending paused for this account"),
        ("RCPT", "550 5.7.1 Message rejected: account suspended"),
        ("RCPT", "554 5.7.1 Relay access denied"),
        ("DATA", "550 5.4.5 Daily SMTP relay limit exceeded for customer"),
        ("DATA", "552 You have exceeded your sending quota"),
    ],
)
def test_a_quota_or_a_suspended_account_means_wait_and_not_give_up(command: str, answer: str) -> None:
    with own_port() as port:
        server = Controller(Grudging(command, answer), hostname="127.0.0.1", port=port)
        server.start()
        try:
            with pytest.raises(Transient):
                RelayTransport(RelaySettings("127.0.0.1", port, "edit@localhost", timeout_seconds=30)).send(REPLY)
        finally:
            server.stop()


def test_a_password_that_was_changed_in_its_file_is_used_at_the_next_login(tmp_path: Path) -> None:
    given: list[bytes] = []

    def checked(
        _server: object, _session: object, _envelope: object, _mechanism: str, login: LoginPassword
    ) -> AuthResult:
        given.append(login.password)
        return AuthResult(success=True)

    file = tmp_path / "password"
    with own_port() as port:
        server = Controller(
            Grudging("", ""), hostname="127.0.0.1", port=port, authenticator=checked, auth_require_tls=False
        )
        server.start()
        try:
            config = Config(relay_host="127.0.0.1", relay_user="me", relay_password_file=str(file))
            settings = RelaySettings("127.0.0.1", port, "edit@localhost", user="me", password=relay_password(config))
            for password in ("first", "second"):
                file.write_text(f"{password}\n")
                RelayTransport(settings).send(REPLY)
            file.unlink()
            with pytest.raises(Transient, match="cannot be read"):
                RelayTransport(settings).send(REPLY)
        finally:
            server.stop()
    assert given == [b"first", b"second"]


@pytest.mark.needs("openssl")
def test_replies_are_signed_with_dkim_when_a_key_is_set(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    der = subprocess.run(
        ["openssl", "rsa", "-in", str(key), "-pubout", "-outform", "DER"], check=True, capture_output=True
    ).stdout
    record = b"v=DKIM1; k=rsa; p=" + base64.b64encode(der)
    letter = ParsedMail(
        "<1@example.com>", "scott@example.com", "Scott", "Title", None, (), (), "wish", "", Command.EDIT, 0, False
    )  # fmt: skip
    reply = compose(
        held(letter, paused=True), email_id="e1", mail=letter, mailbox="edit@example.com", sent_at=NOON, thread_id="t1"
    )
    SigningTransport(MaildirTransport(tmp_path / "out"), key, "webordinary", "example.com").send(reply)
    (file,) = (tmp_path / "out" / "new").iterdir()
    sent = file.read_bytes().replace(b"\n", b"\r\n")
    asked = []

    def dns(name: bytes, timeout: int = 5) -> bytes:
        asked.append(name)
        return record

    assert dkim.verify(sent, dnsfunc=dns)
    assert asked == [b"webordinary._domainkey.example.com."]
    assert not dkim.verify(sent.replace(b"Reply-To: ", b"Reply-To: eve@example.net, "), dnsfunc=dns)
    assert not dkim.verify(b"From: eve@example.net\r\n" + sent, dnsfunc=dns)
    assert b"edit+t1@example.com" in sent


def test_a_key_that_cannot_be_used_holds_replies_back(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("no key")
    for key in ("key.pem", "none.pem"):
        signing = SigningTransport(MaildirTransport(tmp_path / "out"), tmp_path / key, "webordinary", "example.com")
        with pytest.raises(Transient, match="correct dkim_key_file"):
            signing.send(REPLY)
    assert not (tmp_path / "out").exists()


class MailServer:
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
def remote() -> MailServer:
    return MailServer()


@pytest.fixture
def relay(remote: MailServer) -> Iterator[RelayTransport]:
    settings = SmtpSettings(Mailbox.parse("scott@example.com"), port=0)
    server = SmtpServer(settings, remote.accept, lambda _: None, lambda: NOON)
    server.start()
    yield RelayTransport(RelaySettings("127.0.0.1", server.port, "edit@localhost", timeout_seconds=30))
    server.stop()


def test_a_relay_takes_the_reply_as_it_is(remote: MailServer, relay: RelayTransport) -> None:
    relay.send(REPLY)
    assert remote.taken == [RAW]


def test_a_relay_that_is_busy_is_tried_again(remote: MailServer, relay: RelayTransport) -> None:
    remote.problem = Transient("full")
    with pytest.raises(Transient, match="452"):
        relay.send(REPLY)


def test_a_reply_that_the_relay_refuses_is_given_up(remote: MailServer, relay: RelayTransport) -> None:
    remote.problem = Permanent("spam")
    with pytest.raises(Permanent, match="554"):
        relay.send(REPLY)
    outbox, events = SqliteOutbox(MemoryDatabase()), EventRecorder()
    outbox.put(REPLY, NOON)
    deliver_due(outbox, relay, NOON, events)
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
