"""PageServer: the page in a thread of its own, with a quick and quiet end."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence

import uvicorn
from starlette.applications import Starlette

from webordinary.entrypoints.dashboard.feed import EventFeed

GRACE_SECONDS = 2
MAX_CONNECTIONS = 400


class PageServer:
    """Serves sockets that are bound already, so that a port in use is found out before anything starts."""

    def __init__(self, app: Starlette, feed: EventFeed, sockets: Sequence[socket.socket]) -> None:
        self._feed, self._sockets = feed, list(sockets)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="on",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._thread = threading.Thread(target=self._run, name="page-server", daemon=True)

    def start(self) -> None:
        """Begin to serve. The sockets listen from now on, so that no early visitor is turned away."""
        for sock in self._sockets:
            sock.listen(128)
        self._thread.start()

    def stop(self) -> None:
        """End the live streams, let running answers finish, and wait until all is closed."""
        self._feed.close()  # first: an open stream would hold the server up
        self._server.should_exit = True
        self._thread.join(GRACE_SECONDS + 3)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=self._sockets))
