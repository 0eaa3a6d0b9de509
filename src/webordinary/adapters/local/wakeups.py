"""How the pool's wake-ups travel on one machine, and how a worker sleeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from webordinary.adapters.local.liveness import DeathWatch
from webordinary.adapters.local.wake import Listener, WakeBus
from webordinary.model.claims import Claim
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import QUEUED

WORKERS = "worker"
ENGINE = "engine"
ENGINE_LOOK_SECONDS = 20.0


def ear_of(worker: str) -> str:
    """The name under which a worker listens."""
    return f"{WORKERS}-{worker}"


class WakeTickets:
    """Tickets as datagrams: a lost one costs time, never work."""

    def __init__(self, bus: WakeBus, owner_of: Callable[[ProjectUser], Claim | None]) -> None:
        self._bus, self._owner_of = bus, owner_of

    def ticket(self, job: Job, news: str = QUEUED) -> None:
        """The owner of this job's key, if there is one, should look at its queue."""
        if owner := self._owner_of(job.key):
            self._bus.send(ear_of(owner.worker), f"ticket {job.key}")

    def unclaimed(self) -> None:
        """Somebody without work should look at the unclaimed queue."""
        self._bus.notify(WORKERS, "unclaimed")


class WorkerWakeups:
    """Sleeps until a datagram comes, one of the worker's own threads pokes it, or another worker dies."""

    def __init__(self, listener: Listener, deaths: DeathWatch, beat: Callable[[], None] = lambda: None) -> None:
        self._listener, self._deaths, self._beat = listener, deaths, beat
        self._deaths.refresh()

    def wait(self, seconds: float) -> Sequence[str]:
        """What was heard. Every call is a beat: only a loop that goes round comes here."""
        self._beat()
        heard, readable = self._listener.wait(seconds, self._deaths.descriptors)
        died = self._deaths.died(readable)
        if died or "peer" in heard:
            self._deaths.refresh()
        return [*heard, *(f"died {worker}" for worker in died)]

    def poke(self) -> None:
        """Wake this worker's loop from one of its own threads."""
        self._listener.poke()

    def keys_changed(self) -> None:
        """It hears of every key anyway."""

    def attend(self, held: Mapping[ProjectUser, Job | None], free: int) -> None:
        """Whoever has news for a worker of this machine sends it, asked or not."""


class EngineWakeups:
    """Sleeps until somebody has news for the workflow engine."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def wait(self, seconds: float | None) -> None:
        """Return when woken or when the time is over; now and then anyway: a worker may die before it wakes us."""
        self._listener.wait(ENGINE_LOOK_SECONDS if seconds is None else min(seconds, ENGINE_LOOK_SECONDS))

    def wake(self) -> None:
        """Wake the engine from inside its own process."""
        self._listener.poke()
