"""What keeps a poll from its queue, as people hear of it: at its beginning, now and then, and when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

SAID_AGAIN_SECONDS = 300.0


class Trouble:
    """One poll's. `failures` are those in a row; the same words are said again only after a while."""

    def __init__(self, what: str, log: logging.Logger, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._what, self._log, self._monotonic = what, log, monotonic
        self._words, self._said_at, self._began = "", 0.0, 0.0
        self.failures = 0

    def met(self, problem: Exception) -> None:
        """It failed once more."""
        now, words = self._monotonic(), str(problem)
        self._began = self._began if self.failures else now
        self.failures += 1
        if words != self._words or now - self._said_at >= SAID_AGAIN_SECONDS:
            self._words, self._said_at = words, now
            since = f" ({self.failures} times in {now - self._began:.0f} s)" if self.failures > 1 else ""
            self._log.warning("%s: %s%s", self._what, words, since)

    def over(self) -> None:
        """It went well."""
        if self.failures:
            lasted = self._monotonic() - self._began
            self._log.warning("%s works again, after %d failures in %.0f s", self._what, self.failures, lasted)
            self._words, self.failures = "", 0
