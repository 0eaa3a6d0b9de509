"""One file, many threads and processes: writes are whole, nobody waits for ever, events ride along and get there."""

from __future__ import annotations

import os
import queue
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.unit.mail.letters import NOON, parsed
from webordinary.adapters.records import mail_to_json
from webordinary.adapters.sqlite import claims as sqlite_claims
from webordinary.adapters.sqlite import database as sqlite_database
from webordinary.adapters.sqlite import database as sqlite_writer
from webordinary.adapters.sqlite import events as sqlite_events
from webordinary.adapters.sqlite import jobs as sqlite_jobs
from webordinary.adapters.sqlite import outbox
from webordinary.adapters.sqlite.database import Database, MemoryDatabase
from webordinary.adapters.sqlite.events import MAX_BATCH, SqliteEventLog, SqliteEvents
from webordinary.adapters.sqlite.jobs import SqliteJobs
from webordinary.adapters.sqlite.mail_index import SqliteMailIndex
from webordinary.adapters.sqlite.mails import SqliteParsedMails
from webordinary.adapters.sqlite.rows import packed, unpacked
from webordinary.mail.replies.answers import answer_job
from webordinary.mail.replies.compose import compose
from webordinary.model.errors import Transient
from webordinary.model.events import Event, EventKind
from webordinary.model.jobs import DeferReason, JobOutcome, JobResult
from webordinary.model.snapshot import MailFilter

Change = Callable[[sqlite3.Connection], object]

LONG = 60.0
ADD = "INSERT INTO dead_letters (email_id, reason, died_at) VALUES (?, 'no', 0)"
ORPHAN = "INSERT INTO senders (address, project_id, user_id, created_at) VALUES ('a', 'nowhere', 'b', 0)"


both = pytest.mark.parametrize("db", [Database, MemoryDatabase], indirect=True, ids=["file", "memory"])


@pytest.fixture
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    in_memory = getattr(request, "param", Database) is MemoryDatabase
    db = MemoryDatabase() if in_memory else Database(tmp_path / "webordinary.db")
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


def commits(db: Database) -> int:
    """SQLite counts in the first page of the journal's index how often the file changed."""
    with db.path.with_name(db.path.name + "-shm").open("rb") as index:
        return int.from_bytes(index.read(12)[8:], sys.byteorder)


def kinds(db: Database) -> list[str]:
    return [logged.event.kind for logged in SqliteEventLog(db).after(0, 10_000)]


def fail_at_the_commit(conn: sqlite3.Connection) -> None:
    conn.execute("PRAGMA defer_foreign_keys = ON")
    conn.execute(ORPHAN)


def schema(db: Database) -> list[tuple[object, ...]]:
    with db.read() as conn:
        rows = conn.execute(
            "SELECT type, name, sql, user_version FROM sqlite_master, pragma_user_version ORDER BY 1, 2"
        )
        return [tuple(row) for row in rows]


def test_a_database_in_memory_has_the_schema_of_a_file(db: Database) -> None:
    assert schema(MemoryDatabase()) == schema(db)


class FullDiskHook:
    """A commit hook that fails as SQLite does on a full disk."""

    def before_commit(self, conn: sqlite3.Connection) -> None:
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full

    def committed(self) -> None: ...

    def rolled_back(self) -> None: ...


@both
def test_a_commit_that_fails_leaves_nothing(db: Database) -> None:
    db.set_commit_hook(FullDiskHook())
    with pytest.raises(Transient, match="free disk space"), db.write() as conn:
        conn.execute(ADD, ("a",))
    assert letters(db) == 0


@both
def test_a_failed_write_leaves_nothing(db: Database) -> None:
    with pytest.raises(sqlite3.IntegrityError), db.write() as conn:
        conn.executemany(ADD, [("a",), ("b",), ("a",)])
    assert letters(db) == 0


@both
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


class ConcurrentWriters:
    """Threads that all want to write while the first of them is still at it, so that they share a transaction."""

    def __init__(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        # However long the others take: none of them is torn out of the line here, so nobody commits in their place.
        monkeypatch.setattr(sqlite_writer, "_ABANDONED_SECONDS", LONG)
        self._db = db
        self.ends: dict[str, BaseException | None] = {}

    def write(self, *changes: Change) -> None:
        """Make these changes in this order, each from a thread of its own."""
        begun, go_on = threading.Event(), threading.Event()

        def first(conn: sqlite3.Connection) -> None:
            begun.set()
            go_on.wait(LONG)
            changes[0](conn)

        threads = [self._start("0", first)]
        assert begun.wait(LONG)
        for number, change in enumerate(changes[1:], start=1):
            threads.append(self._start(str(number), change))
            self._wait_for_line(number)
        go_on.set()
        for thread in threads:
            thread.join(LONG)

    def _start(self, name: str, change: Change) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(name, change))
        thread.start()
        return thread

    def _run(self, name: str, change: Change) -> None:
        try:
            with self._db.write() as conn:
                change(conn)
        except (sqlite3.Error, Transient) as problem:
            self.ends[name] = problem
        else:
            self.ends[name] = None

    def _wait_for_line(self, length: int) -> None:
        deadline = time.monotonic() + LONG
        while len(self._db._writer._line) < length:
            assert time.monotonic() < deadline
            os.sched_yield()


def adding(name: str) -> Change:
    return lambda conn: conn.execute(ADD, (name,))


@pytest.fixture
def crowd(db: Database, monkeypatch: pytest.MonkeyPatch) -> ConcurrentWriters:
    return ConcurrentWriters(db, monkeypatch)


def test_threads_that_wait_for_the_disk_share_one_commit(db: Database, crowd: ConcurrentWriters) -> None:
    before = commits(db)
    crowd.write(adding("a"), adding("b"), adding("c"), adding("d"))
    assert (letters(db), commits(db) - before) == (4, 1)
    assert set(crowd.ends.values()) == {None}


def test_one_that_fails_takes_only_its_own_changes_back(db: Database, crowd: ConcurrentWriters) -> None:
    crowd.write(adding("a"), lambda conn: conn.executemany(ADD, [("b",), ("a",)]), adding("c"))
    assert letters(db) == 2
    assert isinstance(crowd.ends["1"], sqlite3.IntegrityError)
    assert crowd.ends["0"] is crowd.ends["2"] is None


def test_a_first_that_fails_does_not_hurt_those_behind_it(db: Database, crowd: ConcurrentWriters) -> None:
    crowd.write(lambda conn: conn.execute("nonsense"), adding("b"), adding("c"))
    assert letters(db) == 2
    assert isinstance(crowd.ends["0"], sqlite3.OperationalError)


def test_when_the_shared_commit_fails_nobody_believes_that_it_happened(db: Database, crowd: ConcurrentWriters) -> None:
    crowd.write(adding("a"), adding("b"), fail_at_the_commit)
    assert letters(db) == 0
    assert sorted(type(end).__name__ for end in crowd.ends.values()) == ["IntegrityError", "Transient", "Transient"]


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


@both
def test_a_write_inside_a_write_is_an_error_and_no_standstill(db: Database) -> None:
    with pytest.raises(RuntimeError, match="a write inside a write"), db.write(), db.write():
        pass


def test_a_quiet_process_writes_its_events_by_itself(
    db: Database, events: SqliteEvents, heard: queue.Queue[str]
) -> None:
    events.emit(Event(EventKind.WORKER_STARTED))
    assert heard.get(timeout=LONG) == "page"
    assert kinds(db) == ["WorkerStarted"]


def test_the_thread_of_the_events_does_not_sleep_on_when_they_are_closed(
    db: Database, heard: queue.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_events, "QUIET_SECONDS", LONG)
    events, others = SqliteEvents(db, heard.put), set(threading.enumerate())
    events.emit(Event(EventKind.WORKER_STARTED))
    assert set(threading.enumerate()) - others
    events.close()
    assert set(threading.enumerate()) - others == set()
    assert kinds(db) == ["WorkerStarted"]


def no_thread_can_be_had(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_events_that_boarded_a_write_which_failed_go_with_the_next(
    db: Database, events: SqliteEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_events, "RIDE_AFTER_SECONDS", 0.0)
    with monkeypatch.context() as machine:
        machine.setattr(threading.Thread, "start", no_thread_can_be_had)  # so that only the writes below take them
        events.emit(Event(EventKind.JOB_STARTED))
        events.emit(Event(EventKind.JOB_SETTLED))
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
        events.emit(Event(cast("EventKind", name)))
    events.close()
    assert kinds(db) == names
    assert heard.qsize() <= len(names) // 10


def test_an_event_that_cannot_be_stored_is_told_to_the_log_and_keeps_no_other_from_its_place(
    db: Database, events: SqliteEvents, caplog: pytest.LogCaptureFixture
) -> None:
    events.emit(Event(EventKind.JOB_STARTED))
    events.emit(Event(EventKind.CHANGE_COMMITTED, job_id="job-1", data={"files": ["caf\udce9.html"]}))
    events.emit(Event(EventKind.CHANGE_COMMITTED, job_id="job-2", data={"files": {"a set"}}))
    events.emit(Event(EventKind.JOB_SETTLED))
    with db.write() as conn:
        conn.execute(ADD, ("a",))
    events.close()
    assert kinds(db) == ["JobStarted", "JobSettled"]
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "an event is lost, ChangeCommitted of job job-1",
        "an event is lost, ChangeCommitted of job job-2",
    ]


def test_trouble_with_events_is_said_once_and_never_ends_their_thread(
    db: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite_events, "FAILED_SECONDS", 0.0)
    heard: queue.Queue[str] = queue.Queue()

    def troubled(name: str) -> None:
        heard.put(name)
        raise RuntimeError("nobody foresaw this")

    events = SqliteEvents(db, troubled)
    for number in range(5):
        events.emit(Event(cast("EventKind", f"Kind{number}")))
        assert heard.get(timeout=LONG) == "page"
    events.close()
    assert kinds(db) == [f"Kind{number}" for number in range(5)]
    [record] = caplog.records
    assert record.message.endswith("events wait in memory: nobody foresaw this")


HELD_FOR_A_YEAR = """
INSERT INTO jobs (job_id, key, ord, thread_ord, thread_id, email_id, command, state, recorded_at, queued_at, not_before)
VALUES ('a', 'amelia#scott', 1, 1, 't', 'mail', 'edit', 'queued', :now, :now, :now + 365 * 86400)"""


def test_a_job_that_an_earlier_version_held_for_a_year_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, steps = Database(tmp_path / "webordinary.db"), sqlite_database._migrations()
    monkeypatch.setattr(sqlite_database, "_migrations", lambda: steps[:7])
    db.migrate()
    with db.write() as conn:
        conn.execute(HELD_FOR_A_YEAR, {"now": time.time()})
    monkeypatch.setattr(sqlite_database, "_migrations", lambda: steps)
    db.migrate()
    job = SqliteJobs(db).get("a")
    assert job
    assert (job.held, job.not_before) == (DeferReason.PAUSE, None)
    db.close()


PLAIN_MAIL = """
INSERT INTO parsed_mails (email_id, message_id, sender, subject, record, parsed_at)
VALUES ('mail', '<1@example.com>', 'scott@example.com', 'Hours', :record, 0)"""
ACCEPTED = """
INSERT INTO raw_mails (email_id, path, peer, mail_from, recipient, size, received_at, started, placed)
VALUES ('mail', 'mail/m.mail', '', 'scott@example.com', 'edit@localhost', 9, 0, 1, 1)"""


def test_a_parsed_mail_of_an_earlier_version_is_read_and_found_by_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, steps = Database(tmp_path / "webordinary.db"), sqlite_database._migrations()
    monkeypatch.setattr(sqlite_database, "_migrations", lambda: steps[:21])
    db.migrate()
    mail = parsed(text="Please ändere the hours", elided="> Lorem ipsum")
    with db.write() as conn:
        conn.execute(PLAIN_MAIL, {"record": mail_to_json(mail)})
        conn.execute(ACCEPTED)
    monkeypatch.setattr(sqlite_database, "_migrations", lambda: steps)
    db.migrate()
    assert SqliteParsedMails(db).load("mail") == mail
    assert [found.email_id for found in SqliteMailIndex(db).find(MailFilter(text="andere"), 9).mails] == ["mail"]
    db.close()


STORED = bytes.fromhex("0178bba8851618237aa20bd7dc1500f394167e")


def test_what_this_version_packed_stays_readable() -> None:
    """A changed `reply_frame.txt` would make all stored replies unreadable."""
    assert unpacked(STORED) == b"Content-Type: text/plain; charset=utf-8\r\n\r\nDone on your edit site"
    assert unpacked(b"\0" + zlib.compress(b"From: an earlier version")) == b"From: an earlier version"
    assert unpacked(b"From: the first version") == b"From: the first version"


@pytest.mark.parametrize("text", ["Please change the title", "Bitte ändere den Titel der Startseite auf „Sommer“"])
def test_three_replies_fit_into_a_page(text: str) -> None:
    mail = parsed(text=text)
    done = JobResult("Changed the title.", "abc", "http://edit.amelia.localhost:8080/", changed_files=("index.html",))
    answer = answer_job(mail, JobOutcome.SUCCEEDED, done)
    reply = compose(answer, email_id="e1", mail=mail, mailbox="edit@localhost", sent_at=NOON)
    assert unpacked(packed(reply.raw)) == reply.raw
    assert len(packed(reply.raw)) < 4096 / 3 - 200  # beside its row


def test_the_log_is_cut_again_after_a_long_read_has_kept_it_from_being_reused(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal = db.path.with_name(db.path.name + "-wal")
    long_read = sqlite3.connect(db.path, isolation_level=None)
    long_read.execute("BEGIN")
    long_read.execute("SELECT count(*) FROM dead_letters").fetchone()
    while wal.stat().st_size <= sqlite_database._WAL_BYTES:
        write_a_megabyte(db)
    long_read.close()
    for _ in range(2):  # the first commit empties the log, the next one begins it anew
        write_a_megabyte(db)
    assert wal.stat().st_size <= sqlite_database._WAL_BYTES


def write_a_megabyte(db: Database) -> None:
    with db.write() as conn:
        conn.execute("INSERT OR REPLACE INTO tallies (tally_id, record) VALUES (1, hex(zeroblob(500000)))")


def test_the_writes_of_a_transaction_share_one_commit(db: Database) -> None:
    before = commits(db)
    with db.transaction():
        for number in range(3):
            with db.write() as conn:
                conn.execute(ADD, (str(number),))
        assert letters(db) == 0, "a reader sees nothing of it yet"
    assert (letters(db), commits(db) - before) == (3, 1)


def add_and_fail(db: Database, meanwhile: Callable[[], object] = lambda: None) -> None:
    with db.transaction():
        with db.write() as conn:
            conn.execute(ADD, ("lost",))
        meanwhile()
        raise Transient("the next write failed")


@both
def test_a_transaction_that_fails_leaves_nothing_of_its_writes(db: Database) -> None:
    with pytest.raises(Transient):
        add_and_fail(db)
    with db.write() as conn:  # on its own again
        conn.execute(ADD, ("1",))
    assert letters(db) == 1


@both
def test_a_part_of_a_transaction_that_fails_is_taken_back_alone(db: Database) -> None:
    with db.transaction():
        with db.write() as conn:
            conn.execute(ADD, ("1",))
        with pytest.raises(Transient):
            add_and_fail(db)
        with db.write() as conn:
            conn.execute(ADD, ("3",))
    assert letters(db) == 2


def test_a_transaction_of_one_thread_holds_no_write_of_another(db: Database) -> None:
    def write_elsewhere() -> None:
        with db.write() as conn:
            conn.execute(ADD, ("2",))

    other = threading.Thread(target=write_elsewhere)
    with pytest.raises(Transient):
        add_and_fail(db, meanwhile=other.start)
    other.join(LONG)
    assert letters(db) == 1


def test_undelivered_replies_are_found_without_the_delivered_ones(db: Database) -> None:
    with db.read() as conn:
        plan = [row["detail"] for row in conn.execute(f"EXPLAIN QUERY PLAN {outbox.FAILED}", {"limit": 1})]
    of_outbox = [step for step in plan if " outbox " in step]
    assert len(of_outbox) == 3
    assert all("INDEX outbox_" in step or "rowid=?" in step for step in of_outbox), plan


@pytest.mark.parametrize(
    "statement",
    [sqlite_claims.IN_ORDER, sqlite_claims.MOVED, sqlite_claims.OPEN_JOBS, sqlite_claims.BUSY, sqlite_jobs.OPEN_JOBS],
)
def test_the_open_jobs_of_a_key_are_found_without_its_finished_ones(db: Database, statement: str) -> None:
    with db.read() as conn:
        plan = conn.execute(f"EXPLAIN QUERY PLAN {statement}", (1,) * statement.count("?")).fetchall()
    of_jobs = [row["detail"] for row in plan if " jobs " in row["detail"]]
    assert of_jobs
    assert all("INDEX open_jobs" in step or "INDEX moved_jobs" in step for step in of_jobs)
