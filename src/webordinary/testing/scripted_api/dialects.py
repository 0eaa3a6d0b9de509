"""The ways of asking the same model: the Messages API, Bedrock and Vertex differ in address, framing and errors."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from webordinary.testing.scripted_api.turns import Fail

_STRING = 7  # the type of a header's value in an event stream of AWS


@dataclass(frozen=True, slots=True)
class Dialect:
    """`path` matches what is asked for, with the model in its first group if it stands there."""

    path: re.Pattern[str]
    content_type: str
    framed: Callable[[str, Mapping[str, Any]], bytes]
    refusal: Callable[[Fail], Mapping[str, Any]]

    def model(self, path: str, body: Mapping[str, Any]) -> str:
        """The model that was asked."""
        found = self.path.match(path)
        return unquote(found[1]) if found and found.re.groups else str(body.get("model", "scripted"))


def dialect_of(path: str) -> Dialect | None:
    """By what was asked for; None for what no agent needs."""
    return next((known for known in (MESSAGES, BEDROCK, VERTEX) if known.path.match(path)), None)


def _server_sent(event: str, data: Mapping[str, Any]) -> bytes:
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def _event_stream(_: str, data: Mapping[str, Any]) -> bytes:
    """One message of AWS's event stream: lengths, their checksum, headers, payload, checksum of all."""
    said = {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}
    headers = b"".join(_header(name, value) for name, value in said.items())
    payload = json.dumps({"bytes": base64.b64encode(json.dumps(data).encode()).decode()}).encode()
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING, len(value)) + value.encode()


def _error(turn: Fail) -> dict[str, Any]:
    return {"type": "error", "error": {"type": turn.kind, "message": turn.message}}


def _aws_error(turn: Fail) -> dict[str, Any]:
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
