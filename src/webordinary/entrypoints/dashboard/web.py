"""The whole of what the page's two ports serve, as one application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webordinary.entrypoints.dashboard.guard import SECURITY_HEADERS, objection
from webordinary.entrypoints.dashboard.hosts import Doors, Page
from webordinary.entrypoints.dashboard.pages import Pages
from webordinary.entrypoints.dashboard.ports import Dashboard
from webordinary.entrypoints.dashboard.reading import Readers
from webordinary.entrypoints.dashboard.rendering import Templates
from webordinary.entrypoints.dashboard.sites import Sites
from webordinary.entrypoints.dashboard.stream import Stream
from webordinary.entrypoints.dashboard.writing import Writing

STATIC = Path(__file__).parent / "static"


def create_app(dashboard: Dashboard) -> Starlette:
    """The page and the customers' sites; one event loop serves it, `dashboard.feed` belongs to that loop."""
    readers, templates = Readers(), Templates(dashboard)
    pages, writing = Pages(dashboard, readers, templates), Writing(dashboard, readers, templates)
    doors = Doors(dashboard.domain, dashboard.preview_port)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with dashboard.feed.serving():
            yield
        readers.close()

    return Starlette(
        routes=_routes(pages, writing, Stream(dashboard, readers)),
        middleware=[
            Middleware(FrontDoor, doors=doors, sites=Sites(dashboard, readers, templates), port=dashboard.port)
        ],
        exception_handlers={HTTPException: pages.problem, 500: pages.problem},
        lifespan=lifespan,
    )


def _routes(pages: Pages, writing: Writing, stream: Stream) -> list[BaseRoute]:
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


class FrontDoor:
    """Sends each request through its own door, and guards the page's."""

    def __init__(self, app: ASGIApp, doors: Doors, sites: Sites, port: int) -> None:
        self._app, self._doors, self._sites, self._port = app, doors, sites, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the page, a site, or a refusal in words."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = Headers(scope=scope)
        door = self._doors.door(headers.get("host", ""), (scope.get("server") or ("", 0))[1] or 0)
        if door is None:
            words = f"This address is not served here. Open http://127.0.0.1:{self._port}/ instead."
            return await PlainTextResponse(words, 421)(scope, receive, send)
        if not isinstance(door, Page):
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
