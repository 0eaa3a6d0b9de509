"""Our side of the protocol: files of this site, permissions by rule, and an ear for what the agent does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp import RequestError
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    WriteTextFileResponse,
)

from webordinary.adapters.local.agents import confined
from webordinary.adapters.local.agents.acp.parts import Surroundings
from webordinary.adapters.local.agents.acp.permissions import granted

_WORDS = 20_000
_REMEMBERED = 1_000


class SiteClient:
    """One run's client. When a cap is reached the turn is called off, once, and `capped` says which."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._cost_before = 0.0
        self._call_off: Callable[[], None] = lambda: None
        self._calls: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._words: list[str] = []
        self._listening = False
        self.total_cost_usd = 0.0
        self.capped = ""

    @property
    def last_message(self) -> str:
        """What was said after the last use of a tool."""
        return "".join(self._words)[:_WORDS]

    def begin(self, cost_before: float, call_off: Callable[[], None]) -> None:
        """From now on it counts; what came before was the replay of an old conversation."""
        self._cost_before, self._call_off, self._listening = cost_before, call_off, True
        self.total_cost_usd = max(cost_before, self.total_cost_usd)
        self._words.clear()
        self._calls.clear()

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:  # noqa: ANN401
        """Something happens in there."""
        match update:
            case UsageUpdate(cost=cost) if cost and cost.currency.upper() == "USD":
                self._count_cost(cost.amount)
            case ToolCallStart() | ToolCallProgress():
                self._note_call(update)
            case AgentMessageChunk(content=TextContentBlock(text=text)) if self._listening:
                self._hear(text)

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_: Any,  # noqa: ANN401
    ) -> RequestPermissionResponse:
        """Grant it or not; there is nobody to ask."""
        self._note_call(tool_call)
        kind, paths = self._calls.get(tool_call.tool_call_id, ("", ()))
        around = self._around
        allowed = granted(kind, paths, around.workspace, around.attachments, jailed=around.jailed)
        wanted = "allow_once" if allowed else "reject_once"
        if not allowed:
            around.narrator.say(f"is not allowed to {kind or 'do something'}")
        chosen = next((option for option in options if option.kind == wanted), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,  # noqa: ANN401
    ) -> ReadTextFileResponse:
        """A file of the site."""
        try:
            text = confined.read(self._around.workspace, path).decode()
        except (OSError, ValueError) as problem:
            raise RequestError.invalid_params({"details": str(problem)}) from problem
        start = max((line or 1) - 1, 0)
        lines = text.splitlines(keepends=True)[start:][: limit if limit is not None else None]
        return ReadTextFileResponse(content="".join(lines))

    async def write_text_file(
        self,
        session_id: str,
        path: str,
        content: str,
        **_: Any,  # noqa: ANN401
    ) -> WriteTextFileResponse:
        """A file of the site; we are outside of the jail, so no link is followed."""
        try:
            confined.write(self._around.workspace, path, content.encode())
        except (OSError, ValueError) as problem:
            raise RequestError.invalid_params({"details": str(problem)}) from problem
        self._around.narrator.tool("Write", {"path": path})
        return WriteTextFileResponse()

    def _hear(self, text: str) -> None:
        if sum(map(len, self._words)) < _WORDS:
            self._words.append(text)

    def _note_call(self, call: ToolCallStart | ToolCallProgress | ToolCallUpdate) -> None:
        kind, paths = self._calls.get(call.tool_call_id, ("", ()))
        if call.tool_call_id not in self._calls and len(self._calls) >= _REMEMBERED:
            return
        new_paths = tuple(location.path for location in call.locations or ())
        self._calls[call.tool_call_id] = (call.kind or kind, new_paths or paths)
        if self._listening and isinstance(call, ToolCallStart):
            self._words.clear()
            self._around.narrator.say(call.title or "works")
            if len(self._calls) > self._around.limits.turns:
                self._cap(f"more than the {self._around.limits.turns} steps that one mail may take")

    def _count_cost(self, amount: float) -> None:
        self.total_cost_usd = max(self.total_cost_usd, amount)
        if self.total_cost_usd - self._cost_before > self._around.limits.left_usd:
            self._cap(self._around.limits.too_costly)

    def _cap(self, words: str) -> None:
        if not self.capped:
            self.capped = words
            self._call_off()
