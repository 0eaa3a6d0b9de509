"""What the agent sent, for tests to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


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
        said = self.body.get("system", "")
        return said if isinstance(said, str) else "\n".join(str(block.get("text", "")) for block in said)

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
