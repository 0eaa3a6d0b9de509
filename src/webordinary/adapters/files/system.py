"""The machine's clocks, threads and resolver of host names."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue

GAVE_UP = 1
_log = logging.getLogger(__name__)


class SystemClock:
    """Time of day (aware UTC) for records; for measuring, monotonic time, which goes on while a process is stopped."""

    now = staticmethod(partial(datetime.now, UTC))
    monotonic = staticmethod(time.monotonic)


def addresses_of(host: str) -> frozenset[str]:
    """The addresses of a host name, as a browser on this machine finds them; empty if it has none."""
    try:
        return frozenset(str(found[4][0]) for found in socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):
        return frozenset()


def end_process() -> None:
    """End the process at once, as kill -9 does: the supervisor restarts it, and others take over its claims."""
    os._exit(GAVE_UP)


class SystemThreadSpawner:
    """Daemon threads: everything that matters is on disk, so none has to be waited for.

    A thread that is done waits for the next task: that is three times as fast as a new thread. If a task raises, the
    process would look alive and do half of its work, so `last_resort` is called.
    """

    def __init__(self, last_resort: Callable[[], None] = end_process) -> None:
        self._resting: list[_Thread] = []
        self._last_resort = last_resort

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        """Run a function in another thread."""
        try:
            thread = self._resting.pop()
        except IndexError:
            thread = _Thread(self._resting, self._last_resort)
            thread.start()
        thread.tasks.put((name, run))

    stop_event = staticmethod(threading.Event)


class _Thread(threading.Thread):
    def __init__(self, resting: list[_Thread], last_resort: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.tasks: SimpleQueue[tuple[str, Callable[[], None]]] = SimpleQueue()
        self._resting, self._last_resort = resting, last_resort

    def run(self) -> None:
        while True:
            self.name, task = self.tasks.get()
            try:
                task()
            except BaseException:
                _log.critical("thread %r ended with an unexpected error; the process ends", self.name, exc_info=True)
                self._last_resort()
                raise
            self._resting.append(self)
