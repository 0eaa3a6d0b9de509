"""Customers' sites, each under its own host name, and the second port for browsers without *.localhost.

On the second port a site must own the whole address space, because its links begin with "/": a path prefix
would break them. One port per site would need a port for every customer. So the visitor chooses a site
(`/_sites/edit/amelia`), a cookie remembers it, and the port shows that one until another is chosen.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from webordinary.entrypoints.dashboard.hosts import Site, SitePort, site_of
from webordinary.entrypoints.dashboard.ports import Dashboard
from webordinary.entrypoints.dashboard.preview import answer
from webordinary.entrypoints.dashboard.reading import Readers
from webordinary.entrypoints.dashboard.rendering import Templates
from webordinary.site.releases import Stage

COOKIE = "site"
CHOOSER = "/_sites"


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
        return await self._look(answer, release, request.scope["path"], request.headers)

    async def _second_port(self, request: Request) -> Response:
        path = request.scope["path"]
        if path == CHOOSER or path.startswith(CHOOSER + "/"):
            stage, _, project_id = path.removeprefix(CHOOSER).strip("/").partition("/")
            return await self._choose(site_of(f"{stage}.{project_id}") if project_id else None)
        chosen = site_of(request.cookies.get(COOKIE, "?"))
        return await (self._serve(chosen, request) if chosen else self._choose(None))

    async def _choose(self, site: Site | None) -> Response:
        if site is None:
            return self._templates.page("sites.html", sites=await self._look(self._known), chooser=CHOOSER)
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(COOKIE, str(site), path="/", httponly=True, samesite="lax")
        return response

    def _known(self) -> list[Site]:
        projects = sorted({sender.key.project_id for sender in self._dashboard.overview.senders()})
        return [Site(project, stage) for project in projects for stage in Stage]
