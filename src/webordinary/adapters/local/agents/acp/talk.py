"""The talk with an agent over the protocol: initialize, the session, one prompt, its end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, image_block, text_block
from acp.core import ClientSideConnection
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation, InitializeResponse

from webordinary.adapters.local.agents.acp.client import SiteClient
from webordinary.adapters.local.agents.acp.parts import AcpEnding, Surroundings
from webordinary.adapters.local.agents.acp.rules import RULES
from webordinary.adapters.local.agents.conversing import Stopping, converse, until_stopped
from webordinary.adapters.local.agents.homes import Memo
from webordinary.adapters.local.agents.luggage import Packed, shown
from webordinary.adapters.local.agents.process import AgentProcess
from webordinary.adapters.local.agents.wishes import wish
from webordinary.model.errors import Permanent, Transient, WebOrdinaryError
from webordinary.model.hold import Hold
from webordinary.site.task import AgentTask

_AUTH_REQUIRED = -32000
_FILES = FileSystemCapabilities(read_text_file=True, write_text_file=True)
_ERROR_CHARACTERS = 600


class _Channel:
    """The library's way to the process; what goes wrong there ends the stream and is told afterwards."""

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
    memo: Memo,
    luggage: tuple[Packed, ...],
    around: Surroundings,
    hold: Hold,
    grace: float,
) -> AcpEnding:
    """From the start of the process to its end."""

    async def talking(stopping: Stopping) -> AcpEnding:
        channel = _Channel(await start())
        exchange = _Exchange(channel, task, memo, luggage, around)
        try:
            return await until_stopped(exchange.run(), stopping, exchange.cancel, task.limits.seconds, grace)
        except (ConnectionError, RequestError) as problem:
            raise channel.problem or _explained(problem, channel.process) from problem
        finally:
            await exchange.close()
            await channel.close()
            task.spent(exchange.cost_usd)  # however it ended

    return converse(talking, hold)


class _Exchange:
    """One prompt, on one connection."""

    def __init__(
        self, channel: _Channel, task: AgentTask, memo: Memo, luggage: tuple[Packed, ...], around: Surroundings
    ) -> None:
        self._task, self._memo, self._luggage = task, memo, luggage
        self._around = around
        self._session, self._cost_before = "", math.inf  # until the session is open, nothing is this run's
        self._client = SiteClient(around)
        self._calling_off: asyncio.Task[None] | None = None
        client: Any = self._client  # it has what this side can do, and not the rest of the protocol
        self._connection: ClientSideConnection = connect_to_agent(client, channel)

    @property
    def cost_usd(self) -> float:
        """As far as the agent has told."""
        return max(0.0, self._client.total_cost_usd - self._cost_before)

    async def run(self) -> AcpEnding:
        """To the agent's last word."""
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
        return AcpEnding(
            answer.stop_reason, client.last_message, self._session, client.total_cost_usd, self.cost_usd, client.capped
        )  # fmt: skip

    async def cancel(self) -> None:
        """Ask the agent to end its turn."""
        if not self._session:
            raise TimeoutError("there is nothing to cancel yet")
        await self._connection.cancel(session_id=self._session)

    async def close(self) -> None:
        """Hang up."""
        if self._calling_off:
            await asyncio.gather(self._calling_off, return_exceptions=True)
        await self._connection.close()

    def _call_off(self) -> None:
        self._calling_off = asyncio.create_task(self.cancel())

    async def _open_session(self, met: InitializeResponse) -> tuple[str, float]:
        """The thread's session if the agent still has it, with what it has cost; else a new one."""
        cwd, known = str(self._task.workspace), self._memo.session
        if known and met.agent_capabilities and met.agent_capabilities.load_session:
            try:
                await self._connection.load_session(cwd=cwd, session_id=known)
            except RequestError:
                self._around.narrator.say("does not remember this conversation and starts afresh")
            else:
                return known, self._memo.total_cost_usd
        return (await self._connection.new_session(cwd=cwd)).session_id, 0.0

    def _prompt(self, met: InitializeResponse) -> list[Any]:
        abilities = met.agent_capabilities and met.agent_capabilities.prompt_capabilities
        images = shown(self._luggage) if abilities and abilities.image else ()
        pictures = [image_block(file.base64(), file.media_type) for file in images]
        return [text_block(RULES + wish(self._task, self._luggage)), *pictures]


def _explained(problem: Exception, process: AgentProcess) -> WebOrdinaryError:
    words = f"{problem} {getattr(problem, 'data', None) or ''} {process.last_words}".strip()[:_ERROR_CHARACTERS]
    if isinstance(problem, RequestError) and problem.code == _AUTH_REQUIRED:
        return Permanent(f"the agent wants to be logged in: give it its key by agent_environment ({words})")
    if isinstance(problem, RequestError):
        return Permanent(f"the agent refused: {words}")
    return Transient(f"the agent ended without a result: {words}")
