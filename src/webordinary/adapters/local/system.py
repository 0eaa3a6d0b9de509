"""The machine's clocks and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime


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
    """Daemon threads: everything that matters is on disk, so none has to be waited for."""

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        """Run beside the caller."""
        threading.Thread(target=run, name=name, daemon=True).start()

    def bell(self) -> ThreadBell:
        """A new bell."""
        return ThreadBell()
