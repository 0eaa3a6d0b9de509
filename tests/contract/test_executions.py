"""The promises of ExecutionStore and TaskTokens, over every adapter."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from webordinary.adapters.sqlite.database import Database, MemoryDatabase
from webordinary.adapters.sqlite.executions import NEXT_LOOK_AT, RUNNABLE, SqliteExecutions
from webordinary.asl.errors import HistoryMoved
from webordinary.asl.ports import Append, Execution, HistoryEvent, Status, TaskAnswer

Store = SqliteExecutions
NOON = datetime(2025, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
PAST = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STARTED = HistoryEvent("ExecutionStarted", "", NOON.timestamp(), {"nonce": "n"})
ENTERED = HistoryEvent("PassStateEntered", "", NOON.timestamp(), {"name": "Only"})
EXITED = HistoryEvent(
    "PassStateExited", "0.~1", NOON.timestamp(), {"name": "Only", "output": {"ä": ["\ud800", 1.5, None]}}
)


@pytest.fixture(params=["database", "file_database"])
def store(request: pytest.FixtureRequest) -> Store:
    return SqliteExecutions(request.getfixturevalue(request.param))


def start(store: Store, name: str = "one", at: datetime = NOON, definition: str = "d1") -> Execution:
    execution = Execution(name, definition, Status.RUNNING, {"mail": name}, at)
    assert store.start(execution, f"text of {definition}", (STARTED, ENTERED))
    return execution


def rest(seq: int = 2, look_at: datetime | None = None) -> Append:
    """The engine comes to rest after one more event."""
    return Append(expected_seq=seq, events=(EXITED,), look_at=look_at)


def ended(status: Status, seq: int = 2, at: datetime = NOON) -> Append:
    look_at = None if status is Status.SUCCEEDED else PAST
    return Append(seq, (EXITED,), look_at, status=status, error="E", cause="because", finished_at=at)


def test_a_new_execution_is_stored_whole_and_due_at_once(store: Store) -> None:
    execution = start(store)
    stored = store.load("one")
    assert stored is not None
    assert (stored.execution, stored.seq, stored.events) == (execution, 2, (STARTED, ENTERED))
    assert store.due(NOON, 10).names == ["one"]
    assert store.definition("d1") == "text of d1"


def test_a_name_starts_once(store: Store) -> None:
    start(store)
    again = Execution("one", "d2", Status.RUNNING, {"other": True}, NOON + MINUTE)
    assert not store.start(again, "text of d2", (STARTED,))
    stored = store.load("one")
    assert stored is not None
    assert stored.execution.input == {"mail": "one"}


def test_nothing_is_known_of_what_never_started(store: Store) -> None:
    assert store.load("nobody") is None
    assert store.definition("nothing") is None
    assert store.due(NOON, 10).names == []
    assert store.due(PAST, 1).next_at is None
    with pytest.raises(HistoryMoved):
        store.append("nobody", rest())


def test_events_come_back_as_they_were_appended(store: Store) -> None:
    start(store)
    store.append("one", rest(seq=2))
    store.append("one", Append(3, (EXITED, ENTERED), None))
    stored = store.load("one")
    assert stored is not None
    assert stored.events == (STARTED, ENTERED, EXITED, EXITED, ENTERED)
    assert stored.seq == 5


@pytest.mark.parametrize("after", range(6))
def test_a_reader_may_ask_for_the_tail_only(store: Store, after: int) -> None:
    start(store)
    store.append("one", Append(2, (EXITED, ENTERED, EXITED), None))
    stored = store.load("one", after=after)
    assert stored is not None
    assert stored.events == (STARTED, ENTERED, EXITED, ENTERED, EXITED)[after:]


def test_the_slower_of_two_writers_writes_nothing(store: Store) -> None:
    start(store)
    store.append("one", rest(seq=2, look_at=NOON + MINUTE))
    with pytest.raises(HistoryMoved):
        store.append("one", replace(rest(seq=2), opened=("token",)))
    stored = store.load("one")
    assert stored is not None
    assert stored.seq == 3
    assert store.due(NOON, 1).next_at == NOON + MINUTE
    assert not store.answer_token("token", TaskAnswer())


def test_an_execution_at_rest_is_due_when_its_timer_ends(store: Store) -> None:
    start(store)
    store.append("one", rest(look_at=NOON + MINUTE))
    assert store.due(NOON, 10).names == []
    assert store.due(NOON, 1).next_at == NOON + MINUTE
    assert store.due(NOON + MINUTE, 10).names == ["one"]
    assert store.due(NOON + MINUTE, 1).next_at is None


def test_an_execution_left_in_the_middle_stays_due(store: Store) -> None:
    start(store)
    store.append("one", rest(look_at=PAST))
    assert store.due(NOON, 10).names == ["one"]


def test_the_longest_due_come_first_and_no_more_than_asked_for(store: Store) -> None:
    for name in ("late", "early", "new"):
        start(store, name)
    store.append("late", rest(look_at=NOON))
    store.append("early", rest(look_at=NOON - MINUTE))
    assert store.due(NOON, 10).names == ["new", "early", "late"]
    assert store.due(NOON, 2).names == ["new", "early"]


def test_the_end_is_stored_and_a_good_one_is_due_no_more(store: Store) -> None:
    execution = start(store)
    store.append("one", Append(2, (EXITED,), None, status=Status.SUCCEEDED, output=[1], finished_at=NOON + MINUTE))
    stored = store.load("one")
    assert stored is not None
    assert stored.execution == replace(execution, status=Status.SUCCEEDED, output=[1], finished_at=NOON + MINUTE)
    assert store.due(NOON + MINUTE, 10).names == []
    with pytest.raises(HistoryMoved):
        store.append("one", rest(seq=3))


def test_a_bad_end_stays_due_until_it_is_acknowledged(store: Store) -> None:
    start(store)
    store.append("one", ended(Status.FAILED))
    assert store.due(NOON, 10).names == ["one"]
    store.acknowledge("one")
    assert store.due(NOON, 10).names == []
    stored = store.load("one")
    assert stored is not None
    assert (stored.execution.error, stored.execution.cause) == ("E", "because")


def test_acknowledging_a_running_execution_does_not_put_it_to_sleep(store: Store) -> None:
    start(store)
    store.acknowledge("one")
    assert store.due(NOON, 10).names == ["one"]


def waiting(store: Store, *tokens: str, name: str = "one") -> None:
    start(store, name)
    store.append(name, replace(rest(), opened=tokens))


def test_the_first_answer_to_a_token_wins_and_makes_its_execution_due(store: Store) -> None:
    waiting(store, "t")
    assert store.due(NOON, 10).names == []
    assert store.answer_token("t", TaskAnswer({"commit": "abc"}))
    assert not store.answer_token("t", TaskAnswer(error="Late", failed=True))
    assert store.due(NOON, 10).names == ["one"]
    stored = store.load("one")
    assert stored is not None
    assert stored.answers == {"t": TaskAnswer({"commit": "abc"})}


def test_a_failure_without_error_and_cause_is_an_answer(store: Store) -> None:
    waiting(store, "t")
    assert store.answer_token("t", TaskAnswer(failed=True))
    stored = store.load("one")
    assert stored is not None
    assert stored.answers == {"t": TaskAnswer(failed=True)}


def test_an_unknown_token_is_lost(store: Store) -> None:
    assert not store.answer_token("never", TaskAnswer())
    assert not store.beat_token("never", NOON)


def test_a_consumed_token_is_closed(store: Store) -> None:
    waiting(store, "t")
    store.answer_token("t", TaskAnswer())
    store.append("one", replace(rest(seq=3), consumed=("t",)))
    assert not store.answer_token("t", TaskAnswer())
    assert store.due(NOON, 10).names == []


def test_a_token_answered_meanwhile_cannot_be_dropped(store: Store) -> None:
    waiting(store, "t")
    store.answer_token("t", TaskAnswer(1))
    with pytest.raises(HistoryMoved):
        store.append("one", replace(rest(seq=3), dropped=("t",)))
    stored = store.load("one")
    assert stored is not None
    assert (stored.seq, stored.answers) == (3, {"t": TaskAnswer(1)})


def test_a_dropped_token_is_lost(store: Store) -> None:
    waiting(store, "t", "u")
    store.append("one", replace(rest(seq=3), dropped=("t",)))
    assert not store.answer_token("t", TaskAnswer())
    assert store.answer_token("u", TaskAnswer())


def test_an_answer_that_comes_while_the_engine_is_busy_is_not_overslept(store: Store) -> None:
    start(store)
    store.append("one", replace(rest(look_at=PAST), opened=("t",)))
    store.answer_token("t", TaskAnswer())
    store.append("one", rest(seq=3, look_at=NOON + MINUTE))
    assert store.due(NOON, 10).names == ["one"]


def test_the_end_of_an_execution_closes_its_tokens(store: Store) -> None:
    waiting(store, "t")
    waiting(store, "other", name="two")
    store.append("one", ended(Status.ABORTED, seq=3))
    assert not store.beat_token("t", NOON)
    assert store.beat_token("other", NOON)


def test_the_last_heartbeat_is_kept_until_the_answer(store: Store) -> None:
    waiting(store, "t")
    assert store.beat_token("t", NOON)
    assert store.beat_token("t", NOON + MINUTE)
    stored = store.load("one")
    assert stored is not None
    assert stored.beats == {"t": NOON + MINUTE}
    store.answer_token("t", TaskAnswer())
    assert not store.beat_token("t", NOON + 2 * MINUTE)


def test_executions_are_listed_newest_first_in_pages(store: Store) -> None:
    for name in ("a", "b", "c"):
        start(store, name)
    store.append("b", ended(Status.FAILED))
    assert [execution.name for execution in store.executions(None, 10)] == ["c", "b", "a"]
    assert [execution.name for execution in store.executions(None, 2)] == ["c", "b"]
    assert [execution.name for execution in store.executions(None, 2, before="b")] == ["a"]
    assert [execution.name for execution in store.executions(Status.FAILED, 10)] == ["b"]


def test_only_old_and_announced_ends_are_pruned(store: Store) -> None:
    for name in ("running", "old", "unannounced", "recent"):
        start(store, name, definition=f"d-{name}")
    store.append("old", ended(Status.SUCCEEDED, at=NOON))
    store.append("unannounced", ended(Status.FAILED, at=NOON))
    store.append("recent", ended(Status.SUCCEEDED, at=NOON + MINUTE))
    assert store.prune(before=NOON + MINUTE) == 1
    assert store.load("old") is None
    assert store.definition("d-old") is None
    assert {e.name for e in store.executions(None, 10)} == {"running", "unannounced", "recent"}
    assert store.definition("d-running") == "text of d-running"
    assert start(store, "old")


def test_looking_for_due_executions_does_not_read_the_finished_ones(tmp_path: Path) -> None:
    database = Database(tmp_path / "webordinary.db")
    database.migrate()
    with database.read() as conn:
        plans = [
            conn.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
            for query, values in ((RUNNABLE, (0.0, 1)), (NEXT_LOOK_AT, (0.0,)))
        ]
    database.close()
    for plan in plans:
        assert any("executions_due" in row["detail"] for row in plan), [row["detail"] for row in plan]
        assert not any("TEMP B-TREE" in row["detail"] for row in plan)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
def test_the_history_of_a_success_can_be_dropped_with_its_end_and_that_of_a_failure_stays(status: Status) -> None:
    store = SqliteExecutions(MemoryDatabase(), keep_histories=False)
    start(store)
    store.append("one", ended(status))
    stored = store.load("one")
    assert stored is not None
    assert stored.execution.status is status
    assert bool(stored.events) == (status is Status.FAILED)
