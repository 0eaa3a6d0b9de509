"""Mail is posted by HTTP, signed; also by the example for Cloudflare."""

from __future__ import annotations

import http.client
import json
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.harness.intake import EDIT, SCOTT, IntakeHarness, letter, now, open_intake
from webordinary.adapters.passwords import password_source
from webordinary.entrypoints import http_intake, http_server
from webordinary.entrypoints.http_intake import MAX_CONNECTIONS, PushIntake, PushServer, PushSettings, signature_of
from webordinary.entrypoints.running import bound
from webordinary.model.errors import Transient
from webordinary.model.mail import Delivery
from webordinary.services.mail_intake import Intake

SECRET = "0123456789abcdef" * 4
WORKER = Path(__file__).parents[2] / "examples" / "cloudflare-email-worker" / "worker.js"


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[IntakeHarness]:
    yield from open_intake(tmp_path)


def serving(harness: IntakeHarness, secret_file: Path, accept: object = None) -> Iterator[int]:
    secret_file.write_text(SECRET)
    settings = PushSettings(EDIT, password_source(file=str(secret_file)), 100_000, now)
    sock = bound("127.0.0.1", 0)
    server = PushServer(PushIntake(settings, Intake(accept or harness.accept, harness.begin)), sock)  # type: ignore[arg-type]
    server.start()
    yield sock.getsockname()[1]
    server.stop()


@pytest.fixture
def port(harness: IntakeHarness, tmp_path: Path) -> Iterator[int]:
    yield from serving(harness, tmp_path / "secret")


def post(
    port: int, raw: bytes, *, at: datetime | None = None, to: str = EDIT.address, secret: str = SECRET, **changed: str
) -> tuple[int, dict[str, object]]:
    timestamp = str(int((at or now()).timestamp()))
    headers = {
        "X-WebOrdinary-Timestamp": timestamp,
        "X-WebOrdinary-From": SCOTT,
        "X-WebOrdinary-To": to,
        "X-WebOrdinary-Signature": signature_of(secret, timestamp, SCOTT, to, raw),
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/mail", raw, headers | changed)
    with connection.getresponse() as answer:
        status, body = answer.status, json.loads(answer.read())
    connection.close()
    return status, body


def test_a_signed_mail_is_accepted_once_however_often_it_is_posted(harness: IntakeHarness, port: int) -> None:
    answers = [post(port, letter("wish"), to="edit+amelia@example.com") for _ in range(2)]
    assert [(status, body["new"]) for status, body in answers] == [(200, True), (200, False)]
    (email_id,) = harness.started
    mail = harness.mails.load(email_id)
    assert (mail.envelope.mail_from, mail.envelope.recipient) == (SCOTT, "edit+amelia@example.com")
    assert mail.envelope.peer == ""
    assert answers[0][1]["accepted"] == email_id


@pytest.mark.parametrize("changed", ["From", "To", "Signature", "Timestamp"])
def test_what_is_not_signed_is_refused(harness: IntakeHarness, port: int, changed: str) -> None:
    later = str(int(now().timestamp()) + 1)
    value = {"From": "eve@example.com", "To": "edit+eve@example.com", "Signature": "", "Timestamp": later}[changed]
    status, body = post(port, letter("wish"), **{f"X-WebOrdinary-{changed}": value})  # type: ignore[arg-type]
    assert (status, "does not fit" in str(body["error"])) == (401, True)
    assert post(port, letter("wish"), secret="f" * 64)[0] == 401
    assert harness.started == []


@pytest.mark.parametrize("off", [timedelta(minutes=-6), timedelta(minutes=6)])
def test_an_old_or_future_signature_is_refused(harness: IntakeHarness, port: int, off: timedelta) -> None:
    assert post(port, letter("wish"), at=now() + off)[0] == 401
    assert harness.started == []


@pytest.mark.parametrize("timestamp", ["", "soon", "-1", "1" * 30, "\u0664\u0662".encode().decode("latin-1")])
def test_a_timestamp_that_is_none_is_refused(harness: IntakeHarness, port: int, timestamp: str) -> None:
    assert post(port, letter("wish"), **{"X-WebOrdinary-Timestamp": timestamp})[0] == 401  # type: ignore[arg-type]


def test_mail_that_is_not_ours_too_big_or_empty_is_refused_for_good(harness: IntakeHarness, port: int) -> None:
    assert post(port, letter("wish"), to="nobody@example.com")[0] == 404
    assert post(port, letter("x" * 200_000))[0] == 413
    assert post(port, b"")[0] == 422
    assert harness.started == []


def test_a_new_secret_needs_no_restart(harness: IntakeHarness, port: int, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("e" * 64)
    assert post(port, letter("wish"))[0] == 401
    assert post(port, letter("wish"), secret="e" * 64)[0] == 200
    (tmp_path / "secret").unlink()
    assert post(port, letter("wish"), secret="")[0] == 503, "without a secret nothing is taken"


def test_a_connection_that_sends_no_whole_request_is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.05)
    for said in (b"", b"POST /mail HTTP/1.1\r\nHost: x\r\nX-A: ", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
            sock.sendall(said)
            while sock.recv(1000):
                pass  # the answer to a whole request, and then the end


def test_idle_and_unfinished_connections_do_not_shut_others_out(port: int) -> None:
    unfinished = signed_head(port, length=1000)
    with ExitStack() as closing:
        for number in range(MAX_CONNECTIONS + 20):
            sock = closing.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            sock.sendall(unfinished if number % 2 else b"")
        assert post(port, letter("wish"))[0] == 200


def test_many_large_mails_at_once_cost_the_slowest_its_place_and_small_ones_never(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_intake, "MAX_IN_FLIGHT", 60_000)
    monkeypatch.setattr(http_intake, "ALWAYS_TAKEN", 10_000)
    monkeypatch.setattr(http_intake, "BODY_SECONDS", 3600.0)
    with ExitStack() as closing:
        slow, small = (closing.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in "ab")
        slow.sendall(signed_head(port, length=90_000) + b"x" * 20_000)
        small.sendall(signed_head(port, length=9_000) + b"x" * 8_000)
        while not select.select([slow], [], [], 0.1)[0]:  # until its bytes have arrived before another's
            assert post(port, letter("wish") + b"x" * 50_000)[0] == 200
        assert slow.recv(1000).startswith(b"HTTP/1.1 503")
        small.sendall(b"x" * 1_000)
        assert small.recv(1000).startswith(b"HTTP/1.1 401")


def signed_head(port: int, length: int) -> bytes:
    """The header of a request that looks signed, as far as a server can tell before its end."""
    return (
        f"POST /mail HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n"
        f"X-WebOrdinary-Timestamp: {int(now().timestamp())}\r\nX-WebOrdinary-To: {EDIT.address}\r\n"
        f"X-WebOrdinary-Signature: sha256={'0' * 64}\r\n\r\n"
    ).encode()


def test_a_full_disk_means_try_again(harness: IntakeHarness, tmp_path: Path) -> None:
    def full(raw: bytes, delivery: Delivery) -> None:
        raise Transient("the disk is full")

    for port in serving(harness, tmp_path / "secret", full):
        assert post(port, letter("wish"))[0] == 503


DELIVER = """
import worker from %s;
const message = { from: process.argv[2], to: process.argv[3], raw: new Blob([process.argv[4]]).stream(),
                  setReject: (reason) => console.log("rejected: " + reason) };
await worker.email(message, { WEBORDINARY_URL: process.argv[5], WEBORDINARY_SECRET: process.argv[6] });
console.log("done");
"""


@pytest.mark.needs("node")
def test_the_example_for_cloudflare_delivers_rejects_and_lets_the_sender_try_again(
    harness: IntakeHarness, port: int, tmp_path: Path
) -> None:
    (tmp_path / "worker.mjs").write_bytes(WORKER.read_bytes())
    program = tmp_path / "deliver.mjs"
    program.write_text(DELIVER % json.dumps("./worker.mjs"))

    def deliver(to: str, secret: str = SECRET) -> subprocess.CompletedProcess[str]:
        words = [SCOTT, to, letter("wish").decode(), f"http://127.0.0.1:{port}/mail", secret]
        return subprocess.run(["node", str(program), *words], capture_output=True, text=True, check=False)

    assert deliver(EDIT.address).stdout == "done\n"
    assert harness.texts() == ["wish"]
    assert "rejected: no such mailbox here" in deliver("nobody@example.com").stdout
    assert deliver(EDIT.address, "wrong" * 10).returncode != 0
