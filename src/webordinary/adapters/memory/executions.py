"""Executions in memory: for tests and simulations, with the same promises as on disk."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from datetime import datetime

from webordinary.asl.errors import HistoryMoved
from webordinary.asl.ports import PAST, Append, Execution, HistoryEvent, Status, Stored, TaskAnswer


@dataclass(slots=True)
class _Record:
    execution: Execution
    order: int
    events: list[HistoryEvent]
    tokens: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Token:
    execution: str
    outcome: TaskAnswer | None = None
    beat_at: datetime | None = None


class MemoryExecutions:
    """ExecutionStore, TaskTokens and ExecutionArchive over dictionaries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, _Record] = {}
        self._due: dict[str, datetime] = {}  # when to look at which: finished ones are not searched
        self._tokens: dict[str, _Token] = {}
        self._definitions: dict[str, str] = {}
        self._started = 0

    def start(self, execution: Execution, definition: str, events: tuple[HistoryEvent, ...]) -> bool:
        """Store a new execution; False if the name is taken."""
        with self._lock:
            if execution.name in self._records:
                return False
            self._started += 1
            self._definitions[execution.definition] = definition
            self._records[execution.name] = _Record(execution, self._started, list(events))
            self._look(execution.name, PAST)
            return True

    def append(self, name: str, change: Append) -> None:
        """Store a change whole, or raise HistoryMoved."""
        with self._lock:
            record = self._records.get(name)
            if record is None or record.execution.status is not Status.RUNNING:
                raise HistoryMoved(f"{name} is not running")
            if len(record.events) != change.expected_seq:
                raise HistoryMoved(f"{name} is at {len(record.events)}, not at {change.expected_seq}")
            if any(self._tokens[token].outcome is not None for token in change.dropped):
                raise HistoryMoved(f"{name}: a token was answered meanwhile")
            record.events.extend(change.events)
            self._change_tokens(record, name, change)
            if change.status is not Status.RUNNING:
                record.execution = _ended(record.execution, change)
            answered = any(self._tokens[token].outcome is not None for token in record.tokens)
            self._look(name, PAST if answered else change.look_at)

    def load(self, name: str, after: int = 0) -> Stored | None:
        """An execution with its events after the first `after`."""
        with self._lock:
            record = self._records.get(name)
            if record is None:
                return None
            tokens = {token: self._tokens[token] for token in record.tokens}
            return Stored(
                record.execution,
                len(record.events),
                tuple(record.events[after:]),
                {token: known.outcome for token, known in tokens.items() if known.outcome is not None},
                {token: known.beat_at for token, known in tokens.items() if known.beat_at is not None},
            )

    def runnable(self, now: datetime, limit: int) -> list[str]:
        """Names that are due, longest due first."""
        with self._lock:
            due = [(at, self._records[name].order, name) for name, at in self._due.items() if at <= now]
        return [name for _, _, name in sorted(due)[:limit]]

    def next_look_at(self, after: datetime) -> datetime | None:
        """The first look_at after a time."""
        with self._lock:
            return min((at for at in self._due.values() if at > after), default=None)

    def acknowledge(self, name: str) -> None:
        """Not due any more, if it has ended."""
        with self._lock:
            record = self._records.get(name)
            if record is not None and record.execution.status is not Status.RUNNING:
                self._look(name, None)

    def definition(self, digest: str) -> str | None:
        """A definition's text."""
        return self._definitions.get(digest)

    def answer_token(self, token: str, outcome: TaskAnswer) -> bool:
        """The first answer wins."""
        with self._lock:
            known = self._tokens.get(token)
            if known is None or known.outcome is not None:
                return False
            known.outcome = outcome
            self._look(known.execution, PAST)
            return True

    def beat_token(self, token: str, now: datetime) -> bool:
        """A sign of life of an open token."""
        with self._lock:
            known = self._tokens.get(token)
            if known is None or known.outcome is not None:
                return False
            known.beat_at = now
            return True

    def executions(self, status: Status | None, limit: int, before: str | None = None) -> list[Execution]:
        """The newest first."""
        with self._lock:
            records = sorted(self._records.values(), key=lambda record: -record.order)
            if before is not None and before in self._records:
                records = [record for record in records if record.order < self._records[before].order]
        return [r.execution for r in records if status is None or r.execution.status is status][:limit]

    def prune(self, before: datetime) -> int:
        """Forget what ended before a time and was announced."""
        with self._lock:
            old = [name for name, record in self._records.items() if self._prunable(name, record, before)]
            for name in old:
                del self._records[name]
            used = {record.execution.definition for record in self._records.values()}
            self._definitions = {digest: text for digest, text in self._definitions.items() if digest in used}
            return len(old)

    def _prunable(self, name: str, record: _Record, before: datetime) -> bool:
        finished_at = record.execution.finished_at
        return finished_at is not None and finished_at < before and name not in self._due

    def _look(self, name: str, look_at: datetime | None) -> None:
        if look_at is None:
            self._due.pop(name, None)
        else:
            self._due[name] = look_at

    def _change_tokens(self, record: _Record, name: str, change: Append) -> None:
        for token in change.opened:
            self._tokens[token] = _Token(name)
            record.tokens.add(token)
        closed = set(change.consumed) | set(change.dropped)
        if change.status is not Status.RUNNING:
            closed = set(record.tokens)
        for token in closed:
            self._tokens.pop(token, None)
            record.tokens.discard(token)


def _ended(execution: Execution, change: Append) -> Execution:
    return replace(
        execution,
        status=change.status,
        output=change.output,
        error=change.error,
        cause=change.cause,
        finished_at=change.finished_at,
    )
