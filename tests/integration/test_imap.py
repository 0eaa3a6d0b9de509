"""Mail is taken from a mailbox on a real Dovecot."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.harness.intake import SCOTT, IntakeHarness, letter, now, open_intake
from tests.integration.dovecot import PASSWORD, TOKEN, USER, Dovecot, running_dovecot
from webordinary.adapters.mailboxes import KEYWORD, ImapSettings
from webordinary.adapters.passwords import password_source
from webordinary.compose.background import mail_readers
from webordinary.compose.checks import checks_of
from webordinary.compose.embedded import open_embedded
from webordinary.config import Config
from webordinary.mail.intake import Accepted
from webordinary.model.errors import Transient
from webordinary.model.events import EventKind
from webordinary.model.mail import Delivery
from webordinary.services.loop import Loop

pytestmark = [pytest.mark.needs("dovecot", "openssl"), pytest.mark.xdist_group("dovecot")]
LONG = 1500.0


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[IntakeHarness]:
    yield from open_intake(tmp_path)


@pytest.fixture(scope="module")
def dovecot_server() -> Iterator[Dovecot]:
    with running_dovecot() as server:
        yield server


@pytest.fixture
def dovecot(dovecot_server: Dovecot, monkeypatch: pytest.MonkeyPatch) -> Dovecot:
    """With an empty mailbox, and trusted by this process."""
    monkeypatch.setenv("SSL_CERT_FILE", str(dovecot_server.certificate.cert))
    if dovecot_server.process is None:
        dovecot_server.start()
    client = dovecot_server.client()
    if any(client.search(None, "ALL")[1]):
        client.store("1:*", "+FLAGS", "\\Deleted")
        client.expunge()
    client.logout()
    return dovecot_server


def settings_of(server: Dovecot, **changes: object) -> ImapSettings:
    settings = ImapSettings("localhost", server.tls_port, USER, password_source(PASSWORD))
    return replace(settings, **changes)  # type: ignore[arg-type]


def test_mails_of_a_mailbox_are_accepted_in_their_order_and_flagged(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(*(letter(f"wish {n}") for n in range(5)))
    reader = harness.reader(harness.open(settings_of(dovecot)))
    assert reader.run_once(now()) == 5
    assert harness.texts() == [f"wish {n}" for n in range(5)]
    assert reader.run_once(now()) == 0
    flags = dovecot.flags()
    assert len(flags) == 5
    assert all(KEYWORD.encode() in line and b"\\Seen" not in line for line in flags)


def test_the_envelope_comes_from_the_fields_of_the_delivering_server(harness: IntakeHarness, dovecot: Dovecot) -> None:
    trace = b"Return-Path: <bounce@example.net>\r\nDelivered-To: edit+amelia@example.com\r\n"
    dovecot.put(
        trace + letter("wish"), letter("to a token", to="edit+t1@example.com"), letter("alias", to="x@y.example")
    )
    harness.reader(harness.open(settings_of(dovecot))).run_once(now())
    envelopes = [harness.mails.load(one).envelope for one in harness.started]
    assert [one.recipient for one in envelopes] == ["edit+amelia@example.com", "edit+t1@example.com", USER]
    assert [one.mail_from for one in envelopes] == ["bounce@example.net", SCOTT, SCOTT]
    assert {one.peer for one in envelopes} == {""}, "no host to be trusted by"


def test_taken_mails_are_moved_where_a_folder_is_named(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(letter("wish"))
    reader = harness.reader(harness.open(settings_of(dovecot, taken_folder="Erledigte Wünsche")))
    assert reader.run_once(now()) == 1
    assert dovecot.flags() == []
    assert len(dovecot.flags('"Erledigte W&APw-nsche"')) == 1


def test_a_mail_that_another_reader_deletes_or_moves_disturbs_nobody(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(*(letter(f"wish {n}") for n in range(3)))
    other, alone = dovecot.client(), threading.Lock()
    other.store("1", "+FLAGS", "\\Deleted")  # marked, and not expunged by its reader yet

    def accept_while_another_reads(raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        with alone:
            other.store("3", "+FLAGS", "\\Seen")
        return harness.accept(raw, delivery)

    assert harness.reader(harness.open(settings_of(dovecot)), accept_while_another_reads).run_once(now()) == 2
    other.logout()
    assert harness.texts() == ["wish 1", "wish 2"]
    assert [b"\\Deleted" in line for line in dovecot.flags()] == [True, False, False], "nothing is expunged by us"


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.harness.intake import ImapMailbox, ImapSettings, now, open_intake
from webordinary.adapters.passwords import password_source

class KilledBeforeMarking(ImapMailbox):
    def mark_taken(self, refs):
        os.kill(os.getpid(), signal.SIGKILL)

settings = ImapSettings("localhost", int(sys.argv[2]), sys.argv[3], password_source(file=sys.argv[4]))
next(open_intake(Path(sys.argv[1])), None).reader(KilledBeforeMarking(settings)).run_once(now())
"""


def test_nothing_is_lost_or_taken_twice_at_kill_9(harness: IntakeHarness, dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.put(letter("wish 1"), letter("wish 2"))
    (tmp_path / "password").write_text(PASSWORD + "\n")
    program = [sys.executable, "-c", KILLED, str(tmp_path), str(dovecot.tls_port), USER, str(tmp_path / "password")]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    assert len(harness.mails.without_workflow(10)) == 2, "stored before they were marked"
    assert harness.reader(harness.open(settings_of(dovecot))).run_once(now()) == 2
    assert harness.started == [], "recognised, not taken a second time"
    assert all(KEYWORD.encode() in line for line in dovecot.flags())


def test_a_mailbox_with_another_uidvalidity_brings_nothing_twice(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(letter("wish 1"))
    reader = harness.reader(harness.open(settings_of(dovecot)))
    reader.run_once(now())
    before = dovecot.uidvalidity()
    dovecot.forget_indexes()
    assert dovecot.uidvalidity() != before
    dovecot.put(letter("wish 2"))
    while reader.run_once(now()) == 0:  # its connection broke with the server
        pass
    assert harness.texts() == ["wish 1", "wish 2"]


@pytest.mark.parametrize("taken_folder", ["", "Done"])
def test_a_folder_that_is_made_anew_while_it_is_read_brings_its_mails(
    harness: IntakeHarness, dovecot: Dovecot, taken_folder: str
) -> None:
    other = dovecot.client()
    other.create("Wishes")
    other.append("Wishes", "", "", letter("wish 1"))
    reader = harness.reader(harness.open(settings_of(dovecot, folder="Wishes", taken_folder=taken_folder)))
    assert reader.run_once(now()) == 1
    other.delete("Wishes")
    other.create("Wishes")  # with another UIDVALIDITY, and the first UIDs again
    other.append("Wishes", "", "", letter("wish 2"))
    assert reader.run_once(now()) == 1
    other.delete("Wishes")
    other.logout()
    assert harness.texts() == ["wish 1", "wish 2"]


def test_the_reader_connects_again_when_the_server_comes_back(harness: IntakeHarness, dovecot: Dovecot) -> None:
    source = harness.open(settings_of(dovecot))
    loop = Loop(harness.reader(source), LONG, now, source)
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        dovecot.put(letter("wish 1"))
        assert harness.arrived.acquire(timeout=60)
        dovecot.stop()
        dovecot.start()
        dovecot.put(letter("wish 2"))
        assert harness.arrived.acquire(timeout=60)
    finally:
        loop.stop()
        thread.join(60)
    assert not thread.is_alive()
    assert harness.texts() == ["wish 1", "wish 2"]


def test_idle_tells_of_a_mail_at_once(harness: IntakeHarness, dovecot: Dovecot) -> None:
    source = harness.open(settings_of(dovecot))
    reader = harness.reader(source)
    reader.run_once(now())
    threading.Thread(target=dovecot.put, args=(letter("wish"),)).start()
    source.wait(LONG)  # returns because of the mail: without it the test would time out
    while not harness.started:
        reader.run_once(now())


def test_a_server_without_idle_is_polled(harness: IntakeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_dovecot(more="imap_capability = IMAP4rev1 UIDPLUS MOVE") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate.cert))
        source = harness.open(settings_of(server))
        loop = Loop(harness.reader(source), 0.2, now, source)
        thread = threading.Thread(target=loop.run)
        thread.start()
        try:
            for text in ("wish 1", "wish 2"):
                server.put(letter(text))
                assert harness.arrived.acquire(timeout=60)
        finally:
            loop.stop()
            thread.join(60)


def test_starttls_is_insisted_on(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(letter("wish"))
    settings = settings_of(dovecot, port=dovecot.port, security="starttls")
    assert harness.reader(harness.open(settings)).run_once(now()) == 1


def test_a_certificate_that_is_not_trusted_gets_no_password(
    harness: IntakeHarness, dovecot: Dovecot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    dovecot.put(letter("wish"))
    for changes in ({}, {"port": dovecot.port, "security": "starttls"}):
        with pytest.raises(Transient, match="certificate verify failed"):
            list(harness.open(settings_of(dovecot, **changes)).batches(now()))


def test_a_refused_login_is_told_without_the_password_and_not_hurried(
    harness: IntakeHarness, dovecot: Dovecot, caplog: pytest.LogCaptureFixture
) -> None:
    source = harness.open(settings_of(dovecot, password=password_source("wrong secret")))
    with caplog.at_level(logging.DEBUG):
        assert harness.reader(source).run_once(now()) == 0
    assert "refused the login of edit@example.com" in caplog.text
    assert "wrong secret" not in caplog.text
    assert source._retry_delays.delay(0) >= 60


def test_a_program_prints_the_token_for_xoauth2(harness: IntakeHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    class TokenInfo(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = parse_qs(urlsplit(self.path).query).get("access_token") == [TOKEN]
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"sub": USER} if known else {}).encode())

        def log_message(self, *_: object) -> None:
            pass

    info = ThreadingHTTPServer(("127.0.0.1", 0), TokenInfo)
    threading.Thread(target=info.serve_forever, daemon=True).start()
    try:
        with running_dovecot(f"http://127.0.0.1:{info.server_port}/") as server:
            monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate.cert))
            server.put(letter("wish"))
            stale = settings_of(server, password=password_source(program=["echo", "stale"]), is_token=True)
            assert harness.reader(harness.open(stale)).run_once(now()) == 0
            fresh = replace(stale, password=password_source(program=["echo", TOKEN]))
            assert harness.reader(harness.open(fresh)).run_once(now()) == 1
    finally:
        info.shutdown()
        info.server_close()


def test_a_mail_that_is_too_big_is_refused_where_the_operator_sees_it(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(letter("x" * 50_000), letter("wish"))
    reader = harness.reader(harness.open(settings_of(dovecot, max_bytes=20_000)))
    assert reader.run_once(now()) == 2
    assert harness.texts() == ["wish"]
    (refused,) = [event for event in harness.events if event.kind is EventKind.MAIL_REFUSED]
    assert "larger than 20,000 bytes" in refused.data["reason"]
    assert len(dovecot.flags()) == 2, "it is still there"


def test_a_mail_that_cannot_be_stored_now_waits_and_holds_no_other_up(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(*(letter(f"wish {n}") for n in range(3)))
    no_room = {"wish 1"}

    def accept_some(raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        if any(text.encode() in raw for text in no_room):
            raise Transient("no room for strangers")
        return harness.accept(raw, delivery)

    reader = harness.reader(harness.open(settings_of(dovecot)), accept_some)
    assert reader.run_once(now()) == 2
    no_room.clear()
    assert reader.run_once(now()) == 1
    assert harness.texts() == ["wish 0", "wish 2", "wish 1"]


def test_mails_older_than_the_memory_of_what_was_done_are_left_alone(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(letter("wish"))
    reader = harness.reader(harness.open(settings_of(dovecot, oldest_days=30)))
    assert reader.run_once(now() + timedelta(days=32)) == 0
    assert reader.run_once(now()) == 1


def test_hundreds_of_mails_come_in_batches(harness: IntakeHarness, dovecot: Dovecot) -> None:
    dovecot.put(*(letter(f"wish {n}") for n in range(230)))
    source = harness.open(settings_of(dovecot))
    sizes = [len(batch) for batch in source.batches(now())]
    assert sizes == [100, 100, 30]
    assert harness.reader(source).run_once(now()) == 230


def test_up_reads_the_mailbox_of_the_settings(dovecot: Dovecot, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    config = Config(
        data=tmp_path / "data",
        mailbox=USER,
        imap_host="localhost",
        imap_port=dovecot.tls_port,
        imap_password_file=str(tmp_path / "password"),
    )
    dovecot.put(letter("wish"))
    (checked,) = [check.look() for check in checks_of(config) if check.name == "mailbox"]
    assert "1 mails wait" in checked.what
    with open_embedded(config) as services, ExitStack() as closing:
        (loop,) = mail_readers(services, closing)
        thread = threading.Thread(target=loop.run)
        thread.start()
        try:
            while not (mails := services.overview.recent_mails(None, 10)):
                assert thread.is_alive()
        finally:
            loop.stop()
            thread.join(60)
    assert len(mails) == 1
