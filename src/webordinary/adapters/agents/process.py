"""An outside agent's process: JSON messages in lines, both ways, every line and the whole talk bounded."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from webordinary.model.claims import CancelToken
from webordinary.model.errors import KILLED_CODES, JobTimedOut, Permanent, WebOrdinaryError

LINE_BYTES = 32_000_000
"""One message; a picture that the agent looked at is in it."""
TALK_BYTES = 512_000_000
_LAST_WORDS = 4_000
_LEAVE_SECONDS = 5.0


class AgentProcess:
    """Started in a sandbox, which ends whatever is left of it. To be used in one event loop."""

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
        """The last lines of its error output."""
        return self._last_words.decode(errors="replace").strip()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Write one message."""
        await self.write(json.dumps(message, separators=(",", ":")) + "\n")

    async def write(self, text: str) -> None:
        """Write text; raises ConnectionError when the reader has closed the pipe."""
        async with self._writing:
            self._stdin.write(text.encode())
            await self._stdin.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end. Lines that are not JSON are skipped."""
        while line := await self._line():
            await asyncio.sleep(0)  # let the handler of the last message run before a full pipe is drained
            if line.lstrip().startswith(b"{"):
                with suppress(ValueError):
                    message: dict[str, Any] = json.loads(line)
                    return message
        return None

    async def end_input(self) -> None:
        """Close the input."""
        with suppress(ConnectionError):
            self._stdin.close()
            await self._stdin.wait_closed()

    async def was_killed(self) -> bool:
        """Whether it was killed from outside; to be asked once it has hung up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._process.wait()
        return self._process.returncode in KILLED_CODES

    async def close(self) -> None:
        """Let it leave, for a moment; then kill it. Its children are the sandbox's business."""
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


T = TypeVar("T")


class ConversationStop:
    """Known inside the talk: whether the job must end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> None:
        """Request the stop. Callable from any thread, also after the end."""
        with suppress(RuntimeError):  # the loop is closed: the talk is over
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        """Returns when the job must end."""
        await self._event.wait()

    def __bool__(self) -> bool:
        return self._event.is_set()


def converse(talk: Callable[[ConversationStop], Coroutine[Any, Any, T]], token: CancelToken) -> T:
    """Run the talk to its end in this thread; when it fails, a reason to stop from outside is raised instead."""

    async def listening() -> T:
        stopping = ConversationStop()
        with token.on_stop(stopping.set):
            return await talk(stopping)

    try:
        return asyncio.run(listening())
    except WebOrdinaryError:
        token.check()
        raise


async def until_stopped(
    work: Coroutine[Any, Any, T],
    stopping: ConversationStop,
    interrupt: Callable[[], Awaitable[object]],
    seconds: float,
    grace: float,
) -> T:
    """Await `work`; told to stop, or out of time, interrupt it and give it the grace to end by itself.

    A work that does not end is dropped, with JobTimedOut; so is one that `interrupt` cannot reach (TimeoutError).
    """
    working, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, stopped), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        timed_out = not stopping
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await interrupt()
                return await asyncio.shield(working)
        raise JobTimedOut(f"the agent ran longer than {seconds:.0f} s" if timed_out else "the agent had to stop")
    finally:
        for task in (working, stopped):
            task.cancel()
        await asyncio.gather(working, stopped, return_exceptions=True)


MOST_TOLD = 60
MOST_CHARACTERS = 160
_VERBS = {"Read": "reads", "Edit": "edits", "Write": "writes", "Glob": "looks for", "Grep": "searches for"}
_ABOUT = ("file_path", "path", "pattern")


class ProgressReporter:
    """Between an agent and the timeline."""

    def __init__(self, tell: Callable[[str], None], workspace: Path) -> None:
        self._tell, self._workspace = tell, workspace
        self._count, self._last = 0, ""

    def say(self, words: str) -> None:
        """Pass it on, shortened, unless it was said just now or too much was said already."""
        words = " ".join(words.replace(f"{self._workspace}/", "").split())
        if not words or words == self._last or self._count > MOST_TOLD:
            return
        self._last, self._count = words, self._count + 1
        if self._count > MOST_TOLD:
            words = "goes on, with more steps than are told here"
        self._tell(words if len(words) <= MOST_CHARACTERS else f"{words[: MOST_CHARACTERS - 1]}…")

    def tool(self, name: str, args: Mapping[str, object]) -> None:
        """Report the use of a tool and its file."""
        about = next((str(args[key]) for key in _ABOUT if args.get(key)), "")
        verb = _VERBS.get(name, "runs a command" if name == "Bash" else f"uses {name.removeprefix('mcp__site__')}")
        self.say(f"{verb} {about}")
