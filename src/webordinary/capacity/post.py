"""Wake-ups as the queues on AWS carry them: a hint reaches one of those that poll, a ticket the key's owner."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from datetime import datetime

from webordinary.adapters.memory.pool_state import MemoryPoolState
from webordinary.capacity.clockwork import VirtualTime
from webordinary.capacity.stepped import SteppedWorker
from webordinary.model.claims import ClaimStatus
from webordinary.model.jobs import Job
from webordinary.pool.effects import PREEMPTED
from webordinary.pool.ports import QUEUED

MESSAGE_SECONDS = 0.05
"""From sending a message until a long poll returns it."""


class Post:
    """The pool's Tickets. A worker polls the unclaimed queue while it has a free slot."""

    def __init__(self, time: VirtualTime, state: MemoryPoolState, slots: int, dice: random.Random) -> None:
        self._time, self._state, self._slots, self._dice = time, state, slots, dice
        self._workers: dict[str, SteppedWorker] = {}
        self._polling: list[SteppedWorker] = []
        self._places: dict[SteppedWorker, int] = {}

    def employ(self, name: str, worker: SteppedWorker) -> None:
        """A worker begins to poll."""
        self._workers[name] = worker
        self._poll(worker)
        self._time.after(0.0, worker.poke)

    def ticket(self, job: Job, news: str = QUEUED) -> None:
        """See Tickets."""
        claim = self._state.claims.get(job.key)
        if claim and claim.status is ClaimStatus.HELD:
            self._send(self._workers[claim.worker], f"ticket {job.key}")

    def unclaimed(self) -> None:
        """See Tickets; who polls gets the message, or finds it later when its slot is free."""
        if self._polling:
            self._send(self._dice.choice(self._polling), "unclaimed")

    def busy(self, worker: SteppedWorker) -> None:
        """A worker runs a job more or less. A hint that it did not take is there for whoever else polls."""
        if worker.busy < self._slots:
            self._poll(worker)
        else:
            self._leave(worker)
        if len(self._state.hints):
            self.unclaimed()

    def _send(self, worker: SteppedWorker, message: str) -> None:
        self._time.after(MESSAGE_SECONDS, lambda: worker.hear(message))

    def _poll(self, worker: SteppedWorker) -> None:
        if worker not in self._places:
            self._places[worker] = len(self._polling)
            self._polling.append(worker)

    def _leave(self, worker: SteppedWorker) -> None:
        place = self._places.pop(worker, None)
        if place is not None:
            last = self._polling.pop()
            if last is not worker:
                self._polling[place], self._places[last] = last, place


class NobodyDies:
    """Liveness of workers that all live through the day."""

    def is_dead(self, worker: str) -> bool:
        """See Liveness."""
        return False

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """See Liveness."""


class Answers:
    """The workflow's side of task tokens, and its audit of interruptions."""

    def __init__(self, settled: Callable[[], None], interrupted: Callable[[str], None]) -> None:
        self._settled, self._interrupted = settled, interrupted

    def succeed(self, token: str, output: dict[str, str]) -> bool:
        """See Callbacks."""
        self._settled()
        return True

    def fail(self, token: str, error: str, cause: str) -> bool:
        """See Callbacks."""
        if error == PREEMPTED:
            self._interrupted(token)
        else:
            self._settled()
        return True

    def heartbeat(self, token: str) -> bool:
        """See Callbacks."""
        return True

    def record(self, job: Job, reason: str, now: datetime) -> None:
        """See Interruptions; the events count them already."""
