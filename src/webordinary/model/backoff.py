"""Exponential back-off with jitter, for every retry of this system."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: `base * factor ** attempt`, at most `cap`.

    `jitter` is the random share of each delay, so that clients that failed together do not retry together:
    0 is none, 1 is full jitter (from zero to the whole delay).
    """

    base: float
    factor: float = 2.0
    cap: float = 60.0
    jitter: float = 0.5

    def delay(self, attempt: int, rng: random.Random | None = None) -> float:
        """The delay before the retry after attempt number `attempt`, counted from 0; without `rng` it has no jitter."""
        try:
            ceiling = min(self.cap, self.base * self.factor**attempt)
        except OverflowError:
            ceiling = self.cap
        return ceiling if rng is None else rng.uniform(ceiling * (1 - self.jitter), ceiling)

    def delays(self, rng: random.Random | None = None) -> Iterator[float]:
        """The delays of one sequence of retries, without end."""
        attempt = 0
        while True:
            yield self.delay(attempt, rng)
            attempt += 1
