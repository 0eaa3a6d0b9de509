"""The talk with an agent over the protocol: initialize, the session, one prompt, its end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, image_block, text_block
from acp.core import ClientSideConnection
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
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

from webordinary.adapters.agents import workspace
from webordinary.adapters.agents.acp_agent import RULES, AcpDeps, AcpResult
from webordinary.adapters.agents.process import AgentProcess, ConversationStop, converse, until_stopped
from webordinary.adapters.agents.session_store import SessionRecord
from webordinary.adapters.agents.workspace import PreparedFile, prompt_text, shown
from webordinary.jobs.ports import AgentTask
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent, ProgramKilled, Transient, WebOrdinaryError

_LOOKING = frozenset({"read", "search", "think"})
_EDITING = frozenset({"edit", "delete", "move"})


def granted(kind: str, paths: Sequence[str], workspace: Path, readable: Path, *, sandboxed: bool) -> bool:
    """Whether a tool may run: reads and edits of files of this site, and commands in a sandbox."""
    if kind == "execute":
        return sandboxed
    if kind in _EDITING:
        return _all_inside(paths, (workspace,)) if paths else sandboxed
    return kind in _LOOKING and _all_inside(paths, (workspace, readable))


def _all_inside(paths: Sequence[str], folders: tuple[Path, ...]) -> bool:
    return all(any(_is_inside(path, folder) for folder in folders) for path in paths)


def _is_inside(path: str, folder: Path) -> bool:
    if Path(path) == folder:
        return True
    try:
        workspace.inside(folder, path)
    except workspace.Outside:
        return False
    return True


_WORDS = 20_000
_REMEMBERED = 1_000


class SiteClient:
    """One run's client. When a cap is reached the turn is called off, once, and `capped` says which."""

    def __init__(self, deps: AcpDeps) -> None:
        self._deps = deps
        self._cost_before = 0.0
        self._call_off: Callable[[], None] = lambda: None
        self._calls: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._words: list[str] = []
        self._listening = False
        self.total_cost_usd = 0.0
        self.capped = ""

    @property
    def last_message(self) -> str:
        """The agent's text after its last tool call."""
        return "".join(self._words)[:_WORDS]

    def begin(self, cost_before: float, call_off: Callable[[], None]) -> None:
        """From now on it counts; what came before was the replay of an old conversation."""
        self._cost_before, self._call_off, self._listening = cost_before, call_off, True
        self.total_cost_usd = max(cost_before, self.total_cost_usd)
        self._words.clear()
        self._calls.clear()

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:  # noqa: ANN401
        """Handles a notification of the agent: progress, tool calls, text."""
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
        """Grant or refuse by the rules; no user can be asked."""
        self._note_call(tool_call)
        kind, paths = self._calls.get(tool_call.tool_call_id, ("", ()))
        deps = self._deps
        allowed = granted(kind, paths, deps.workspace, deps.attachments, sandboxed=deps.sandboxed)
        kind_of_answer = "allow_once" if allowed else "reject_once"
        if not allowed:
            deps.reporter.say(f"is not allowed to {kind or 'do something'}")
        chosen = next((option for option in options if option.kind == kind_of_answer), None)
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
        """Reads a file of the site for the agent."""
        try:
            text = workspace.read(self._deps.workspace, path).decode()
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
        """A file of the site; we are outside of the sandbox, so no link is followed."""
        try:
            workspace.write(self._deps.workspace, path, content.encode())
        except (OSError, ValueError) as problem:
            raise RequestError.invalid_params({"details": str(problem)}) from problem
        self._deps.reporter.tool("Write", {"path": path})
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
            self._deps.reporter.say(call.title or "works")
            if len(self._calls) > self._deps.limits.turns:
                self._cap(f"more than the {self._deps.limits.turns} steps that one mail may take")

    def _count_cost(self, amount: float) -> None:
        self.total_cost_usd = max(self.total_cost_usd, workspace.dollars(amount, self._deps.reporter.say))
        if self.total_cost_usd - self._cost_before > self._deps.limits.left_usd:
            self._cap(self._deps.limits.too_costly)

    def _cap(self, words: str) -> None:
        if not self.capped:
            self.capped = words
            self._call_off()


_AUTH_REQUIRED = -32000
_ERROR_CHARACTERS = 600


class _Channel:
    """The library's stream to the process. An error ends the stream and is raised afterwards."""

    def __init__(self, process: AgentProcess) -> None:
        self.process = process
        self.problem: WebOrdinaryError | None = None

    async def send(self, message: dict[str, Any]) -> None:
        await self.process.send(message)

    async def receive(self) -> dict[str, Any] | None:
        try:
            return await self.process.receive()
        except Permanent as problem:
            self.problem = problem
            return None

    async def close(self) -> None:
        await self.process.close()


def talk(
    start: Callable[[], Awaitable[AgentProcess]],
    task: AgentTask,
    record: SessionRecord,
    attachments: tuple[PreparedFile, ...],
    deps: AcpDeps,
    token: CancelToken,
    grace: float,
) -> AcpResult:
    """From the start of the process to its end."""

    async def talking(stopping: ConversationStop) -> AcpResult:
        channel = _Channel(await start())
        exchange = _Exchange(channel, task, record, attachments, deps)
        try:
            return await until_stopped(exchange.run(), stopping, exchange.cancel, task.limits.seconds, grace)
        except (ConnectionError, RequestError) as problem:
            if isinstance(problem, ConnectionError) and await channel.process.was_killed():
                raise ProgramKilled("the agent") from problem
            raise channel.problem or _explained(problem, channel.process) from problem
        finally:
            await exchange.close()
            await channel.close()
            task.spent(exchange.cost_usd)  # however it ended

    return converse(talking, token)


class _Exchange:
    """One prompt and its answer on one connection."""

    def __init__(
        self,
        channel: _Channel,
        task: AgentTask,
        record: SessionRecord,
        attachments: tuple[PreparedFile, ...],
        deps: AcpDeps,
    ) -> None:
        self._task, self._record, self._attachments = task, record, attachments
        self._deps = deps
        self._session, self._cost_before = "", math.inf  # until the session is open, nothing is this run's
        self._client = SiteClient(deps)
        self._calling_off: asyncio.Task[None] | None = None
        client: Any = self._client  # it has what this side can do, and not the rest of the protocol
        self._connection: ClientSideConnection = connect_to_agent(client, channel)

    @property
    def cost_usd(self) -> float:
        """The cost that the agent has reported so far."""
        return max(0.0, self._client.total_cost_usd - self._cost_before)

    async def run(self) -> AcpResult:
        """Sends the prompt and waits for the end of the turn."""
        met = await self._connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=True, write_text_file=True)
            ),
            client_info=Implementation(name="webordinary", title="WebOrdinary", version="1"),
        )
        if met.protocol_version != PROTOCOL_VERSION:
            raise Permanent(
                f"the agent speaks version {met.protocol_version} of the Agent Client Protocol, we speak "
                f"{PROTOCOL_VERSION}: install another version of it"
            )
        self._session, self._cost_before = await self._open_session(met)
        self._client.begin(self._cost_before, self._call_off)
        answer = await self._connection.prompt(session_id=self._session, prompt=self._prompt(met))
        client = self._client
        return AcpResult(
            answer.stop_reason, client.last_message, self._session, client.total_cost_usd, self.cost_usd, client.capped
        )  # fmt: skip

    async def cancel(self) -> None:
        """Ask the agent to end its turn."""
        if not self._session:
            raise TimeoutError("there is nothing to cancel yet")
        await self._connection.cancel(session_id=self._session)

    async def close(self) -> None:
        """Close the connection."""
        if self._calling_off:
            await asyncio.gather(self._calling_off, return_exceptions=True)
        await self._connection.close()

    def _call_off(self) -> None:
        self._calling_off = asyncio.create_task(self.cancel())

    async def _open_session(self, met: InitializeResponse) -> tuple[str, float]:
        """The thread's session if the agent still has it, with what it has cost; else a new one."""
        cwd, known = str(self._task.workspace), self._record.session
        if known and met.agent_capabilities and met.agent_capabilities.load_session:
            try:
                await self._connection.load_session(cwd=cwd, session_id=known)
            except RequestError:
                self._deps.reporter.say("does not remember this conversation and starts afresh")
            else:
                return known, self._record.total_cost_usd
        return (await self._connection.new_session(cwd=cwd)).session_id, 0.0

    def _prompt(self, met: InitializeResponse) -> list[Any]:
        abilities = met.agent_capabilities and met.agent_capabilities.prompt_capabilities
        images = shown(self._attachments) if abilities and abilities.image else ()
        pictures = [image_block(file.base64(), file.media_type) for file in images]
        return [text_block(RULES + prompt_text(self._task, self._attachments)), *pictures]


def _explained(problem: Exception, process: AgentProcess) -> WebOrdinaryError:
    words = f"{problem} {getattr(problem, 'data', None) or ''} {process.last_words}".strip()[:_ERROR_CHARACTERS]
    if isinstance(problem, RequestError) and problem.code == _AUTH_REQUIRED:
        return Permanent(f"the agent wants to be logged in: give it its key by agent_environment ({words})")
    if isinstance(problem, RequestError):
        return Permanent(f"the agent refused: {words}")
    return Transient(f"the agent ended without a result: {words}")
