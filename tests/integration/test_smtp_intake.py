"""Mail over a real socket, onto a real disk."""

from __future__ import annotations

import hashlib
import logging
import os
import smtplib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.certificates import Certificate, certificate
from tests.harness.intake import IntakeHarness
from tests.photos import picture
from webordinary.adapters.files import transports
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.mails import SqliteRawMails
from webordinary.entrypoints.smtp import SenderRates, SmtpServer, SmtpSettings
from webordinary.mail.addresses import Mailbox
from webordinary.mail.intake import Accepted, accept
from webordinary.mail.parsing.message import parse
from webordinary.mail.write import CustomerMail, write_mail
from webordinary.model.errors import Permanent, Transient
from webordinary.model.mail import Delivery

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
EDIT = Mailbox.parse("edit@localhost")
SCOTT = "scott@example.com"


def server_of(harness: IntakeHarness, **changes: object) -> SmtpServer:
    settings = SmtpSettings(EDIT, port=0, **changes)  # type: ignore[arg-type]
    return SmtpServer(settings, harness.accept, harness.begin, lambda: datetime.now(UTC))


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[IntakeHarness]:
    db = Database(tmp_path / "webordinary.db")
    db.migrate()
    yield IntakeHarness(SqliteRawMails(db, tmp_path))
    db.close()


@pytest.fixture
def server(harness: IntakeHarness) -> Iterator[SmtpServer]:
    server = server_of(harness)
    server.start()
    yield server
    server.stop()


def letter(text: str = "change the title to Spring Sale", **more: str) -> bytes:
    given = {"message_id": "<1@example.com>", **more}
    return write_mail(CustomerMail(SCOTT, "edit@localhost", "Title", text, **given), NOON)  # type: ignore[arg-type]


def connect(server: SmtpServer) -> smtplib.SMTP:
    return smtplib.SMTP("127.0.0.1", server.port, local_hostname="localhost", timeout=30)


def files_in(folder: Path) -> list[Path]:
    return [file for file in (folder / "mail").rglob("*") if file.is_file()]


def test_an_accepted_mail_is_on_disk_and_announced(harness: IntakeHarness, server: SmtpServer) -> None:
    said = transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", server.port)
    (email_id,) = harness.started
    assert email_id[:16] in said
    stored = harness.mails.load(email_id)
    assert stored.raw == letter()
    assert (stored.envelope.peer, stored.envelope.mail_from) == ("127.0.0.1", SCOTT)
    assert parse(stored.raw).text == "change the title to Spring Sale"
    assert [event.kind for event in harness.events] == ["MailReceived"]


def test_a_mail_that_comes_twice_is_accepted_twice_and_started_once(harness: IntakeHarness, server: SmtpServer) -> None:
    for _ in range(2):
        transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", server.port)
    assert len(harness.started) == 1


def test_a_mail_without_message_id_is_recognised_when_it_comes_again(
    harness: IntakeHarness, server: SmtpServer
) -> None:
    for text in ("one", "one", "two"):
        raw = letter(text, message_id="")
        transports.send(raw, SCOTT, "edit@localhost", "127.0.0.1", server.port)
    assert len(harness.started) == 2


def test_each_recipient_gets_a_mail_of_its_own(harness: IntakeHarness, server: SmtpServer) -> None:
    with connect(server) as smtp:
        smtp.sendmail(SCOTT, ["edit@localhost", "edit+amelia@localhost", "EDIT@LOCALHOST"], letter())
    recipients = {harness.mails.load(email_id).envelope.recipient for email_id in harness.started}
    assert len(harness.started) == 2
    assert recipients == {"edit@localhost", "edit+amelia@localhost"}


@pytest.mark.parametrize("stranger", ["someone@example.com", "edit@example.com", "editor@localhost", "edit"])
def test_mail_for_others_is_not_relayed(harness: IntakeHarness, server: SmtpServer, stranger: str) -> None:
    with pytest.raises(Permanent, match=r"550.*write to edit@localhost"):
        transports.send(letter(), SCOTT, stranger, "127.0.0.1", server.port)
    assert harness.started == []


@pytest.mark.parametrize("address", ["<", "<a@", '<"', "<@a:b@c>", "<a@b", "<" + "(" * 200])
def test_a_malformed_address_is_refused_and_logged_as_no_failure(
    address: str, server: SmtpServer, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(server) as smtp:
        smtp.ehlo()
        assert smtp.docmd("MAIL", f"FROM:{address}")[0] in (250, 501, 553)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_an_answer_repeats_no_control_characters(server: SmtpServer) -> None:
    with connect(server) as smtp:
        smtp.send(b"NO\r250\0SUCH\x1b[2J\r\n")
        assert smtp.getreply() == (500, b'Error: command "NO?250?SUCH?[2J" not recognized')


def test_a_bounce_may_come_in(harness: IntakeHarness, server: SmtpServer) -> None:
    transports.send(letter(), "", "edit@localhost", "127.0.0.1", server.port)
    assert harness.mails.load(harness.started[0]).envelope.mail_from == ""


def test_what_is_too_big_is_refused_as_announced(harness: IntakeHarness, tmp_path: Path) -> None:
    server = server_of(harness, max_bytes=100_000)
    server.start()
    try:
        with connect(server) as smtp:
            smtp.ehlo()
            assert smtp.esmtp_features["size"] == "100000"
            with pytest.raises(smtplib.SMTPSenderRefused, match="552"):
                smtp.sendmail(SCOTT, ["edit@localhost"], letter("x" * 200_000))
        with connect(server) as smtp:  # a sender that does not say how big it is
            smtp.helo()
            smtp.mail(SCOTT)
            smtp.rcpt("edit@localhost")
            assert smtp.data(letter("x " * 100_000))[0] == 552
        transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", server.port)
    finally:
        server.stop()
    assert len(harness.started) == 1
    assert len(files_in(tmp_path)) == 1


def test_recipients_are_bounded(harness: IntakeHarness) -> None:
    server = server_of(harness, max_recipients=2)
    server.start()
    try:
        with connect(server) as smtp:
            smtp.helo()
            smtp.mail(SCOTT)
            answers = [smtp.rcpt(f"edit+{n}@localhost")[0] for n in range(3)]
    finally:
        server.stop()
    assert answers == [250, 250, 452]


def test_connections_are_bounded(harness: IntakeHarness) -> None:
    server = server_of(harness, max_connections=1)
    server.start()
    try:
        with connect(server) as first:
            with pytest.raises(smtplib.SMTPConnectError, match="421"):
                connect(server)
            assert first.noop()[0] == 250
    finally:
        server.stop()


def test_a_line_longer_than_the_standard_allows_is_taken(harness: IntakeHarness, server: SmtpServer) -> None:
    raw = letter() + b"y" * 20_000 + b"\r\n"
    transports.send(raw, SCOTT, "edit@localhost", "127.0.0.1", server.port)
    assert harness.mails.load(harness.started[0]).raw == raw


def test_a_failure_to_store_sends_the_mail_back_into_the_senders_queue(harness: IntakeHarness) -> None:
    def broken(raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        raise RuntimeError("unforeseen")

    server = SmtpServer(SmtpSettings(EDIT, port=0), broken, harness.started.append, lambda: NOON)
    server.start()
    try:
        with pytest.raises(Transient, match="451"):
            transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", server.port)
    finally:
        server.stop()


def test_a_mail_is_accepted_even_if_nobody_can_be_told(harness: IntakeHarness) -> None:
    def deaf(email_id: str) -> None:
        raise RuntimeError("engine is down")

    server = SmtpServer(SmtpSettings(EDIT, port=0), harness.accept, deaf, lambda: NOON)
    server.start()
    try:
        transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", server.port)
    finally:
        server.stop()
    assert len(harness.mails.without_workflow(10)) == 1


def test_a_taken_port_is_said_to_be_taken(harness: IntakeHarness, server: SmtpServer) -> None:
    second = SmtpServer(SmtpSettings(EDIT, port=server.port), lambda *_: (), harness.started.append, lambda: NOON)
    with pytest.raises(Permanent, match=rf"127.0.0.1:{server.port}.*SMTP_PORT"):
        second.start()
    second.stop()


def test_nobody_listening_is_said_plainly() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and nobody else can listen there meanwhile
        with pytest.raises(Transient, match="webordinary up"):
            transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", deaf.getsockname()[1])


def test_stopping_finishes_the_mail_that_is_being_stored(harness: IntakeHarness) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def slow(raw: bytes, delivery: Delivery) -> Sequence[Accepted]:
        reached.set()
        go_on.wait()
        return accept(raw, delivery, mails=harness.mails, events=harness.events)

    server = SmtpServer(SmtpSettings(EDIT, port=0), slow, harness.started.append, lambda: NOON)
    server.start()
    smtp = connect(server)
    sending = threading.Thread(target=lambda: _ignore_disconnect(smtp))
    sending.start()
    reached.wait()
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    go_on.set()
    stopping.join()
    sending.join()
    assert len(harness.started) == 1


def _ignore_disconnect(smtp: smtplib.SMTP) -> None:
    try:
        smtp.sendmail(SCOTT, ["edit@localhost"], letter())
    except smtplib.SMTPServerDisconnected:
        pass
    finally:
        smtp.close()


@pytest.mark.needs("swaks")
def test_swaks_sends_a_mail_with_a_photo(harness: IntakeHarness, server: SmtpServer, tmp_path: Path) -> None:
    photo = tmp_path / "mug.png"
    photo.write_bytes(picture("PNG"))
    done = subprocess.run(
        ["swaks", "--to", "edit@localhost", "--from", SCOTT, "--server", f"127.0.0.1:{server.port}",
         "--header", "Subject: A photo", "--body", "add this photo", "--attach", f"@{photo}"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "250 2.0.0 accepted as" in done.stdout
    mail = parse(harness.mails.load(harness.started[0]).raw)
    assert (mail.sender, mail.subject, mail.attachment_count) == (SCOTT, "A photo", 1)


ONLY_ROOT_MOUNTS = pytest.mark.may_skip(os.geteuid() != 0, reason="only root may mount a file system")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "webordinary-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this user may not mount a small file system: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@ONLY_ROOT_MOUNTS
def test_a_full_disk_sends_mail_back_and_leaves_nothing(
    harness: IntakeHarness, small_disk: Path, tmp_path: Path
) -> None:
    """The rows have room, the files have not: what does not fit whole is not there at all."""
    db = Database(tmp_path / "webordinary.db")
    full = IntakeHarness(SqliteRawMails(db, small_disk))
    server = server_of(full)
    server.start()
    try:
        with pytest.raises(Transient, match="452"):
            transports.send(letter("x " * 1_000_000), SCOTT, "edit@localhost", "127.0.0.1", server.port)
        assert files_in(small_disk) == []
        assert full.mails.without_workflow(10) == ()
        transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", server.port)
    finally:
        server.stop()
        db.close()
    assert len(files_in(small_disk)) == len(full.started) == 1


@ONLY_ROOT_MOUNTS
def test_a_disk_too_full_for_the_row_leaves_no_file(small_disk: Path) -> None:
    db = Database(small_disk / "webordinary.db")
    db.migrate()
    harness = IntakeHarness(SqliteRawMails(db, small_disk))
    server = server_of(harness)
    server.start()
    filler = small_disk / "filler"
    try:
        raw = letter("small")
        _fill(filler, leave=len(raw) + 8192)
        with pytest.raises(Transient, match="452"):
            transports.send(raw, SCOTT, "edit@localhost", "127.0.0.1", server.port)
        assert files_in(small_disk) == []
        filler.unlink()
        transports.send(raw, SCOTT, "edit@localhost", "127.0.0.1", server.port)
    finally:
        server.stop()
        db.close()
    assert len(harness.started) == 1


def _fill(file: Path, leave: int) -> None:
    free = os.statvfs(file.parent)
    file.write_bytes(b"\0" * max(0, free.f_bavail * free.f_frsize - leave))


def starttls(server: SmtpServer, certificate: Certificate) -> str:
    """The fingerprint of the certificate that the server shows; a mail goes through."""
    context = ssl.create_default_context(cafile=str(certificate.cert))
    with smtplib.SMTP("localhost", server.port, timeout=30) as smtp:
        smtp.starttls(context=context)
        smtp.sendmail(SCOTT, ["edit@localhost"], letter())
        assert isinstance(smtp.sock, ssl.SSLSocket)
        return hashlib.sha256(smtp.sock.getpeercert(binary_form=True) or b"").hexdigest()


@pytest.mark.needs("openssl")
def test_starttls_shows_a_renewed_certificate_without_a_restart(harness: IntakeHarness, tmp_path: Path) -> None:
    made = certificate(tmp_path)
    server = server_of(harness, cert_file=str(made.cert), key_file=str(made.key))
    server.start()
    try:
        first = starttls(server, made)
        assert starttls(server, made) == first
        renewed = certificate(tmp_path)
        assert starttls(server, renewed) != first
    finally:
        server.stop()
    assert len(harness.started) == 1, "the same mail each time"


@pytest.mark.needs("openssl")
def test_a_half_written_certificate_leaves_the_old_one_in_use(harness: IntakeHarness, tmp_path: Path) -> None:
    made = certificate(tmp_path)
    trusted = Certificate(tmp_path / "trusted.crt", made.key)
    trusted.cert.write_bytes(made.cert.read_bytes())
    server = server_of(harness, cert_file=str(made.cert), key_file=str(made.key))
    server.start()
    try:
        first = starttls(server, trusted)
        made.cert.write_bytes(made.cert.read_bytes()[:100])
        assert starttls(server, trusted) == first
    finally:
        server.stop()


def test_a_certificate_that_cannot_be_used_is_told_at_the_start(harness: IntakeHarness, tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="cannot be used for STARTTLS"):
        server_of(harness, cert_file=str(tmp_path / "none.crt"), key_file=str(tmp_path / "none.key")).start()


@pytest.mark.needs("openssl")
def test_commands_sent_in_clear_after_starttls_are_not_executed(harness: IntakeHarness, tmp_path: Path) -> None:
    """CVE-2011-0411: a man in the middle puts commands before the handshake."""
    made = certificate(tmp_path)
    server = server_of(harness, cert_file=str(made.cert), key_file=str(made.key))
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), 30) as plain:
            lines = plain.makefile("rb")
            lines.readline()
            plain.sendall(b"EHLO x\r\n")
            while lines.readline()[3:4] == b"-":
                pass
            plain.sendall(b"STARTTLS\r\nMAIL FROM:<evil@example.com>\r\n")
            assert lines.readline().startswith(b"220")
            context = ssl.create_default_context(cafile=str(made.cert))
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(b"RCPT TO:<edit@localhost>\r\n")
                assert secure.recv(1000).startswith(b"503"), "no MAIL came before it"
    finally:
        server.stop()


PROXY_V1 = b"PROXY TCP4 203.0.113.7 198.51.100.1 4321 25\r\n"
PROXY_V2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"
    + socket.inet_aton("203.0.113.7")
    + socket.inet_aton("198.51.100.1")
    + (4321).to_bytes(2, "big")
    + (25).to_bytes(2, "big")
)


class ProxiedSmtp(smtplib.SMTP):
    header = b""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        opened = socket.create_connection((host, port), timeout)
        opened.sendall(self.header)
        return opened


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("header", [PROXY_V1, PROXY_V2], ids=["v1", "v2"])
@pytest.mark.parametrize("tls", [False, True], ids=["clear", "starttls"])
def test_the_peer_behind_a_named_proxy_is_the_client(
    harness: IntakeHarness, tmp_path: Path, header: bytes, tls: bool
) -> None:
    made = certificate(tmp_path)
    server = server_of(harness, proxies=("127.0.0.1",), cert_file=str(made.cert), key_file=str(made.key))
    server.start()
    try:
        smtp = ProxiedSmtp(timeout=30)
        smtp.header = header
        smtp._host = "localhost"  # type: ignore[attr-defined]
        smtp.connect("localhost", server.port)
        if tls:
            smtp.starttls(context=ssl.create_default_context(cafile=str(made.cert)))
        smtp.sendmail(SCOTT, ["edit@localhost"], letter())
        smtp.quit()
    finally:
        server.stop()
    assert harness.mails.load(harness.started[0]).envelope.peer == "203.0.113.7"


def test_a_host_that_is_no_proxy_cannot_name_another_peer(harness: IntakeHarness, server: SmtpServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 30) as client:
        client.sendall(PROXY_V1)
        answers = client.makefile("rb")
        assert answers.readline().startswith(b"220")
        assert answers.readline().startswith(b"500")


def test_a_proxy_that_names_no_client_is_hung_up_on(harness: IntakeHarness) -> None:
    server = server_of(harness, proxies=("127.0.0.1",))
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), 30) as client:
            client.sendall(b"EHLO without a header\r\n")
            assert client.makefile("rb").read() == b""
    finally:
        server.stop()


def test_clients_behind_a_proxy_are_bounded_each_for_itself(harness: IntakeHarness) -> None:
    server = server_of(harness, proxies=("127.0.0.1",), max_connections_per_peer=2)
    server.start()
    clients = []
    try:
        for last in (7, 7, 8, 7):
            client = socket.create_connection(("127.0.0.1", server.port), 30)
            client.sendall(PROXY_V1.replace(b".7 ", b".%d " % last))
            clients.append(client)
        assert [client.makefile("rb").readline()[:3] for client in clients] == [b"220", b"220", b"220", b"421"]
    finally:
        for client in clients:
            client.close()
        server.stop()


def test_mails_of_one_sender_are_bounded_and_others_go_on(harness: IntakeHarness) -> None:
    server = server_of(harness, sender_hourly=2)
    server.start()
    try:
        for number in range(2):
            transports.send(letter(str(number)), SCOTT, "edit@localhost", "127.0.0.1", server.port)
        with pytest.raises(Transient, match=r"450.*too many mails of this sender"):
            transports.send(letter("2"), SCOTT, "edit@localhost", "127.0.0.1", server.port)
        transports.send(letter("2"), "amelia@example.com", "edit@localhost", "127.0.0.1", server.port)
    finally:
        server.stop()
    assert len(harness.started) == 3


def test_the_hours_of_senders_are_counted_apart_and_their_number_is_bounded() -> None:
    hour = [0.0]
    rates = SenderRates(1, clock=lambda: hour[0], most=2)
    rates.count("peer", SCOTT)
    assert not rates.allows("peer", SCOTT.upper())
    assert rates.allows("another peer", SCOTT)
    hour[0] = 3600.0
    assert rates.allows("peer", SCOTT)
    rates.count("peer", SCOTT)
    for other in "ab":
        rates.count("peer", other)
    assert rates.allows("peer", SCOTT), "the oldest is forgotten first"


def test_mails_that_a_full_disk_refuses_are_one_line_of_the_log_and_their_number_at_the_end(
    harness: IntakeHarness, server: SmtpServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file where the folder of mails belongs refuses each write, as a full disk does; each names another file."""
    (tmp_path / "mail").write_text("no folder")
    with caplog.at_level(logging.WARNING, logger="webordinary.entrypoints.smtp"):
        for number in range(5):
            with pytest.raises(Transient, match="452"):
                transports.send(letter(f"wish {number}"), SCOTT, "edit@localhost", "127.0.0.1", server.port)
        assert len(caplog.messages) == 1
        assert "not accepted for now" in caplog.messages[0]
        (tmp_path / "mail").unlink()
        transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", server.port)
        transports.send(letter("again"), SCOTT, "edit@localhost", "127.0.0.1", server.port)
    assert len(caplog.messages) == 2
    assert caplog.messages[1].startswith("SMTP: 5 mails were not accepted: … could not be written (")
