"""Runs background services: each has `run_once`, and a Loop repeats it in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from webordinary.asl.runner import Waker

_log = logging.getLogger(__name__)


class Service(Protocol):
    """One background duty. A lambda calls `run_once` each minute; `up` repeats it in a Loop."""

    @property
    def name(self) -> str: ...
    def run_once(self, now: datetime) -> int:
        """Do what is due; returns how much that was."""


class Wakeable(Protocol):
    """Sleep that another thread or process can end."""

    def wait(self, seconds: float | None) -> None: ...
    def wake(self) -> None: ...


class Loop:
    """Repeats a service until stopped. A failure is logged, and the service runs again after `seconds`."""

    def __init__(
        self,
        service: Service,
        seconds: float | None,
        now: Callable[[], datetime],
        wakeups: Wakeable | None = None,
    ) -> None:
        self.name = service.name
        self._service, self._seconds, self._now = service, seconds, now
        self._wakeups = wakeups or Waker()
        self._stopping = False

    def wake(self) -> None:
        """Run the service now."""
        self._wakeups.wake()

    def stop(self) -> None:
        """End the loop after the run under way."""
        self._stopping = True
        self._wakeups.wake()

    def run(self) -> None:
        """Run the service at once, then whenever its time has come or it was woken."""
        while not self._stopping:
            try:
                self._service.run_once(self._now())
            except Exception:
                _log.exception("%s failed; it runs again in %s s", self.name, self._seconds)
            self._wakeups.wait(self._seconds)
