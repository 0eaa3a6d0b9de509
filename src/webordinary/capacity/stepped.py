"""A real worker without threads: its loop sleeps as an alarm, and its jobs take their time as alarms."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from webordinary.capacity.clockwork import Alarm, VirtualTime
from webordinary.model.claims import Started
from webordinary.model.events import Events
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job, JobResult, Outcome, Settlement
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import Pool
from webordinary.worker.hold import RunningHold
from webordinary.worker.settings import Settings
from webordinary.worker.slot import Slot
from webordinary.worker.surroundings import Surroundings
from webordinary.worker.worker import Worker

SAVING_SECONDS = 3.0
"""What an interrupted agent takes to end and its work to be saved."""
_SHORTEST_SLEEP = 0.001
_DONE = Settlement(Outcome.SUCCEEDED, JobResult("done"))


@dataclass(frozen=True, slots=True)
class World:
    """What the workers of one simulated day share. `left` is how long each job still has to run, by its id."""

    settings: Settings
    pool: Pool
    events: Events
    time: VirtualTime
    left: dict[str, float]
    busy: Callable[[SteppedWorker, int], None]
    """A worker has a busy slot more or less."""


class SteppedWorker:
    """Everything that a Worker decides, it decides here; only waiting is replaced."""

    def __init__(self, name: str, world: World) -> None:
        self._world = world
        self._heard: list[str] = []
        self._alarm: Alarm | None = None
        self._stopped = SilentBell()
        around = Surroundings(
            worker_id=name,
            settings=world.settings,
            pool=world.pool,
            work=TimedWork(),
            events=world.events,
            clock=world.time,
            threads=self,
            wakeups=self,
            dice=random.Random(name),  # noqa: S311  jitter that repeats
        )
        self._worker = Worker(around, self._carry)
        self.busy = 0
        """How many jobs it runs."""

    def hear(self, message: str) -> None:
        """A message has come; the loop wakes up."""
        self._heard.append(message)
        self._sleep(0.0)

    def poke(self) -> None:
        """See Wakeups."""
        self.hear("poke")

    def wait(self, seconds: float) -> Sequence[str]:
        """See Wakeups; only a loop of its own would sleep here."""
        raise NotImplementedError("this worker is stepped")

    def keys_changed(self) -> None:
        """See Wakeups."""
        self.poke()

    def attend(self, held: Mapping[ProjectUser, Job | None], free: int) -> None:
        """See Wakeups; the post knows who polls."""

    def spawn(self, name: str, run: Callable[[], None]) -> None:
        """See Threads."""
        raise NotImplementedError("this worker has no threads")

    def bell(self) -> SilentBell:
        """See Threads."""
        return self._stopped

    def _sleep(self, seconds: float) -> None:
        if self._alarm:
            self._alarm.call_off()
        self._alarm = self._world.time.after(seconds, self._step)

    def _step(self) -> None:
        heard, self._heard = self._heard, []
        self._worker.react(heard)
        if not self._heard:
            self._sleep(max(_SHORTEST_SLEEP, self._worker.seconds_to_wait()))

    def _carry(self, slot: Slot, hold: RunningHold) -> None:
        """The job's time passes first, and it is run to its end when that is over."""
        world, began = self._world, self._world.time.monotonic()
        seconds = world.left[hold.job_id]
        listening = ExitStack()

        def end() -> None:
            listening.close()
            world.left[hold.job_id] = max(0.0, seconds - (world.time.monotonic() - began))
            self._end(slot, hold)

        def stop_early() -> None:
            alarm.call_off()
            left = seconds - (world.time.monotonic() - began)
            world.time.after(min(left, SAVING_SECONDS), end)

        alarm = world.time.after(seconds, end)
        listening.enter_context(hold.on_stop(stop_early))
        self._count(1)

    def _end(self, slot: Slot, hold: RunningHold) -> None:
        following = slot.run_one(hold)
        self._count(-1)
        if following:
            self._carry(slot, following)
        else:
            self.poke()

    def _count(self, change: int) -> None:
        self.busy += change
        self._world.busy(self, change)


class TimedWork:
    """Work that is asked for when its time is over already."""

    def perform(self, started: Started, hold: Hold) -> Settlement:
        """See Work."""
        return _DONE

    def found(self, started: Started, hold: Hold) -> Settlement | None:
        """See Work."""
        return None

    def save(self, started: Started, hold: Hold) -> None:
        """See Work."""


class SilentBell:
    """Nobody stops a worker within a simulated day."""

    def ring(self) -> None:
        """See Bell."""

    def wait(self, seconds: float) -> bool:
        """See Bell."""
        return False
