"""Wake-ups on their way: lost, doubled and late as the weather has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults import Weather
from tests.simulation.process import Ear
from tests.simulation.scheduler import ProcessState, Scheduler
from webordinary.model.jobs import Job
from webordinary.pool.ports import QUEUED

if TYPE_CHECKING:
    from tests.simulation.harness import SimulationHarness


class MessageCarrier:
    """Carries messages to ears."""

    def __init__(self, scheduler: Scheduler, weather: Weather, life: ProcessState) -> None:
        self._scheduler, self._weather, self._life = scheduler, weather, life

    def send(self, ear: Ear, message: str) -> None:
        """Send one message."""
        for seconds in self._weather.deliveries(self._scheduler.now):

            def carry(seconds: float = seconds) -> None:
                self._scheduler.sleep(seconds)
                ear.hear(message)

            self._scheduler.spawn(self._life, f"carries {message}", carry)


class SimulatedTickets:
    """See Tickets."""

    def __init__(self, world: SimulationHarness) -> None:
        self._world = world

    def notify_owner(self, job: Job, news: str = QUEUED) -> None:
        """The owner of this job's key should look at its queue."""
        owner = self._world.durable.claims.look(job.key)
        employed = self._world.employed.get(owner.worker) if owner else None
        if employed:
            self._world.post.send(employed.ear, f"ticket {job.key}")

    def notify_unclaimed(self) -> None:
        """Somebody without work should look at the unclaimed queue."""
        for employed in self._world.employed.values():
            if employed.process.alive:
                self._world.post.send(employed.ear, "unclaimed")
