"""Sign-in by OpenID Connect (extra `oidc`): authorization code with PKCE, state and nonce.

The provider proves the name of a user. The list of users, here, says who may use the console.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from webordinary.model.errors import Permanent, Transient
from webordinary.operations.access import checked_name, network_of

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Signatures by keys that the provider publishes; `none` and the client's own secret are not among them."""
STARTED_SECONDS, MOST_STARTED, MOST_STARTED_OF_NETWORK = 600, 1000, 20
FRESH_SECONDS, MAX_ANSWER_BYTES = 3600, 500_000
TIMEOUT_SECONDS, DOWN_SECONDS = 10, 5
"""For one answer of the provider; and how long a provider out of reach is not asked again."""


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """A client registered at a provider."""

    issuer: str
    client_id: str
    client_secret: Callable[[], str]
    """Read at each sign-in."""
    claim: str
    """Claim of the ID token that names the user: `email`, if verified, or `sub`, the id of the account."""
    callback: str


@dataclass(frozen=True, slots=True)
class Started:
    """A sign-in that waits for the provider's answer."""

    state: str
    nonce: str
    verifier: str
    following: str
    network: str
    until: float


class OidcRefused(Permanent):
    """The provider's answer proves no user."""


class OidcProvider:
    """Leads browsers to the provider and reads its answers. Thread-safe; waiting sign-ins are in memory and bounded."""

    def __init__(self, settings: OidcSettings) -> None:
        _require_extra()
        self._settings, self._guard = settings, threading.Lock()
        self._started: dict[str, Started] = {}
        self._documents: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._down_until = 0.0

    def begin(self, following: str, browser: str) -> tuple[str, str]:
        """The address to lead the browser to, and the secret for its cookie.

        A network has a few sign-ins that wait: its next one ends its oldest, and no other's.
        """
        cookie, now = secrets.token_urlsafe(32), time.monotonic()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        one = Started(state, nonce, verifier, following, network_of(browser), now + STARTED_SECONDS)
        with self._client() as client:
            address, _ = client.create_authorization_url(
                self._endpoint("authorization_endpoint"), state=one.state, nonce=one.nonce, code_verifier=one.verifier
            )
        with self._guard:
            self._started = {name: old for name, old in self._started.items() if old.until > now}
            theirs = [name for name, old in self._started.items() if old.network == one.network]
            for name in theirs[: max(0, len(theirs) + 1 - MOST_STARTED_OF_NETWORK)]:
                del self._started[name]
            while len(self._started) >= MOST_STARTED:
                del self._started[next(iter(self._started))]
            self._started[cookie] = one
        return address, cookie

    def finish(self, cookie: str, query: Mapping[str, str]) -> tuple[str, str]:
        """The proven name, and the page to show next. Each cookie is good for one answer. Raises OidcRefused."""
        with self._guard:
            one = self._started.pop(cookie, None)
        if one is None or one.until < time.monotonic():
            raise OidcRefused("this sign-in was not begun in this browser, or is too old; begin again")
        if not secrets.compare_digest(query.get("state", "").encode(), one.state.encode()):
            raise OidcRefused("the answer belongs to another sign-in; begin again")
        if "error" in query:
            raise OidcRefused(f"the provider refused: {query['error'][:100]}")
        return self._name_in(self._id_token(query.get("code", ""), one), one), one.following

    def _id_token(self, code: str, one: Started) -> str:
        with self._client() as client, self._outages():
            token = client.fetch_token(
                self._endpoint("token_endpoint"), code=code, code_verifier=one.verifier, grant_type="authorization_code"
            )
        return str(token.get("id_token", ""))

    def _name_in(self, id_token: str, one: Started) -> str:
        from joserfc import errors, jwt  # noqa: PLC0415 - an extra
        from joserfc.jwk import KeySet  # noqa: PLC0415 - an extra

        known = jwt.JWTClaimsRegistry(
            leeway=60,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": one.nonce},
        )
        try:
            keys = KeySet.import_key_set(dict(self._document(self._endpoint("jwks_uri"))))  # type: ignore[arg-type]
            claims = jwt.decode(id_token, keys, algorithms=ALGORITHMS).claims
            known.validate(claims)
        except (errors.JoseError, ValueError) as problem:
            self._documents.clear()  # the provider may have new keys: the next try reads them
            raise OidcRefused(f"the provider's token does not hold: {str(problem)[:100]}") from problem
        alone = claims["aud"] in (self._settings.client_id, [self._settings.client_id])
        if claims.get("azp", self._settings.client_id if alone else "") != self._settings.client_id:
            raise OidcRefused("the provider's token is for another client")
        name = claims.get(self._settings.claim)
        if not isinstance(name, str) or not name:
            raise OidcRefused(f"the provider's token has no {self._settings.claim}")
        if self._settings.claim == "email" and claims.get("email_verified") is not True:
            raise OidcRefused("the provider has not verified the address")
        named = name.lower() if self._settings.claim == "email" else name  # an id differs by case
        if checked_name(named) != named:
            raise OidcRefused(f"{named[:80]!r} is not possible as a user name here, which is in lower case")
        return named

    def _endpoint(self, name: str) -> str:
        document = self._document(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        address = str(document.get(name, ""))
        if document.get("issuer") != self._settings.issuer or not is_safe(address):
            raise OidcRefused(f"the provider's description is not one of {self._settings.issuer}: {name}")
        return address

    def _document(self, address: str) -> Mapping[str, Any]:

        read_at, document = self._documents.get(address, (0.0, {}))
        if document and time.monotonic() - read_at < FRESH_SECONDS:
            return document
        with self._outages():
            read = json.loads(_fetched(address))
        if not isinstance(read, dict):
            raise OidcRefused(f"{address} is not what a provider of OpenID Connect says")
        self._documents[address] = (time.monotonic(), read)
        return read

    @contextmanager
    def _outages(self) -> Iterator[None]:
        """Turns the errors of the network and of the provider into ours, without what was sent."""
        import httpx  # noqa: PLC0415 - an extra
        from authlib.common.errors import AuthlibBaseError  # noqa: PLC0415 - an extra

        down = "the sign-in provider cannot be reached; try again in a moment"
        if time.monotonic() < self._down_until:
            raise Transient(down)
        try:
            yield
        except httpx.TransportError:
            self._down_until = time.monotonic() + DOWN_SECONDS
            raise Transient(down) from None
        except (AuthlibBaseError, httpx.HTTPError, httpx.InvalidURL, ValueError) as problem:
            if isinstance(problem, httpx.HTTPStatusError) and problem.response.is_server_error:
                raise Transient("the sign-in provider has a fault of its own; try again later") from None
            raise OidcRefused(f"the provider refused the sign-in ({type(problem).__name__})") from None

    def _client(self) -> Any:  # noqa: ANN401 - the library has no types
        from authlib.integrations.httpx_client import OAuth2Client  # noqa: PLC0415 - an extra

        return OAuth2Client(
            self._settings.client_id,
            self._settings.client_secret(),
            scope="openid email profile",
            redirect_uri=self._settings.callback,
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
        )


def is_safe(address: str) -> bool:
    """Whether secrets may travel there: https, or this machine."""
    parts = urlsplit(address)
    return bool(parts.hostname) and (parts.scheme == "https" or parts.hostname in ("127.0.0.1", "::1", "localhost"))


def _fetched(address: str) -> bytes:
    """A document of the provider, read within its bounds of size and time."""
    import httpx  # noqa: PLC0415 - an extra

    deadline, read = time.monotonic() + TIMEOUT_SECONDS, b""
    with httpx.stream("GET", address, timeout=TIMEOUT_SECONDS) as answer:
        for piece in answer.raise_for_status().iter_bytes():
            read += piece
            if len(read) > MAX_ANSWER_BYTES:
                raise OidcRefused(f"{address} is larger than {MAX_ANSWER_BYTES:,} bytes")
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("")
    return read


def _require_extra() -> None:
    if not (find_spec("authlib") and find_spec("joserfc")):
        raise Permanent("oidc_issuer needs the extra: pip install 'webordinary[oidc]'")
