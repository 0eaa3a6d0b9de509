"""Studio: when pictures are taken, how long a reply waits for them, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from webordinary.site.pictures import Pictures
from webordinary.site.ports import Photographer

PATIENT_AFTER_SECONDS = 5.0
"""Whoever waited that long for a change does not mind a moment more; a change made at once is answered at once."""


@dataclass(frozen=True, slots=True)
class Studio:
    """`always`: also for changes that took no time."""

    photographer: Photographer
    keep: Callable[[bytes], str]
    seconds: float
    always: bool = False

    def worth_it(self, job_seconds: float) -> bool:
        """Whether the reply may wait."""
        return self.always or job_seconds >= PATIENT_AFTER_SECONDS

    def take(self, before: Path | None, after: Path, page: str) -> Pictures:
        """Within the bound."""
        return self.photographer.take(before, after, page, self.seconds)
