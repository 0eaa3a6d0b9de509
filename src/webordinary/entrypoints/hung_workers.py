"""Workers that live and yet do nothing: `up` ends those of its own, and so has them started again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from webordinary.adapters.local.liveness import LockFiles
from webordinary.config import Config
from webordinary.entrypoints.supervisor import Supervisor
from webordinary.model.events import Event, Events

PATIENCE_LEASES = 3
LEAST_PATIENCE_SECONDS = 60.0
"""One that stops, or pauses because of errors in a row, may be silent for half a minute."""
LOOK_SECONDS = 5.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sight:
    beat: float | None
    silent_seconds: float = 0.0


class HungWorkers:
    """Ends a supervised worker whose loop was seen not to go round, for `patience_seconds`."""

    def __init__(
        self,
        lock_files: LockFiles,
        supervisor: Supervisor,
        patience_seconds: float,
        events: Events,
        say: Callable[[str], None],
    ) -> None:
        self._lock_files, self._supervisor, self._patience = lock_files, supervisor, patience_seconds
        self._events, self._say = events, say
        self._seen: dict[str, _Sight] = {}
        self._looked_at: float | None = None

    def look(self, now: float) -> None:
        """`now` is monotonic. Time in which nobody looked counts little: the whole machine may have stood still."""
        passed = min(now - self._looked_at, 2 * LOOK_SECONDS) if self._looked_at is not None else 0.0
        self._looked_at = now
        names = {pid: name for name, pid in self._supervisor.pids().items()}
        ours = {worker: pid for worker, pid in self._lock_files.peers().items() if pid in names}
        self._seen = {worker: self._sight(worker, passed) for worker in ours}
        for worker, sight in self._seen.items():
            if sight.silent_seconds >= self._patience:
                self._end(worker, names[ours[worker]], ours[worker], round(sight.silent_seconds))
                sight.silent_seconds = 0.0  # it takes a moment to end

    def _sight(self, worker: str, passed: float) -> _Sight:
        beat, known = self._lock_files.last_beat(worker), self._seen.get(worker)
        return _Sight(beat, known.silent_seconds + passed) if known and known.beat == beat else _Sight(beat)

    def _end(self, worker: str, name: str, pid: int, silent_seconds: int) -> None:
        if self._supervisor.kill_child(name, pid):
            self._say(f"{name} (process {pid}) hangs: its loop has not gone round for {silent_seconds} s; ended")
            self._events.emit(Event("WorkerHung", worker=worker, data={"pid": pid, "silent_seconds": silent_seconds}))


@contextmanager
def hung_workers_ended(
    config: Config, supervisor: Supervisor, events: Events, say: Callable[[str], None]
) -> Iterator[None]:
    """Look after the supervised workers during the block."""
    patience = max(LEAST_PATIENCE_SECONDS, PATIENCE_LEASES * config.lease_seconds, 2 * config.interrupt_grace_seconds)
    hung = HungWorkers(LockFiles(config.data / "run" / "workers"), supervisor, patience, events, say)
    ended = threading.Event()
    thread = threading.Thread(target=_look_until, args=(hung, ended), name="hung-workers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _look_until(hung: HungWorkers, ended: threading.Event) -> None:
    while not ended.wait(LOOK_SECONDS):
        try:
            hung.look(time.monotonic())
        except Exception:
            _log.exception("nobody looked for workers that hang; trying again in %.0f s", LOOK_SECONDS)
