"""The talk with Claude Code, over the SDK. Importing this takes a second and fifty megabytes: only a job does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
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
)

from webordinary.adapters.local.agents.claude.channel import Channel
from webordinary.adapters.local.agents.claude.endings import Ending, read_ending
from webordinary.adapters.local.agents.claude.invocation import SERVER
from webordinary.adapters.local.agents.claude.prompt import user_message
from webordinary.adapters.local.agents.claude.tools import site_tools
from webordinary.adapters.local.agents.conversing import Stopping, converse, until_stopped
from webordinary.adapters.local.agents.luggage import Packed
from webordinary.adapters.local.agents.process import AgentProcess
from webordinary.adapters.local.agents.telling import Narrator
from webordinary.model.errors import Transient
from webordinary.model.hold import Hold
from webordinary.site.task import AgentTask

_ERROR_CHARACTERS = 600


def talk(
    start: Callable[[], Awaitable[AgentProcess]], task: AgentTask, luggage: tuple[Packed, ...], hold: Hold, grace: float
) -> Ending:
    """From the start of the process to its end; told to stop, it ends with what it has."""

    async def talking(stopping: Stopping) -> Ending:
        process = await start()
        client = _client(process, task, luggage)
        try:
            exchange = _exchange(client, user_message(task, luggage), Narrator(task.tell, task.workspace))
            return await until_stopped(exchange, stopping, lambda: _interrupt(client), task.limits.seconds, grace)
        except (ConnectionError, EOFError, ClaudeSDKError) as problem:
            words = process.last_words[-_ERROR_CHARACTERS:] or str(problem)[:_ERROR_CHARACTERS]
            raise Transient(f"the agent claude ended without a result: {words}") from problem
        finally:
            await client.disconnect()
            await process.close()

    return converse(talking, hold)


def _client(process: AgentProcess, task: AgentTask, luggage: tuple[Packed, ...]) -> ClaudeSDKClient:
    # Verbatim: a mail that begins with a slash or names @/a/file is a wish, not a command of the program.
    options = ClaudeAgentOptions(mcp_servers={SERVER: site_tools(task.workspace, luggage)}, verbatim_prompts=True)
    channel: Any = Channel(process)
    return ClaudeSDKClient(options, transport=channel)


async def _exchange(client: ClaudeSDKClient, message: dict[str, Any], narrator: Narrator) -> Ending:
    await client.connect()
    await client.query(_once(message))
    async for heard in client.receive_messages():
        match heard:
            case AssistantMessage(error=None):
                _narrate(heard, narrator)
            case SystemMessage(subtype="api_retry"):
                narrator.say("waits for the model, which is busy")
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


def _narrate(heard: AssistantMessage, narrator: Narrator) -> None:
    for block in heard.content:
        match block:
            case TextBlock(text=text):
                narrator.say(text)
            case ToolUseBlock(name=name, input=args) if name != "StructuredOutput":
                narrator.tool(name, args)
