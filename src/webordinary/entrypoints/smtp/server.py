"""The SMTP server: a thread with its own event loop, a bound on everything, a clean start and stop."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiosmtpd.smtp import SMTP

from webordinary.entrypoints.smtp.handler import Accept, IntakeHandler
from webordinary.mail.addresses import Mailbox
from webordinary.model.errors import Permanent

_BUSY = b"421 4.3.2 too many connections: try again later\r\n"


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """Where to listen and how much to take."""

    mailbox: Mailbox
    host: str = "127.0.0.1"
    port: int = 2525
    max_bytes: int = 40 * 1024 * 1024
    max_recipients: int = 50
    max_connections: int = 32
    timeout_seconds: float = 300.0
    storing_threads: int = 4


class SmtpServer:
    """`start` returns when the port is open (see `port`); `stop` when the last mail in work is stored."""

    def __init__(
        self,
        settings: SmtpSettings,
        accept: Accept,
        on_accepted: Callable[[str], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.storing_threads, thread_name_prefix="smtp-store")
        self._handler = IntakeHandler(
            settings.mailbox, accept, on_accepted, clock, self._threads, settings.max_recipients
        )
        self._sessions: set[_Session] = set()
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smtp", daemon=True)

    @property
    def port(self) -> int:
        """The port in use; it differs from the configured one where that was 0."""
        assert self._socket is not None, "the server was not started"
        return int(self._socket.getsockname()[1])

    def start(self) -> None:
        """Open the port, or say clearly why it cannot be opened."""
        host, port = self._settings.host, self._settings.port
        try:
            self._socket = socket.create_server((host, port), backlog=128)
        except OSError as problem:
            raise Permanent(
                f"cannot take mail on {host}:{port} ({problem.strerror or problem}): "
                "stop what uses that port, or choose another one with SMTP_PORT"
            ) from problem
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Take no more mail and wait for the ones being stored; again is harmless."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()
        self._threads.shutdown(wait=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        assert self._socket is not None
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(self._protocol, sock=self._socket)
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for session in list(self._sessions):
            session.hang_up()
        await asyncio.sleep(0)  # lets the transports close before the loop does

    def _protocol(self) -> asyncio.Protocol:
        if len(self._sessions) >= self._settings.max_connections:
            return _Busy()
        session = _Session(
            self._handler,
            self._sessions,
            data_size_limit=self._settings.max_bytes,
            enable_SMTPUTF8=True,
            hostname=self._settings.mailbox.domains[0],
            ident="WebOrdinary",
            timeout=self._settings.timeout_seconds,
            loop=self._loop,
        )
        self._sessions.add(session)
        return session


class _Session(SMTP):
    """One connection, which counts itself out when it ends."""

    line_length_limit = 64 * 1024  # RFC 5321 asks for 1000; some mail programs write whole paragraphs as lines

    def __init__(self, handler: IntakeHandler, sessions: set[_Session], **options: Any) -> None:  # noqa: ANN401
        super().__init__(handler, **options)
        self._sessions = sessions

    def connection_lost(self, error: Exception | None) -> None:
        self._sessions.discard(self)
        super().connection_lost(error)

    def hang_up(self) -> None:
        if self.transport is not None:
            self.transport.close()


class _Busy(asyncio.Protocol):
    """Tells a connection beyond the bound to come again."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(_BUSY)
        transport.close()
