"""The durable engine: starts executions, carries them on from where their history ends, tells of failures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random, SystemRandom

from webordinary.asl.callbacks import stop_execution
from webordinary.asl.definition import Definition
from webordinary.asl.errors import AslError, HistoryMoved, InvalidDefinition
from webordinary.asl.json_types import JSON, dump, too_large
from webordinary.asl.ports import Clock, Execution, ExecutionStore, Status
from webordinary.asl.resources import Handlers
from webordinary.asl.run import Run
from webordinary.asl.runs import Runs
from webordinary.asl.step import Step

READY_AT_ONCE = 100
_TRIES = 8


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Now, in UTC."""
        return datetime.now(UTC)


class Engine:
    """Runs executions of the definition it is given, and finishes those of older ones.

    Synchronous and without threads of its own. `advance` may be called for different executions at the same
    time, never twice at once for the same one. One engine process per store: two would do tasks twice.
    """

    def __init__(
        self,
        store: ExecutionStore,
        definition: Definition,
        handlers: Handlers,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        on_finished: Callable[[Execution], None] | None = None,
    ) -> None:
        missing = sorted(name for name in definition.handlers if name not in handlers)
        if missing:
            raise InvalidDefinition("", "Resource", f"no handler is given for {', '.join(missing)}")
        self.store, self.definition, self.handlers = store, definition, handlers
        self.clock: Clock = clock or SystemClock()
        self.random = random or SystemRandom()
        self.on_finished = on_finished
        self._runs = Runs(store)
        self._runs.know(definition)

    def start(self, name: str, input: JSON, definition: Definition | None = None) -> bool:
        """Store a new execution, due at once; False, and nothing happens, if one of this name exists."""
        definition = definition or self.definition
        self._runs.know(definition)
        if too_large(dump(input)):
            raise AslError(f"{name}: the input is larger than 256 KiB: store it, and pass where it is")
        execution = Execution(name, definition.digest, Status.RUNNING, input, self.clock.now())
        nonce = f"{self.random.getrandbits(128):032x}"
        events = Step(self.store, Run(execution, definition), self.handlers, self.clock).begin(nonce)
        return self.store.start(execution, definition.text, events)

    def advance(self, name: str) -> None:
        """Carry an execution on until it waits or ends."""
        for _ in range(_TRIES):
            try:
                self._advance(name)
                return
            except HistoryMoved:
                continue  # an answer or an abort came in between: decide again on what is stored now
        raise HistoryMoved(f"{name}: its history moved {_TRIES} times while it was being advanced")

    def run_ready(self) -> int:
        """Advance all executions that are due, until none is; returns how many advances were made."""
        advanced = 0
        while names := self.store.runnable(self.clock.now(), READY_AT_ONCE):
            for name in names:
                self.advance(name)
            advanced += len(names)
        return advanced

    def next_due_at(self) -> datetime | None:
        """When the next timer ends; what is due already does not count."""
        return self.store.next_look_at(self.clock.now())

    def stop(self, name: str, error: str | None = None, cause: str | None = None) -> bool:
        """Abort a running execution; False if it has ended already."""
        return stop_execution(self.store, name, self.clock.now(), error, cause)

    def _advance(self, name: str) -> None:
        stored, run = self._runs.take(name)
        execution = stored.execution
        if execution.status is Status.RUNNING:
            Step(self.store, run, self.handlers, self.clock).drive(stored.answers)
            if run.status is Status.RUNNING:
                self._runs.keep(name, run)
                return
            execution = run.finished()
        self._announce(execution)

    def _announce(self, execution: Execution) -> None:
        """Tell of a bad end, at least once: the execution stays due until the telling returned."""
        if execution.status is Status.SUCCEEDED:
            return
        if self.on_finished is not None:
            self.on_finished(execution)
        self.store.acknowledge(execution.name)
