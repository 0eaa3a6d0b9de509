"""What the model is scripted to do: one turn for each request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from webordinary.testing.scripted_api.requests import Received


@dataclass(frozen=True, slots=True)
class Say:
    """Text, and the end of the model's turn. `tokens` is what it pretends to have written."""

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
class Fail:
    """The API refuses, as it does with rate limits, bad keys and its own trouble."""

    status: int
    kind: str = "api_error"
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stall:
    """The answer begins with `text` and then nothing more comes, until the agent hangs up."""

    text: str = "Let me think"


Turn: TypeAlias = Say | Use | Fail | Stall
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
