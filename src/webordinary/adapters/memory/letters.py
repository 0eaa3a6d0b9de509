"""Dead letters and the audit of interruptions, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from webordinary.model.jobs import DeadLetter, Job


@dataclass
class MemoryDeadLetters:
    """What was given up, as a list."""

    _letters: dict[int, DeadLetter] = field(default_factory=dict)
    _last_id: int = 0

    def add(self, email_id: str, job_id: str | None, reason: str, now: datetime, redrives: int = 0) -> None:
        """Keep it with its reason."""
        known = {(letter.email_id, letter.redrives, letter.reason) for letter in self._letters.values()}
        if (email_id, redrives, reason) in known:
            return
        self._last_id += 1
        self._letters[self._last_id] = DeadLetter(self._last_id, email_id, job_id, reason, now, redrives)

    def all(self, limit: int) -> Sequence[DeadLetter]:
        """The newest first."""
        return sorted(self._letters.values(), key=lambda letter: letter.died_at, reverse=True)[:limit]

    def get(self, letter_id: int) -> DeadLetter | None:
        """One of them."""
        return self._letters.get(letter_id)

    def remove(self, letter_id: int) -> bool:
        """It was dropped."""
        return self._letters.pop(letter_id, None) is not None

    def clear(self, email_id: str, redrives: int) -> None:
        """Its mail runs once more."""
        kept = self._letters.items()
        self._letters = {n: one for n, one in kept if one.email_id != email_id or one.redrives > redrives}


@dataclass
class MemoryInterruptions:
    """What was interrupted, as a list."""

    recorded: list[tuple[Job, str, datetime]] = field(default_factory=list)

    def record(self, job: Job, reason: str, now: datetime) -> None:
        """Write down a job's last interruption, unless it is written down."""
        if all((known.job_id, known.interruptions) != (job.job_id, job.interruptions) for known, _, _ in self.recorded):
            self.recorded.append((job, reason, now))
