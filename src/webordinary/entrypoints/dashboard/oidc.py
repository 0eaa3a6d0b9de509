"""Sign-in by OpenID Connect (extra `oidc`): authorization code with PKCE, state and nonce.

The provider proves the name of a user. The list of users, here, says who may use the console. On AWS a load balancer
may do the sign-in, and proves each request.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException, HTTPSConnection
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from webordinary.model.console import ConsoleUser, Role
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
        """Translates errors of network and provider into ours, without the request's content."""
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


_log = logging.getLogger(__name__)
BALANCER_HEADER = "x-amzn-oidc-data"
BALANCER_COOKIES = tuple(f"AWSELBAuthSessionCookie-{number}" for number in range(4))
"""A session of the load balancer; it cuts a long one into several cookies."""
_PART = re.compile(r"[A-Za-z0-9_-]+={0,2}")
_KEY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST_PROOF, MOST_KEYS, MAX_KEY_BYTES, KEY_SECONDS = 16_000, 20, 10_000, 5.0


@dataclass(frozen=True, slots=True)
class BalancerSettings:
    """The load balancer whose word counts, and the users that it may name."""

    arn: str
    issuer: str
    client_id: str
    claim: str
    operators: frozenset[str]
    viewers: frozenset[str]


class BalancerLogin:
    """Reads whom an Application Load Balancer has signed in: it signs so for each request (ES256).

    A request that did not come through this load balancer carries no such signature. Thread-safe.
    """

    def __init__(
        self,
        settings: BalancerSettings,
        key_of: Callable[[str, str], bytes] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`key_of` fetches a public key as PEM, by region and id; the load balancer changes its keys now and then."""
        if not find_spec("cryptography"):
            raise Permanent("alb_arn needs the extra: pip install 'webordinary[aws]'")
        self._settings, self._key_of, self._now = settings, key_of or fetched_key, now
        self._region = settings.arn.split(":")[3]
        self._guard, self._keys = threading.Lock(), dict[str, bytes]()

    def user_of(self, proofs: Sequence[str]) -> ConsoleUser | None:
        """The user that a request's header proves; None where it proves none that may come in."""
        if len(proofs) != 1:  # the load balancer writes one: a second was written by its client
            return None
        try:
            name = self._name_in(proofs[0])
        except (OidcRefused, Transient) as problem:
            _log.warning("a request was refused: %s", problem)
            return None
        role = Role.OPERATOR if name in self._settings.operators else Role.VIEWER
        known = name in self._settings.operators | self._settings.viewers
        return ConsoleUser(name, role, datetime.fromtimestamp(self._now(), UTC)) if known else None

    def _name_in(self, proof: str) -> str:
        parts = proof.split(".")
        if len(proof) > MOST_PROOF or len(parts) != 3 or not all(map(_PART.fullmatch, parts)):
            raise OidcRefused("what the load balancer says about the user is not readable")
        head, claims, signature = _object(parts[0]), _object(parts[1]), _bytes(parts[2])
        known = self._settings
        expected = {"alg": "ES256", "signer": known.arn, "client": known.client_id, "iss": known.issuer}
        if wrong := [name for name, value in expected.items() if head.get(name) != value]:
            raise OidcRefused(f"the proof of a user is not our load balancer's: {', '.join(wrong)}")
        if not _KEY_ID.fullmatch(str(head.get("kid"))):
            raise OidcRefused("the proof of a user names no key")
        self._check(f"{parts[0]}.{parts[1]}".encode(), signature, str(head["kid"]))
        for told in (head, {"exp": head.get("exp"), "iss": known.issuer, **claims}):  # the head is signed, too
            until = told["exp"] if isinstance(told.get("exp"), int | float) else 0
            if told["iss"] != known.issuer or not until > self._now():
                raise OidcRefused("the proof of a user is too old, or of another provider")
        name = claims.get(known.claim)
        if not isinstance(name, str) or not name:
            raise OidcRefused(f"the provider does not tell the {known.claim} of a user")
        if known.claim != "email":
            return name
        if claims.get("email_verified") not in (True, "true"):  # Cognito writes it as text
            raise OidcRefused("the provider has not verified the address")
        return name.lower()

    def _check(self, signed: bytes, signature: bytes, key_id: str) -> None:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415 - an extra

        try:
            key = load_pem_public_key(self._key(key_id))
        except ValueError as problem:
            raise OidcRefused("the load balancer's key is not readable") from problem
        if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != "secp256r1" or len(signature) != 64:
            raise OidcRefused("the proof of a user has another kind of signature than ES256")
        halves = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
        try:
            key.verify(utils.encode_dss_signature(*halves), signed, ec.ECDSA(SHA256()))
        except InvalidSignature:
            raise OidcRefused("the signature of the proof of a user is wrong") from None

    def _key(self, key_id: str) -> bytes:
        with self._guard:
            if key_id not in self._keys:
                found = self._key_of(self._region, key_id)
                while len(self._keys) >= MOST_KEYS:
                    del self._keys[next(iter(self._keys))]
                self._keys[key_id] = found
            return self._keys[key_id]


def fetched_key(region: str, key_id: str) -> bytes:
    """A load balancer's public key, from where AWS publishes them. Raises Transient."""
    connection = HTTPSConnection(f"public-keys.auth.elb.{region}.amazonaws.com", timeout=KEY_SECONDS)
    try:
        connection.request("GET", f"/{key_id}")
        answer = connection.getresponse()
        found = answer.read(MAX_KEY_BYTES)
    except (OSError, HTTPException) as problem:
        raise Transient(f"the load balancer's key cannot be fetched: {type(problem).__name__}") from problem
    finally:
        connection.close()
    if answer.status != 200:
        raise Transient(f"the load balancer's key cannot be fetched: status {answer.status}")
    return found


def _bytes(part: str) -> bytes:
    """Unlike others, the load balancer pads; both are read."""
    text = part.rstrip("=")
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as problem:
        raise OidcRefused("what the load balancer says about the user is not readable") from problem


def _object(part: str) -> Mapping[str, Any]:
    try:
        read = json.loads(_bytes(part))
    except (ValueError, RecursionError) as problem:
        raise OidcRefused("what the load balancer says about the user is not readable") from problem
    if not isinstance(read, dict):
        raise OidcRefused("what the load balancer says about the user is not readable")
    return read
