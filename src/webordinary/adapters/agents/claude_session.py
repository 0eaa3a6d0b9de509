"""The talk with Claude Code, over the SDK. Importing this takes a second and fifty megabytes: only a job does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolUseBlock,
    create_sdk_mcp_server,
    tool,
)
from claude_agent_sdk.types import McpSdkServerConfig

from webordinary.adapters.agents import workspace as confined
from webordinary.adapters.agents.claude_agent import SERVER, ClaudeResult, read_ending, user_message
from webordinary.adapters.agents.process import (
    AgentProcess,
    ConversationStop,
    ProgressReporter,
    converse,
    until_stopped,
)
from webordinary.adapters.agents.workspace import PreparedFile
from webordinary.jobs.ports import AgentTask
from webordinary.model.claims import CancelToken
from webordinary.model.errors import ProgramKilled, Transient

_ABOUT = "Put a file that came with the owner's mail onto the site, unchanged. Makes folders as needed."
_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "name of the file, as listed with the mail"},
        "path": {"type": "string", "description": "where it goes, relative to the site, such as images/cup.jpg"},
    },
    "required": ["name", "path"],
}


def site_tools(workspace: Path, attachments: tuple[PreparedFile, ...]) -> McpSdkServerConfig:
    """An MCP server inside this process; it runs outside of the sandbox, so it follows no link."""
    files = {file.name: file for file in attachments}

    async def add_file(args: dict[str, Any]) -> dict[str, Any]:
        file = files.get(str(args.get("name", "")))
        if file is None:
            return _answer(f"There is no such file; the mail brought: {', '.join(files) or 'none'}.", wrong=True)
        try:
            confined.write(workspace, str(args.get("path", "")), file.path.read_bytes())
        except (OSError, ValueError) as problem:
            return _answer(f"Not possible: {problem}", wrong=True)
        return _answer(f"{file.name} is now at {args['path']}.")

    return create_sdk_mcp_server(SERVER, tools=[tool("add_file", _ABOUT, _SCHEMA)(add_file)])


def _answer(text: str, wrong: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **({"is_error": True} if wrong else {})}


class Channel:
    """The SDK's transport to one process."""

    def __init__(self, process: AgentProcess) -> None:
        self._process = process
        self._ready = True

    async def connect(self) -> None:
        """Does nothing: the process is connected."""

    async def write(self, data: str) -> None:
        """Write a message of the SDK to the process."""
        await self._process.write(data)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """The messages of the process until it ends."""
        while (message := await self._process.receive()) is not None:
            yield message

    async def close(self) -> None:
        """Close the input, so that the process ends."""
        self._ready = False
        await self._process.close()

    def is_ready(self) -> bool:
        """Whether the process takes input."""
        return self._ready

    async def end_input(self) -> None:
        """Close the input."""
        await self._process.end_input()


_ERROR_CHARACTERS = 600


def talk(
    start: Callable[[], Awaitable[AgentProcess]],
    task: AgentTask,
    attachments: tuple[PreparedFile, ...],
    token: CancelToken,
    grace: float,
) -> ClaudeResult:
    """Run the process from start to end; after a stop it ends with its present result."""

    async def talking(stopping: ConversationStop) -> ClaudeResult:
        process = await start()
        client = _client(process, task, attachments)
        try:
            exchange = _exchange(client, user_message(task, attachments), ProgressReporter(task.tell, task.workspace))
            return await until_stopped(exchange, stopping, lambda: _interrupt(client), task.limits.seconds, grace)
        except (ConnectionError, EOFError, ClaudeSDKError) as problem:
            words = process.last_words[-_ERROR_CHARACTERS:] or str(problem)[:_ERROR_CHARACTERS]
            if await process.was_killed():
                raise ProgramKilled("the agent claude") from problem
            raise Transient(f"the agent claude ended without a result: {words}") from problem
        finally:
            await client.disconnect()
            await process.close()

    return converse(talking, token)


def _client(process: AgentProcess, task: AgentTask, attachments: tuple[PreparedFile, ...]) -> ClaudeSDKClient:
    # Verbatim: a mail that begins with a slash or names @/a/file is a wish, not a command of the program.
    options = ClaudeAgentOptions(mcp_servers={SERVER: site_tools(task.workspace, attachments)}, verbatim_prompts=True)
    channel: Any = Channel(process)
    return ClaudeSDKClient(options, transport=channel)


async def _exchange(client: ClaudeSDKClient, message: dict[str, Any], reporter: ProgressReporter) -> ClaudeResult:
    await client.connect()
    await client.query(_once(message))
    async for heard in client.receive_messages():
        match heard:
            case AssistantMessage(error=None):
                _narrate(heard, reporter)
            case SystemMessage(subtype="api_retry"):
                reporter.say("waits for the model, which is busy")
            case ResultMessage():
                return read_ending(heard)
    raise EOFError("it ended")


async def _once(message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    yield message


async def _interrupt(client: ClaudeSDKClient) -> None:
    try:
        await client.interrupt()
    except (ClaudeSDKError, ConnectionError) as problem:
        raise TimeoutError("it is not there to be interrupted") from problem


def _narrate(heard: AssistantMessage, reporter: ProgressReporter) -> None:
    for block in heard.content:
        match block:
            case TextBlock(text=text):
                reporter.say(text)
            case ToolUseBlock(name=name, input=args) if name != "StructuredOutput":
                reporter.tool(name, args)
