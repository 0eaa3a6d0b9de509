"""Circuit breaker: errors that repeat make a worker pause instead of hammering a sick backend."""

from __future__ import annotations

import random

_THRESHOLD = 5
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 30.0


class Breaker:
    """Counts errors in a row. A lost claim race is no error and never comes here."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.failures = 0

    def failed(self) -> bool:
        """Note an error; True when it is the one that opens the breaker."""
        self.failures += 1
        return self.failures == _THRESHOLD

    def succeeded(self) -> bool:
        """Note that all is well; True when that closes an open breaker."""
        was_open = self.failures >= _THRESHOLD
        self.failures = 0
        return was_open

    def pause_seconds(self) -> float:
        """How long to leave the backend alone, with full jitter so that workers do not return together."""
        ceiling = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0**self.failures)
        return self._dice.uniform(_FIRST_PAUSE_SECONDS, ceiling)
