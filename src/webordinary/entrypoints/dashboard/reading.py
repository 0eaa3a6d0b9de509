"""The threads that look: what may wait for a disk never runs on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

READERS = 4

T = TypeVar("T")


class Readers:
    """A few lasting threads for all looks: each keeps one database connection, so their number is a bound."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="page")

    async def look(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def close(self) -> None:
        """Wait for the looks under way, and end the threads."""
        self._threads.shutdown()
