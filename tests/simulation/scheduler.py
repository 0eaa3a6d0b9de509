"""Virtual time and concurrency: greenlets that run in the order of a heap, so that a seed decides everything."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from greenlet import getcurrent, greenlet


class Crashed(BaseException):
    """The process of this task is gone; no code of it runs on, and `finally` blocks find every port closed."""


class Broken(BaseException):
    """An invariant does not hold: the run ends here. No `except Exception` of the code under test hides it."""


@dataclass(eq=False, slots=True)
class ProcessState:
    """What the scheduler knows of a process: whether it lives, and until when it is stopped."""

    name: str
    alive: bool = True
    paused_until: float = 0.0
    tasks: list[SimulatedThread] = field(default_factory=list)
    when_gone: Callable[[], object] | None = None


@dataclass(eq=False, slots=True)
class SimulatedThread:
    """One thread of a process."""

    life: ProcessState
    name: str
    glet: greenlet
    version: int = 0
    """Counts resumptions, so that an alarm set for an earlier sleep wakes nobody."""


class Scheduler:
    """Runs the task whose time has come; nothing else happens, and time stands still meanwhile."""

    def __init__(self, before_time_moves: Callable[[float], None]) -> None:
        self.now = 0.0
        self.broken: Broken | None = None
        self._before_time_moves = before_time_moves
        self._heap: list[tuple[float, int, SimulatedThread, int]] = []
        self._numbers: Iterator[int] = count()
        self._hub = getcurrent()
        self._current: SimulatedThread | None = None
        self._lives: dict[ProcessState, None] = {}
        self._doomed: list[ProcessState] = []

    @property
    def running(self) -> SimulatedThread | None:
        """The task that runs now, if one does."""
        return self._current

    @property
    def current(self) -> SimulatedThread:
        """The task that runs now."""
        assert self._current is not None, "no task runs"
        return self._current

    def spawn(self, life: ProcessState, name: str, run: Callable[[], object]) -> SimulatedThread:
        """Start a thread of a process."""

        def body() -> None:
            try:
                run()
            except Crashed:
                pass
            except Broken as broken:
                self.broken = self.broken or broken
            except Exception as problem:
                self.broken = self.broken or Broken(f"thread {life.name}/{name} died of {problem!r}")
                self.broken.__cause__ = problem

        task = SimulatedThread(life, name, greenlet(body, parent=self._hub))
        life.tasks.append(task)
        self._lives[life] = None
        self._at(self.now, task)
        return task

    def sleep(self, seconds: float) -> None:
        """Let others run for so long, or until somebody wakes this task."""
        task = self.current
        if not task.life.alive:
            raise Crashed
        self._at(self.now + max(0.0, seconds), task)
        self._hub.switch()
        if not task.life.alive:
            raise Crashed

    def wake(self, task: SimulatedThread) -> None:
        """End a task's sleep."""
        self._at(self.now, task)

    def crash(self, life: ProcessState) -> None:
        """End a process at once; called by one of its own tasks it does not return."""
        life.alive = False
        self._doomed.append(life)
        if self._current is not None and self._current.life is life:
            raise Crashed

    def run(self, until: float, done: Callable[[], bool]) -> None:
        """Run until `done`, or until the time is over, or an invariant breaks."""
        while self._heap and self.broken is None:
            at, _, task, version = self._heap[0]
            if version == task.version and task.life.alive and task.life.paused_until <= at:
                if at > self.now:
                    self._before_time_moves(at)
                    if at > until or done():
                        return
                    self.now = at
                heapq.heappop(self._heap)
                self._resume(task)
                continue
            heapq.heappop(self._heap)
            if version == task.version and task.life.alive:
                self._at(task.life.paused_until, task)

    def close(self) -> None:
        """End every task, so that nothing of this world is left."""
        for life in self._lives:
            life.alive, life.when_gone = False, None
        self._doomed = list(self._lives)
        self._bury()

    def _at(self, at: float, task: SimulatedThread) -> None:
        task.version += 1
        heapq.heappush(self._heap, (at, next(self._numbers), task, task.version))

    def _resume(self, task: SimulatedThread) -> None:
        self._current = task
        task.glet.switch()
        self._current = None
        if task.glet.dead and task in task.life.tasks:
            task.life.tasks.remove(task)
        if self._doomed:
            self._bury()

    def _bury(self) -> None:
        """Unwind what a crashed process left on its stacks."""
        while self._doomed:
            life = self._doomed.pop()
            for task in life.tasks:
                self._current = task
                if task.glet:  # one that never ran has no stack to unwind
                    task.glet.throw(Crashed)
            self._current = None
            life.tasks.clear()
            if life.when_gone:
                life.when_gone()
