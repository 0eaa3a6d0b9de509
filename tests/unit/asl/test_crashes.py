"""kill -9 at any instant: whatever was running goes on, and ends as if nothing had happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.unit.asl.engine_harness import NOON, CrashingStore, EngineCrash, SteppedClock

from webordinary.adapters.sqlite.database import Database, MemoryDatabase
from webordinary.adapters.sqlite.executions import SqliteExecutions
from webordinary.asl.definition import Definition
from webordinary.asl.engine import Engine
from webordinary.asl.ports import Execution, HistoryEvent, Status, send_task_success
from webordinary.asl.values import JSON

RETRY = [{"ErrorEquals": ["Busy"], "MaxAttempts": 3, "JitterStrategy": "FULL"}]
BRANCHES = [
    {
        "StartAt": "EachPhoto",
        "States": {
            "EachPhoto": {
                "Type": "Map",
                "ItemsPath": "$.photos",
                "MaxConcurrency": 2,
                "ItemSelector": {"photo.$": "$$.Map.Item.Value", "id.$": "States.UUID()"},
                "ItemProcessor": {
                    "StartAt": "Shrink",
                    "States": {
                        "Shrink": {"Type": "Task", "Resource": "shrink", "Retry": RETRY, "Next": "Rest"},
                        "Rest": {"Type": "Wait", "Seconds": 2, "End": True},
                    },
                },
                "End": True,
            }
        },
    },
    {
        "StartAt": "Await",
        "States": {
            "Await": {
                "Type": "Task",
                "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
                "Parameters": {"FunctionName": "ask", "Payload": {"token.$": "$$.Task.Token"}},
                "TimeoutSeconds": 600,
                "End": True,
            }
        },
    },
]
DEFINITION = Definition.load(
    {
        "StartAt": "Both",
        "States": {
            "Both": {"Type": "Parallel", "Branches": BRANCHES, "ResultPath": "$.both", "Next": "Reply"},
            "Reply": {
                "Type": "Task",
                "Resource": "reply",
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "GiveUp"}],
                "End": True,
            },
            "GiveUp": {"Type": "Fail", "Error": "GaveUp", "CausePath": "$.error.Error"},
        },
    }
)


class Busy(Exception):
    """Try again."""


class Steps:
    """Idempotent steps of an outside world that survives the engine's crashes."""

    def __init__(self, clock: SteppedClock) -> None:
        self.clock, self.refused, self.tokens = clock, set[str](), list[str]()
        self.calls: Counter[str] = Counter()

    def shrink(self, given: dict[str, JSON]) -> JSON:
        self.calls["shrink"] += 1
        if self.clock.now() < NOON + timedelta(seconds=0.2):
            raise Busy
        return {"small": given["photo"], "id": given["id"]}

    def ask(self, given: dict[str, JSON]) -> JSON:
        self.calls["ask"] += 1
        self.tokens.append(str(given["token"]))
        return None

    def reply(self, given: dict[str, JSON]) -> JSON:
        raise RuntimeError("no such mailbox")

    def handlers(self) -> dict[str, Any]:
        return {"shrink": self.shrink, "ask": self.ask, "reply": self.reply}


class CrashingExecution:
    """An execution from start to end, in which the engine may die once."""

    def __init__(self, open_store: Callable[[], SqliteExecutions], repeatable: Collection[str] = ()) -> None:
        self.open_store, self.repeatable = open_store, repeatable
        self.store = open_store()
        self.clock = SteppedClock()
        self.steps = Steps(self.clock)
        self.announced: list[Execution] = []
        self.chance: Random | None = None  # of further crashes

    def live(self, crash_at: int, *, after: bool) -> int:
        """Run to the end; returns how often the engine died."""
        engine = self._engine(CrashingStore(self.store, crash_at, after=after))
        crashes = 0
        engine.start("mail", {"photos": ["a", "b", "c"]})
        while True:
            try:
                self._to_the_end(engine)
                return crashes
            except EngineCrash:
                crashes += 1
                self.store = self.open_store()
                engine = self._engine(self._maybe_crashing())

    def _maybe_crashing(self) -> SqliteExecutions | CrashingStore:
        if self.chance is None:
            return self.store
        return CrashingStore(self.store, self.chance.randint(1, 4), after=self.chance.random() < 0.5)

    def _to_the_end(self, engine: Engine) -> None:
        while True:
            engine.run_ready()
            if (due := engine.next_due_at()) is None:
                return
            if self.clock.now() >= NOON + timedelta(seconds=1):
                for token in self.steps.tokens:
                    send_task_success(self.store, token, {"commit": "abc"})
                engine.run_ready()
                due = engine.next_due_at() or due
            self.clock.time = due if due < NOON + timedelta(hours=1) else self.clock.now()

    def _engine(self, store: SqliteExecutions | CrashingStore) -> Engine:
        return Engine(
            store,
            DEFINITION,
            self.steps.handlers(),
            clock=self.clock,
            random=Random(3),
            repeatable=self.repeatable,
            on_finished=self.announced.append,
        )

    def history(self) -> tuple[Execution, list[HistoryEvent]]:
        stored = self.store.load("mail")
        assert stored is not None
        return stored.execution, list(stored.events)


class Disk:
    """A database file that outlives the processes that open it."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)

    def __call__(self) -> SqliteExecutions:
        self.database.close()
        self.database.migrate()
        return SqliteExecutions(self.database)


def memory() -> Callable[[], SqliteExecutions]:
    store = SqliteExecutions(MemoryDatabase())
    return lambda: store


def uncrashed() -> CrashingExecution:
    life = CrashingExecution(memory())
    assert life.live(crash_at=0, after=False) == 0
    return life


def test_the_uncrashed_run_does_all_of_it() -> None:
    life = uncrashed()
    end, events = life.history()
    assert (end.status, end.error, end.cause) == (Status.FAILED, "GaveUp", "RuntimeError")
    assert [execution.name for execution in life.announced] == ["mail"]
    types = Counter(event.type for event in events)
    assert types["LambdaFunctionFailed"] > 1
    assert types["MapIterationSucceeded"] == 3
    assert types["TaskSubmitted"] == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("repeatable", [(), ("shrink",), ("shrink", "reply")], ids=["none", "some", "all"])
def test_a_crash_at_any_write_changes_neither_result_nor_history(repeatable: Collection[str], after: bool) -> None:
    expected, crash_at = uncrashed().history(), 1
    while True:
        life = CrashingExecution(memory(), repeatable)
        if life.live(crash_at, after=after) == 0:
            break
        assert life.history() == expected, f"crash {'after' if after else 'before'} write {crash_at}"
        assert {execution.name for execution in life.announced} == {"mail"}
        crash_at += 1
    assert crash_at > (8 if repeatable else 15), "there were writes to crash at"


@pytest.mark.parametrize("seed", range(40))
def test_an_engine_that_dies_again_and_again_still_tells_the_same_story(seed: int) -> None:
    life = CrashingExecution(memory(), ("shrink",) if seed % 3 else ())
    life.chance = Random(seed)
    assert life.live(crash_at=2, after=seed % 2 == 0) > 1
    assert life.history() == uncrashed().history()


def test_a_database_file_reopened_after_each_crash_tells_the_same_story(tmp_path: Path) -> None:
    expected, crash_at = uncrashed().history(), 1
    while True:
        life = CrashingExecution(Disk(tmp_path / f"{crash_at}.db"))
        if life.live(crash_at, after=crash_at % 2 == 0) == 0:
            break
        assert life.history() == expected, f"crash at write {crash_at}"
        crash_at += 1
