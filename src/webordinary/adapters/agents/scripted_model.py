"""The server: one thread per request, on 127.0.0.1 and a free port."""

from __future__ import annotations

import base64
import json
import re
import secrets
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Received:
    """One request to the scripted API; `raw` is its body as it came, which a signature covers."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    raw: bytes = field(default=b"", repr=False)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model may call."""
        return tuple(str(tool.get("name", "")) for tool in self.body.get("tools") or ())

    def offers(self, tool: str) -> bool:
        """Whether the model may call this tool."""
        return tool in self.tools

    @property
    def system(self) -> str:
        """The system prompt, as one text."""
        prompt = self.body.get("system", "")
        return prompt if isinstance(prompt, str) else "\n".join(str(block.get("text", "")) for block in prompt)

    def blocks(self, kind: str, role: str = "") -> tuple[Mapping[str, Any], ...]:
        """All content blocks of a kind (`text`, `image`, `tool_use`, `tool_result`) in the conversation."""
        return tuple(block for block in self._blocks(role) if block.get("type") == kind)

    def text(self, role: str = "") -> str:
        """Everything that was said in the conversation, as one text; results of tools included."""
        return "\n".join(_words(block) for block in self._blocks(role))

    def _blocks(self, role: str) -> Iterator[Mapping[str, Any]]:
        for message in self.body.get("messages") or ():
            if role and message.get("role") != role:
                continue
            content = message.get("content") or ()
            yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def _words(block: Mapping[str, Any]) -> str:
    if "text" in block:
        return str(block["text"])
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(_words(part) for part in content)


@dataclass(frozen=True, slots=True)
class Say:
    """Text that ends the model's turn. `tokens` is the reported number of output tokens."""

    text: str
    tokens: int = 10


@dataclass(frozen=True, slots=True)
class Use:
    """The model calls one tool of the agent."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    tokens: int = 10


@dataclass(frozen=True, slots=True)
class ApiError:
    """The API refuses, as it does with rate limits, bad keys and its own trouble."""

    status: int
    kind: str = "api_error"
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stall:
    """The answer begins with `text` and then nothing more comes, until the agent hangs up."""

    text: str = "Let me think"


Turn: TypeAlias = Say | Use | ApiError | Stall
Script: TypeAlias = Sequence[Turn | Callable[[Received], Turn]]
"""A turn may also be worked out from the request that it answers."""

Part: TypeAlias = tuple[str, dict[str, Any]]


def parts_of(turn: Say | Use | Stall, model: str, name: str) -> Iterator[Part]:
    """The server-sent events of one answer, as (event, data); `name` is unlike that of any other answer."""
    yield _start(model, name)
    blocks = list(_blocks(turn, name))
    for index, (begin, delta) in enumerate(blocks):
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": begin}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        if isinstance(turn, Stall):
            return
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    reason = "tool_use" if isinstance(turn, Use) else "end_turn"
    tokens = 0 if isinstance(turn, Stall) else turn.tokens
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": tokens},
        },
    )
    yield "message_stop", {"type": "message_stop"}


def _start(model: str, name: str) -> Part:
    message: dict[str, Any] = {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 0},
    }
    return "message_start", {"type": "message_start", "message": message}


def _blocks(turn: Say | Use | Stall, name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    if turn.text:
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
    if isinstance(turn, Use):
        begin = {"type": "tool_use", "id": f"toolu_{name}", "name": turn.tool, "input": {}}
        yield begin, {"type": "input_json_delta", "partial_json": json.dumps(turn.args)}


_STRING = 7  # the type of a header's value in an event stream of AWS


@dataclass(frozen=True, slots=True)
class Dialect:
    """`path` matches what is asked for, with the model in its first group if it stands there."""

    path: re.Pattern[str]
    content_type: str
    framed: Callable[[str, Mapping[str, Any]], bytes]
    refusal: Callable[[ApiError], Mapping[str, Any]]

    def model(self, path: str, body: Mapping[str, Any]) -> str:
        """The model that was asked."""
        found = self.path.match(path)
        return unquote(found[1]) if found and found.re.groups else str(body.get("model", "scripted"))


def dialect_of(path: str) -> Dialect | None:
    """The dialect of a request's path; None for any other path."""
    return next((known for known in (MESSAGES, BEDROCK, VERTEX) if known.path.match(path)), None)


def _server_sent(event: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def _event_stream(_: str, data: Mapping[str, Any]) -> bytes:
    """One message of AWS's event stream: lengths, their checksum, headers, payload, checksum of all."""
    fields = {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}
    headers = b"".join(_header(name, value) for name, value in fields.items())
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(data).encode()).decode()}).encode()
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING, len(value)) + value.encode()


def _error(turn: ApiError) -> dict[str, Any]:
    return {"type": "error", "error": {"type": turn.kind, "message": turn.message}}


def _aws_error(turn: ApiError) -> dict[str, Any]:
    return {"message": turn.message}


MESSAGES = Dialect(re.compile(r"/v1/messages"), "text/event-stream", _server_sent, _error)
BEDROCK = Dialect(
    re.compile(r"/model/([^/]+)/invoke-with-response-stream$"),
    "application/vnd.amazon.eventstream",
    _event_stream,
    _aws_error,
)
VERTEX = Dialect(
    re.compile(r"/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/([^/:]+):streamRawPredict$"),
    "text/event-stream",
    _server_sent,
    _error,
)


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
        self._server = _ApiServer(self)

    @property
    def url(self) -> str:
        """The address of the server."""
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
                return ApiError(400, "invalid_request_error", "the script has gone on for too long"), ""
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


class _ApiServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, api: ScriptedApi) -> None:
        super().__init__(("127.0.0.1", 0), _ModelHandler)
        self.api = api

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores closed connections."""


class _ModelHandler(BaseHTTPRequestHandler):
    server: _ApiServer

    def do_HEAD(self) -> None:
        """Answers the health check of agents."""
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
            self._refuse(ApiError(404, "not_found_error", f"nothing is scripted for {self.path}"), MESSAGES)
            return
        body = json.loads(raw or b"{}")
        turn, name = self.server.api.answer_to(Received(self.path, headers, body, raw))
        if isinstance(turn, ApiError):
            self._refuse(turn, dialect)
        else:
            self._stream(turn, dialect, dialect.model(self.path, body), name)

    def _refuse(self, turn: ApiError, dialect: Dialect) -> None:
        content = json.dumps(dialect.refusal(turn)).encode()
        self.send_response(turn.status)
        for name, value in {**turn.headers, "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, turn: Turn, dialect: Dialect, model: str, name: str) -> None:
        assert not isinstance(turn, ApiError)
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
        """Logs nothing; `requests` has every request."""


__all__ = ["ApiError", "Received", "Say", "Script", "ScriptedApi", "Stall", "Turn", "Use"]
