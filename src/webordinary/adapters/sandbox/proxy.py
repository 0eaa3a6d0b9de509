"""The only way out of a sandbox: named upstreams whose keys are added here, and tunnels to listed hosts."""

from __future__ import annotations

import logging
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from email.message import Message
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase
from ipaddress import ip_address, ip_network
from typing import Protocol
from urllib.parse import unquote, urlsplit

from webordinary.jobs.sandbox_policy import Network, OutgoingRequest, Sign, Upstream
from webordinary.model.errors import WebOrdinaryError

_SECONDS = 900.0
_METADATA = ip_network("fd00:ec2::/32")
"""Of AWS over IPv6; over IPv4 it is a link-local address."""


def connection_to(url: str) -> HTTPConnection:
    """A connection that is not open yet."""
    parts = urlsplit(url)
    assert parts.hostname
    if parts.scheme == "https":
        return HTTPSConnection(parts.hostname, parts.port, timeout=_SECONDS, context=_trust())
    return HTTPConnection(parts.hostname, parts.port, timeout=_SECONDS)


def connect(host: str, port: int, seconds: float) -> socket.socket:
    """Connect to a listed host. Raises PermissionError if a name means this machine, its link or cloud metadata.

    The owner of a name could otherwise point it at services of this machine. An address and `localhost` are listed as
    what they are.
    """
    problem: OSError = ConnectionError(f"{host} has no address")
    for _, _, _, _, found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        address = str(found[0])
        if host not in (address, "localhost") and _is_local(address):
            raise PermissionError(f"{host} is {address}")
        try:
            return socket.create_connection((address, port), seconds)
        except OSError as refused:
            problem = refused
    raise problem


def _is_local(address: str) -> bool:
    ip = ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    odd = ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast or ip in _METADATA
    return odd or _is_own(str(ip))


def _is_own(address: str) -> bool:
    """Whether an address is one of this machine's: then packets to it have it as their source, too. Sends nothing."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect((address, 9))
        return str(probe.getsockname()[0]) == address
    return False


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


def to_sign(upstream: Upstream, talk: BaseHTTPRequestHandler, path: str, body: bytes) -> OutgoingRequest:
    """A request as its signature sees it, with those headers that arrive as they left."""
    content_type = talk.headers.get("Content-Type")
    headers = {"Host": host_of(upstream), **({"Content-Type": content_type} if content_type else {})}
    url = f"{urlsplit(upstream.url).scheme}://{host_of(upstream)}{target_of(upstream, path)}"
    return OutgoingRequest(talk.command, url, headers, body)


@cache
def _trust() -> ssl.SSLContext:
    return ssl.create_default_context()


class QuotaExceeded(Exception):
    """The sandbox has moved all the bytes that one run may."""


class ByteQuota:
    """Shared by all connections of one sandbox."""

    def __init__(self, most: int) -> None:
        self._left, self._guard = most, threading.Lock()

    def spend(self, count: int) -> None:
        """Take so many; raises SpentUp when there are not enough left."""
        with self._guard:
            self._left -= count
            if self._left < 0:
                raise QuotaExceeded


def tunnel(inside: socket.socket, outside: socket.socket, allowance: ByteQuota, idle_seconds: float) -> None:
    """Copy both ways. The end of one side is passed on; two ends or a long silence end the tunnel."""
    for side in (inside, outside):
        side.settimeout(idle_seconds)
    other = {inside: outside, outside: inside}
    speaking = [inside, outside]
    while speaking:
        ready, _, _ = select.select(speaking, [], [], idle_seconds)
        if not ready:
            return
        for side in ready:
            chunk = side.recv(_CHUNK)
            if chunk:
                allowance.spend(len(chunk))
                other[side].sendall(chunk)
            else:
                speaking.remove(side)
                other[side].shutdown(socket.SHUT_WR)


_BODY_BYTES = 64_000_000
_SIGNED_BYTES = 32_000_000  # held in memory while it is signed
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REUSED_SECONDS = 4.0  # servers hang up on silent connections, the hastiest after five
_NOT_PASSED_ON = frozenset({
    "authorization", "connection", "content-length", "cookie", "expect", "forwarded", "host", "keep-alive",
    "proxy-authenticate", "proxy-authorization", "proxy-connection", "set-cookie", "te", "trailer",
    "transfer-encoding", "upgrade", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "x-api-key",
    "x-goog-api-key",
})  # fmt: skip


class Lines(Protocol):
    """The open connections of a sandbox, cut when it ends."""

    @property
    def desk(self) -> AbstractContextManager[object]:
        """A slot for one signed request: few at a time, because each is held in memory."""

    def token(self, connection: socket.socket) -> None:
        """Register a connection."""

    def drop(self, connection: socket.socket) -> None:
        """Close and forget a connection."""

    def warn(self, words: str) -> None:
        """Tell the operator."""


class Forwarder:
    """For one connection from the sandbox; keeps its connections to upstreams for the next request."""

    def __init__(self, upstreams: Mapping[str, Upstream], prefix: str, allowance: ByteQuota, lines: Lines) -> None:
        self._upstreams, self._prefix, self._allowance, self._lines = upstreams, prefix, allowance, lines
        self._connections: dict[str, tuple[HTTPConnection, float]] = {}

    def forward(self, talk: BaseHTTPRequestHandler) -> tuple[str, str]:
        """Answer one request; returns the host and what became of it, for the log."""
        found = self._find(talk.path)
        if found is None:
            return _refuse(talk, 403, "no such upstream in this sandbox"), "refused"
        name, upstream, path = found
        host = host_of(upstream)
        if talk.command not in upstream.methods or not may_ask(path, upstream.paths):
            return _refuse(talk, 403, "this may not be asked from this sandbox", host), "refused"
        if _is_ambiguous(talk.headers):
            return _refuse(talk, 400, "a header must be one plain line", host), "refused"
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
            # Outside only: what a program that gives out keys says is nothing for a sandbox.
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
        """Close the connection."""
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
        """The body ends with this call, so that no request is kept in memory while a model works."""
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
        ours = _NOT_PASSED_ON | own.keys()
        # Some servers read X_Api_Key as X-Api-Key.
        passed_on = [(key, value) for key, value in talk.headers.items() if key.lower().replace("_", "-") not in ours]
        connection = self._connection(name, upstream.url)
        connection.putrequest(talk.command, target_of(upstream, path), skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host_of(upstream))
        for key, value in [*passed_on, *own.items()]:
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
        self._lines.token(connection.sock)
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


def _is_ambiguous(headers: Message) -> bool:
    """Whether the next server may read the header in another way: folded lines, control characters, odd names."""
    names = all(map(_TOKEN.fullmatch, headers.keys()))
    return not names or bool(headers.defects) or any(_CONTROL.search(value) for value in headers.values())


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


_log = logging.getLogger(__name__)
_CONNECTIONS = 64
_IDLE_SECONDS = 900.0  # a model may think for long before it answers
_CONNECT_SECONDS = 20.0
_LOGGED = 200
_WARNED = 10
_SIGNED_AT_ONCE = 4
_LEAVE_SECONDS = 5.0
_CHUNK = 65_536


class Proxy:
    """Serves one sandbox through the listener that it handed out. Logs hosts, never requests."""

    def __init__(self, network: Network, prefix: str = "") -> None:
        self.network, self.prefix = network, prefix
        self.allowance = ByteQuota(network.bytes)
        self.desk = threading.BoundedSemaphore(_SIGNED_AT_ONCE)
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self._guard = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._closed = False
        self._logged = self._warned = 0

    def serve(self, listener: socket.socket) -> None:
        """Answer in threads of its own, until closed."""
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), name="sandbox proxy", daemon=True).start()

    def close(self) -> None:
        """Close every connection."""
        with self._guard:
            self._closed = True
            connections = [*self._open, *([self._listener] if self._listener else [])]
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def token(self, connection: socket.socket) -> None:
        """Remember a connection, to cut it in the end."""
        with self._guard:
            if self._closed:
                raise ConnectionAbortedError("the sandbox was closed")
            self._open.add(connection)

    def drop(self, connection: socket.socket) -> None:
        """Close the connection."""
        with self._guard:
            self._open.discard(connection)
        connection.close()

    def note(self, verdict: str, host: str) -> None:
        """Log where a sandbox wanted to go, a bounded number of times."""
        self._logged += 1
        if self._logged <= _LOGGED:
            _log.info("a sandboxed program's way to %s: %s", host[:200].encode("ascii", "replace").decode(), verdict)

    def warn(self, words: str) -> None:
        """Log what keeps a sandbox's requests from leaving, a bounded number of times: a program may ask for ever."""
        self._warned += 1
        if self._warned <= _WARNED:
            _log.warning("%s", words)

    def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                if not self._free.acquire(blocking=False):
                    connection.close()
                    continue
                threading.Thread(target=self._talk, args=(connection,), name="sandbox proxy talk", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            self.token(connection)
            connection.settimeout(_IDLE_SECONDS)
            _Talk(connection, self)
            _take_leave(connection)
        except (OSError, QuotaExceeded, ValueError):
            pass  # the program went away, or has had its share
        finally:
            self.drop(connection)
            self._free.release()


def _take_leave(connection: socket.socket) -> None:
    """Half-close, then read to the end: closing with unread bytes would reset the connection and lose the answer."""
    connection.shutdown(socket.SHUT_WR)
    ends_at = time.monotonic() + _LEAVE_SECONDS
    while (left := ends_at - time.monotonic()) > 0:
        connection.settimeout(left)
        if not connection.recv(_CHUNK):
            return


class _Talk(BaseHTTPRequestHandler):
    """One connection out of the sandbox; `server` is not a server but the proxy."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "webordinary", ""

    def __init__(self, connection: socket.socket, proxy: Proxy) -> None:
        self._proxy = proxy
        self._forwarder = Forwarder(proxy.network.upstreams, proxy.prefix, proxy.allowance, proxy)
        super().__init__(connection, ("jail", 0), proxy)  # type: ignore[arg-type]

    def _forward(self) -> None:
        where, verdict = self._forwarder.forward(self)
        self._proxy.note(verdict, where)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _forward  # noqa: N815  found by name

    def do_CONNECT(self) -> None:
        """Open a tunnel to a listed host."""
        self.close_connection = True
        target = self.path.lower()
        if target not in self._proxy.network.allowed:
            self._proxy.note("refused", target)
            self.send_error(403, "this host is not on the list of this sandbox")
            return
        host, _, port = target.rpartition(":")
        try:
            outside = connect(host.strip("[]"), int(port), _CONNECT_SECONDS)
        except PermissionError:
            self._proxy.note("refused: the name means this machine", target)
            self.send_error(403, "this name means the machine itself; list the address to allow it")
            return
        except OSError:
            self._proxy.note("unreachable", target)
            self.send_error(502, "the host does not answer")
            return
        self._proxy.note("allowed", target)
        try:
            self._proxy.token(outside)
            self.send_response_only(200, "Connection established")
            self.end_headers()
            tunnel(self.connection, outside, self._proxy.allowance, _IDLE_SECONDS)
        finally:
            self._proxy.drop(outside)

    def log_message(self, format: str, *args: object) -> None:
        """Paths and headers are not logged; see Proxy.note."""

    def finish(self) -> None:
        """Close the connection to the upstream, too."""
        self._forwarder.close()
        super().finish()
