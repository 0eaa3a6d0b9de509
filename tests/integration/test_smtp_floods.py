"""Clients that send much, slowly or for ever: the server's memory stays bounded and other clients are served."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.intake import IntakeHarness
from tests.integration.test_smtp_intake import connect, harness, letter, server_of
from webordinary.adapters.files import transports

__all__ = ["harness"]
SCOTT = "scott@example.com"
MB = 1024 * 1024
CONNECTIONS = 32
FLOODS = {
    "empty lines": b"\r\n" * (MB // 2),
    "no line end": b"x" * MB,
    "NULs": b"\0" * MB,
    "dots": b"..\r\n" * (MB // 4),
    "bare LF": b"\n" * MB,
    "full lines": (b"x" * 1022 + b"\r\n") * 1024,
}


@dataclass
class IntakeProcess:
    process: subprocess.Popen[str]
    port: int

    def memory_mb(self, what: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{what}:\s+(\d+) kB", status)
        assert found
        return int(found[1]) // 1024


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[IntakeProcess]:
    command = [sys.executable, "-m", "tests.integration.smtp_program", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdin
        yield IntakeProcess(process, int(process.stdout.readline()))
        process.stdin.close()
        process.wait(60)


def data_phase(port: int, source: str = "127.0.0.1") -> socket.socket:
    """A connection that has sent DATA and was told to go ahead."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=120, source_address=(source, 0))
    for command in (b"", b"HELO x\r\n", b"MAIL FROM:<a@example.org>\r\n", b"RCPT TO:<edit@localhost>\r\n", b"DATA\r\n"):
        sock.sendall(command)
        assert sock.recv(1000)[:1] in b"23"
    return sock


def flood(sock: socket.socket, block: bytes, sent: threading.Semaphore, go_on: threading.Event) -> bytes:
    for _ in range(39):
        sock.sendall(block)
    sent.release()
    go_on.wait()
    sock.sendall(b"\r\n.\r\n")
    with sock:
        return sock.recv(1000)


def send_without_end(sock: socket.socket) -> None:
    for _ in range(1000):
        sock.sendall(FLOODS["full lines"])


@pytest.mark.timeout(300)
def test_32_connections_that_send_40_mb_each_take_at_most_400_mb_and_another_customer_is_served(
    intake: IntakeProcess,
) -> None:
    before, sent, go_on = intake.memory_mb("VmRSS"), threading.Semaphore(0), threading.Event()
    blocks = [list(FLOODS.values())[n % len(FLOODS)] for n in range(CONNECTIONS)]
    with ThreadPoolExecutor(CONNECTIONS) as clients:
        socks = [data_phase(intake.port) for _ in blocks]
        answers = [clients.submit(flood, sock, block, sent, go_on) for sock, block in zip(socks, blocks, strict=True)]
        try:
            for _ in blocks:
                assert sent.acquire(timeout=200)
            said = transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", intake.port)
        finally:
            go_on.set()
        codes = [answer.result()[:3] for answer in answers]
    assert "accepted as" in said
    assert set(codes) <= {b"250", b"452", b"500", b"552"}
    assert b"250" in codes
    assert intake.memory_mb("VmHWM") - before <= 400


@pytest.mark.timeout(120)
def test_a_mail_of_38_mb_of_empty_lines_is_refused_without_its_memory(intake: IntakeProcess) -> None:
    before = intake.memory_mb("VmRSS")
    with data_phase(intake.port) as sock:
        for _ in range(38):
            sock.sendall(FLOODS["empty lines"])
        sock.sendall(b".\r\n")
        assert sock.recv(1000).startswith(b"552")
        sock.sendall(b"NOOP\r\n")
        assert sock.recv(1000).startswith(b"250")
    assert intake.memory_mb("VmHWM") - before <= 30


@pytest.mark.timeout(120)
def test_clients_that_hang_up_while_their_mail_is_stored_leave_no_memory_behind(intake: IntakeProcess) -> None:
    before = intake.memory_mb("VmRSS")
    for _ in range(8):
        with data_phase(intake.port) as sock:
            for _ in range(30):
                sock.sendall(FLOODS["full lines"])
            sock.sendall(b".\r\n")
    assert "accepted as" in transports.send(letter(), SCOTT, "edit@localhost", "127.0.0.1", intake.port)
    assert intake.memory_mb("VmHWM") - before <= 400


def test_a_refused_mail_that_never_ends_is_cut_off(harness: IntakeHarness) -> None:
    server = server_of(harness, max_bytes=100_000)
    server.start()
    try:
        with data_phase(server.port) as sock, pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_without_end(sock)
    finally:
        server.stop()
    assert harness.started == []


def test_a_conversation_has_a_deadline_however_often_it_says_something(harness: IntakeHarness) -> None:
    server = server_of(harness, conversation_seconds=0.5)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock, sock.makefile("rb") as said:
            last = said.readline()
            while not last.startswith(b"421"):
                sock.sendall(b"NOOP\r\n")
                last = said.readline()
                assert last
    finally:
        server.stop()


def test_idle_connections_of_one_peer_do_not_shut_others_out(harness: IntakeHarness) -> None:
    server = server_of(harness, max_connections_per_peer=3)
    server.start()
    try:
        idle = [data_phase(server.port, source="127.0.0.2") for _ in range(3)]
        with socket.create_connection(("127.0.0.1", server.port), source_address=("127.0.0.2", 0)) as fourth:
            assert fourth.recv(1000).startswith(b"421")
        with connect(server) as customer:
            customer.sendmail(SCOTT, ["edit@localhost"], letter())
        for sock in idle:
            sock.close()
    finally:
        server.stop()
    assert len(harness.started) == 1


def test_a_connection_without_progress_makes_way_for_a_new_one(harness: IntakeHarness) -> None:
    server = server_of(harness, max_connections=2, displaced_after_seconds=0.0)
    server.start()
    try:
        with data_phase(server.port) as idle, data_phase(server.port) as second:
            with connect(server) as customer:
                customer.sendmail(SCOTT, ["edit@localhost"], letter())
            assert idle.recv(1000).startswith(b"421")
            second.sendall(b"x\r\n.\r\n")
            assert second.recv(1000).startswith(b"250")
    finally:
        server.stop()
    assert len(harness.started) == 2


def test_a_command_sent_together_with_the_end_of_a_mail_is_answered(harness: IntakeHarness) -> None:
    server = server_of(harness)
    server.start()
    try:
        with data_phase(server.port) as sock, sock.makefile("rb") as said:
            sock.sendall(b"Subject: x\r\n\r\n..dot\r\n.\r\nNOOP\r\nQUIT\r\n")
            assert [said.readline()[:3] for _ in range(3)] == [b"250", b"250", b"221"]
    finally:
        server.stop()
    assert harness.mails.load(harness.started[0]).raw == b"Subject: x\r\n\r\n.dot\r\n"
