"""One simulated process: its threads, bells, clocks and ears, and the port through which it touches anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.fakes.any_port import AnyPort
from tests.simulation.faults import Weather
from tests.simulation.journal import SimulationJournal
from tests.simulation.scheduler import Crashed, ProcessState, Scheduler, SimulatedThread
from webordinary.model.jobs import Job
from webordinary.model.names import ProjectUser

EPOCH = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Process:
    """Clock and Threads of everything that runs in it. Never reused: a restart is a new one."""

    def __init__(
        self, name: str, scheduler: Scheduler, weather: Weather, journal: SimulationJournal, skew: float = 0.0
    ) -> None:
        self.name = name
        self.life = ProcessState(name)
        self.scheduler, self.weather, self.journal = scheduler, weather, journal
        self._skew = timedelta(seconds=skew)
        self._monotonic_from = weather.rng.uniform(0, 1e6)  # nothing may compare it with another process's
        self._drift = weather.drift()

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.life.alive

    @property
    def awake(self) -> bool:
        """Alive, and not stopped by a signal."""
        return self.life.alive and self.life.paused_until <= self.scheduler.now

    # -- Clock and Threads --------------------------------------------------------------------------

    def now(self) -> datetime:
        """The time of day as this machine believes it."""
        return EPOCH + timedelta(seconds=self.scheduler.now + self.weather.clock_jump) + self._skew

    def monotonic(self) -> float:
        """This process's own measure; goes on while it is stopped."""
        return self._monotonic_from + self.scheduler.now * self._drift

    def spawn(self, name: str, run: Callable[[], object]) -> None:
        """Run beside the caller."""
        self.scheduler.spawn(self.life, name, run)

    def stop_event(self) -> SimulatedBell:
        """A new bell."""
        return SimulatedBell(self)

    def sleep(self, seconds: float) -> None:
        """Do nothing for so long, by this process's clock."""
        self.scheduler.sleep(seconds / self._drift)

    # -- what happens to it -------------------------------------------------------------------------

    def point(self, call: str = "") -> None:
        """Between any two effects: others may run, time may pass, the process may stop or end here."""
        if not self.life.alive:
            raise Crashed
        fate = self.weather.at_point(call)
        if fate.crash:
            self.crash()
        if fate.pause:
            self.pause(fate.pause)
        if fate.delay or fate.pause:
            self.scheduler.sleep(fate.delay)

    def crash(self) -> None:
        """End at once, as by kill -9."""
        self.note("CRASH")
        self.weather.struck(self.scheduler.now)
        self.scheduler.crash(self.life)

    def pause(self, seconds: float) -> None:
        """Stand still, as by SIGSTOP, and go on later as if nothing had been."""
        self.note("PAUSE", round(seconds, 1))
        self.life.paused_until = self.scheduler.now + seconds
        self.weather.struck(self.life.paused_until)

    def note(self, what: str, *details: object, outcome: object = None) -> None:
        """Write into the trace."""
        self.journal.note(self.scheduler.now, self._actor(), what, *details, outcome=outcome)

    def _actor(self) -> str:
        task = self.scheduler.running
        return f"{task.life.name}/{task.name}" if task else self.name


class SimulatedBell:
    """Rings once, for every task that waits for it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._rung = False
        self._waiting: list[SimulatedThread] = []

    def set(self) -> None:
        """From now on it has rung."""
        self._rung = True
        for task in self._waiting:
            self._process.scheduler.wake(task)

    def wait(self, seconds: float) -> bool:
        """True as soon as it has rung."""
        if not self._rung and seconds > 0:
            self._waiting.append(self._process.scheduler.current)
            self._process.sleep(seconds)
            self._waiting.remove(self._process.scheduler.current)
        return self._rung


NOTHING_HELD: Mapping[ProjectUser, Job | None] = {}


class Ear:
    """Where messages for a process arrive, and how its loop sleeps."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._heard: list[str] = []
        self._sleeper: SimulatedThread | None = None

    def wait(
        self, seconds: float, held: Mapping[ProjectUser, Job | None] = NOTHING_HELD, free: int = 0
    ) -> Sequence[str]:
        """Sleep until something is heard, asked for or not, or the time is over."""
        if not self._heard:
            self._sleeper = self._process.scheduler.current
            self._process.sleep(seconds)
            self._sleeper = None
        self._process.point()
        heard, self._heard = self._heard, []
        return heard

    def poke(self) -> None:
        """Wake the loop from one of its own threads."""
        self.hear("poke")

    def keys_changed(self) -> None:
        """Everything is heard, asked for or not."""

    def hear(self, message: str) -> None:
        """A message arrives."""
        self._heard.append(message)
        if self._sleeper:
            self._process.scheduler.wake(self._sleeper)


class Port(AnyPort):
    """An adapter as one process sees it: before and after each call anything may happen to that process."""

    def __init__(
        self, target: object, name: str, process: Process, after: Callable[[Process], None] = lambda by: None
    ) -> None:
        self._target, self._name, self._process, self._after = target, name, process, after

    def __getattr__(self, method: str) -> Callable[..., Any]:
        perform = getattr(self._target, method)
        what = f"{self._name}.{method}"
        process, after = self._process, self._after

        def call(*args: object, **kwargs: object) -> object:
            process.point(method)
            process.weather.trouble(process, what, method, "not done")
            try:
                result = perform(*args, **kwargs)
            except Exception as problem:
                process.note(what, *args, *kwargs.values(), outcome=problem)
                after(process)
                raise
            process.note(what, *args, *kwargs.values(), outcome=result)
            after(process)
            process.weather.trouble(process, what, method, "done, but the answer is lost")
            process.point(method)
            return result

        self.__dict__[method] = call
        return call
