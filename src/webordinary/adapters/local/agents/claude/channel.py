"""The SDK's way to a process that we started: it has the methods of `claude_agent_sdk.Transport`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from webordinary.adapters.local.agents.process import AgentProcess


class Channel:
    """Between the SDK and one process."""

    def __init__(self, process: AgentProcess) -> None:
        self._process = process
        self._ready = True

    async def connect(self) -> None:
        """It is connected already."""

    async def write(self, data: str) -> None:
        """Pass on what the SDK has to say."""
        await self._process.write(data)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What the process says, until it ends."""
        while (message := await self._process.receive()) is not None:
            yield message

    async def close(self) -> None:
        """Let the process leave."""
        self._ready = False
        await self._process.close()

    def is_ready(self) -> bool:
        """Whether it can be spoken to."""
        return self._ready

    async def end_input(self) -> None:
        """Nothing more will be said."""
        await self._process.end_input()
