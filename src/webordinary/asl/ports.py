"""What the interpreter needs of its surroundings: a store in three roles, and a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from webordinary.asl.events import Event
from webordinary.asl.json_types import JSON

PAST = datetime(1970, 1, 1, tzinfo=UTC)  # a `look_at` that is due now, and after any crash


class Status(StrEnum):
    """Where an execution stands, in AWS's words."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"


@dataclass(frozen=True, slots=True)
class Execution:
    """One run of a definition, as everybody outside the interpreter sees it."""

    name: str
    definition: str  # the hash of the definition that it started with, and keeps
    status: Status
    input: JSON
    started_at: datetime
    output: JSON = None
    error: str | None = None
    cause: str | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a task token: an output, or an error."""

    output: JSON = None
    error: str | None = None
    cause: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """All that one step of an execution writes; it is stored whole or not at all.

    `look_at` is when the engine must look at the execution again: a timer, the past while the engine is in
    the middle of it (so that a crash leaves it due), None while it waits for nothing but a token.
    """

    expected_seq: int
    events: tuple[Event, ...]
    look_at: datetime | None
    opened: tuple[str, ...] = ()
    consumed: tuple[str, ...] = ()  # tokens closed by one who has seen their answer
    dropped: tuple[str, ...] = ()  # tokens closed by one who believes them unanswered
    status: Status = Status.RUNNING
    output: JSON = None
    error: str | None = None
    cause: str | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """An execution as loaded: its events after the asked-for place, answers and heartbeats of open tokens."""

    execution: Execution
    seq: int
    events: tuple[Event, ...]
    answers: dict[str, Outcome] = field(default_factory=dict)
    beats: dict[str, datetime] = field(default_factory=dict)


class ExecutionStore(Protocol):
    """The histories of all executions. Each method is one atomic step."""

    def start(self, execution: Execution, definition: str, events: tuple[Event, ...]) -> bool:
        """Store a new execution, due at once, and its definition's text; False if the name exists already."""

    def append(self, name: str, change: Change) -> None:
        """Store a change, in one transaction.

        Raises HistoryMoved, and stores nothing, if the execution is not running, if its history is not at
        `expected_seq`, or if a dropped token has been answered meanwhile: an accepted answer is never lost.
        An execution with an unconsumed answer stays due, whatever `look_at` says.
        """

    def load(self, name: str, after: int = 0) -> Stored | None:
        """An execution with its events after the first `after`; None if there is none of this name."""

    def runnable(self, now: datetime, limit: int) -> list[str]:
        """Executions that are due: new, timer over, token answered, left in the middle, unannounced."""

    def next_look_at(self, after: datetime) -> datetime | None:
        """The first time after `after` at which some execution falls due."""

    def acknowledge(self, name: str) -> None:
        """The end of this execution has been announced: it is not due any more."""

    def definition(self, digest: str) -> str | None:
        """The text of a definition that some execution started with."""


class TaskTokens(Protocol):
    """The answering side of `.waitForTaskToken`, for workers in any process."""

    def answer_token(self, token: str, outcome: Outcome) -> bool:
        """Record the first answer and make its execution due; False = lost: unknown, closed or answered."""

    def beat_token(self, token: str, now: datetime) -> bool:
        """Record a sign of life; False = lost."""


class ExecutionArchive(Protocol):
    """What people look at, and what is thrown away in the end."""

    def executions(self, status: Status | None, limit: int, before: str | None = None) -> list[Execution]:
        """The newest executions first; `before` is the name where the page before ended."""

    def prune(self, before: datetime) -> int:
        """Forget executions that finished, and were announced, before a time; returns how many."""


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """Now, aware, in UTC."""
