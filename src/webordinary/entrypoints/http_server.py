"""The HTTP server below the page and the mail intake: uvicorn in a thread, with a short limit for idle connections."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from typing import Literal

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 15.0
STALLED_SECONDS = 60.0


class Connection(H11Protocol):
    """Closes itself where no whole request header comes within REQUEST_SECONDS of its start or its last response.

    So it does where its client takes nothing of a response for STALLED_SECONDS. If the server has no place left, the
    connection that has waited for its client for longest makes way: clients that never finish a request, or never read
    the response, must not shut others out.
    """

    waits_since = 0.0
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.limit_concurrency and len(self.connections) >= self.limit_concurrency:
            self._make_room()
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in filter(None, (self._deadline, self._stalled)):
            timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self.waits_since = self.loop.time()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._stalled:
            self._stalled.cancel()
        super().resume_writing()

    def on_response_complete(self) -> None:
        self._await_request()
        super().on_response_complete()

    def _await_request(self) -> None:
        if self._deadline:
            self._deadline.cancel()
        self.waits_since = self.loop.time()
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def waits_for_client(self) -> bool:
        """Whether a request is still to come, or a response is not taken."""
        return self.flow.write_paused or self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        waiting = [one for one in others if one.waits_for_client() and not one.transport.is_closing()]
        if waiting:
            min(waiting, key=lambda one: one.waits_since).transport.abort()


class HttpServer:
    """Serves an application in a thread, on sockets that are bound already: a port in use is found before the start."""

    def __init__(
        self,
        app: ASGIApp,
        sockets: Sequence[socket.socket],
        *,
        connections: int,
        grace_seconds: int,
        lifespan: Literal["on", "off"],
    ) -> None:
        self._sockets, self._grace_seconds = list(sockets), grace_seconds
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # the application reads them, of trusted proxies only
                limit_concurrency=connections,
                timeout_graceful_shutdown=grace_seconds,
                lifespan=lifespan,
            )
        )
        self._thread = threading.Thread(target=self._run, name="http-server", daemon=True)

    def start(self) -> None:
        """Listen and serve."""
        for sock in self._sockets:
            sock.listen(128)
        self._thread.start()

    def stop(self) -> None:
        """Let running answers finish, and wait until the server has stopped."""
        self._server.should_exit = True
        self._thread.join(self._grace_seconds + 3)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=self._sockets))
