"""The machine's clocks and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from queue import SimpleQueue


class SystemClock:
    """Time of day for records, monotonic time for measuring."""

    def now(self) -> datetime:
        """The time of day, aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only grow; they go on while the process is stopped."""
        return time.monotonic()


class ThreadBell:
    """Rings once, for every thread that waits for it."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        """From now on it has rung."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """True as soon as it has rung."""
        return self._event.wait(seconds) if seconds > 0 else self._event.is_set()


class SystemThreads:
    """Daemon threads: everything that matters is on disk, so none has to be waited for.

    A thread that is done waits for the next task, of which a started one would be aware three times as late.
    """

    def __init__(self) -> None:
        self._resting: list[_Thread] = []

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        """Run beside the caller."""
        try:
            thread = self._resting.pop()
        except IndexError:
            thread = _Thread(self._resting)
            thread.start()
        thread.tasks.put((name, run))

    def bell(self) -> ThreadBell:
        """A new bell."""
        return ThreadBell()


class _Thread(threading.Thread):
    def __init__(self, resting: list[_Thread]) -> None:
        super().__init__(daemon=True)
        self.tasks: SimpleQueue[tuple[str, Callable[[], None]]] = SimpleQueue()
        self._resting = resting

    def run(self) -> None:
        while True:
            self.name, task = self.tasks.get()
            task()
            self._resting.append(self)
