"""Callbacks to the embedded workflow engine: the answer is stored, then the engine's process is woken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from webordinary.asl.callbacks import send_task_failure, send_task_heartbeat, send_task_success
from webordinary.asl.ports import TaskTokens


class EngineCallbacks:
    """Task tokens as the pool knows them."""

    def __init__(self, tokens: TaskTokens, wake_engine: Callable[[], None], now: Callable[[], datetime]) -> None:
        self._tokens, self._wake_engine, self._now = tokens, wake_engine, now

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        """The job settled."""
        return self._woken(send_task_success(self._tokens, token, dict(output)))

    def fail(self, token: str, error: str, cause: str) -> bool:
        """The job did not settle and will not under this token."""
        return self._woken(send_task_failure(self._tokens, token, error, cause))

    def heartbeat(self, token: str) -> bool:
        """Is anybody still waiting for this job?"""
        return send_task_heartbeat(self._tokens, token, self._now())

    def _woken(self, accepted: bool) -> bool:
        if accepted:
            self._wake_engine()
        return accepted
