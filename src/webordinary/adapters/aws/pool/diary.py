"""What a worker told of a job, kept for people in the job's record: it is written when that is written anyway."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from webordinary.adapters.aws.items import at, moment
from webordinary.model.events import Event, Events

MOST_JOBS, MOST_ENTRIES, MOST_BYTES, MOST_DATA_BYTES = 64, 60, 12_000, 600
PROGRESS = "AgentProgress"
"""There may be hundreds of these; what came of them is told at the end."""


class Told(NamedTuple):
    """An event with its time; `data` is JSON."""

    at: datetime
    kind: str
    worker: str | None
    data: str

    @property
    def values(self) -> dict[str, Any]:
        """Its small values."""
        found: dict[str, Any] = json.loads(self.data)
        return found


ToldOf = Callable[[str], Iterable[Told]]
"""What was told of a job, by its id."""


def nothing_told(job_id: str) -> tuple[Told, ...]:
    """Of whoever keeps no diary."""
    return ()


class Diary:
    """See Events: passes them on, and remembers those of the last jobs. Thread-safe."""

    def __init__(self, inside: Events, now: Callable[[], datetime]) -> None:
        self._inside, self._now = inside, now
        self._of_job: OrderedDict[str, list[Told]] = OrderedDict()
        self._guard = threading.Lock()

    def emit(self, event: Event) -> None:
        """See Events."""
        self._inside.emit(event)
        if event.job_id is None:
            return
        entry = Told(self._now(), event.kind, event.worker, _bounded(event.data))
        with self._guard:
            known = self._of_job.setdefault(event.job_id, [])
            self._of_job.move_to_end(event.job_id)
            self._of_job[event.job_id] = list(merged(known, [entry]))
            while len(self._of_job) > MOST_JOBS:
                self._of_job.popitem(last=False)

    def of(self, job_id: str) -> tuple[Told, ...]:
        """What was told of a job here."""
        with self._guard:
            return tuple(self._of_job.get(job_id, ()))


def merged(before: Iterable[Told], after: Iterable[Told]) -> tuple[Told, ...]:
    """All of it once, in order; where it is too much, progress goes first, then the oldest."""
    entries = sorted(dict.fromkeys([*before, *after]), key=lambda entry: entry.at)
    while len(entries) > MOST_ENTRIES or sum(len(entry.data) + 100 for entry in entries) > MOST_BYTES:
        entries.pop(next((n for n, entry in enumerate(entries) if entry.kind == PROGRESS), 0))
    return tuple(entries)


def to_text(entries: Iterable[Told]) -> str | None:
    """As an attribute; None for nothing."""
    rows = [[moment(entry.at), entry.kind, entry.worker, entry.data] for entry in entries]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")) if rows else None


def from_text(text: str | None) -> tuple[Told, ...]:
    """And back."""
    return tuple(Told(at(when), kind, worker, data) for when, kind, worker, data in json.loads(text or "[]"))


def _bounded(data: Any) -> str:  # noqa: ANN401 - small JSON values
    text = json.dumps(dict(data), default=str, ensure_ascii=False, separators=(",", ":"))
    whole = text.encode("utf-8", "replace")  # a lone surrogate is legal in an agent's JSON and not in a table
    return whole.decode() if len(whole) <= MOST_DATA_BYTES else "{}"
