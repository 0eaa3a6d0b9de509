"""Hold: a running job's view of its right to go on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class Hold(Protocol):
    """Asked before every effect, and told to programs that run for long."""

    @property
    def worker(self) -> str:
        """The worker that acts."""

    @property
    def fence(self) -> int:
        """The claim's fence, carried by every effect."""

    @property
    def job_id(self) -> str:
        """The job that runs."""

    def check(self) -> None:
        """Raise ClaimLost, Interrupted, Cancelled or JobTimedOut when this job must end now."""

    def on_stop(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """While the block runs, call `stop` (from another thread) as soon as the job must end."""
