"""The only way out of a jail: named upstreams whose keys are added here, and tunnels to listed hosts."""

from __future__ import annotations

import logging
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

from webordinary.adapters.local.jail.allowance import Allowance, SpentUp
from webordinary.adapters.local.jail.forward import Forwarder
from webordinary.adapters.local.jail.tunnel import tunnel
from webordinary.site.reach import Network

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
    """Serves one jail through the listener that came out of it. Logs hosts, never what is said to them."""

    def __init__(self, network: Network, prefix: str = "") -> None:
        self.network, self.prefix = network, prefix
        self.allowance = Allowance(network.bytes)
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
        threading.Thread(target=self._accept, args=(listener,), name="jail proxy", daemon=True).start()

    def close(self) -> None:
        """Cut every connection."""
        with self._guard:
            self._closed = True
            connections = [*self._open, *([self._listener] if self._listener else [])]
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def hold(self, connection: socket.socket) -> None:
        """Remember a connection, to cut it in the end."""
        with self._guard:
            if self._closed:
                raise ConnectionAbortedError("the jail was closed")
            self._open.add(connection)

    def drop(self, connection: socket.socket) -> None:
        """Close it."""
        with self._guard:
            self._open.discard(connection)
        connection.close()

    def note(self, verdict: str, host: str) -> None:
        """Log where a jail wanted to go, a bounded number of times."""
        self._logged += 1
        if self._logged <= _LOGGED:
            _log.info("a jailed program's way to %s: %s", host[:200].encode("ascii", "replace").decode(), verdict)

    def warn(self, words: str) -> None:
        """Log what keeps a jail's requests from leaving, a bounded number of times: a program may ask for ever."""
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
                threading.Thread(target=self._talk, args=(connection,), name="jail proxy talk", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            self.hold(connection)
            connection.settimeout(_IDLE_SECONDS)
            _Talk(connection, self)
            _take_leave(connection)
        except (OSError, SpentUp, ValueError):
            pass  # the program went away, or has had its share
        finally:
            self.drop(connection)
            self._free.release()


def _take_leave(connection: socket.socket) -> None:
    """Say that we are done, then hear the other side out: closing on bytes nobody read resets the answer away."""
    connection.shutdown(socket.SHUT_WR)
    ends_at = time.monotonic() + _LEAVE_SECONDS
    while (left := ends_at - time.monotonic()) > 0:
        connection.settimeout(left)
        if not connection.recv(_CHUNK):
            return


class _Talk(BaseHTTPRequestHandler):
    """One connection out of the jail; `server` is not a server but the proxy."""

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
            self.send_error(403, "this host is not on the list of this jail")
            return
        host, _, port = target.rpartition(":")
        try:
            outside = socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS)
        except OSError:
            self._proxy.note("unreachable", target)
            self.send_error(502, "the host does not answer")
            return
        self._proxy.note("allowed", target)
        try:
            self._proxy.hold(outside)
            self.send_response_only(200, "Connection established")
            self.end_headers()
            tunnel(self.connection, outside, self._proxy.allowance, _IDLE_SECONDS)
        finally:
            self._proxy.drop(outside)

    def log_message(self, format: str, *args: object) -> None:
        """Paths and headers are nobody's business; see Proxy.note."""

    def finish(self) -> None:
        """Close what was open towards the upstream, too."""
        self._forwarder.close()
        super().finish()
