"""Customers' sites, each under its own host name, and the second port for browsers without *.localhost.

Page and sites are apart: a site's scripts share neither origin nor routes nor cookies with the page.

On the second port a site must own the whole address space, because its links begin with "/": a path prefix
would break them. One port per site would need a port for every customer. So the visitor chooses a site
(`/_sites/edit/amelia`, or a page below it), a cookie remembers it, and the port shows that one until another is chosen.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from webordinary.entrypoints.dashboard.login import client_of
from webordinary.entrypoints.dashboard.ports import Dashboard, Readers, Templates
from webordinary.jobs.site_files import OPENING, Stage, is_foreign, is_textual, media_type_of, site_host
from webordinary.operations.access import SignInThrottle, TooManyTries, is_password, network_of

_NOT_FOUND = "<!doctype html><meta charset=utf-8><title>Not found</title><h1>Not found</h1><p>{}</p>"


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file of a release."""

    path: Path
    info: os.stat_result
    etag: str


def answer(release: Path | None, path: str, headers: Headers) -> Response:
    """Answer a GET or HEAD wholly from one release, whatever is published meanwhile."""
    if release is None:
        return HTMLResponse(_NOT_FOUND.format("This site shows nothing yet."), status_code=404)
    root = release.resolve()
    segments = _segments(path)
    if segments is None:
        return _missing(root)
    if segments and not path.endswith("/") and _is_folder(root.joinpath(*segments)):
        return RedirectResponse("/" + quote("/".join(segments)) + "/", status_code=308)
    found = next(filter(None, (_find(root, name) for name in _candidates(segments, path))), None)
    if found is None:
        return _missing(root)
    if _unchanged(found, headers):
        return Response(status_code=304, headers=_headers(found))
    return _file(found, 200)


def _segments(path: str) -> list[str] | None:
    """The path's names; None where one would leave the site or look behind it."""
    segments = [segment for segment in path.split("/") if segment]
    hidden = any(s.startswith(".") and s != ".well-known" for s in segments)
    return None if hidden or "\0" in path else segments


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long
        return False


def _candidates(segments: list[str], path: str) -> list[str]:
    name = "/".join(segments)
    if not segments or path.endswith("/"):
        return [f"{name}/index.html".lstrip("/")]
    return [name, f"{name}.html"]


def _find(root: Path, name: str) -> ReleaseFile | None:
    try:
        path = (root / name).resolve(strict=True)
        info = path.stat()
    except (OSError, RuntimeError):  # not there, a name too long, a loop of links
        return None
    if not path.is_relative_to(root) or not stat.S_ISREG(info.st_mode):
        return None
    # A file that did not change is the same file in the next release: visitors need not fetch it again.
    identity = f"{info.st_dev}\0{info.st_ino}\0{info.st_size}\0{info.st_mtime_ns}"
    return ReleaseFile(path, info, f'"{hashlib.sha256(identity.encode()).hexdigest()[:24]}"')


def _unchanged(found: ReleaseFile, headers: Headers) -> bool:
    tags = headers.get("if-none-match")
    if tags is not None:
        return "*" in tags or found.etag in (tag.strip().removeprefix("W/") for tag in tags.split(","))
    try:
        since = parsedate_to_datetime(headers.get("if-modified-since", ""))
    except ValueError:
        return False
    return found.info.st_mtime < since.timestamp() + 1


def _file(found: ReleaseFile, status: int) -> Response:
    media_type = media_type_of(found.path.name, foreign=_foreign(found.path))
    headers = {**_headers(found), "Content-Type": media_type}
    return FileResponse(found.path, status, headers, media_type, stat_result=found.info)


def _foreign(path: Path) -> bool:
    if not is_textual(path.name):
        return False
    with path.open("rb") as file:
        return is_foreign(path.name, file.read(OPENING))


def _basic_password(authorization: str) -> str:
    scheme, _, coded = authorization.partition(" ")
    try:
        return b64decode(coded, validate=True).decode().partition(":")[2] if scheme.lower() == "basic" else ""
    except ValueError:  # not base64, not UTF-8
        return ""


def _headers(found: ReleaseFile) -> dict[str, str]:
    return {"ETag": found.etag, "Cache-Control": "no-cache"}  # ask again each time: a change shows at once


def _missing(root: Path) -> Response:
    own = _find(root, "404.html")
    if own:
        return _file(own, 404)
    return HTMLResponse(_NOT_FOUND.format("This site has no such page."), status_code=404)


COOKIE = "site"
CHOOSER = "/_sites"
THIS_MACHINE = "localhost"
"""The domain that no other machine can reach."""
MOST_SHOWN = 20
MOST_PROVEN = 1000
SITE_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "strict-origin-when-cross-origin"}
"""What a careful web server adds; a site's own pages decide about all else."""


class Sites:
    """An ASGI application beside the page; it knows none of the page's routes."""

    def __init__(self, dashboard: Dashboard, readers: Readers, templates: Templates) -> None:
        self._dashboard, self._look, self._templates = dashboard, readers.look, templates
        self._readers, self._throttle = readers, SignInThrottle(time.monotonic)
        self._proven: set[str] = set()  # digests of passwords that were right: scrypt is slow on purpose

    async def __call__(self, destination: SiteHost | SitePort, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a site, or let the visitor choose one."""
        request = Request(scope, receive)
        if request.method not in ("GET", "HEAD"):
            response: Response = PlainTextResponse("A site is only read.", 405, {"Allow": "GET, HEAD"})
        elif isinstance(destination, SiteHost):
            response = await self._serve(destination, request)
        else:
            response = await self._second_port(request)
        for name, value in SITE_HEADERS.items():
            response.headers.setdefault(name, value)
        if not isinstance(destination, SiteHost) or destination.stage is not Stage.PUBLIC:
            response.headers["X-Robots-Tag"] = "noindex, nofollow"  # drafts stay out of search engines
        await response(scope, receive, send)

    async def _serve(self, site: SiteHost, request: Request) -> Response:
        if site.stage is not Stage.PUBLIC and (refused := await self._closed(site, request)):
            return refused
        release = await self._look(self._dashboard.current_release, site.project_id, site.stage)
        if release is None and site.stage.is_preview:
            return self._edit_site_instead(site, request)
        if release is None and self._dashboard.domain == THIS_MACHINE:
            return await self._nothing_there(site, request)
        return await self._look(answer, release, request.scope["path"], request.headers)

    def _edit_site_instead(self, preview: SiteHost, request: Request) -> Response:
        """A conversation has no preview where the edit site shows the same, and once its changes are public."""
        edit_site = SiteHost(preview.project_id, Stage.EDIT)
        name, port = split_host(request.headers.get("host", ""))
        if name in LOOPBACK:
            return RedirectResponse(f"{CHOOSER}/{Stage.EDIT}/{preview.project_id}{quote(request.scope['path'])}")
        here = site_address(edit_site, self._dashboard.domain, port).removeprefix("http:").rstrip("/")
        return RedirectResponse(here + quote(request.scope["path"]))

    async def _closed(self, site: SiteHost, request: Request) -> Response | None:
        """The refusal where an edit site has a password and the visitor did not give it; any user name will do."""
        password = await self._look(self._password_of, site.project_id)
        if not password:
            return None
        given = request.headers.get("authorization", "")
        proof = hashlib.sha256(f"{password}\0{given}".encode()).hexdigest()
        if proof in self._proven:
            return None
        guess, who = _basic_password(given), f"{network_of(client_of(request.scope))} {site.project_id}"
        try:
            if guess and await self._is_right(guess, password, who):
                self._proven = {*(self._proven if len(self._proven) < MOST_PROVEN else ()), proof}
                return None
        except TooManyTries as problem:
            return PlainTextResponse(
                f"{problem}.".capitalize(), 429, {"Retry-After": str(max(1, round(problem.seconds)))}
            )
        challenge = {"WWW-Authenticate": f'Basic realm="{site}", charset="UTF-8"'}
        return PlainTextResponse("This draft has a password. Ask the operator for it.", 401, challenge)

    async def _is_right(self, guess: str, password: str, who: str) -> bool:
        self._throttle.begin(who)
        right = await self._readers.check_password(is_password, guess, password)
        if right:
            self._throttle.succeeded(who)
        return right

    def _password_of(self, project_id: str) -> str:
        return next((p.edit_password for p in self._dashboard.project_settings() if p.project_id == project_id), "")

    async def _nothing_there(self, site: SiteHost, request: Request) -> Response:
        """What there is instead: told where only this machine's own browser asks, never to visitors of a domain."""
        name, port = split_host(request.headers.get("host", ""))
        known, shown = await self._look(self._known), await self._look(self._shown)
        by_port = name in LOOPBACK
        links = [
            (one, f"{CHOOSER}/{one.stage}/{one.project_id}" if by_port else site_address(one, THIS_MACHINE, port))
            for one in shown
        ]
        page = f"http://127.0.0.1:{self._dashboard.port}/"
        settings = await self._look(self._dashboard.project_settings)
        broken = any(one.build_problem for one in settings if one.project_id == site.project_id)
        return self._templates.page(
            "no_site.html", 404, site=site, known=site in known, broken=broken, links=links, page=page
        )

    async def _second_port(self, request: Request) -> Response:
        if request.headers.get("service-worker"):  # it would answer for the next customer's site, too
            return PlainTextResponse("Sites share this address, so that none of them gets a service worker.", 403)
        path = request.scope["path"]
        if path == CHOOSER or path.startswith(CHOOSER + "/"):
            stage, _, rest = path.removeprefix(CHOOSER).lstrip("/").partition("/")
            project_id, _, page = rest.partition("/")
            return await self._choose(site_of(f"{stage}.{project_id}") if project_id else None, page)
        chosen = site_of(request.cookies.get(COOKIE, "?"))
        return await (self._serve(chosen, request) if chosen else self._choose(None))

    async def _choose(self, site: SiteHost | None, page: str = "") -> Response:
        if site is None:
            return self._templates.page("sites.html", sites=await self._look(self._known), chooser=CHOOSER)
        response = RedirectResponse("/" + quote(page.lstrip("/")), status_code=303)  # one slash: never another host
        response.headers["Clear-Site-Data"] = '"cache", "storage"'  # of the site that was chosen before
        response.set_cookie(COOKIE, str(site), path="/", httponly=True, samesite="lax")
        return response

    def _shown(self) -> list[SiteHost]:
        found = (site for site in self._known() if self._dashboard.current_release(site.project_id, site.stage))
        return list(islice(found, MOST_SHOWN))

    def _known(self) -> list[SiteHost]:
        projects = sorted({sender.key.project_id for sender in self._dashboard.overview.senders()})
        return [SiteHost(project, stage) for project in projects for stage in Stage]


# Only these names reach the page: a stranger's name that was made to resolve to 127.0.0.1 does not (DNS
# rebinding). The port is not compared, so that a tunnel from another port works; no browser can forge it.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:]{2,39}\]|[a-z0-9.-]{1,253}?)\.?(?::(?P<port>[0-9]{1,5}))?")
_PROJECT = re.compile(r"[a-z0-9-]{1,32}")


@dataclass(frozen=True, slots=True)
class SiteHost:
    """A customer's site at one stage."""

    project_id: str
    stage: Stage

    def __str__(self) -> str:
        return f"{self.stage}.{self.project_id}"


@dataclass(frozen=True, slots=True)
class DashboardHost:
    """The operator's page."""


@dataclass(frozen=True, slots=True)
class SitePort:
    """The second port: one site at a time, chosen by the visitor."""


Destination = DashboardHost | SitePort | SiteHost


@dataclass(frozen=True, slots=True)
class Hosts:
    """Tells the destinations apart by host name and by the port that the request arrived at.

    With `page_host` (the page is on the net) each port serves its own kind only: a proxy that sends every name to
    one port can then not show the page under a customer's name.
    """

    domain: str
    preview_port: int
    page_host: str = ""

    def destination(
        self, host_header: str, local_port: int, own_domains: Mapping[str, str] | None = None
    ) -> Destination | None:
        """Where a request belongs; None for a name that is not ours. `own_domains` maps a domain to its project."""
        name, _ = split_host(host_header)
        at_sites = local_port == self.preview_port
        if self.page_host:
            if at_sites:
                return self.site(name, own_domains or {})
            return DashboardHost() if name == self.page_host or name in LOOPBACK else None
        if name in LOOPBACK:
            return SitePort() if at_sites else DashboardHost()
        return self.site(name, own_domains or {})

    def site(self, name: str, own_domains: Mapping[str, str]) -> SiteHost | None:
        """The site that has this name: below our domain, or a domain of its own."""
        if project := own_domains.get(name):
            return SiteHost(project, Stage.PUBLIC)
        return site_of(name.removesuffix(f".{self.domain}")) if name.endswith(f".{self.domain}") else None


def split_host(host_header: str) -> tuple[str, str]:
    """The name and the port (empty where left out) of a Host header; empty names for nonsense."""
    match = _HOST.fullmatch(host_header.strip().lower())
    return (match["name"], match["port"] or "") if match else ("", "")


def site_of(name: str) -> SiteHost | None:
    """Read `edit.amelia` (the edit site), `t-0123456789abcdef.edit.amelia` (a preview) or `amelia` (the public one)."""
    stage, _, project_id = name.rpartition(".")
    if not _PROJECT.fullmatch(project_id):
        return None
    try:
        return SiteHost(project_id, Stage(stage.removesuffix(f".{Stage.EDIT}") or Stage.PUBLIC))
    except ValueError:
        return None


def site_address(site: SiteHost, domain: str, port: str) -> str:
    """The web address of a site on this machine, under its own host name."""
    return f"http://{site_host(site.project_id, site.stage)}.{domain}{':' + port if port else ''}/"
