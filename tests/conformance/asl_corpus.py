"""AWS's recorded executions, replayed on our engine: the corpus, its scripted services, the comparison."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.asl.definition import Definition
from webordinary.asl.engine import Engine
from webordinary.asl.errors import Failure
from webordinary.asl.ports import HistoryEvent, send_task_failure, send_task_success
from webordinary.asl.values import JSON

SHARED = Path(__file__).resolve().parents[3] / "shared"
CORPUS = SHARED / "corpus" / "asl"
Case = dict[str, Any]


def cases(file: str) -> list[Case]:
    """The rows of one corpus file; skips where this checkout stands alone."""
    path = CORPUS / file
    if not path.exists():
        pytest.skip("the corpus of recorded AWS executions is not beside this checkout (../shared/corpus/asl)")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def comparison() -> Callable[[Any, Any, Any], bool]:
    """The corpus's own `eq`."""
    spec = importlib.util.spec_from_file_location("asl_compare", CORPUS / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    eq: Callable[[Any, Any, Any], bool] = module.eq
    return eq


class CorpusClock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.time = datetime(2025, 11, 16, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time


class ScriptedServices(Mapping[str, Callable[[Any], Any]]):
    """Handlers for every resource, each answering with the next recorded outcome of its state."""

    def __init__(self, script: list[dict[str, Any]], store: SqliteExecutions, clock: CorpusClock) -> None:
        self.script, self.store, self.clock = list(script), store, clock

    def __getitem__(self, resource: str) -> Callable[[Any], Any]:
        return self._play

    def __contains__(self, resource: object) -> bool:
        return bool(self.script) or ":activity:" not in str(resource)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def _play(self, parameters: JSON) -> JSON:
        if not self.script:
            raise Failure("Corpus.ScriptOver", "the engine called more often than AWS did")
        call = self.script.pop(0)
        outcome = call["outcome"]
        if "submitted_output" in call and "waitForTaskToken" in call["resource"]:
            self._answer(find_token(parameters), outcome)
            return call["submitted_output"]
        if outcome["kind"] == "timed_out":
            self.clock.time += timedelta(seconds=call.get("timeoutInSeconds", 60) + 1)
            return None
        if outcome["kind"] == "failed":
            raise Failure(outcome["error"], as_text(outcome["cause"]))
        return outcome["output"]

    def _answer(self, token: str, outcome: dict[str, Any]) -> None:
        if outcome["kind"] == "failed":
            send_task_failure(self.store, token, outcome["error"], as_text(outcome["cause"]))
        elif outcome["kind"] == "succeeded":
            send_task_success(self.store, token, outcome["output"])


def as_text(cause: JSON) -> str | None:
    return cause if cause is None or isinstance(cause, str) else json.dumps(cause)


def find_token(parameters: JSON) -> str:
    """The longest hexadecimal string among the parameters: the token that the definition put there."""
    if isinstance(parameters, str):
        return parameters if len(parameters) == 64 else ""
    inner = parameters.values() if isinstance(parameters, dict) else parameters if isinstance(parameters, list) else ()
    return next((token for token in map(find_token, inner) if token), "")


@dataclass
class Recording:
    """What our engine made of a case."""

    status: str
    output: Any
    error: str | None
    cause: str | None
    events: list[HistoryEvent] = field(default_factory=list)

    @property
    def states_entered(self) -> list[str]:
        return [e.data["name"] for e in self.events if e.type.endswith("StateEntered") and e.numbered]

    @property
    def event_types(self) -> list[str]:
        return [e.type for e in self.events if e.numbered]


def replay(case: Case) -> Recording:
    """Run a case to its end in virtual time."""
    store, clock = SqliteExecutions(MemoryDatabase()), CorpusClock()
    services = ScriptedServices(case.get("task_script") or [], store, clock)
    engine = Engine(store, Definition.load(case["definition"]), services, clock=clock, random=Random(1))
    engine.start("case", case["input"])
    engine.run_ready()
    if "stop_execution" in case:
        engine.stop("case", **case["stop_execution"])
        engine.run_ready()
    while (due := engine.next_due_at()) is not None:
        clock.time = due
        engine.run_ready()
    stored = store.load("case")
    assert stored is not None
    end = stored.execution
    return Recording(str(end.status), end.output, end.error, end.cause, list(stored.events))


def differences(case: Case, made: Recording, eq: Callable[[Any, Any, Any], bool]) -> list[str]:
    """Which of the recorded fields we did not meet."""
    expected, tokens = case["expected"], case["placeholders"]
    found = [
        name for name in ("status", "output", "error", "cause") if not eq(expected[name], getattr(made, name), tokens)
    ]
    if "states_entered" in expected and not _same_sequence(case, expected["states_entered"], made.states_entered):
        found.append("states_entered")
    if "event_types" in expected and not _same_sequence(case, expected["event_types"], made.event_types):
        found.append("event_types")
    return found


def _same_sequence(case: Case, expected: list[str], actual: list[str]) -> bool:
    if case["order_nondeterministic"]:
        return Counter(expected) == Counter(actual)
    return expected == actual
