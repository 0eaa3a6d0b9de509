"""EventFeed: the bell that wakes open pages when something happened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MAX_STREAMS = 64


class EventFeed:
    """Rung by any thread after events were stored; heard by the streams of one event loop.

    It carries no events: a stream reads these from the Overview, so that none is lost between two rings.
    """

    def __init__(self, max_streams: int = MAX_STREAMS) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        self._closed = False
        self._streams = 0
        self._max_streams = max_streams

    def wake(self) -> None:
        """Tell every open page to look. May be called from any thread, before, during and after serving."""
        with self._guard:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._ring)

    def close(self) -> None:
        """End every stream now, so that the server can stop; may be called from any thread."""
        self._closed = True
        self.wake()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Belong to the running event loop."""
        with self._guard:
            self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            with self._guard:
                self._loop = None

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Count one open page."""
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    @property
    def full(self) -> bool:
        """As many pages listen as may."""
        return self._streams >= self._max_streams

    @property
    def closed(self) -> bool:
        """The server is about to stop."""
        return self._closed

    @property
    def bell(self) -> asyncio.Event:
        """The next ring. Take it before looking, wait for it after: then nothing falls between."""
        return self._bell

    def _ring(self) -> None:
        self._bell.set()
        self._bell = asyncio.Event()
