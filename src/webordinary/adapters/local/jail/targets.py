"""Where a jail's requests go: addresses of upstreams, and what may be asked for there."""

from __future__ import annotations

import ssl
from functools import cache
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote, urlsplit

from webordinary.site.reach import Outgoing, Upstream

_SECONDS = 900.0


def connection_to(url: str) -> HTTPConnection:
    """Not connected yet."""
    parts = urlsplit(url)
    assert parts.hostname
    if parts.scheme == "https":
        return HTTPSConnection(parts.hostname, parts.port, timeout=_SECONDS, context=_trust())
    return HTTPConnection(parts.hostname, parts.port, timeout=_SECONDS)


def may_ask(path: str, allowed: tuple[str, ...]) -> bool:
    """Whether a path is one of the allowed ones, or lies below one that ends in a slash, however it is written."""
    plain = unquote(path.partition("?")[0])
    if any(part in (".", "..") for part in plain.replace("\\", "/").split("/")):
        return False
    return any(plain.startswith(one) if one.endswith("/") else plain == one for one in allowed)


def host_of(upstream: Upstream) -> str:
    """Its name and port, without what may stand before an @."""
    return urlsplit(upstream.url).netloc.rpartition("@")[2]


def target_of(upstream: Upstream, path: str) -> str:
    """The path to ask for at the upstream."""
    return urlsplit(upstream.url).path.rstrip("/") + path


def to_sign(upstream: Upstream, talk: BaseHTTPRequestHandler, path: str, body: bytes) -> Outgoing:
    """A request as its signature sees it, with those headers that arrive as they left."""
    said = talk.headers.get("Content-Type")
    headers = {"Host": host_of(upstream), **({"Content-Type": said} if said else {})}
    url = f"{urlsplit(upstream.url).scheme}://{host_of(upstream)}{target_of(upstream, path)}"
    return Outgoing(talk.command, url, headers, body)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()
