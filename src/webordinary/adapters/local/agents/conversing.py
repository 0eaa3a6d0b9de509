"""A talk with an agent in the thread of its job, which can be told to end at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from webordinary.model.errors import JobTimedOut, WebOrdinaryError
from webordinary.model.hold import Hold

T = TypeVar("T")


class Stopping:
    """Known inside the talk: whether the job must end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def tell(self) -> None:
        """Called from any thread, perhaps after the talk is over."""
        with suppress(RuntimeError):  # the loop is closed: the talk is over
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        """Returns when the job must end."""
        await self._event.wait()

    def __bool__(self) -> bool:
        return self._event.is_set()


def converse(talk: Callable[[Stopping], Coroutine[Any, Any, T]], hold: Hold) -> T:
    """Run the talk to its end in this thread; when it fails, a reason to stop from outside is raised instead."""

    async def listening() -> T:
        stopping = Stopping()
        with hold.on_stop(stopping.tell):
            return await talk(stopping)

    try:
        return asyncio.run(listening())
    except WebOrdinaryError:
        hold.check()
        raise


async def until_stopped(
    work: Coroutine[Any, Any, T],
    stopping: Stopping,
    interrupt: Callable[[], Awaitable[object]],
    seconds: float,
    grace: float,
) -> T:
    """Await `work`; told to stop, or out of time, interrupt it and give it the grace to end by itself.

    A work that does not end is dropped, with JobTimedOut; so is one that `interrupt` cannot reach (TimeoutError).
    """
    working, told = asyncio.ensure_future(work), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((working, told), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        timed_out = not stopping
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await interrupt()
                return await asyncio.shield(working)
        raise JobTimedOut(f"the agent ran longer than {seconds:.0f} s" if timed_out else "the agent had to stop")
    finally:
        for task in (working, told):
            task.cancel()
        await asyncio.gather(working, told, return_exceptions=True)
