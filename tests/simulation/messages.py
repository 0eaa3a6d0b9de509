"""Wake-ups on their way: lost, doubled and late as the weather has it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tests.simulation.faults import Unforeseen, Weather
from tests.simulation.process import Ear, Process
from tests.simulation.scheduler import ProcessState, Scheduler
from webordinary.adapters.files.wake import SocketNotifier
from webordinary.model.errors import WebOrdinaryError
from webordinary.model.names import ProjectUser
from webordinary.pool.ports import ClaimRequestQueue, Claims

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


class SimulatedBus:
    """A WakeBus whose messages the carrier delivers. A worker that ended has no listener; a paused one hears later."""

    def __init__(self, world: SimulationHarness) -> None:
        self._world = world

    def listeners(self, topic: str) -> list[str]:
        """Workers that live."""
        return [f"{topic}-{name}" for name, employed in self._world.employed.items() if employed.process.alive]

    def notify(self, topic: str, message: str = "") -> None:
        """Send to all of them."""
        for name in self.listeners(topic):
            self.send(name, message)

    def send(self, name: str, message: str = "") -> bool:
        """Send to one; whether it lives."""
        employed = self._world.employed.get(name.partition("-")[2])
        if employed is None or not employed.process.alive:
            return False
        self._world.post.send(employed.ear, message)
        return True


class SimulatedNotifier(SocketNotifier):
    """The notifier of one process. Each look after an offer is a task of its own; in `up` one loop looks."""

    def __init__(self, world: SimulationHarness, process: Process, claims: Claims, hints: ClaimRequestQueue) -> None:
        super().__init__(SimulatedBus(world), claims, hints, self._look_later, process.sleep)
        self._world, self._process = world, process

    def notify_unclaimed(self, key: ProjectUser | None = None) -> None:
        """The property that no key waits for one worker begins when this returns."""
        super().notify_unclaimed(key)
        if key:
            self._world.progress.offered(key, self._process)

    def _look_later(self) -> None:
        if self._world.durable.offers_end:
            self._process.spawn("offers", self._look)

    def _look(self) -> None:
        with suppress(WebOrdinaryError, Unforeseen):
            self.run_once(self._process.now())
