"""A small world for the engine's tests: virtual time, a store that can crash, and a worker that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.asl.definition import Definition
from webordinary.asl.engine import Engine
from webordinary.asl.ports import Append, Execution, ExecutionStore, HistoryEvent, Status, Stored
from webordinary.asl.values import JSON

NOON = datetime(2025, 11, 16, 12, tzinfo=UTC)


class SteppedClock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time

    def pass_seconds(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class EngineHarness:
    """One engine over one memory store."""

    def __init__(
        self,
        states: Mapping[str, Any],
        handlers: Mapping[str, Callable[[JSON], JSON]] | None = None,
        *,
        start_at: str | None = None,
        **top: JSON,
    ) -> None:
        raw = {"StartAt": start_at or next(iter(states)), "States": dict(states), **top}
        self.definition = Definition.load(raw)
        self.store = SqliteExecutions(MemoryDatabase())
        self.clock = SteppedClock()
        self.handlers = dict(handlers or {})
        self.announced: list[Execution] = []
        self.engine = self.new_engine()

    def new_engine(self, store: Any = None) -> Engine:  # noqa: ANN401
        """The engine of a process that has just started."""
        return Engine(
            store or self.store,
            self.definition,
            self.handlers,
            clock=self.clock,
            random=Random(7),
            on_finished=self.announced.append,
        )

    def run(self, input: JSON = None, name: str = "one") -> Execution:
        """Start and run to the end, through all timers."""
        self.engine.start(name, {} if input is None else input)
        return self.settle(name)

    def settle(self, name: str = "one") -> Execution:
        """Let time pass until nothing is due any more."""
        self.engine.run_ready()
        while (due := self.engine.next_due_at()) is not None:
            self.clock.time = due
            self.engine.run_ready()
        return self.execution(name)

    def execution(self, name: str = "one") -> Execution:
        return self._stored(name).execution

    def events(self, name: str = "one") -> list[HistoryEvent]:
        return list(self._stored(name).events)

    def types(self, name: str = "one") -> list[str]:
        return [event.type for event in self.events(name) if event.numbered]

    def output(self, input: JSON = None) -> JSON:
        """Run to success and return the output."""
        end = self.run(input)
        assert end.status is Status.SUCCEEDED, (end.error, end.cause)
        return end.output

    def failure(self, input: JSON = None) -> tuple[str | None, str | None]:
        """Run to failure and return error and cause."""
        end = self.run(input)
        assert end.status is Status.FAILED, end
        return end.error, end.cause

    def _stored(self, name: str) -> Stored:
        stored = self.store.load(name)
        assert stored is not None
        return stored


class EngineCrash(BaseException):
    """The process is gone: nothing may catch this."""


class CrashingStore:
    """Passes every call on, and dies just before or just after the n-th write."""

    def __init__(self, store: ExecutionStore, crash_at: int, *, after: bool) -> None:
        self._store, self._left, self._after = store, crash_at, after

    def append(self, name: str, change: Append) -> None:
        self._around(lambda: self._store.append(name, change))

    def acknowledge(self, name: str) -> None:
        self._around(lambda: self._store.acknowledge(name))

    def _around(self, write: Callable[[], None]) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise EngineCrash
        write()
        if self._left == 0:
            raise EngineCrash

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._store, name)


class CountingStore:
    """Counts the commits."""

    def __init__(self, store: ExecutionStore) -> None:
        self.store, self.appends = store, 0

    def append(self, name: str, change: Append) -> None:
        self.appends += 1
        self.store.append(name, change)

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)
