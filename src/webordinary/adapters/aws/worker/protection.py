"""Protection of this worker's ECS task: while a job runs, scaling in takes another task."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from webordinary.adapters.aws.worker.ecs import ANSWER_SECONDS, ask
from webordinary.model.claims import Started
from webordinary.model.errors import Transient
from webordinary.model.hold import Hold
from webordinary.model.jobs import Settlement
from webordinary.worker.ports import Work

EXPIRES_MINUTES = 10
"""If this process dies without a word, its task can be taken after that long."""
RENEW_SECONDS = 300.0
LINGER_SECONDS = 30.0
"""The next job often comes soon; and what follows a job is protected too."""
RETRY_SECONDS = 15.0
_log = logging.getLogger(__name__)


class TaskProtection:
    """Tells the ECS agent whether this task is busy; without an agent's address nothing happens.

    A thread of its own does it: no job waits for the agent, and none fails with it.
    """

    def __init__(
        self,
        agent_uri: str,
        renew_seconds: float = RENEW_SECONDS,
        linger_seconds: float = LINGER_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._uri, self._monotonic = agent_uri, monotonic
        self._renew, self._linger = renew_seconds, linger_seconds
        self._busy, self._on, self._closed = 0, False, False
        self._idle_since = self._renew_at = self._retry_at = 0.0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._keep, name="task-protection", daemon=True)
        if agent_uri:
            self._thread.start()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Protected during the block, and shortly after."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def close(self) -> None:
        """End the protection: this process takes no more work."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._uri:
            self._thread.join(2 * ANSWER_SECONDS)

    def _count(self, change: int) -> None:
        with self._changed:
            self._busy += change
            self._idle_since = self._monotonic()
            self._changed.notify()

    def _keep(self) -> None:
        while (wanted := self._next_word()) is not None:
            self._tell(wanted)
        if self._on:
            self._tell(False)

    def _next_word(self) -> bool | None:
        """Wait until there is something to tell the agent, and what; None once this is closed."""
        with self._changed:
            while not self._closed:
                seconds = self._seconds_to_wait()
                if seconds == 0:
                    return self._busy > 0
                self._changed.wait(seconds)
        return None

    def _seconds_to_wait(self) -> float | None:
        """Until there is something to tell the agent; None if only a job brings that about."""
        if self._busy:
            due = self._renew_at if self._on else 0.0
        elif self._on:
            due = self._idle_since + self._linger
        else:
            return None
        return max(0.0, max(due, self._retry_at) - self._monotonic())

    def _tell(self, protect: bool) -> None:
        body: dict[str, Any] = {"ProtectionEnabled": protect}
        if protect:
            body["ExpiresInMinutes"] = EXPIRES_MINUTES
        try:
            said = ask("PUT", f"{self._uri}/task-protection/v1/state", body)
            if "protection" not in said:
                raise Transient(f"it says {str(said)[:300]}")
        except Transient as problem:
            _log.warning("this task could not be %sprotected: %s", "" if protect else "un", problem)
            self._retry_at = self._monotonic() + RETRY_SECONDS
        else:
            self._on, self._renew_at, self._retry_at = protect, self._monotonic() + self._renew, 0.0


class ProtectedWork:
    """A worker's Work, during which its task is protected."""

    def __init__(self, work: Work, protection: TaskProtection) -> None:
        self._work, self._protection = work, protection

    def perform(self, started: Started, hold: Hold) -> Settlement:
        """See Work."""
        with self._protection.busy():
            return self._work.perform(started, hold)

    def found(self, started: Started, hold: Hold) -> Settlement | None:
        """See Work."""
        with self._protection.busy():
            return self._work.found(started, hold)

    def save(self, started: Started, hold: Hold) -> None:
        """See Work."""
        with self._protection.busy():
            self._work.save(started, hold)
