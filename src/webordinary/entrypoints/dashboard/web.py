"""The web application of the page's two ports, and the server that runs it in a thread."""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webordinary.entrypoints.dashboard.actions import MAIL_ACTIONS, SITE_ACTIONS, ActionPages
from webordinary.entrypoints.dashboard.login import SAFE_METHODS, ConsoleGuard, LoginPages
from webordinary.entrypoints.dashboard.pages import Pages, Stream
from webordinary.entrypoints.dashboard.ports import Dashboard, EventFeed, Readers, Templates
from webordinary.entrypoints.dashboard.sites import DashboardHost, Destination, Hosts, SiteHost, Sites, split_host
from webordinary.entrypoints.dashboard.write import WritePages
from webordinary.entrypoints.http_server import HttpServer

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: that turns the Origin of our own forms into `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """Tells requests of the page's own forms from those of other sites."""

    public_url: str = ""

    def objection(self, method: str, headers: Headers) -> str | None:
        """Why a request to the page is refused; None if it may pass."""
        site = headers.get("sec-fetch-site", "")
        if method in SAFE_METHODS:
            foreign = site in ("cross-site", "same-site") and not _is_navigation(headers)
            return "Another site's page may link to this one, but not load it." if foreign else None
        if self._is_own(headers.get("origin"), headers):
            return None
        return "Only this page's own forms may change something: the Origin header must name this page."

    def _is_own(self, origin: str | None, headers: Headers) -> bool:
        if origin is None:
            return headers.get("sec-fetch-site") == "same-origin"
        name, _ = split_host(headers.get("host", ""))
        public = urlsplit(self.public_url)
        if name == public.hostname:
            return origin.lower() == f"{public.scheme}://{public.netloc.lower()}"
        return origin.lower() == f"http://{headers.get('host', '').lower()}"


def _is_navigation(headers: Headers) -> bool:
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


STATIC = Path(__file__).parent / "static"


def create_app(dashboard: Dashboard) -> Starlette:
    """The page and the customers' sites; one event loop serves it, `dashboard.feed` belongs to that loop."""
    readers, templates = Readers(), Templates(dashboard)
    pages, writing = Pages(dashboard, readers, templates), WritePages(dashboard, readers, templates)
    guard = partial(
        ConsoleGuard, dashboard=dashboard, readers=readers, objection=OriginPolicy(dashboard.public_url).objection
    )
    visitors = Readers()  # a slow search in the console holds no visitor of a site up
    sites, neighbours = Sites(dashboard, visitors, templates), SiteNames(dashboard, visitors)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        with dashboard.feed.serving():
            yield
        readers.close()
        visitors.close()

    login = LoginPages(dashboard, readers, templates)
    return Starlette(
        routes=[
            *_routes(pages, writing, login, neighbours, Stream(dashboard, readers)),
            *_action_routes(ActionPages(dashboard, readers, templates)),
        ],
        middleware=[
            Middleware(HostRouter, names=neighbours, sites=sites, dashboard=dashboard),
            Middleware(guard),
        ],
        exception_handlers={HTTPException: pages.problem, 500: pages.problem},
        lifespan=lifespan,
    )


def _routes(pages: Pages, writing: WritePages, login: LoginPages, names: SiteNames, stream: Stream) -> list[BaseRoute]:
    return [
        Route("/", pages.home),
        Route("/fragments/home", pages.home_fragment),
        Route("/mails", writing.send, methods=["POST"]),
        Route("/mails/{email_id}", pages.mail),
        Route("/mails/{email_id}/raw", pages.raw),
        Route("/mails/{email_id}/attachments/{position:int}", pages.attachment),
        Route("/mails/{email_id}/replies/{position:int}", pages.reply, methods=["GET"]),
        Route("/mails/{email_id}/pictures/{position:int}", pages.picture),
        Route("/write", writing.write),
        Route("/events", stream.open),
        Route("/api/status", pages.status),
        Route("/healthz", pages.health),
        Route("/metrics", pages.metrics),
        Route("/login", login.login, methods=["GET", "POST"]),
        Route("/login/oidc", login.provider),
        Route("/login/oidc/callback", login.provided),
        Route("/logout", login.logout, methods=["POST"]),
        Route("/link/{secret}", login.link, methods=["GET", "POST"]),
        Route("/wrote/{token}", login.wrote, methods=["GET", "POST"]),
        Route("/tls/ask", names.ask),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]


def _action_routes(actions: ActionPages) -> list[BaseRoute]:
    post = ["POST"]
    on_site = {
        "builds": actions.rebuild,
        "settings": actions.change_site,
        "people": actions.add_person,
        "people/roles": actions.set_role,
        "people/removals": actions.remove_person,
        "domains": actions.add_domain,
        "domains/removals": actions.remove_domain,
        "hooks": actions.new_hook,
        "credentials": actions.keep_credential,
        "removals": actions.remove_site,
        "{stage}/releases/{release}/rollbacks": actions.roll_back,
        **{name: actions.on_site(act) for name, act in SITE_ACTIONS.items()},
    }
    return [
        *(
            Route(f"/mails/{{email_id}}/{name}", actions.on_mail(act, then), methods=post)
            for name, (act, then) in MAIL_ACTIONS.items()
        ),
        *(
            Route(f"/sites/{{project_id}}/{name}", actions.said_on_site(action), methods=post)
            for name, action in on_site.items()
        ),
        Route("/attention", actions.attention),
        Route("/dead-letters/{letter_id:int}/redrives", actions.redrive, methods=post),
        Route("/dead-letters/{letter_id:int}/drops", actions.drop, methods=post),
        Route("/mails/{email_id}/replies", actions.send_again, methods=post),
        Route("/mails/{email_id}/answers", actions.answer, methods=post),
        Route("/mails/{email_id}/retries", actions.retry, methods=post),
        Route("/mails/{email_id}/replays", actions.rehearse, methods=post),
        Route("/mails/{email_id}/admissions", actions.let_in, methods=post),
        Route("/mails", actions.mails, methods=["GET"]),
        Route("/mails.csv", actions.export),
        Route("/mails.jsonl", actions.export),
        Route("/pool", actions.pool),
        Route("/claims/{key}/releases", actions.release_claim, methods=post),
        Route("/workers/{worker}/drains", actions.drain, methods=post),
        Route("/sites", actions.sites, methods=["GET"]),
        Route("/sites", actions.add_site, methods=post),
        Route("/sites/{project_id}", actions.site),
        Route("/hooks/{project_id}", actions.hook, methods=post),
        Route("/sites/{project_id}/domains/{domain}", actions.domain, methods=["GET"]),
    ]


class SiteNames:
    """The host names that are ours, with the domains of customers; read again after FRESH_SECONDS.

    A name that is not known is looked up sooner: its site may be a second old. Strangers can cause so many looks only.
    """

    FRESH_SECONDS, UNKNOWN_SECONDS = 5.0, 0.2

    def __init__(self, dashboard: Dashboard, readers: Readers) -> None:
        self._d, self._look = dashboard, readers.look
        self._hosts = Hosts(dashboard.domain, dashboard.preview_port, dashboard.page_host)
        self._projects: frozenset[str] = frozenset()
        self._own_domains: Mapping[str, str] = {}
        self._read_at = -self.FRESH_SECONDS

    async def destination(self, host_header: str, local_port: int) -> Destination | None:
        """Where a request belongs; None for a name that is not ours."""
        await self._refresh(self.FRESH_SECONDS)
        found = self._hosts.destination(host_header, local_port, self._own_domains)
        if found is None and await self._refresh(self.UNKNOWN_SECONDS):
            found = self._hosts.destination(host_header, local_port, self._own_domains)
        return found

    async def ask(self, request: Request) -> Response:
        """Whether a proxy may get a certificate for a name. Answers this machine and trusted proxies only."""
        forwarded = "x-forwarded-for" in request.headers or "forwarded" in request.headers
        if forwarded or not _is_neighbour(request.scope.get("peer", ""), self._d.trusted_proxies):
            raise HTTPException(404, "There is no such page.")
        await self._refresh(self.FRESH_SECONDS)
        name = request.query_params.get("domain", "").lower()[:253]
        site, is_ours = self._site(name)
        if not is_ours and await self._refresh(self.UNKNOWN_SECONDS):
            site, is_ours = self._site(name)
        if site is not None and is_ours and site.stage.is_preview:  # a stranger can invent names of previews
            is_ours = await self._look(self._d.current_release, site.project_id, site.stage) is not None
        if name != self._d.page_host and not is_ours:
            raise HTTPException(404, "This name is not ours.")
        return PlainTextResponse("This name is ours.")

    def _site(self, name: str) -> tuple[SiteHost | None, bool]:
        site = self._hosts.site(name, self._own_domains)
        return site, site is not None and site.project_id in self._projects

    async def _refresh(self, after_seconds: float) -> bool:
        if time.monotonic() - self._read_at < after_seconds:
            return False
        self._read_at = time.monotonic()
        projects = await self._look(self._d.project_settings)
        self._projects = frozenset(project.project_id for project in projects)
        self._own_domains = {domain: project.project_id for project in projects for domain in project.domains}
        return True


def _is_neighbour(peer: str, trusted: Collection[str]) -> bool:
    try:
        return peer in trusted or ip_address(peer).is_loopback
    except ValueError:
        return False


class HostRouter:
    """Routes each request by its host: to the page, or to a site."""

    def __init__(self, app: ASGIApp, names: SiteNames, sites: Sites, dashboard: Dashboard) -> None:
        self._app, self._names, self._sites, self._d = app, names, sites, dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the page, a site, or a refusal."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = Headers(scope=scope)
        scope["peer"] = (scope.get("client") or ("", 0))[0]
        scope["client"] = (_client(scope["peer"], headers, self._d.trusted_proxies), 0)
        destination = await self._names.destination(headers.get("host", ""), (scope.get("server") or ("", 0))[1] or 0)
        if destination is None:
            return await self._not_ours()(scope, receive, send)
        if not isinstance(destination, DashboardHost):
            return await self._sites(destination, scope, receive, send)
        return await self._app(scope, receive, _with_security(send, scope["path"]))

    def _not_ours(self) -> Response:
        hint = "" if self._d.public_url else f" Open http://127.0.0.1:{self._d.port}/ instead."
        return PlainTextResponse(f"This address is not served here.{hint}", 421)


def _client(peer: str, headers: Headers, trusted: Collection[str]) -> str:
    """The nearest address that is not a trusted proxy: fields further left may be forged."""
    if peer not in trusted:
        return peer
    hops = [hop.strip() for value in headers.getlist("x-forwarded-for") for hop in value.split(",")]
    return next((hop for hop in reversed(hops) if hop not in trusted), peer)[:45]


def _with_security(send: Send, path: str) -> Send:
    # The addresses of these pages are secrets; a proxy may log the Referer of what they load.
    own = {"Referrer-Policy": "strict-origin"} if path.startswith(("/link/", "/wrote/")) else {}

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in (SECURITY_HEADERS | own).items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


GRACE_SECONDS = 2
MAX_CONNECTIONS = 400


class PageServer:
    """Serves the page and the sites; ends the live streams before it stops."""

    def __init__(self, app: Starlette, feed: EventFeed, sockets: Sequence[socket.socket]) -> None:
        self._feed = feed
        self._server = HttpServer(app, sockets, connections=MAX_CONNECTIONS, grace_seconds=GRACE_SECONDS, lifespan="on")

    def start(self) -> None:
        """Listen and serve."""
        gc.freeze()  # what is imported stays: collections that walk it hold one page in fifty up for 40 ms
        self._server.start()

    def stop(self) -> None:
        """End the live streams, let running answers finish, and wait until the server has stopped."""
        self._feed.close()  # first: an open stream would hold the server up
        self._server.stop()
