"""The ECS agent's local HTTP endpoints: the task's id, and its protection from scale-in while it is busy."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from webordinary.model.claims import CancelToken, StartedJob
from webordinary.model.errors import Transient, reason_of
from webordinary.model.jobs import Settlement
from webordinary.worker.ports import JobRunner

ANSWER_SECONDS = 5.0
_ANSWER_BYTES = 1_000_000
_log = logging.getLogger(__name__)


def container_id(metadata_uri: str, now: datetime) -> str:
    """The ECS task's id; elsewhere a name that is new at every start. `metadata_uri` is empty elsewhere."""
    if metadata_uri:
        try:
            task: str = ask("GET", f"{metadata_uri}/task")["TaskARN"].rpartition("/")[2]
            if task:
                return task
        except (Transient, KeyError, AttributeError) as problem:
            _log.warning("the task's own id is unknown, so this worker takes another name: %s", problem)
    return f"container-{now:%Y%m%d%H%M%S}-{secrets.token_hex(4)}"


def ask(method: str, url: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One request to an endpoint of the agent, in bounded time. Raises Transient."""
    where = urlsplit(url)
    connection = HTTPConnection(where.hostname or "", where.port or 80, timeout=ANSWER_SECONDS)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, where.path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read(_ANSWER_BYTES)
        answered = json.loads(text)
    except (OSError, HTTPException, ValueError) as problem:
        raise Transient(f"the ECS agent does not answer at {url}: {reason_of(problem)}") from problem
    finally:
        connection.close()
    if answer.status != 200 or not isinstance(answered, dict):
        raise Transient(
            f"the ECS agent refused {method} {url} ({answer.status}): {text[:300].decode(errors='replace')}"
        )
    return answered


EXPIRES_MINUTES = 10
"""If this process dies without a word, its task can be taken after that long."""
RENEW_SECONDS = 300.0
LINGER_SECONDS = 30.0
"""The next job often comes soon; and what follows a job is protected too."""
RETRY_SECONDS = 15.0


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
        while (word := self._next_word()) is not None:
            self._tell(word)
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
            answered = ask("PUT", f"{self._uri}/task-protection/v1/state", body)
            if "protection" not in answered:
                raise Transient(f"it says {str(answered)[:300]}")
        except Transient as problem:
            _log.warning("this task could not be %sprotected: %s", "" if protect else "un", problem)
            self._retry_at = self._monotonic() + RETRY_SECONDS
        else:
            self._on, self._renew_at, self._retry_at = protect, self._monotonic() + self._renew, 0.0


class ProtectedWork:
    """A worker's Work, during which its task is protected, and the rights of its key's project may be had."""

    def __init__(
        self,
        work: JobRunner,
        protection: TaskProtection,
        acting: Callable[[StartedJob], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        self._work, self._protection, self._acting = work, protection, acting

    def perform(self, started: StartedJob, token: CancelToken) -> Settlement:
        with self._protection.busy(), self._acting(started):
            return self._work.perform(started, token)

    def find_done(self, started: StartedJob, token: CancelToken) -> Settlement | None:
        with self._protection.busy(), self._acting(started):
            return self._work.find_done(started, token)

    def save(self, started: StartedJob, token: CancelToken) -> None:
        with self._protection.busy(), self._acting(started):
            self._work.save(started, token)
