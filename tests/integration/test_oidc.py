"""Sign-in by OpenID Connect, with a provider that answers on a socket and signs with real keys."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.unit.dashboard.tables import NOON, DashboardTables
from webordinary.adapters.sqlite.access import SqliteActionLog, SqliteConsoleSecrets, SqliteConsoleUsers
from webordinary.entrypoints.dashboard import oidc
from webordinary.entrypoints.dashboard.oidc import OidcProvider, OidcSettings
from webordinary.entrypoints.dashboard.ports import READERS
from webordinary.entrypoints.dashboard.web import create_app
from webordinary.entrypoints.http_server import HttpServer
from webordinary.model.console import ConsoleUser, Role
from webordinary.operations.access import Access

URL = "https://console.example.com"
CLIENT, SECRET = "console", "a secret of the client"


@dataclass
class OidcTestProvider:
    """A small provider: codes once, PKCE checked, tokens as a test wants them."""

    issuer: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, parameters={"kid": "one"}))
    signed_with: Any = None
    keys: Callable[[], Response] | None = None
    algorithm: str = "RS256"
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._describe),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
            ]
        )

    async def _describe(self, _: Request) -> Response:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return JSONResponse({"issuer": self.issuer} | {name: f"{self.issuer}/{path}" for name, path in names.items()})

    async def _authorize(self, request: Request) -> Response:
        asked, code = dict(request.query_params), secrets.token_urlsafe()
        self._codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 303)

    async def _token(self, request: Request) -> Response:
        form = parse_qs((await request.body()).decode())
        asked = self._codes.pop(form["code"][0], None)
        proof = create_s256_code_challenge(form["code_verifier"][0])
        if asked is None or asked["code_challenge"] != proof or "authorization" not in request.headers:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        claims |= {"sub": "1", "email": "Olga@example.com", "email_verified": True} | self.claims
        token = jwt.encode({"alg": self.algorithm, "kid": "one"}, claims, self.signed_with or self.key)
        return JSONResponse({"access_token": "x", "token_type": "Bearer", "id_token": token})

    async def _keys(self, _: Request) -> Response:
        return self.keys() if self.keys else JSONResponse({"keys": [self.key.as_dict(private=False)]})


@contextmanager
def serving(provider: OidcTestProvider) -> Iterator[None]:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    provider.issuer = f"http://127.0.0.1:{sock.getsockname()[1]}"
    server = HttpServer(provider.app(), [sock], connections=20, grace_seconds=1, lifespan="off")
    server.start()
    try:
        yield
    finally:
        server.stop()


@dataclass
class OidcConsole:
    """The console with olga as a user, and a provider beside it."""

    page: TestClient
    provider: OidcTestProvider
    access: Access
    oidc: OidcProvider

    def begin(self) -> str:
        """The address at the provider that the browser is led to."""
        return self.page.get("/login/oidc?next=/sites").headers["location"]

    def back(self, address: str) -> str:
        """Where the provider sends the browser back to, as a path of the console."""
        parts = urlsplit(httpx.get(address).headers["location"])
        assert f"{parts.scheme}://{parts.netloc}" == URL
        return f"{parts.path}?{parts.query}"


def settings_of(issuer: str, claim: str = "email") -> OidcSettings:
    return OidcSettings(issuer, CLIENT, lambda: SECRET, claim, f"{URL}/login/oidc/callback")


@pytest.fixture
def console(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OidcConsole]:
    world, provider = DashboardTables(tmp_path), OidcTestProvider()
    stores = SqliteConsoleUsers(world.database), SqliteConsoleSecrets(world.database), SqliteActionLog(world.database)
    access = Access(*stores, lambda: NOON, time.monotonic, always=True)
    access.users.put(ConsoleUser("olga@example.com", Role.OPERATOR, NOON), "")
    with serving(provider):
        settings = OidcSettings(
            provider.issuer, CLIENT, lambda: SECRET, getattr(request, "param", "email"), f"{URL}/login/oidc/callback"
        )
        waiting = OidcProvider(settings)
        dashboard = world.dashboard(public_url=URL, access=access, oidc=waiting)
        with TestClient(create_app(dashboard), base_url=URL, follow_redirects=False) as page:
            yield OidcConsole(page, provider, access, waiting)
    world.database.close()


def test_a_user_whom_the_provider_proves_is_signed_in_and_led_to_the_page_that_was_asked_for(
    console: OidcConsole,
) -> None:
    assert "/login/oidc?next=" in console.page.get("/login").text
    answer = console.page.get(console.back(console.begin()))
    assert (answer.status_code, answer.headers["location"]) == (303, "/sites")
    assert console.page.get("/").status_code == 200
    assert console.access.log.latest(1)[0].action == "signed in by OpenID Connect"


def test_a_proven_user_who_was_not_added_is_told_so_and_stays_outside(console: OidcConsole) -> None:
    console.provider.claims = {"email": "mallory@example.com"}
    answer = console.page.get(console.back(console.begin()))
    assert answer.status_code == 401
    assert "This console has no user mallory@example.com" in answer.text
    assert console.page.get("/").status_code == 401


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"iss": "https://evil.example"},
        {"nonce": "replayed"},
        {"exp": 1_000_000_000},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email": ""},
        {"email": ["olga@example.com"]},
    ],
    ids=str,
)
def test_a_token_that_does_not_prove_a_user_to_this_console_signs_nobody_in(
    console: OidcConsole, claims: dict[str, Any]
) -> None:
    console.provider.claims = claims
    assert console.page.get(console.back(console.begin())).status_code == 401
    assert console.page.get("/").status_code == 401


def test_a_token_signed_with_another_key_or_with_the_secret_of_the_client_signs_nobody_in(console: OidcConsole) -> None:
    console.provider.signed_with = RSAKey.generate_key(2048, parameters={"kid": "one"})
    assert console.page.get(console.back(console.begin())).status_code == 401
    console.provider.signed_with, console.provider.algorithm = OctKey.import_key(SECRET), "HS256"
    assert console.page.get(console.back(console.begin())).status_code == 401


def test_an_answer_that_this_browser_did_not_ask_for_signs_nobody_in(console: OidcConsole) -> None:
    attackers = console.back(console.begin())
    console.page.cookies.clear()
    assert console.page.get(attackers).status_code == 401, "the victim's browser has no sign-in under way"
    console.begin()
    assert console.page.get(attackers).status_code == 401, "the state is another one"


def test_an_answer_counts_once(console: OidcConsole) -> None:
    address = console.begin()
    back, cookies = console.back(address), dict(console.page.cookies)
    assert console.page.get(back).status_code == 303
    console.page.cookies.clear()
    console.page.cookies.update(cookies)
    assert console.page.get(back).status_code == 401


def test_a_provider_that_is_out_of_reach_or_says_another_name_is_told_in_words(console: OidcConsole) -> None:
    console.provider.issuer = "https://another.example"
    answer = console.page.get("/login/oidc")
    assert answer.status_code == 502
    assert "is not one of http://127.0.0.1" in answer.text


def test_a_sign_in_leads_to_no_other_host(console: OidcConsole) -> None:
    address = console.page.get("/login/oidc?next=//evil.example/x").headers["location"]
    assert console.page.get(console.back(address)).headers["location"] == "/"


@pytest.mark.parametrize("console", ["sub"], indirect=True)
@pytest.mark.parametrize(("sub", "status"), [("olga-1", 303), ("Olga-1", 401), ("olga 1", 401)])
def test_an_id_of_an_account_counts_only_as_it_is(console: OidcConsole, sub: str, status: int) -> None:
    console.access.users.put(ConsoleUser("olga-1", Role.OPERATOR, NOON), "")
    console.provider.claims = {"sub": sub}
    assert console.page.get(console.back(console.begin())).status_code == status


def test_a_document_of_the_provider_is_read_within_bounds_of_size_and_time(
    console: OidcConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    console.provider.keys = lambda: JSONResponse({"keys": "x" * 600_000})
    answer = console.page.get(console.back(console.begin()))
    assert (answer.status_code, "larger than 500,000 bytes" in answer.text) == (401, True)

    async def drops() -> AsyncIterator[str]:
        yield '{"keys": ['
        for _ in range(100):
            await asyncio.sleep(0.05)
            yield " "
        yield "]}"

    console.provider.keys = lambda: StreamingResponse(drops(), media_type="application/json")
    back = console.back(console.begin())
    monkeypatch.setattr(oidc, "TIMEOUT_SECONDS", 0.5)
    answer = console.page.get(back)
    assert (answer.status_code, "cannot be reached" in answer.text) == (502, True)


def test_a_provider_that_is_down_is_told_as_an_outage_on_the_way_there_and_back(console: OidcConsole) -> None:
    console.provider.keys = lambda: Response(status_code=503)
    answer = console.page.get(console.back(console.begin()))
    assert (answer.status_code, "fault of its own" in answer.text) == (502, True)


def test_a_provider_that_never_answers_holds_no_page_up(console: OidcConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "TIMEOUT_SECONDS", 300)
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(9) as browsers:
        monkeypatch.setattr(console.oidc, "_settings", settings_of(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        signing_in = [browsers.submit(console.page.get, "/login/oidc") for _ in range(8)]
        held = [silent.accept()[0] for _ in range(READERS)]
        try:
            assert browsers.submit(console.page.get, "/healthz").result(timeout=60).status_code == 200
        finally:
            for one in held:
                one.close()
        assert {one.result(timeout=60).status_code for one in signing_in} == {502}, "not asked again for a moment"


def test_many_begun_sign_ins_of_one_network_end_no_sign_in_of_another(
    console: OidcConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "MOST_STARTED", 30)
    back = console.back(console.begin())
    for number in range(40):
        console.oidc.begin("/", f"2001:db8::{number:x}")
    assert console.page.get(back).status_code == 303
