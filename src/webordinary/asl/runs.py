"""The runs that an engine keeps in memory between advances, and how a run is rebuilt when it does not."""

from __future__ import annotations

import threading
from collections import OrderedDict

from webordinary.asl.definition import Definition
from webordinary.asl.errors import AslError, UnknownExecution
from webordinary.asl.ports import ExecutionStore, Stored
from webordinary.asl.run import Run

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
