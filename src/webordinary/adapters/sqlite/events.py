"""Events in SQLite. They ride in batches on other transactions; a quiet process writes them a moment later."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.overview import UNCLAIMED, unclaimed_of
from webordinary.adapters.sqlite.rows import at, at_or_none, json_text
from webordinary.model.events import Event
from webordinary.model.jobs import JobState
from webordinary.model.names import ProjectUser
from webordinary.model.snapshot import Levels, LoggedEvent
from webordinary.pool.metrics import KEPT, SAMPLE_SECONDS, CountedEvent, MetricsState, PoolHistory, Sample, history_of

RIDE_AFTER_SECONDS = 0.01  # until then a burst gathers: its events share their pages, and one word to the readers
QUIET_SECONDS = 0.1
FAILED_SECONDS = 1.0
SAY_AGAIN_SECONDS = 300.0
MAX_BATCH = 500
MAX_WAITING = 10_000
_log = logging.getLogger(__name__)

APPEND = """
INSERT INTO events (at, kind, email_id, job_id, key, worker, data) VALUES (?, ?, ?, ?, ?, ?, ?)"""

AFTER = """
SELECT * FROM events WHERE seq > :after AND (:email_id IS NULL OR email_id = :email_id)
  AND (:job_id IS NULL OR job_id = :job_id)
ORDER BY seq LIMIT :limit"""

LAST = "SELECT max(seq) - :limit FROM events"

FORGET = "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE at < :before ORDER BY seq LIMIT :limit)"

Row = tuple[float, str, str | None, str | None, str | None, str | None, str]


class SqliteEvents:
    """Writes what happened; loses at most the last moment of a killed process, never a fact of a job."""

    def __init__(
        self, db: Database, notify: Callable[[str], None], stored_up_to: Callable[[int], None] = lambda _: None
    ) -> None:
        """`stored_up_to` gets the number of the last event after each commit that stored events."""
        self._db, self._notify, self._stored_up_to = db, notify, stored_up_to
        self._last_seq = 0
        self._waiting: deque[Row] = deque(maxlen=MAX_WAITING)
        self._in_commit: list[Row] = []  # touched by the thread whose turn it is to write
        self._untold = False
        self._say_at = 0.0
        """When, on the monotonic clock, to say again that events cannot be written."""
        self._some = threading.Event()
        self._closing = threading.Event()
        self._flusher: threading.Thread | None = None
        self._guard = threading.Lock()
        db.set_commit_hook(self)

    def emit(self, event: Event) -> None:
        """Store an event. Never fails its caller: an event that cannot be stored is logged."""
        try:
            row = _row(event)
        except (TypeError, ValueError) as problem:
            _log.error("an event is lost, %s of job %s: %s", event.kind, event.job_id, problem)
            return
        self._waiting.append(row)
        if not self._some.is_set():
            with suppress(RuntimeError):  # no thread can be had now; others' transactions take it along
                if self._flusher is None:
                    self._start_flusher()
                self._some.set()

    def before_commit(self, conn: sqlite3.Connection) -> None:
        """Add what has waited to a transaction that is about to commit."""
        if self._waiting and (self._closing.is_set() or self._waited_seconds() >= RIDE_AFTER_SECONDS):
            while self._waiting and len(self._in_commit) < MAX_BATCH:
                self._in_commit.append(self._waiting.popleft())
            conn.executemany(APPEND, self._in_commit)
            self._last_seq = conn.execute("SELECT last_insert_rowid()").fetchone()[0]

    def committed(self) -> None:
        """Marks the rows as stored; readers are notified later, by another thread."""
        if self._in_commit:
            self._in_commit, self._untold = [], True
            self._stored_up_to(self._last_seq)

    def rolled_back(self) -> None:
        self._waiting.extendleft(reversed(self._in_commit))
        self._in_commit = []

    def close(self) -> None:
        """Write what waits and end."""
        self._closing.set()
        self._some.set()
        if self._flusher:
            self._flusher.join(timeout=5)
        self._flushed(at_once=True)

    def _waited_seconds(self) -> float:
        """For how long the oldest event has waited; less than nothing if there is none."""
        try:
            return time.time() - self._waiting[0][0]
        except IndexError:
            return -1.0

    def _start_flusher(self) -> None:
        with self._guard:
            if self._flusher is None:
                flusher = threading.Thread(target=self._flush_when_quiet, name="events", daemon=True)
                flusher.start()
                self._flusher = flusher

    def _flush_when_quiet(self) -> None:
        while not self._closing.is_set():
            self._some.wait()
            self._closing.wait(QUIET_SECONDS)  # most events are stored by another transaction meanwhile
            if not self._flushed(at_once=False):
                self._closing.wait(FAILED_SECONDS)
            if not self._waiting:
                self._some.clear()
                if self._waiting:  # it came in between
                    self._some.set()

    def _flushed(self, *, at_once: bool) -> bool:
        """Write the waiting events and wake the readers. False after an error: the flusher thread continues."""
        try:
            if at_once or self._waited_seconds() >= QUIET_SECONDS:
                for _ in range(0, len(self._waiting), MAX_BATCH):
                    with self._db.write():
                        pass  # `before_commit` adds the rows
            if self._untold:
                self._untold = False
                self._notify("page")
        except Exception as problem:
            if time.monotonic() >= self._say_at:
                self._say_at = time.monotonic() + SAY_AGAIN_SECONDS
                _log.warning("%d events wait in memory: %s", len(self._waiting), problem)
            return False
        return True


def append(db: Database, event: Event) -> None:
    """Store one event at once, for a process that has no other transactions."""
    with db.write() as conn:
        conn.execute(APPEND, _row(event))


def _row(event: Event) -> Row:
    """Raises ValueError or TypeError where the row could not be written: it would keep all others from it too."""
    data = json_text(dict(event.data)) if event.data else "{}"
    key = event.key.text if event.key else None
    row = (time.time(), str(event.kind), event.email_id, event.job_id, key, event.worker, data)
    for text in row[1:]:
        if text is not None and not text.isascii():
            text.encode()
    return row


class SqliteEventLog:
    """Reads the stored events."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def after(
        self, seq: int, limit: int, email_id: str | None = None, job_id: str | None = None
    ) -> Sequence[LoggedEvent]:
        fields = {"after": seq, "limit": limit, "email_id": email_id, "job_id": job_id}
        with self._db.read() as conn:
            return [_logged(row) for row in conn.execute(AFTER, fields)]

    def start_of_last(self, limit: int) -> int:
        """The place after which the last `limit` events stand."""
        with self._db.read() as conn:
            return max(0, conn.execute(LAST, {"limit": limit}).fetchone()[0] or 0)

    def keep_last(self, count: int) -> None:
        """Delete all but the newest."""
        with self._db.write() as conn:
            conn.execute("DELETE FROM events WHERE seq <= (SELECT max(seq) FROM events) - ?", (count,))

    def forget(self, before: datetime, limit: int = 5000) -> int:
        """Delete events past their retention, a bounded bite at a time."""
        with self._db.write() as conn:
            return conn.execute(FORGET, {"before": before.timestamp(), "limit": limit}).rowcount


def _logged(row: sqlite3.Row) -> LoggedEvent:
    event = Event(
        kind=row["kind"],
        email_id=row["email_id"],
        job_id=row["job_id"],
        key=ProjectUser.parse(row["key"]) if row["key"] else None,
        worker=row["worker"],
        data=json.loads(row["data"]),
    )
    return LoggedEvent(row["seq"], at(row["at"]), event)


LOAD = "SELECT record FROM tallies"
SAVE = """
INSERT INTO tallies (tally_id, record) VALUES (1, ?)
ON CONFLICT (tally_id) DO UPDATE SET record = excluded.record"""
COUNTED_AFTER = "SELECT seq, kind, data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"


class SqliteMetrics:
    """See MetricsStore."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def load(self) -> MetricsState:
        """The tally as it was saved last; an empty one before the first time."""
        with self._db.read() as conn:
            row: sqlite3.Row | None = conn.execute(LOAD).fetchone()
        return MetricsState.from_json(row["record"]) if row else MetricsState()

    def save(self, tally: MetricsState) -> None:
        """Store the sample."""
        with self._db.write() as conn:
            conn.execute(SAVE, (tally.to_json(),))

    def events_after(self, seq: int, limit: int) -> list[CountedEvent]:
        """What is to be counted next, oldest first."""
        with self._db.read() as conn:
            rows = conn.execute(COUNTED_AFTER, (seq, limit)).fetchall()
        return [CountedEvent(row["seq"], row["kind"], row["data"]) for row in rows]


CLAIMS_HELD = "SELECT count(*) FROM claims WHERE status = 'held'"

JOBS = """
SELECT state, count(*) AS jobs, min(queued_at) AS oldest FROM jobs WHERE state <> 'settled' GROUP BY state"""

MAILS_IN_FLIGHT = """
SELECT count(*) FROM (
  SELECT email_id FROM raw_mails WHERE started = 0
  UNION SELECT substr(name, 1, 64) FROM executions WHERE look_at IS NOT NULL
  UNION SELECT email_id FROM jobs WHERE state <> 'settled'
  UNION SELECT email_id FROM jobs
    WHERE (state = 'settled' AND called_back = 0 AND task_token IS NOT NULL) OR preempted_token IS NOT NULL
  UNION SELECT email_id FROM outbox WHERE sent_at IS NULL AND given_up = 0)"""

REPLIES_UNSENT = "SELECT count(*) FROM outbox WHERE sent_at IS NULL AND given_up = 0"
REPLIES_GIVEN_UP = "SELECT count(*) FROM outbox WHERE given_up = 1"
DEAD_LETTERS = "SELECT count(*) FROM dead_letters"


class SqliteLevels:
    """Counts unfinished work; no query reads finished work."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def look(self, workers_alive: int) -> Levels:
        """The present levels. Lock files tell how many workers live, no table."""
        with self._db.read() as conn:
            jobs = {JobState(row["state"]): row for row in conn.execute(JOBS)}
            queued = jobs.get(JobState.QUEUED)
            return Levels(
                unclaimed=unclaimed_of(conn.execute(UNCLAIMED).fetchone()),
                claims_held=_count(conn, CLAIMS_HELD),
                workers_alive=workers_alive,
                jobs={state: jobs[state]["jobs"] if state in jobs else 0 for state in OPEN},
                oldest_queued_at=at_or_none(queued["oldest"]) if queued else None,
                mails_in_flight=_count(conn, MAILS_IN_FLIGHT),
                replies_unsent=_count(conn, REPLIES_UNSENT),
                replies_given_up=_count(conn, REPLIES_GIVEN_UP),
                dead_letters=_count(conn, DEAD_LETTERS),
            )


OPEN = tuple(state for state in JobState if state is not JobState.SETTLED)


def _count(conn: sqlite3.Connection, query: str) -> int:
    counted: int = conn.execute(query).fetchone()[0]
    return counted


PUT_SAMPLE = """
INSERT INTO samples (at, waiting, record) VALUES (:at, :waiting, :record)
ON CONFLICT (at) DO UPDATE SET record = excluded.record, waiting = max(waiting, excluded.waiting)"""
FORGET_SAMPLES = "DELETE FROM samples WHERE at < ?"
SAMPLES_SINCE = """
SELECT s.at, s.record, g.waiting,
       (SELECT coalesce(sum(usd), 0) FROM costs c WHERE c.at >= g.begin AND c.at < g.begin + :seconds) AS usd
FROM (SELECT max(at) AS last, max(waiting) AS waiting, at / :seconds * :seconds AS begin
      FROM samples WHERE at >= :since GROUP BY begin) g JOIN samples s ON s.at = g.last
ORDER BY s.at LIMIT :limit"""
MOST_SAMPLES = int(KEPT.total_seconds()) // SAMPLE_SECONDS + 1


class SqliteSamples:
    """See Samples and History."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def put(self, sample: Sample) -> None:
        with self._db.write() as conn:
            conn.execute(PUT_SAMPLE, {"at": sample.at, "waiting": sample.waiting, "record": sample.to_json()})
            conn.execute(FORGET_SAMPLES, (sample.at - KEPT.total_seconds(),))

    def history(self, start: datetime, seconds: int, count: int) -> PoolHistory:
        before = start - timedelta(seconds=SAMPLE_SECONDS)  # where the counters of the first bar begin
        return history_of(self.since(before, seconds), start, seconds, count)

    def since(self, at: datetime, seconds: int) -> Sequence[Sample]:
        """From then on, oldest first: the last sample of each `seconds`, with the costs and the most waiting of them.

        Of a month at most. The bars begin at multiples of `seconds`.
        """
        values = {"since": at.timestamp(), "seconds": seconds, "limit": MOST_SAMPLES}
        with self._db.read() as conn:
            rows = conn.execute(SAMPLES_SINCE, values)
            return [Sample.read(row["at"], row["waiting"], row["record"], row["usd"]) for row in rows]
