"""What a run does, on its way to disk: pending events, and which tokens they open and close."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from webordinary.asl import folds
from webordinary.asl.events import Event
from webordinary.asl.ports import PAST, Change, ExecutionStore, Status
from webordinary.asl.run import Frame, Run

assert folds.STATE_TYPES  # importing the module is what fills the table of folds


class Journal:
    """Applies events to the run at once and stores them together. If a commit fails, throw away journal and run."""

    def __init__(self, store: ExecutionStore, run: Run) -> None:
        self.pending: list[Event] = []
        self._store, self._run = store, run
        self._stored_tokens = set(run.tokens)
        self._answered: set[str] = set()

    def write(self, frame: Frame, event: str, at: float, data: dict[str, Any]) -> None:
        """Make something happen: in memory now, on disk with the next commit."""
        happened = Event(event, frame.scope, at, data)
        self.pending.append(happened)
        self._run.apply(happened)

    def has_seen_answers(self, tokens: Iterable[str]) -> None:
        """These tokens are answered, and what is decided from here on knows it."""
        self._answered = set(tokens)

    def commit(self, look_at: datetime | None) -> None:
        """Store all that is pending, in one append."""
        if look_at is PAST and not self.pending:
            return  # left in the middle, and stored so
        tokens = set(self._run.tokens)
        self._store.append(self._run.execution.name, self._change(tokens, look_at))
        self.pending, self._stored_tokens = [], tokens

    def _change(self, tokens: set[str], look_at: datetime | None) -> Change:
        run, closed = self._run, self._stored_tokens - tokens
        ended = run.status is not Status.RUNNING
        return Change(
            expected_seq=run.seq - len(self.pending),
            events=tuple(self.pending),
            look_at=look_at,
            opened=tuple(sorted(tokens - self._stored_tokens)),
            consumed=tuple(sorted(closed & self._answered)),
            dropped=tuple(sorted(closed - self._answered)),
            status=run.status,
            output=run.output,
            error=run.error,
            cause=run.cause,
            finished_at=datetime.fromtimestamp(run.changed_at, UTC) if ended else None,
        )
