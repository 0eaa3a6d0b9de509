"""The server: one thread per request, on 127.0.0.1 and a free port."""

from __future__ import annotations

import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from webordinary.testing.scripted_api.dialects import MESSAGES, Dialect, dialect_of
from webordinary.testing.scripted_api.requests import Received
from webordinary.testing.scripted_api.turns import Fail, Say, Script, Stall, Turn, parts_of

MOST_REQUESTS = 1000
MOST_BYTES = 64_000_000
SIDE_ANSWER = Say("Noted.")
SCRIPT_OVER = Say("Done.")


class ScriptedApi:
    """Start it with `with`; `url` is what the agent takes as its base address."""

    def __init__(self, script: Script = ()) -> None:
        self.requests: list[Received] = []
        """The requests that took a turn of the script, in order."""
        self.side_requests: list[Received] = []
        """Requests without tools: titles, summaries and other small talk of the agent."""
        self.strangers: list[Received] = []
        """Requests for anything else: nothing is scripted for them."""
        self._name = secrets.token_hex(6)  # a resumed conversation must not meet the names of another script
        self._script = iter(tuple(script))
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._server = _Server(self)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="scripted-api", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def wait_for_requests(self, count: int, seconds: float = 60.0) -> None:
        """Return as soon as so many requests have taken a turn; tests wait on this instead of sleeping."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, seconds):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came within {seconds:.0f} s")

    def answer_to(self, received: Received) -> tuple[Turn, str]:
        """The turn that this request takes, and a name for the answer."""
        with self._changed:
            if len(self.requests) + len(self.side_requests) >= MOST_REQUESTS:
                return Fail(400, "invalid_request_error", "the script has gone on for too long"), ""
            if not received.tools:
                self.side_requests.append(received)
                return SIDE_ANSWER, f"{self._name}_side_{len(self.side_requests)}"
            self.requests.append(received)
            self._changed.notify_all()
            name, turn = f"{self._name}_{len(self.requests)}", next(self._script, SCRIPT_OVER)
        return (turn(received) if callable(turn) else turn), name

    def hold(self) -> None:
        """Wait until the server closes: a stalled answer ends no earlier."""
        self._closing.wait()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, api: ScriptedApi) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api

    def handle_error(self, request: object, client_address: object) -> None:
        """An agent that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_HEAD(self) -> None:
        """Agents look whether anybody is there."""
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        """Answer one request for the model's next words, in the dialect that it was asked in."""
        length = int(self.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        dialect = dialect_of(self.path)
        raw = self.rfile.read(min(length, MOST_BYTES))  # also for a stranger: closing on unread bytes resets the answer
        if length > MOST_BYTES or dialect is None:
            self.server.api.strangers[MOST_REQUESTS:] = []
            self.server.api.strangers.append(Received(self.path, headers, {}))
            self._refuse(Fail(404, "not_found_error", f"nothing is scripted for {self.path}"), MESSAGES)
            return
        body = json.loads(raw or b"{}")
        turn, name = self.server.api.answer_to(Received(self.path, headers, body, raw))
        if isinstance(turn, Fail):
            self._refuse(turn, dialect)
        else:
            self._stream(turn, dialect, dialect.model(self.path, body), name)

    def _refuse(self, turn: Fail, dialect: Dialect) -> None:
        content = json.dumps(dialect.refusal(turn)).encode()
        self.send_response(turn.status)
        for name, value in {**turn.headers, "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, turn: Turn, dialect: Dialect, model: str, name: str) -> None:
        assert not isinstance(turn, Fail)
        self.send_response(200)
        self.send_header("Content-Type", dialect.content_type)
        self.send_header("Connection", "close")
        self.end_headers()
        for event, data in parts_of(turn, model, name):
            self.wfile.write(dialect.framed(event, data))
            self.wfile.flush()
        if isinstance(turn, Stall):
            self.server.api.hold()

    def log_message(self, format: str, *args: object) -> None:
        """What was asked is in `requests`."""
