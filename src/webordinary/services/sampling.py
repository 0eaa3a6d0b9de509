"""Keeps samples of the pool for the charts of the console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from webordinary.model.snapshot import Levels
from webordinary.pool.history import Samples, sample_of
from webordinary.pool.metrics import MetricsState


@dataclass(frozen=True, slots=True)
class Sampling:
    """Looks each minute: the most jobs that waited in ten minutes are kept, not only those of their last moment."""

    measure: Callable[[], tuple[Levels, MetricsState | None]]
    samples: Samples
    name: str = "samples"

    def run_once(self, now: datetime) -> int:
        levels, counted = self.measure()
        if counted is None:
            return 0
        self.samples.put(sample_of(levels, counted, now))
        return 1
