"""Requests to named upstreams: `/{name}/…` inside is `{upstream}/…` outside, with the key that the jail never sees."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase
from typing import Protocol

from webordinary.adapters.local.jail.allowance import Allowance
from webordinary.adapters.local.jail.targets import connection_to, host_of, may_ask, target_of, to_sign
from webordinary.model.errors import WebOrdinaryError
from webordinary.site.reach import Sign, Upstream

_BODY_BYTES = 64_000_000
_SIGNED_BYTES = 32_000_000  # held in memory while it is signed
_CHUNK = 65_536
_REUSED_SECONDS = 4.0  # servers hang up on silent connections, the hastiest after five
_NOT_PASSED_ON = frozenset({
    "authorization", "connection", "content-length", "cookie", "expect", "forwarded", "host", "keep-alive",
    "proxy-authenticate", "proxy-authorization", "proxy-connection", "set-cookie", "te", "trailer",
    "transfer-encoding", "upgrade", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "x-api-key",
    "x-goog-api-key",
})  # fmt: skip


class Lines(Protocol):
    """The open connections of a jail, cut when it ends."""

    @property
    def desk(self) -> AbstractContextManager[object]:
        """A place for one request that is signed: few at a time, as each lies there whole."""

    def hold(self, connection: socket.socket) -> None:
        """One more."""

    def drop(self, connection: socket.socket) -> None:
        """One less; closes it."""

    def warn(self, words: str) -> None:
        """Tell the operator."""


class Forwarder:
    """For one connection from the jail; keeps its connections to upstreams for the next request."""

    def __init__(self, upstreams: Mapping[str, Upstream], prefix: str, allowance: Allowance, lines: Lines) -> None:
        self._upstreams, self._prefix, self._allowance, self._lines = upstreams, prefix, allowance, lines
        self._connections: dict[str, tuple[HTTPConnection, float]] = {}

    def forward(self, talk: BaseHTTPRequestHandler) -> tuple[str, str]:
        """Answer one request; returns the host and what became of it, for the log."""
        found = self._find(talk.path)
        if found is None:
            return _refuse(talk, 403, "no such upstream in this jail"), "refused"
        name, upstream, path = found
        host = host_of(upstream)
        if talk.command not in upstream.methods or not may_ask(path, upstream.paths):
            return _refuse(talk, 403, "this may not be asked from this jail", host), "refused"
        length = talk.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in talk.headers or not length.isdecimal():
            return _refuse(talk, 411, "say how long the request is", host), "refused"
        most = _SIGNED_BYTES if upstream.sign else _BODY_BYTES
        if int(length) > most:
            return _refuse(talk, 413, f"a request may have {most} bytes", host), "refused"
        self._allowance.spend(int(length))
        try:
            response = self._ask(name, upstream, talk, path, int(length))
        except WebOrdinaryError as problem:
            # Outside only: what a program that gives out keys says is nothing for a jail.
            self._lines.warn(f"a request to {host} cannot be signed: {problem}")
            self._forget(name)
            return _refuse(talk, 503, "there is no key for this now", host), "without a key"
        except (OSError, HTTPException):
            self._forget(name)
            return _refuse(talk, 502, "the upstream does not answer", host), "unreachable"
        try:
            self._pass_on(talk, response)
            self._keep(name, response)
        except (OSError, HTTPException):
            self._forget(name)
            raise ConnectionAbortedError(host) from None
        return host, "allowed"

    def close(self) -> None:
        """Hang up."""
        for name in list(self._connections):
            self._forget(name)

    def _find(self, path: str) -> tuple[str, Upstream, str] | None:
        if not path.startswith(f"{self._prefix}/"):
            return None
        name, _, rest = path.removeprefix(f"{self._prefix}/").partition("/")
        return (name, self._upstreams[name], f"/{rest}") if name in self._upstreams else None

    def _ask(self, name: str, upstream: Upstream, talk: BaseHTTPRequestHandler, path: str, length: int) -> HTTPResponse:
        if upstream.sign is None:
            connection = self._begin(name, upstream, talk, path, length, upstream.headers)
            _send(talk.rfile, connection, length)
        else:
            with self._lines.desk:
                connection = self._send_signed(name, upstream, upstream.sign, talk, path, length)
        return connection.getresponse()

    def _send_signed(
        self, name: str, upstream: Upstream, sign: Sign, talk: BaseHTTPRequestHandler, path: str, length: int
    ) -> HTTPConnection:
        """The body ends with this call: while a model thinks, nobody holds it."""
        body = _read(talk.rfile, length)
        added = sign(to_sign(upstream, talk, path, body))
        connection = self._begin(name, upstream, talk, path, length, {**upstream.headers, **added})
        connection.send(body)
        return connection

    def _begin(
        self, name: str, upstream: Upstream, talk: BaseHTTPRequestHandler, path: str, length: int,
        headers: Mapping[str, str],
    ) -> HTTPConnection:  # fmt: skip
        own = {key.lower(): value for key, value in headers.items()}
        said = [(key, value) for key, value in talk.headers.items() if key.lower() not in _NOT_PASSED_ON | own.keys()]
        connection = self._connection(name, upstream.url)
        connection.putrequest(talk.command, target_of(upstream, path), skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host_of(upstream))
        for key, value in [*said, *own.items()]:
            connection.putheader(key, value)
        if length or talk.command in ("POST", "PUT", "PATCH"):
            connection.putheader("Content-Length", str(length))
        connection.endheaders()
        return connection

    def _pass_on(self, talk: BaseHTTPRequestHandler, response: HTTPResponse) -> None:
        talk.send_response_only(response.status, response.reason)
        for key, value in response.getheaders():
            if key.lower() not in _NOT_PASSED_ON:
                talk.send_header(key, value)
        bodiless = talk.command == "HEAD" or response.status in (204, 304)
        length = response.getheader("Content-Length")
        chunked = length is None and not bodiless
        if length is not None:
            talk.send_header("Content-Length", length)
        elif chunked:
            talk.send_header("Transfer-Encoding", "chunked")
        talk.end_headers()
        while not bodiless and (chunk := response.read1(_CHUNK)):
            self._allowance.spend(len(chunk))
            talk.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
        if chunked:
            talk.wfile.write(b"0\r\n\r\n")
        response.close()

    def _connection(self, name: str, url: str) -> HTTPConnection:
        kept, used_at = self._connections.get(name, (None, 0.0))
        if kept is not None and time.monotonic() - used_at < _REUSED_SECONDS:
            return kept
        self._forget(name)
        connection = connection_to(url)
        connection.connect()
        self._connections[name] = (connection, 0.0)
        self._lines.hold(connection.sock)
        return connection

    def _keep(self, name: str, response: HTTPResponse) -> None:
        connection, _ = self._connections[name]
        if response.will_close:
            self._forget(name)
        else:
            self._connections[name] = (connection, time.monotonic())

    def _forget(self, name: str) -> None:
        connection, _ = self._connections.pop(name, (None, 0.0))
        if connection is not None:
            if connection.sock is not None:
                self._lines.drop(connection.sock)
            connection.close()


def _read(source: BufferedIOBase, length: int) -> bytes:
    body = source.read(length)
    if len(body) < length:
        raise ConnectionAbortedError("the request ended early")
    return body


def _send(source: BufferedIOBase, connection: HTTPConnection, length: int) -> None:
    while length:
        chunk = source.read(min(length, _CHUNK))
        if not chunk:
            raise ConnectionAbortedError("the request ended early")
        connection.send(chunk)
        length -= len(chunk)


def _refuse(talk: BaseHTTPRequestHandler, code: int, words: str, host: str = "an unknown upstream") -> str:
    talk.close_connection = True
    talk.send_error(code, words)
    return host
