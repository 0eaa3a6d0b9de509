"""Clients that hold connections without using them, at the server below page and intake."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.types import Receive, Scope, Send

from webordinary.entrypoints import http_server
from webordinary.entrypoints.http_server import HttpServer
from webordinary.entrypoints.running import bound

CONNECTIONS = 3


class Large:
    """An application whose answers do not fit into the buffers of a connection."""

    def __init__(self) -> None:
        self.ended = threading.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(50 if scope["path"] == "/large" else 0):
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        await send({"type": "http.response.body", "body": b"whole"})
        self.ended.release()


@pytest.fixture
def large() -> Large:
    return Large()


@pytest.fixture
def port(large: Large) -> Iterator[int]:
    sock = bound("127.0.0.1", 0)
    server = HttpServer(large, [sock], connections=CONNECTIONS, grace_seconds=1, lifespan="off")
    server.start()
    yield sock.getsockname()[1]
    server.stop()


def ask(port: int, path: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=60)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    return sock


def test_a_client_that_does_not_read_is_given_up(large: Large, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "STALLED_SECONDS", 0.05)
    with ask(port, "/large"):
        assert large.ended.acquire(timeout=60)


def test_clients_that_do_not_read_do_not_shut_others_out(port: int) -> None:
    with ExitStack() as closing:
        for _ in range(2 * CONNECTIONS):
            stalled = closing.enter_context(ask(port, "/large"))
            assert stalled.recv(9) == b"HTTP/1.1 "  # then the rest of its answer fills the buffers
        with ask(port, "/") as sock:
            heard = b"".join(iter(lambda: sock.recv(1000), b""))
    assert heard.startswith(b"HTTP/1.1 200")
    assert heard.endswith(b"whole\r\n0\r\n\r\n")
