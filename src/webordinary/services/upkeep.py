"""Upkeep of one machine: old data is deleted, repositories are packed, workers that died or hang are cleared away."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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


SILENCE_LEASES = 3
LEAST_SILENCE_SECONDS = 60.0
"""One that stops, or pauses because of errors in a row, may be silent for half a minute."""
LOOK_SECONDS = 10.0


@dataclass(slots=True)
class _Heartbeat:
    beat: float | None
    silent_seconds: float = 0.0


class Heartbeats(Protocol):
    """The living workers of this machine and when their loops went round last."""

    def peers(self) -> Mapping[str, int]: ...
    def last_beat(self, worker: str) -> float | None: ...


class Children(Protocol):
    """The supervised processes."""

    def pids(self) -> Mapping[str, int]: ...
    def kill_child(self, name: str, pid: int) -> bool: ...


class HungWorkers:
    """Ends a supervised worker whose loop stood still for `silence_seconds`."""

    name = "hung-workers"

    def __init__(
        self,
        heartbeats: Heartbeats,
        supervisor: Children,
        silence_seconds: float,
        events: Events,
        say: Callable[[str], None],
    ) -> None:
        self._heartbeats, self._supervisor, self._silence = heartbeats, supervisor, silence_seconds
        self._events, self._say = events, say
        self._seen: dict[str, _Heartbeat] = {}
        self._looked_at: float | None = None

    def run_once(self, now: datetime) -> int:
        return self.look(time.monotonic())

    def look(self, now: float) -> int:
        """End the workers that hang at monotonic time `now`.

        A long gap between two calls counts only in part: the whole machine may have stood still.
        """
        passed = min(now - self._looked_at, 2 * LOOK_SECONDS) if self._looked_at is not None else 0.0
        self._looked_at = now
        names = {pid: name for name, pid in self._supervisor.pids().items()}
        ours = {worker: pid for worker, pid in self._heartbeats.peers().items() if pid in names}
        self._seen = {worker: self._observe(worker, passed) for worker in ours}
        for worker, observation in self._seen.items():
            if observation.silent_seconds >= self._silence:
                self._end(worker, names[ours[worker]], ours[worker], round(observation.silent_seconds))
                observation.silent_seconds = 0.0  # it takes a moment to end
        return len(self._seen)

    def _observe(self, worker: str, passed: float) -> _Heartbeat:
        beat, known = self._heartbeats.last_beat(worker), self._seen.get(worker)
        return _Heartbeat(beat, known.silent_seconds + passed) if known and known.beat == beat else _Heartbeat(beat)

    def _end(self, worker: str, name: str, pid: int, silent_seconds: int) -> None:
        if self._supervisor.kill_child(name, pid):
            self._say(f"{name} (process {pid}) hangs: its loop has not gone round for {silent_seconds} s; ended")
            self._events.emit(
                Event(EventKind.WORKER_HUNG, worker=worker, data={"pid": pid, "silent_seconds": silent_seconds})
            )


def silence_allowed(lease_seconds: float, interrupt_grace_seconds: float) -> float:
    """How long the loop of a worker may stand still before the worker counts as hung."""
    return max(LEAST_SILENCE_SECONDS, SILENCE_LEASES * lease_seconds, 2 * interrupt_grace_seconds)
