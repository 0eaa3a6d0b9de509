"""Deletes data past its retention and packs repositories that many pushes left scattered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from webordinary.model.events import Event, EventKind, Events
from webordinary.model.snapshot import WorkerEntry
from webordinary.pool.metrics import MetricsRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Deletes what is older than the retention; each step deletes a bounded number of rows or files."""

    metrics: MetricsRecorder
    days: int
    forget: Sequence[Callable[[datetime], object]]
    """Each deletes one kind of data older than a point in time."""
    maintain: Callable[[], object]
    name: str = "retention"

    def run_once(self, now: datetime) -> int:
        self.metrics.save()  # first: events are counted before they are deleted
        for forget in self.forget:
            forget(now - timedelta(days=self.days))
        self.maintain()
        return len(self.forget)


@dataclass(frozen=True, slots=True)
class PackedOrigins:
    """Packs origins: each push adds a pack, and git's own gc is off there."""

    pack: Callable[[], int]
    name: str = "packed-origins"

    def run_once(self, now: datetime) -> int:
        return self.pack()


class WorkerRows(Protocol):
    """The stored list of workers."""

    def present(self) -> Sequence[WorkerEntry]: ...
    def leave(self, worker: str, now: datetime) -> None: ...


class ProcessLocks(Protocol):
    """The locks that living workers hold."""

    def is_dead(self, worker: str) -> bool: ...
    def clear_dead(self, worker: str) -> None: ...


@dataclass(frozen=True, slots=True)
class DeadWorkers:
    """Records the end of workers whose process died."""

    rows: WorkerRows
    locks: ProcessLocks
    events: Events
    name: str = "dead-workers"

    def run_once(self, now: datetime) -> int:
        dead = [worker for worker in self.rows.present() if self.locks.is_dead(worker.worker)]
        for worker in dead:
            self.rows.leave(worker.worker, now)
            self.locks.clear_dead(worker.worker)
            self.events.emit(Event(EventKind.WORKER_DIED, worker=worker.worker, data={"pid": worker.pid}))
        return len(dead)
