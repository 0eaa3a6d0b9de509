"""One file, many threads and processes: writes are whole, nobody waits for ever, events ride along and get there."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from webordinary.adapters.sqlite import events as sqlite_events
from webordinary.adapters.sqlite import writer as sqlite_writer
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.events import MAX_BATCH, SqliteEventLog, SqliteEvents
from webordinary.model.errors import Transient
from webordinary.model.events import Event

ADD = "INSERT INTO dead_letters (email_id, reason, died_at) VALUES (?, 'no', 0)"
ORPHAN = "INSERT INTO senders (address, project_id, user_id, created_at) VALUES ('a', 'nowhere', 'b', 0)"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "webordinary.db")
    db.migrate()
    yield db
    db.close()


@pytest.fixture
def heard() -> queue.Queue[str]:
    return queue.Queue()


@pytest.fixture
def events(db: Database, heard: queue.Queue[str]) -> Iterator[SqliteEvents]:
    events = SqliteEvents(db, heard.put)
    yield events
    events.close()


def letters(db: Database) -> int:
    with db.read() as conn:
        count: int = conn.execute("SELECT count(*) FROM dead_letters").fetchone()[0]
        return count


def kinds(db: Database) -> list[str]:
    return [logged.event.kind for logged in SqliteEventLog(db).after(0, 10_000)]


def fail_at_the_commit(conn: sqlite3.Connection) -> None:
    conn.execute("PRAGMA defer_foreign_keys = ON")
    conn.execute(ORPHAN)


def test_a_failed_write_leaves_nothing(db: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError), db.write() as conn:
        conn.executemany(ADD, [("a",), ("b",), ("a",)])
    assert letters(db) == 0


def test_the_threads_of_a_process_take_turns(db: Database) -> None:
    def add(number: int) -> None:
        for count in range(20):
            with db.write() as conn:
                conn.execute(ADD, (f"{number}-{count}",))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert letters(db) == 160


def test_threads_that_come_and_go_leave_no_connections(db: Database) -> None:
    for _ in range(50):
        thread = threading.Thread(target=letters, args=(db,))
        thread.start()
        thread.join()
    assert len(db._readers) == 1


def test_a_writer_waits_for_another_process_and_gives_up_in_the_end(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(db.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Transient, match="locked"), db.write() as conn:
        conn.execute(ADD, ("a",))
    other.execute("ROLLBACK")
    other.close()
    with db.write() as conn:
        conn.execute(ADD, ("a",))
    assert letters(db) == 1


def test_a_write_inside_a_write_is_an_error_and_no_standstill(db: Database) -> None:
    with pytest.raises(RuntimeError, match="a write inside a write"), db.write(), db.write():
        pass


def test_a_quiet_process_writes_its_events_by_itself(
    db: Database, events: SqliteEvents, heard: queue.Queue[str]
) -> None:
    events.emit(Event("WorkerStarted"))
    assert heard.get(timeout=20) == "page"
    assert kinds(db) == ["WorkerStarted"]


def test_events_that_boarded_a_write_which_failed_go_with_the_next(
    db: Database, events: SqliteEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_events, "RIDE_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(sqlite_events, "QUIET_SECONDS", 1.0)
    events.emit(Event("JobStarted"))
    events.emit(Event("JobSettled"))
    with pytest.raises(sqlite3.IntegrityError), db.write() as conn:
        fail_at_the_commit(conn)
    assert kinds(db) == []
    with db.write() as conn:
        conn.execute(ADD, ("a",))
    assert kinds(db) == ["JobStarted", "JobSettled"]


def test_a_burst_is_written_in_order_and_announced_by_the_batch(
    db: Database, events: SqliteEvents, heard: queue.Queue[str]
) -> None:
    names = [f"Kind{number}" for number in range(3 * MAX_BATCH)]
    for name in names:
        events.emit(Event(name))
    events.close()
    assert kinds(db) == names
    assert heard.qsize() <= 20
