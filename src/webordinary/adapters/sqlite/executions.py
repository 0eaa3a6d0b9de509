"""Executions in SQLite: each step of the workflow engine is one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.rows import at
from webordinary.asl.errors import HistoryMoved
from webordinary.asl.ports import (
    Append,
    Due,
    Execution,
    HistoryEvent,
    Status,
    Stored,
    TaskAnswer,
    states_entered,
)

REMEMBER_DEFINITION = "INSERT INTO workflow_definitions (digest, text) VALUES (?, ?) ON CONFLICT DO NOTHING"

START = """
INSERT INTO executions (name, definition, status, input, started_at, seq, look_at)
VALUES (:name, :definition, 'RUNNING', :input, :started_at, :seq, 0)
ON CONFLICT (name) DO NOTHING
RETURNING id"""

# An execution is named by its mail: what starts it also marks the mail, in one transaction.
MARK_STARTED = "UPDATE raw_mails SET started = 1 WHERE email_id = ? AND started = 0"

MOVE = """
UPDATE executions
SET seq = :seq, look_at = :look_at, status = :status,
    output = :output, error = :error, cause = :cause, finished_at = :finished_at
WHERE name = :name AND seq = :expected_seq AND status = 'RUNNING'
RETURNING id"""

APPEND = "INSERT INTO execution_events (execution, seq, events) VALUES (?, ?, ?)"

OPEN = "INSERT INTO task_tokens (token, execution) VALUES (?, ?)"
CONSUME = "DELETE FROM task_tokens WHERE token = ?"
DROP = "DELETE FROM task_tokens WHERE token = ? AND outcome IS NULL"
DROP_ALL = "DELETE FROM task_tokens WHERE execution = ?"

# An answer that came while the engine was busy must not be overslept.
STAY_DUE_IF_ANSWERED = """
UPDATE executions SET look_at = 0
WHERE id = ?1 AND EXISTS (SELECT 1 FROM task_tokens WHERE execution = ?1 AND outcome IS NOT NULL)"""

EXECUTION = "SELECT * FROM executions WHERE name = ?"
EVENTS_AFTER = """
SELECT seq, events FROM execution_events
WHERE execution = :execution
  AND seq >= coalesce(
    (SELECT max(seq) FROM execution_events WHERE execution = :execution AND seq <= :after), 0)
ORDER BY seq"""
TOKENS_OF = "SELECT token, outcome, beat_at FROM task_tokens WHERE execution = ?"

RUNNABLE = "SELECT name FROM executions WHERE look_at <= ? ORDER BY look_at, id LIMIT ?"
NEXT_LOOK_AT = "SELECT min(look_at) FROM executions WHERE look_at > ?"
ACKNOWLEDGE = "UPDATE executions SET look_at = NULL WHERE name = ? AND status <> 'RUNNING'"
# Only a running execution is replayed, and a history is half of the bytes of a mail: the states it came through stay.
ALL_EVENTS = "SELECT events FROM execution_events WHERE execution = ? ORDER BY seq"
KEEP_PATH = "UPDATE executions SET path = ? WHERE id = ?"
FORGET_HISTORY = "DELETE FROM execution_events WHERE execution = ?"
DEFINITION = "SELECT text FROM workflow_definitions WHERE digest = ?"

ANSWER = "UPDATE task_tokens SET outcome = ? WHERE token = ? AND outcome IS NULL RETURNING execution"
DUE_NOW = "UPDATE executions SET look_at = 0 WHERE id = ?"
BEAT = "UPDATE task_tokens SET beat_at = ? WHERE token = ? AND outcome IS NULL RETURNING token"

NEWEST = """
SELECT * FROM executions
WHERE (:status IS NULL OR status = :status)
  AND (:before IS NULL OR id < (SELECT id FROM executions WHERE name = :before))
ORDER BY id DESC LIMIT :limit"""
PRUNE = "DELETE FROM executions WHERE finished_at < ? AND look_at IS NULL"
PRUNE_DEFINITIONS = """
DELETE FROM workflow_definitions
WHERE NOT EXISTS (SELECT 1 FROM executions WHERE executions.definition = workflow_definitions.digest)"""


MAX_STATES = 300


def all_events(conn: sqlite3.Connection, execution: int) -> list[HistoryEvent]:
    """The history of an execution that is kept."""
    return [event for row in conn.execute(ALL_EVENTS, (execution,)) for event in _decode(row["events"])]


class SqliteExecutions:
    """ExecutionStore and TaskTokens over one database file, and what operators see of executions."""

    def __init__(self, database: Database, *, keep_histories: bool = True) -> None:
        """Without `keep_histories` the history of an execution goes when it succeeds; events tell what happened."""
        self._db, self._keep_histories = database, keep_histories

    def start(self, execution: Execution, definition: str, events: tuple[HistoryEvent, ...]) -> bool:
        values = {
            "name": execution.name,
            "definition": execution.definition,
            "input": json.dumps(execution.input),
            "started_at": execution.started_at.timestamp(),
            "seq": len(events),
        }
        with self._db.write() as conn:
            conn.execute(REMEMBER_DEFINITION, (execution.definition, definition))
            conn.execute(MARK_STARTED, (execution.name,))
            row = conn.execute(START, values).fetchone()
            if row is None:
                return False
            conn.execute(APPEND, (row["id"], 0, _encode(events)))
            return True

    def append(self, name: str, change: Append) -> None:
        """Store a change whole, or raise HistoryMoved."""
        with self._db.write() as conn:
            row = conn.execute(MOVE, _moved(name, change)).fetchone()
            if row is None:
                raise HistoryMoved(f"{name} is not running, or not at {change.expected_seq}")
            if change.events:
                conn.execute(APPEND, (row["id"], change.expected_seq, _encode(change.events)))
            self._change_tokens(conn, row["id"], name, change)
            if change.status is Status.SUCCEEDED and not self._keep_histories:
                path = states_entered(all_events(conn, row["id"]))[:MAX_STATES]
                conn.execute(KEEP_PATH, (json.dumps(path), row["id"]))
                conn.execute(FORGET_HISTORY, (row["id"],))

    def _change_tokens(self, conn: sqlite3.Connection, execution: int, name: str, change: Append) -> None:
        conn.executemany(OPEN, [(token, execution) for token in change.opened])
        conn.executemany(CONSUME, [(token,) for token in change.consumed])
        for token in change.dropped:
            if conn.execute(DROP, (token,)).rowcount == 0:
                raise HistoryMoved(f"{name}: a token was answered meanwhile")
        if change.status is not Status.RUNNING:
            conn.execute(DROP_ALL, (execution,))
        elif change.look_at is None or change.look_at.timestamp() > 0:
            conn.execute(STAY_DUE_IF_ANSWERED, (execution,))

    def load(self, name: str, after: int = 0) -> Stored | None:
        """One consistent read."""
        with self._db.read() as conn:
            conn.execute("BEGIN")
            try:
                row = conn.execute(EXECUTION, (name,)).fetchone()
                if row is None:
                    return None
                pages = conn.execute(EVENTS_AFTER, {"execution": row["id"], "after": after}).fetchall()
                tokens = conn.execute(TOKENS_OF, (row["id"],)).fetchall()
            finally:
                conn.execute("COMMIT")
        outcomes = {row["token"]: row["outcome"] for row in tokens if row["outcome"] is not None}
        answers = {token: TaskAnswer(*json.loads(text)) for token, text in outcomes.items()}
        beats = {row["token"]: at(row["beat_at"]) for row in tokens if row["beat_at"] is not None}
        return Stored(_execution(row), row["seq"], _events(pages, after), answers, beats)

    def due(self, now: datetime, limit: int) -> Due:
        with self._db.read() as conn:
            names = [row["name"] for row in conn.execute(RUNNABLE, (now.timestamp(), limit))]
            return Due(names, _time(conn.execute(NEXT_LOOK_AT, (now.timestamp(),)).fetchone()[0]))

    def acknowledge(self, name: str) -> None:
        with self._db.write() as conn:
            conn.execute(ACKNOWLEDGE, (name,))

    def definition(self, digest: str) -> str | None:
        with self._db.read() as conn:
            row = conn.execute(DEFINITION, (digest,)).fetchone()
        return None if row is None else str(row["text"])

    def answer_token(self, token: str, outcome: TaskAnswer) -> bool:
        text = json.dumps([outcome.output, outcome.error, outcome.cause, outcome.failed])
        with self._db.write() as conn:
            row = conn.execute(ANSWER, (text, token)).fetchone()
            if row is None:
                return False
            conn.execute(DUE_NOW, (row["execution"],))
            return True

    def beat_token(self, token: str, now: datetime) -> bool:
        """A sign of life of an open token."""
        with self._db.write() as conn:
            return conn.execute(BEAT, (now.timestamp(), token)).fetchone() is not None

    def executions(self, status: Status | None, limit: int, before: str | None = None) -> list[Execution]:
        """The newest first."""
        values = {"status": status and str(status), "limit": limit, "before": before}
        with self._db.read() as conn:
            return [_execution(row) for row in conn.execute(NEWEST, values)]

    def prune(self, before: datetime) -> int:
        """Forget what ended before a time and was announced."""
        with self._db.write() as conn:
            pruned = conn.execute(PRUNE, (before.timestamp(),)).rowcount
            conn.execute(PRUNE_DEFINITIONS)
            return pruned


def _moved(name: str, change: Append) -> dict[str, Any]:
    succeeded = change.status is Status.SUCCEEDED
    return {
        "name": name,
        "expected_seq": change.expected_seq,
        "seq": change.expected_seq + len(change.events),
        "look_at": change.look_at and change.look_at.timestamp(),
        "status": str(change.status),
        "output": json.dumps(change.output) if succeeded else None,
        "error": change.error,
        "cause": change.cause,
        "finished_at": change.finished_at and change.finished_at.timestamp(),
    }


def _execution(row: sqlite3.Row) -> Execution:
    return Execution(
        name=row["name"],
        definition=row["definition"],
        status=Status(row["status"]),
        input=json.loads(row["input"]),
        started_at=datetime.fromtimestamp(row["started_at"], UTC),
        output=None if row["output"] is None else json.loads(row["output"]),
        error=row["error"],
        cause=row["cause"],
        finished_at=_time(row["finished_at"]),
    )


def _events(pages: Iterable[sqlite3.Row], after: int) -> tuple[HistoryEvent, ...]:
    """The events after a place that may lie in the middle of the first page."""
    events: list[HistoryEvent] = []
    for page in pages:
        decoded = _decode(page["events"])
        events.extend(decoded[max(0, after - page["seq"]) :])
    return tuple(events)


def _encode(events: Iterable[HistoryEvent]) -> str:
    """Events as one JSON text; ASCII, since a lone surrogate is legal in JSON and not in a database."""
    return json.dumps(tuple(events), separators=(",", ":"))


def _decode(text: str) -> list[HistoryEvent]:
    """The events of one encoded text."""
    return [HistoryEvent(*fields) for fields in json.loads(text)]


def _time(epoch: float | None) -> datetime | None:
    return None if epoch is None else datetime.fromtimestamp(epoch, UTC)
