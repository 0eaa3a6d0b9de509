"""An outside agent's process: JSON messages in lines, both ways, every line and the whole talk bounded."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from webordinary.model.errors import Permanent

LINE_BYTES = 32_000_000
"""One message; a picture that the agent looked at is in it."""
TALK_BYTES = 512_000_000
_LAST_WORDS = 4_000
_LEAVE_SECONDS = 5.0


class AgentProcess:
    """Started in a cell, which ends whatever is left of it. To be used in one event loop."""

    def __init__(
        self, process: Process, transport: asyncio.SubprocessTransport, line_bytes: int, talk_bytes: int
    ) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._transport = transport
        self._line_bytes, self._left = line_bytes, talk_bytes
        self._writing = asyncio.Lock()
        self._last_words = bytearray()
        self._listener = asyncio.create_task(self._listen_to_complaints(process.stderr))

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        line_bytes: int = LINE_BYTES,
        talk_bytes: int = TALK_BYTES,
    ) -> Self:
        """Start it; raises Permanent when the program is not there."""
        loop = asyncio.get_running_loop()
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: SubprocessStreamProtocol(line_bytes, loop), *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE,
                env=dict(env), cwd=cwd, start_new_session=True,
            )  # fmt: skip
        except OSError as problem:
            raise Permanent(f"the agent {argv[0]} cannot be started: {problem.strerror}; is it installed?") from problem
        return cls(Process(transport, protocol, loop), transport, line_bytes, talk_bytes)

    @property
    def last_words(self) -> str:
        """The end of what it wrote to its error output."""
        return self._last_words.decode(errors="replace").strip()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Write one message."""
        await self.write(json.dumps(message, separators=(",", ":")) + "\n")

    async def write(self, text: str) -> None:
        """Write text; raises ConnectionError when nobody listens any more."""
        async with self._writing:
            self._stdin.write(text.encode())
            await self._stdin.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end. What is not JSON is noise and passed over."""
        while line := await self._line():
            await asyncio.sleep(0)  # a full pipe never waits: whoever works on the last message gets a turn first
            if line.lstrip().startswith(b"{"):
                with suppress(ValueError):
                    message: dict[str, Any] = json.loads(line)
                    return message
        return None

    async def end_input(self) -> None:
        """Say that nothing more comes."""
        with suppress(ConnectionError):
            self._stdin.close()
            await self._stdin.wait_closed()

    async def close(self) -> None:
        """Let it leave, for a moment; then kill it. Its children are the cell's business."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self.end_input()
                await self._process.wait()
        self._transport.close()  # kills what still runs; also closes what a child of it holds open
        await self._process.wait()
        self._listener.cancel()
        with suppress(asyncio.CancelledError):
            await self._listener

    async def _line(self) -> bytes:
        try:
            line = await self._stdout.readline()
        except ValueError:
            raise Permanent(f"the agent sent a message of more than {self._line_bytes:,} bytes") from None
        self._left -= len(line)
        if self._left < 0:
            raise Permanent("the agent wrote without end, and was ended")
        return line

    async def _listen_to_complaints(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(65_536):
            self._last_words = (self._last_words + chunk)[-_LAST_WORDS:]
