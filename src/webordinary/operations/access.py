"""Access to the console: users with roles, sessions, API tokens, one-time links, and a record of actions.

A secret (session, API token, link) is random and stored only as its digest. A password is stored as a scrypt hash.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Protocol

from webordinary.model.console import ConsoleAction, ConsoleUser, Role, SecretKind, StoredSecret
from webordinary.model.errors import Permanent

SESSION_LASTS = timedelta(days=14)
LINK_LASTS = timedelta(hours=24)
MIN_PASSWORD, MAX_PASSWORD = 10, 200
MOST_SESSIONS = 50
"""Sessions and tokens that one user may have; a new session ends the oldest."""
API_PREFIX = "wo_"
_USER_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


class ConsoleUsers(Protocol):
    """The users of the console."""

    def all(self) -> Sequence[ConsoleUser]:
        """Every user by name."""

    def get(self, name: str) -> ConsoleUser | None:
        """The user of that name."""

    def password_hash(self, name: str) -> str:
        """The stored hash of a user's password; empty if the user has none."""

    def put(self, user: ConsoleUser, password_hash: str | None) -> None:
        """Add or replace a user; None keeps the password."""

    def remove(self, name: str) -> bool:
        """Remove a user with all sessions and tokens; False if there was none."""


class ConsoleSecrets(Protocol):
    """Sessions, API tokens and one-time links, by digest."""

    def add(self, secret: StoredSecret, most: int) -> None:
        """Store a secret; the oldest of this user and kind beyond `most` are removed."""

    def get(self, digest: str) -> StoredSecret | None:
        """The secret of this digest, expired or not."""

    def of(self, user: str) -> Sequence[StoredSecret]:
        """A user's secrets, the newest first."""

    def remove(self, digest: str) -> bool:
        """Remove one secret. Atomic: exactly one caller gets True."""


class ActionLog(Protocol):
    """The record of what users did."""

    def add(self, action: ConsoleAction) -> None:
        """Append one action."""

    def latest(self, limit: int) -> Sequence[ConsoleAction]:
        """The newest actions first."""


def hash_password(password: str) -> str:
    """A salted scrypt hash; raises Permanent for a password that is too short or too long."""
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise Permanent(f"a password has {MIN_PASSWORD} to {MAX_PASSWORD} characters")
    salt = secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_scrypt(password, salt).hex()}"


def is_password(password: str, stored: str) -> bool:
    """Whether a password fits a stored hash. An empty hash takes as long, so that timing reveals no users."""
    _, salt, known = stored.split("$") if stored.count("$") == 2 else ("", "00", "")
    found = _scrypt(password[:MAX_PASSWORD], bytes.fromhex(salt)).hex()
    return hmac.compare_digest(found, known) and bool(known)


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, **_SCRYPT)


def digest_of(secret: str) -> str:
    """The stored form of a random secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


class SignInThrottle:
    """Delays guesses of passwords, by client address and by user name. In memory and bounded."""

    FREE_TRIES, FIRST_WAIT, LONGEST_WAIT, MOST_KEYS = 5, 10.0, 900.0, 10_000

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic, self._guard = monotonic, threading.Lock()
        self._failures: dict[str, tuple[int, float]] = {}

    def begin(self, *keys: str) -> None:
        """Count a try as failed before its password is compared, so that tries side by side count. Or TooManyTries."""
        with self._guard:
            if wait := max(self._wait(key) for key in keys):
                raise TooManyTries(wait)
            for key in keys:
                count, _ = self._failures.pop(key, (0, 0.0))
                self._failures[key] = (count + 1, self._monotonic())
            while len(self._failures) > self.MOST_KEYS:
                del self._failures[next(iter(self._failures))]  # the key whose last failure is longest ago

    def succeeded(self, *keys: str) -> None:
        """Forget the failed tries."""
        with self._guard:
            for key in keys:
                self._failures.pop(key, None)

    def _wait(self, key: str) -> float:
        count, last = self._failures.get(key, (0, 0.0))
        if count < self.FREE_TRIES:
            return 0.0
        wait = min(self.FIRST_WAIT * 2.0 ** min(count - self.FREE_TRIES, 20), self.LONGEST_WAIT)
        return max(0.0, last + wait - self._monotonic())


class TooManyTries(Permanent):
    """Sign-in is throttled; carries the seconds to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many failed tries; try again in {max(1, round(seconds))} seconds")
        self.seconds = seconds


class Access:
    """Signs users in and out, and identifies the user of a request."""

    def __init__(
        self,
        users: ConsoleUsers,
        stored: ConsoleSecrets,
        log: ActionLog,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        *,
        always: bool = False,
    ) -> None:
        """`always`: a login is asked for even while there is no user."""
        self.users, self.secrets, self.log, self._now, self._always = users, stored, log, now, always
        self._throttle = SignInThrottle(monotonic)

    def login_required(self) -> bool:
        """Whether the console asks for a login."""
        return self._always or bool(self.users.all())

    def sign_in(self, name: str, password: str, client: str) -> str | None:
        """Start a session; returns its secret, None for a wrong name or password. Raises TooManyTries."""
        keys = (f"client {network_of(client)}", self._throttled_as(name.lower()[:64], client))
        self._throttle.begin(*keys)
        user = self.users.get(name.lower())
        if not is_password(password, self.users.password_hash(user.name) if user else "") or user is None:
            return None
        self._throttle.succeeded(*keys)
        self.record(user.name, "signed in", client)
        return self._issue(user.name, SecretKind.SESSION, _label(client), SESSION_LASTS)

    def sign_in_proven(self, name: str, client: str, how: str) -> str:
        """Start a session for a user whom a provider has proven; raises Permanent if the name is not known here."""
        user = self.users.get(name)
        if user is None:
            raise Permanent(f"this console has no user {name[:80]}; an operator can add it with `webordinary user add`")
        self.record(user.name, f"signed in {how}", client)
        return self._issue(user.name, SecretKind.SESSION, _label(client), SESSION_LASTS)

    def _throttled_as(self, name: str, client: str) -> str:
        """Tries from where the user is signed in, and from this machine, count apart: guesses from elsewhere
        lock no user out."""
        label, now = _label(client), self._now()
        known = is_loopback(client) or any(
            one.kind is SecretKind.SESSION and one.label == label and one.expires_at > now
            for one in self.secrets.of(name)
        )
        return f"user {name} {label}" if known else f"user {name}"

    def identify(self, secret: str, *, kind: SecretKind = SecretKind.SESSION) -> ConsoleUser | None:
        """The user to whom a session or API token belongs; None if it is unknown, expired or ended."""
        stored = self.secrets.get(digest_of(secret)) if secret else None
        if stored is None or stored.kind is not kind or stored.expires_at <= self._now():
            return None
        return self.users.get(stored.user)

    def sign_out(self, secret: str) -> None:
        """End a session."""
        self.secrets.remove(digest_of(secret))

    def end_sessions(self, user: str) -> None:
        """End the sessions and unused links of a user, as a new password does; API tokens stay."""
        for old in self.secrets.of(user):
            if old.kind is not SecretKind.API:
                self.secrets.remove(old.digest)

    def issue_token(self, user: str, label: str, lasts: timedelta) -> str:
        """Make an API token; the caller shows it once."""
        return self._issue(user, SecretKind.API, label, lasts)

    def issue_link(self, user: str, role: Role) -> str:
        """Make a one-time link with which a person sets the password of this user; the user is made if needed."""
        if self.users.get(user) is None:
            self.users.put(ConsoleUser(checked_name(user), role, self._now()), "")
        return self._issue(user, SecretKind.LINK, "sets a password", LINK_LASTS)

    def redeem_link(self, secret: str, password: str, client: str) -> str | None:
        """Set the password by a one-time link and start a session; None if the link is used, expired or unknown."""
        user = self.identify(secret, kind=SecretKind.LINK)
        hashed = hash_password(password)
        if user is None or not self.secrets.remove(digest_of(secret)):
            return None
        self.users.put(user, hashed)
        self.end_sessions(user.name)
        self.record(user.name, "set a password by a one-time link", client)
        return self._issue(user.name, SecretKind.SESSION, _label(client), SESSION_LASTS)

    def record(self, user: str, action: str, client: str) -> None:
        """Write an action down."""
        self.log.add(ConsoleAction(self._now(), user, action, client))

    def _issue(self, user: str, kind: SecretKind, label: str, lasts: timedelta) -> str:
        secret = (API_PREFIX if kind is SecretKind.API else "") + secrets.token_urlsafe(32)
        now = self._now()
        self.secrets.add(StoredSecret(digest_of(secret), kind, user, label, now, now + lasts), MOST_SESSIONS)
        return secret


def _label(client: str) -> str:
    return f"from {client}"


def network_of(client: str) -> str:
    """What counts as one guesser: an IPv4 address, or the /64 of an IPv6 address, all of which one line has."""
    try:
        address = ip_address(client)
    except ValueError:
        return client
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(ip_network((address, 64), strict=False))
    return client


def is_loopback(client: str) -> bool:
    """Whether a client is on this machine; a proxy that names its clients is not the client."""
    try:
        return ip_address(client).is_loopback
    except ValueError:
        return False


def checked_name(name: str) -> str:
    """A user name in lower case; raises Permanent for one that is not possible."""
    if not _USER_NAME.fullmatch(name.lower()):
        raise Permanent(f"{name[:80]!r} is not possible as a user name: take letters, digits and . _ @ - (64 at most)")
    return name.lower()
