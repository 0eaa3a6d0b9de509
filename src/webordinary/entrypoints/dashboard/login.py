"""The login of the console: the guard in front of every page, and the pages that sign a user in and out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webordinary.entrypoints.dashboard.oidc import (
    BALANCER_COOKIES,
    BALANCER_HEADER,
    STARTED_SECONDS,
    OidcProvider,
)
from webordinary.entrypoints.dashboard.ports import SIGNED_IN, Dashboard, Readers, Templates
from webordinary.mail.confirm import ConfirmationAnswer
from webordinary.model.console import ConsoleUser, Role, SecretKind
from webordinary.model.errors import Permanent, Transient, WebOrdinaryError
from webordinary.operations.access import SESSION_LASTS, Access, TooManyTries

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HOOKS = "/hooks/"
OPEN_PATHS = ("/login", "/link/", "/wrote/", "/static/", "/healthz", "/tls/ask", HOOKS)
"""Paths that need no login; `/link/` and `/wrote/` carry secrets, a hook is signed, `/tls/ask` answers neighbours."""
MAX_FORM_BYTES = 10_000


class ConsoleGuard:
    """Lets a request pass to the console if its user may make it; writes down what users change."""

    def __init__(self, app: ASGIApp, dashboard: Dashboard, readers: Readers, objection: Objection) -> None:
        self._app, self._look, self._objection = app, readers.look, objection
        self._access, self._header = dashboard.access, dashboard.forward_auth_header.lower()
        self._cookie = cookie_name(dashboard)
        self._proxies, self._balancer = dashboard.trusted_proxies, dashboard.balancer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        by_token = "" if self._balancer else _bearer(headers)  # no token here is worth a request without an Origin
        refused = None if by_token or path.startswith(HOOKS) else self._objection(method, headers)
        if refused:
            return await PlainTextResponse(refused, 403)(scope, receive, send)
        user = await self._look(self._user_of, scope, headers, by_token)
        scope.setdefault("state", {})["user"] = user
        SIGNED_IN.set(user)
        if user is None and not path.startswith(OPEN_PATHS) and await self._look(self._login_required):
            ask = PlainTextResponse(_UNPROVEN, 401) if self._balancer else _ask_to_sign_in(scope, headers)
            return await ask(scope, receive, send)
        acts = method not in SAFE_METHODS and not path.startswith((*OPEN_PATHS, "/logout"))
        if user and user.role is not Role.OPERATOR and acts:
            return await PlainTextResponse("Only an operator may change something.", 403)(scope, receive, send)
        if user is None or not acts:
            return await self._app(scope, receive, send)
        done, recording = _status_of(send)
        await self._app(scope, receive, recording)
        if done and done[0] < 400:
            await self._look(self._record, user, f"{method} {path}", client_of(scope))
        return None

    def _login_required(self) -> bool:
        return self._balancer is not None or (self._access is not None and self._access.login_required())

    def _user_of(self, scope: Scope, headers: Headers, by_token: str) -> ConsoleUser | None:
        if self._balancer:
            open_to_all = scope["path"].startswith(OPEN_PATHS)
            return None if open_to_all else self._balancer.user_of(headers.getlist(BALANCER_HEADER))
        if self._access is None:
            return None
        if by_token:
            return self._access.identify(by_token, kind=SecretKind.API)
        names = headers.getlist(self._header) if self._header and scope.get("peer", "") in self._proxies else []
        if len(names) == 1 and names[0]:  # beside the proxy's own, a second one was written by its client
            return self._access.users.get(names[0].lower())
        return self._access.identify(session_in(headers, self._cookie))

    def _record(self, user: ConsoleUser, action: str, client: str) -> None:
        if self._access:
            self._access.record(user.name, action, client)
        else:
            _log.warning("%s: %s, from %s", user.name, action, client)  # a warning, as the log of a task keeps no less


_log = logging.getLogger(__name__)
_UNPROVEN = (
    "The load balancer of this console signs users in. This request carries no proof of a user, or this user is not "
    "among console_operators and console_viewers."
)
Objection = Callable[[str, Headers], str | None]
"""Why a request of a browser is refused, by method and headers; None if it may pass."""


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _status_of(send: Send) -> tuple[list[int], Send]:
    """A `send` that remembers the status of the response."""
    seen: list[int] = []

    async def remembering(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.append(message["status"])
        await send(message)

    return seen, remembering


def _ask_to_sign_in(scope: Scope, headers: Headers) -> Response:
    if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
        return RedirectResponse(f"/login?next={quote(scope['path'], safe='/')}", status_code=303)
    words = "Sign in first: with a session, or with an API token (Authorization: Bearer …)."
    return PlainTextResponse(words, 401, {"WWW-Authenticate": "Bearer"})


def cookie_name(dashboard: Dashboard) -> str:
    """`__Host-` binds the cookie to this host and https; plain http has no such cookies."""
    return "__Host-session" if dashboard.public_url.startswith("https://") else "session"


def session_in(headers: Headers, cookie: str) -> str:
    """The session that a request carries; empty if none."""
    for piece in headers.get("cookie", "").split(";"):  # as browsers write them; SimpleCookie also splits at spaces
        name, _, value = piece.strip(" \t").partition("=")
        if name == cookie:
            return value
    return ""


def client_of(scope: Scope) -> str:
    """The address of the browser, as seen by the nearest trusted proxy."""
    return (scope.get("client") or ("unknown", 0))[0]


class LoginPages:
    """Sign in, sign out, and set a password by a one-time link."""

    def __init__(self, dashboard: Dashboard, readers: Readers, templates: Templates) -> None:
        self._d, self._look, self._templates = dashboard, readers.look, templates
        self._check, self._ask = readers.check_password, readers.ask_outside

    async def login(self, request: Request) -> Response:
        """The sign-in form (GET) and its submission (POST)."""
        following = own_path(request.query_params.get("next", "/"))
        if self._d.balancer:
            raise HTTPException(404, "The load balancer signs users in; there is no password here.")
        if request.method != "POST":
            return self._form(following)
        form, access = await read_fields(request), self._access()
        try:
            session = await self._check(
                access.sign_in, form.get("name", ""), form.get("password", ""), client_of(request.scope)
            )
        except TooManyTries as problem:
            return self._throttled(following, problem)
        if session is None:
            return self._form(following, 401, "Name and password do not belong together.")
        return self._signed_in(session, following)

    def _form(self, following: str, status: int = 200, problem: str = "") -> Response:
        with_provider = self._d.oidc is not None
        return self._templates.page("login.html", status, next=following, problem=problem, with_provider=with_provider)

    def _throttled(self, following: str, problem: TooManyTries) -> Response:
        page = self._form(following, 429, _sentence(problem))
        page.headers["Retry-After"] = str(max(1, round(problem.seconds)))
        return page

    async def provider(self, request: Request) -> Response:
        """Lead the browser to the provider of OpenID Connect."""
        following = own_path(request.query_params.get("next", "/"))
        try:
            address, cookie = await self._ask(self._provider().begin, following, client_of(request.scope))
        except TooManyTries as problem:
            return self._throttled(following, problem)
        except WebOrdinaryError as problem:
            return self._form(following, 502, _sentence(problem))
        response = RedirectResponse(address, status_code=303)
        response.set_cookie(
            self._oidc_cookie, cookie, STARTED_SECONDS, path="/", secure=self._secure, httponly=True, samesite="lax"
        )
        return response

    async def provided(self, request: Request) -> Response:
        """The provider's answer: a session for a user that it proves and that is known here."""
        access, cookie = self._access(), session_in(request.headers, self._oidc_cookie)
        try:
            name, following = await self._ask(self._provider().finish, cookie, request.query_params)
            session = await self._look(access.sign_in_proven, name, client_of(request.scope), "by OpenID Connect")
        except TooManyTries as problem:
            return self._throttled("/", problem)
        except WebOrdinaryError as problem:
            return self._form("/", 502 if isinstance(problem, Transient) else 401, _sentence(problem))
        response = self._signed_in(session, own_path(following))
        response.delete_cookie(self._oidc_cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response

    def _provider(self) -> OidcProvider:
        if self._d.oidc is None:
            raise HTTPException(404, "There is no such login here.")
        return self._d.oidc

    @property
    def _oidc_cookie(self) -> str:
        return cookie_name(self._d).replace("session", "oidc")

    async def logout(self, request: Request) -> Response:
        """End this session."""
        if self._d.access:
            session = session_in(request.headers, cookie_name(self._d))
            await self._look(self._d.access.sign_out, session)
        response = RedirectResponse("/" if self._d.balancer else "/login", status_code=303)
        for cookie in BALANCER_COOKIES if self._d.balancer else (cookie_name(self._d),):
            response.delete_cookie(cookie, path="/", secure=self._secure, httponly=True, samesite="lax")
        return response

    async def link(self, request: Request) -> Response:
        """Set a password by a one-time link. GET uses nothing up: mail programs and chats open links in advance."""
        access, secret = self._access(), request.path_params["secret"]
        user = await self._look(lambda: access.identify(secret, kind=SecretKind.LINK))
        if user is None:
            raise HTTPException(404, "This link was used already, or is too old. Ask for another.")
        if request.method != "POST":
            return self._templates.page("link.html", user=user, problem="")
        password = (await read_fields(request)).get("password", "")
        try:
            session = await self._check(access.redeem_link, secret, password, client_of(request.scope))
        except Permanent as problem:
            return self._templates.page("link.html", 400, user=user, problem=_sentence(problem))
        if session is None:
            raise HTTPException(404, "This link was used already. Ask for another.")
        return self._signed_in(session, "/")

    async def wrote(self, request: Request) -> Response:
        """Answer the question about a held mail. GET changes nothing: mail programs open links in advance."""
        questions, token = self._d.questions, request.path_params["token"]
        gone = HTTPException(404, "This link was used already, or is older than two days. Nothing was changed.")
        if questions is None:
            raise gone
        try:
            mail = await self._look(questions.held_mail, token, client_of(request.scope))
        except TooManyTries as problem:
            raise HTTPException(429, _sentence(problem)) from problem
        if mail is None:
            raise gone
        if request.method != "POST":
            return self._templates.page("wrote.html", mail=mail, said="")
        said = {"yes": ConfirmationAnswer.YES, "no": ConfirmationAnswer.NO}.get(
            (await read_fields(request)).get("said", "")
        )
        if said is None:
            return self._templates.page("wrote.html", 400, mail=mail, said="")
        if not await self._look(questions.answer, token, said):
            raise gone
        return self._templates.page("wrote.html", mail=mail, said=said)

    def _access(self) -> Access:
        if self._d.access is None:
            raise HTTPException(404, "There is no login here.")
        return self._d.access

    @property
    def _secure(self) -> bool:
        return self._d.public_url.startswith("https://")

    def _signed_in(self, session: str, following: str) -> Response:
        response = RedirectResponse(following, status_code=303)
        response.set_cookie(
            cookie_name(self._d),
            session,
            max_age=int(SESSION_LASTS.total_seconds()),
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )
        return response


def _sentence(problem: WebOrdinaryError) -> str:
    words = f"{problem}."
    return words[0].upper() + words[1:]


async def read_fields(request: Request, most: int = MAX_FORM_BYTES) -> Mapping[str, str]:
    """The text fields of a small form; a larger one is refused before it is read."""
    length = request.headers.get("content-length")
    if length is None:
        raise HTTPException(411, "Say how long the form is: send it with Content-Length.")
    if int(length) > most:
        raise HTTPException(413, "This form is too large.")
    async with request.form(max_files=0, max_fields=10, max_part_size=most) as form:
        return {name: value for name, value in form.items() if isinstance(value, str)}


def own_path(path: str, otherwise: str = "/") -> str:
    """A path of this page; never another host, which `//` and a backslash lead to."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else otherwise
