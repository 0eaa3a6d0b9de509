"""The durable engine: starts executions, carries them on from where their history ends, tells of failures."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from random import Random, SystemRandom

from webordinary.asl.definition import Definition
from webordinary.asl.errors import AslError, HistoryMoved, InvalidDefinition, UnknownExecution
from webordinary.asl.ports import EngineClockPort, Execution, ExecutionStore, Status, Stored, stop_execution
from webordinary.asl.run import Run
from webordinary.asl.states import Handlers
from webordinary.asl.step import CallsAgain, RunStep
from webordinary.asl.values import JSON, dump, too_large

KEPT_RUNS = 256


class Runs:
    """A bounded cache over the store. A run is taken out, and kept again only if all went well."""

    def __init__(self, store: ExecutionStore) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, Run] = OrderedDict()
        self._definitions: dict[str, Definition] = {}

    def know(self, definition: Definition) -> None:
        """Spare a definition its compilation from the store."""
        self._definitions[definition.digest] = definition

    def take(self, name: str) -> tuple[Stored, Run]:
        """The execution as stored now, and its run with every stored event applied."""
        with self._guard:
            run = self._kept.pop(name, None)
        stored = self._store.load(name, after=run.seq if run else 0)
        if stored is None:
            raise UnknownExecution(f"no execution is named {name}: it was never started, or pruned")
        if run is None:
            run = Run(stored.execution, self._definition(stored.execution.definition))
        for event in stored.events:
            run.apply(event)
        run.beats = {token: beat_at.timestamp() for token, beat_at in stored.beats.items()}
        return stored, run

    def keep(self, name: str, run: Run) -> None:
        """Remember a run whose every event is stored."""
        with self._guard:
            self._kept[name] = run
            while len(self._kept) > KEPT_RUNS:
                self._kept.popitem(last=False)

    def _definition(self, digest: str) -> Definition:
        known = self._definitions.get(digest)
        if known is None:
            text = self._store.definition(digest)
            if text is None:
                raise AslError(f"the definition {digest} of a stored execution is missing: restore a backup")
            known = self._definitions[digest] = Definition.stored(text)
        return known


READY_AT_ONCE = 100
_TRIES = 8


class EngineClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Now, in UTC."""
        return datetime.now(UTC)


class Engine:
    """Runs executions of the definition it is given, and finishes those of older ones.

    Synchronous and without threads of its own. `advance` may be called for different executions at the same
    time, never twice at once for the same one. One engine process per store: two would do tasks twice.

    Each attempt of a task is stored before its handler is called, and each result before the next handler is.
    Handlers named in `repeatable` are the exception: they change nothing when they are called again, so the engine
    stores their attempts and results with the next step that must be stored, and after a crash calls them again.

    `calls_again` decides, by a call's name and its failure, whether the handler is called again later as if it had not
    been called: for failures of the machine, which the definition's Retry does not count.
    """

    def __init__(
        self,
        store: ExecutionStore,
        definition: Definition,
        handlers: Handlers,
        *,
        clock: EngineClockPort | None = None,
        random: Random | None = None,
        repeatable: Collection[str] = (),
        on_finished: Callable[[Execution], None] | None = None,
        calls_again: CallsAgain | None = None,
    ) -> None:
        missing = sorted(name for name in definition.handlers if name not in handlers)
        if missing:
            raise InvalidDefinition("", "Resource", f"no handler is given for {', '.join(missing)}")
        self.store, self.definition, self.handlers = store, definition, handlers
        self.clock: EngineClockPort = clock or EngineClock()
        self.random = random or SystemRandom()
        self.repeatable = frozenset(repeatable)
        self.on_finished, self.calls_again = on_finished, calls_again
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
        events = self._step(Run(execution, definition)).begin(nonce)
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
        while names := self.store.due(self.clock.now(), READY_AT_ONCE).names:
            for name in names:
                self.advance(name)
            advanced += len(names)
        return advanced

    def next_due_at(self) -> datetime | None:
        """When the next timer ends; what is due already does not count."""
        return self.store.due(self.clock.now(), 0).next_at

    def stop(self, name: str, error: str | None = None, cause: str | None = None) -> bool:
        """Abort a running execution; False if it has ended already."""
        return stop_execution(self.store, name, self.clock.now(), error, cause)

    def _advance(self, name: str) -> None:
        stored, run = self._runs.take(name)
        execution = stored.execution
        if execution.status is Status.RUNNING:
            self._step(run).drive(stored.answers)
            if run.status is Status.RUNNING:
                self._runs.keep(name, run)
                return
            execution = run.finished()
        if execution.status is not Status.SUCCEEDED:
            self._announce(execution)

    def _step(self, run: Run) -> RunStep:
        return RunStep(self.store, run, self.handlers, self.clock, self.repeatable, self.calls_again)

    def _announce(self, execution: Execution) -> None:
        """Tell of a bad end, at least once: the execution stays due until the telling returned."""
        if self.on_finished is not None:
            self.on_finished(execution)
        self.store.acknowledge(execution.name)
