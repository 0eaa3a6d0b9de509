"""The web application of the page's two ports, and the server that runs it in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webordinary.entrypoints.dashboard.hosts import DashboardHost, Hosts
from webordinary.entrypoints.dashboard.pages import Pages
from webordinary.entrypoints.dashboard.ports import Dashboard, EventFeed, Readers, Templates
from webordinary.entrypoints.dashboard.sites import Sites
from webordinary.entrypoints.dashboard.stream import Stream
from webordinary.entrypoints.dashboard.write import WritePages

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: that turns the Origin of our own forms into `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


def objection(method: str, headers: Headers) -> str | None:
    """Why a request to the page is refused; None if it may pass."""
    site = headers.get("sec-fetch-site", "")
    if method in SAFE_METHODS:
        foreign = site in ("cross-site", "same-site") and not _is_navigation(headers)
        return "Another site's page may link to this one, but not load it." if foreign else None
    if _is_own(headers.get("origin"), headers):
        return None
    return "Only this page's own forms may change something: the Origin header must name this page."


def _is_own(origin: str | None, headers: Headers) -> bool:
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    return origin.lower() == f"http://{headers.get('host', '').lower()}"


def _is_navigation(headers: Headers) -> bool:
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


STATIC = Path(__file__).parent / "static"


def create_app(dashboard: Dashboard) -> Starlette:
    """The page and the customers' sites; one event loop serves it, `dashboard.feed` belongs to that loop."""
    readers, templates = Readers(), Templates(dashboard)
    pages, writing = Pages(dashboard, readers, templates), WritePages(dashboard, readers, templates)
    doors = Hosts(dashboard.domain, dashboard.preview_port)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with dashboard.feed.serving():
            yield
        readers.close()

    return Starlette(
        routes=_routes(pages, writing, Stream(dashboard, readers)),
        middleware=[
            Middleware(HostRouter, doors=doors, sites=Sites(dashboard, readers, templates), port=dashboard.port)
        ],
        exception_handlers={HTTPException: pages.problem, 500: pages.problem},
        lifespan=lifespan,
    )


def _routes(pages: Pages, writing: WritePages, stream: Stream) -> list[BaseRoute]:
    return [
        Route("/", pages.home),
        Route("/fragments/home", pages.home_fragment),
        Route("/mails", writing.send, methods=["POST"]),
        Route("/mails/{email_id}", pages.mail),
        Route("/mails/{email_id}/raw", pages.raw),
        Route("/mails/{email_id}/attachments/{position:int}", pages.attachment),
        Route("/mails/{email_id}/pictures/{position:int}", pages.picture),
        Route("/write", writing.write),
        Route("/events", stream.open),
        Route("/api/status", pages.status),
        Route("/healthz", pages.health),
        Route("/metrics", pages.metrics),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]


class HostRouter:
    """Routes each request by its host: to the page, behind its guard, or to a site."""

    def __init__(self, app: ASGIApp, doors: Hosts, sites: Sites, port: int) -> None:
        self._app, self._doors, self._sites, self._port = app, doors, sites, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the page, a site, or a refusal."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = Headers(scope=scope)
        door = self._doors.door(headers.get("host", ""), (scope.get("server") or ("", 0))[1] or 0)
        if door is None:
            words = f"This address is not served here. Open http://127.0.0.1:{self._port}/ instead."
            return await PlainTextResponse(words, 421)(scope, receive, send)
        if not isinstance(door, DashboardHost):
            return await self._sites(door, scope, receive, send)
        refused = objection(scope["method"], headers)
        inner = PlainTextResponse(refused, 403) if refused else self._app
        return await inner(scope, receive, _with_security(send))


def _with_security(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


GRACE_SECONDS = 2
MAX_CONNECTIONS = 400


class PageServer:
    """Serves sockets that are bound already: a port in use is found before anything starts."""

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
        """Listen and serve."""
        for sock in self._sockets:
            sock.listen(128)
        self._thread.start()

    def stop(self) -> None:
        """End the live streams, let running answers finish, and wait until the server has stopped."""
        self._feed.close()  # first: an open stream would hold the server up
        self._server.should_exit = True
        self._thread.join(GRACE_SECONDS + 3)

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=self._sockets))
