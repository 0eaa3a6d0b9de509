"""Customers' sites, each under its own host name, and the second port for browsers without *.localhost.

On the second port a site must own the whole address space, because its links begin with "/": a path prefix
would break them. One port per site would need a port for every customer. So the visitor chooses a site
(`/_sites/edit/amelia`, or a page below it), a cookie remembers it, and the port shows that one until another is chosen.
"""

from __future__ import annotations

from itertools import islice
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from webordinary.entrypoints.dashboard.hosts import LOOPBACK, Site, SitePort, site_address, site_of, split_host
from webordinary.entrypoints.dashboard.ports import Dashboard
from webordinary.entrypoints.dashboard.preview import answer
from webordinary.entrypoints.dashboard.reading import Readers
from webordinary.entrypoints.dashboard.rendering import Templates
from webordinary.site.releases import Stage

COOKIE = "site"
CHOOSER = "/_sites"
THIS_MACHINE = "localhost"
"""The domain that no other machine can reach."""
MOST_SHOWN = 20


class Sites:
    """An ASGI application beside the page; it knows none of the page's routes."""

    def __init__(self, dashboard: Dashboard, readers: Readers, templates: Templates) -> None:
        self._dashboard, self._look, self._templates = dashboard, readers.look, templates

    async def __call__(self, door: Site | SitePort, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a site, or let the visitor choose one."""
        request = Request(scope, receive)
        if request.method not in ("GET", "HEAD"):
            response: Response = PlainTextResponse("A site is only read.", 405, {"Allow": "GET, HEAD"})
        elif isinstance(door, Site):
            response = await self._serve(door, request)
        else:
            response = await self._second_port(request)
        await response(scope, receive, send)

    async def _serve(self, site: Site, request: Request) -> Response:
        release = await self._look(self._dashboard.current_release, site.project_id, site.stage)
        if release is None and self._dashboard.domain == THIS_MACHINE:
            return await self._nothing_there(site, request)
        return await self._look(answer, release, request.scope["path"], request.headers)

    async def _nothing_there(self, site: Site, request: Request) -> Response:
        """What there is instead: told where only this machine's own browser asks, never to visitors of a domain."""
        name, port = split_host(request.headers.get("host", ""))
        known, shown = await self._look(self._known), await self._look(self._shown)
        by_port = name in LOOPBACK
        links = [
            (one, f"{CHOOSER}/{one.stage}/{one.project_id}" if by_port else site_address(one, THIS_MACHINE, port))
            for one in shown
        ]
        page = f"http://127.0.0.1:{self._dashboard.port}/"
        return self._templates.page("no_site.html", 404, site=site, known=site in known, links=links, page=page)

    async def _second_port(self, request: Request) -> Response:
        path = request.scope["path"]
        if path == CHOOSER or path.startswith(CHOOSER + "/"):
            stage, _, rest = path.removeprefix(CHOOSER).lstrip("/").partition("/")
            project_id, _, page = rest.partition("/")
            return await self._choose(site_of(f"{stage}.{project_id}") if project_id else None, page)
        chosen = site_of(request.cookies.get(COOKIE, "?"))
        return await (self._serve(chosen, request) if chosen else self._choose(None))

    async def _choose(self, site: Site | None, page: str = "") -> Response:
        if site is None:
            return self._templates.page("sites.html", sites=await self._look(self._known), chooser=CHOOSER)
        response = RedirectResponse("/" + quote(page.lstrip("/")), status_code=303)  # one slash: never another host
        response.set_cookie(COOKIE, str(site), path="/", httponly=True, samesite="lax")
        return response

    def _shown(self) -> list[Site]:
        found = (site for site in self._known() if self._dashboard.current_release(site.project_id, site.stage))
        return list(islice(found, MOST_SHOWN))

    def _known(self) -> list[Site]:
        projects = sorted({sender.key.project_id for sender in self._dashboard.overview.senders()})
        return [Site(project, stage) for project in projects for stage in Stage]
