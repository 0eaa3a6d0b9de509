"""A proxy before an emulator that does what networks do: loses requests or answers, is late, refuses."""

from __future__ import annotations

import json
import os
import random
import re
import socket
import struct
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.aws.proxied_calls import ProxiedCall, call_of

_UPSTREAM_SECONDS = 60.0
_REUSE_SECONDS = 1.0
"""A connection to the emulator that was used so lately is still open: emulators keep theirs for longer."""
_IDLE_SECONDS = 120.0
_LATEST_SECONDS = 60.0
_LARGEST_BODY = 64 * 1024 * 1024
_REMEMBERED = 10_000
_MOST_KINDS = 1000
_HOP_BY_HOP = frozenset({"connection", "content-length", "transfer-encoding", "keep-alive", "expect"})
_QUERY_SERVICES = frozenset({"sts", "sns", "iam"})
_SERVICE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/")


@dataclass(frozen=True, slots=True)
class Fault:
    """What befalls one request: something happens first, then it is answered by the proxy, delivered or lost."""

    name: str
    deliver: bool = True
    answer: tuple[int, bytes] | None = None
    """What the client is told instead of the upstream's answer."""
    s3_answer: tuple[int, bytes] | None = None
    """What S3's clients are told instead of that: S3 has words of its own, in XML, and asks others to slow down."""
    query_answer: tuple[int, bytes] | None = None
    """What is told in services of the query protocol, in XML too."""
    hang_up: bool = False
    """The client is told nothing: its connection ends."""
    reset: bool = False
    """It ends as that of a machine which lost power and is back: whatever is sent there is refused."""
    before: Callable[[], object] | None = None
    """What somebody else does before it is delivered."""


DROP_REQUEST = Fault("drop request", deliver=False, hang_up=True)
DROP_RESPONSE = Fault("drop response", hang_up=True)
RESET = Fault("reset", deliver=False, reset=True)


def late(until: threading.Event) -> Fault:
    """Delivered and answered, but no sooner than that."""
    return Fault("late", before=lambda: until.wait(_LATEST_SECONDS))


def overtaken(by: Callable[[], object]) -> Fault:
    """Delivered and answered, after somebody else has done something."""
    return Fault("overtaken", before=by)


def s3_refusal(status: int, code: str) -> Fault:
    """Refused without delivery, as S3 says it."""
    return Fault(code, deliver=False, answer=(status, _xml(code)))


def refusal(status: int, code: str, **more: object) -> Fault:
    """Refused without delivery, as a JSON service says it: `refusal(500, "InternalServerError")`."""
    body = json.dumps({"__type": code, "message": "injected", "Message": "injected", **more}).encode()
    return Fault(code, deliver=False, answer=(status, body))


def _xml(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()


def _query_xml(code: str) -> bytes:
    return b"<ErrorResponse>" + _xml(code) + b"</ErrorResponse>"


THROTTLED = replace(
    refusal(400, "ThrottlingException"), s3_answer=(503, _xml("SlowDown")), query_answer=(400, _query_xml("Throttling"))
)
BROKEN = replace(
    refusal(500, "InternalServerError"),
    s3_answer=(500, _xml("InternalError")),
    query_answer=(500, _query_xml("InternalFailure")),
)
CONFLICT = refusal(
    400, "TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict", "Message": "injected"}]
)


RECEIVE = "ReceiveMessage"


class FaultyProxy:
    """Scripted faults come first, each a number of times; then, if asked for, random ones from a seed.

    Operations are called `service:Operation` (`dynamodb:TransactWriteItems`), or `s3:PUT /bucket/key` where the
    request does not name one. A fault hits the operations whose name contains what it was given.
    """

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname == "127.0.0.1"
        self.upstream = (parts.hostname, parts.port or 80)
        self.endpoint = ""
        self.calls: Counter[str] = Counter()
        """How often each operation was asked for, faults and retries included."""
        self.done: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)
        """The last faults: operation and fault."""
        self._priced: Counter[ProxiedCall] = Counter()
        self._received: Counter[ProxiedCall] = Counter()
        self._script: list[tuple[str, Fault]] = []
        self._rates: Mapping[Fault, float] = {}
        self._firsts: Fault | None = None
        self._hit, self._spared = "", ""
        self._dice = random.Random(0)
        self._guard = threading.Lock()

    def inject(self, fault: Fault, operation: str = "", times: int = 1) -> None:
        """The next `times` requests for `operation` meet this fault."""
        with self._guard:
            self._script += [(operation, fault)] * times

    def at_random(self, seed: int, rates: Mapping[Fault, float], operation: str = "", spare: str = "") -> None:
        """From now on each fault befalls its share of the requests for `operation`, but for those to spare."""
        with self._guard:
            self._dice, self._rates, self._hit, self._spared = random.Random(seed), dict(rates), operation, spare

    def first_tries(self, fault: Fault, operation: str = "") -> None:
        """From now on the first try of each call of `operation` meets this fault; clients number their tries."""
        with self._guard:
            self._firsts, self._hit = fault, operation

    def calm(self) -> None:
        """No more faults."""
        with self._guard:
            self._script, self._rates, self._firsts = [], {}, None

    def forget_calls(self) -> None:
        """Count anew."""
        with self._guard:
            self.calls.clear()
            self._priced.clear()
            self._received.clear()

    def priced(self) -> Counter[ProxiedCall]:
        """The counted requests, told apart by what their price depends on."""
        with self._guard:
            return self._priced.copy()

    def but_empty_polls(self) -> Counter[ProxiedCall]:
        """The same without requests for messages that brought none, or have not yet."""
        with self._guard:
            others = {call: times for call, times in self._priced.items() if call.operation != RECEIVE}
            return Counter(others) + self._received

    def note_received(self, call: ProxiedCall) -> None:
        """A request for messages brought some."""
        with self._guard:
            self._received[call] += 1

    def note(self, call: ProxiedCall) -> None:
        """Count a request by what its price depends on."""
        with self._guard:
            self._priced[call] += 1
            assert len(self._priced) <= _MOST_KINDS

    def decide(self, operation: str, *, is_first_try: bool) -> Fault | None:
        """Count a request, and say what befalls it."""
        with self._guard:
            self.calls[operation] += 1
            first = self._firsts if is_first_try and self._hit in operation else None
            fault = self._scripted(operation) or first or self._random(operation)
            if fault:
                self.done.append((operation, fault.name))
            return fault

    def _scripted(self, operation: str) -> Fault | None:
        for number, (wanted, fault) in enumerate(self._script):
            if wanted in operation:
                del self._script[number]
                return fault
        return None

    def _random(self, operation: str) -> Fault | None:
        if not self._rates or self._hit not in operation or (self._spared and self._spared in operation):
            return None
        roll = self._dice.random()
        for fault, rate in self._rates.items():
            if roll < rate:
                return fault
            roll -= rate
        return None


@contextmanager
def faulty_proxy(upstream: str) -> Iterator[FaultyProxy]:
    """Run one until the block ends."""
    proxy = FaultyProxy(upstream)

    class Handler(_ProxyHandler):
        pass

    Handler.proxy = proxy
    server = _Server(("127.0.0.1", 0), Handler)
    proxy.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="faulty-proxy")
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # fifty workers come at once; whom the kernel does not let in knocks again after a second

    def handle_error(self, request: object, client_address: object) -> None:
        """That a client hung up is no news, least of all in what a later test captures."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = -1
    proxy: FaultyProxy

    def setup(self) -> None:
        super().setup()
        self._upstream, self._used_at = HTTPConnection(*self.proxy.upstream, timeout=_UPSTREAM_SECONDS), 0.0

    def finish(self) -> None:
        self._upstream.close()
        super().finish()

    def _serve(self) -> None:
        body = self._body()
        call = self._call(body)
        self.proxy.note(call)
        is_first_try = "attempt=1" in self.headers.get("amz-sdk-request", "").split("; ")
        fault = self.proxy.decide(self._operation(), is_first_try=is_first_try) or Fault("none")
        if fault.before:
            fault.before()
        answer = self._deliver(body) if fault.deliver else None
        if answer and call.operation == RECEIVE and json.loads(answer[2] or b"{}").get("Messages"):
            self.proxy.note_received(call)
        if fault.reset:
            self._reset()
        elif fault.hang_up:
            self.close_connection = True
        elif fault.answer:
            status, text = self._worded(fault) or fault.answer
            self._answer(status, [("Content-Type", "application/x-amz-json-1.0")], text)
        elif answer:
            self._answer(*answer)

    def _worded(self, fault: Fault) -> tuple[int, bytes] | None:
        service = self._service()
        return fault.s3_answer if service == "s3" else fault.query_answer if service in _QUERY_SERVICES else None

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())  # at once: other ways say goodbye first

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    def handle_expect_100(self) -> bool:
        """Answers are buffered, but the client waits for this one before it sends anything more."""
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def _operation(self) -> str:
        return f"{self._service()}:{self._target() or f'{self.command} {self.path}'}"

    def _call(self, body: bytes) -> ProxiedCall:
        copies = "x-amz-copy-source" in self.headers
        return call_of(self._service(), self._target(), self.command, self.path, copies, body)

    def _service(self) -> str:
        service = _SERVICE.search(self.headers.get("Authorization", ""))
        return service[1] if service else "?"

    def _target(self) -> str:
        return self.headers.get("X-Amz-Target", "").rpartition(".")[2]

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            length = int(self.headers.get("Content-Length") or 0)
            assert length <= _LARGEST_BODY
            return self.rfile.read(length)
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
            assert len(whole) <= _LARGEST_BODY
        while self.rfile.readline().strip():
            pass  # trailers
        return whole

    def _deliver(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        if time.monotonic() - self._used_at > _REUSE_SECONDS:
            self._upstream.close()  # the next request opens it anew
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
        self._upstream.request(self.command, self.path, body=body, headers=headers | {"Content-Length": str(len(body))})
        response = self._upstream.getresponse()
        headers_back = [(name.lower(), value) for name, value in response.getheaders()]
        whole = response.read()
        self._used_at = time.monotonic()
        return response.status, headers_back, whole

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        try:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            if self.close_connection:  # or the client asks again where nobody listens any more
                self.send_header("Connection", "close")
            if self.command == "HEAD":  # tells the length of what it does not send
                self.send_header("Content-Length", dict(headers).get("content-length", "0"))
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # who asked has hung up

    def log_message(self, format: str, *args: object) -> None:
        pass
