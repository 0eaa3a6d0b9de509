"""What the interpreter needs of its surroundings: a store in three roles, and a clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from webordinary.asl.errors import Failure, HistoryMoved, UnknownExecution
from webordinary.asl.values import JSON, dump, too_large

HISTORY_LIMIT = 25_000


class HistoryEvent(NamedTuple):
    """One line of a history. `scope` is empty at the top, `2.0` in branch 0 of a state in branch 2."""

    type: str
    scope: str
    at: float
    data: dict[str, Any]

    @property
    def numbered(self) -> bool:
        """Whether AWS numbers events of this kind."""
        return self.type[0].isupper() and "~" not in self.scope


def states_entered(events: Iterable[HistoryEvent]) -> list[tuple[str, int]]:
    """The states of the workflow itself in the order of entry, each with how often its work was tried again."""
    path: list[list[Any]] = []
    for event in events:
        if event.scope:
            continue
        if event.type.endswith("StateEntered"):
            path.append([event.data["name"], -1])
        elif path and event.type.endswith("Scheduled"):
            path[-1][1] += 1
    return [(name, max(0, tries)) for name, tries in path]


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
class TaskAnswer:
    """The answer to a task token: an output, or an error."""

    output: JSON = None
    error: str | None = None
    cause: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """All that one step of an execution writes; it is stored whole or not at all.

    `look_at` is when the engine must look at the execution again: a timer, the past while the engine is in
    the middle of it (so that a crash leaves it due), None while it waits for nothing but a token.
    """

    expected_seq: int
    events: tuple[HistoryEvent, ...]
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
    events: tuple[HistoryEvent, ...]
    answers: dict[str, TaskAnswer] = field(default_factory=dict)
    beats: dict[str, datetime] = field(default_factory=dict)


class Due(NamedTuple):
    """The executions that are due, the longest first, and when the next one falls due."""

    names: list[str]
    next_at: datetime | None


class ExecutionStore(Protocol):
    """The histories of all executions. Each method is one atomic step."""

    def start(self, execution: Execution, definition: str, events: tuple[HistoryEvent, ...]) -> bool:
        """Store a new execution, due at once, and its definition's text; False if the name exists already."""

    def append(self, name: str, change: Append) -> None:
        """Store a change, in one transaction.

        Raises HistoryMoved, and stores nothing, if the execution is not running, if its history is not at
        `expected_seq`, or if a dropped token has been answered meanwhile: an accepted answer is never lost.
        An execution with an unconsumed answer stays due, whatever `look_at` says.
        """

    def load(self, name: str, after: int = 0) -> Stored | None:
        """An execution with its events after the first `after`; None if there is none of this name."""

    def due(self, now: datetime, limit: int) -> Due:
        """Executions to advance now: new, timer over, token answered, left in the middle, unannounced."""

    def acknowledge(self, name: str) -> None:
        """The end of this execution has been announced: it is not due any more."""

    def definition(self, digest: str) -> str | None:
        """The text of a definition that some execution started with."""


class TaskTokens(Protocol):
    """The answering side of `.waitForTaskToken`, for workers in any process."""

    def answer_token(self, token: str, outcome: TaskAnswer) -> bool:
        """Record the first answer and make its execution due; False = lost: unknown, closed or answered."""

    def beat_token(self, token: str, now: datetime) -> bool:
        """Record a sign of life; False = lost."""


class EngineClockPort(Protocol):
    """The clock of the engine."""

    def now(self) -> datetime:
        """Now, aware, in UTC."""


_TRIES = 20


def send_task_success(tokens: TaskTokens, token: str, output: JSON) -> bool:
    """Answer a token well; False = lost: the token is unknown, closed or answered already."""
    if too_large(dump(output)):
        raise Failure("States.DataLimitExceeded", "the output is larger than 256 KiB: store it, and send where it is")
    return tokens.answer_token(token, TaskAnswer(output=output))


def send_task_failure(tokens: TaskTokens, token: str, error: str | None = None, cause: str | None = None) -> bool:
    """Answer a token with an error that Retry and Catch can name; False = lost."""
    return tokens.answer_token(token, TaskAnswer(error=error, cause=cause, failed=True))


def send_task_heartbeat(tokens: TaskTokens, token: str, now: datetime) -> bool:
    """Record a heartbeat. False if the execution waits no longer for this task."""
    return tokens.beat_token(token, now)


def stop_execution(
    store: ExecutionStore, name: str, now: datetime, error: str | None = None, cause: str | None = None
) -> bool:
    """Abort a running execution, tokens and all; False if it has ended already."""
    for _ in range(_TRIES):
        stored = store.load(name)
        if stored is None:
            raise UnknownExecution(f"no execution is named {name}: it was never started, or pruned")
        if stored.execution.status is not Status.RUNNING:
            return False
        aborted = HistoryEvent("ExecutionAborted", "", now.timestamp(), {"error": error, "cause": cause})
        change = Append(stored.seq, (aborted,), PAST, status=Status.ABORTED, error=error, cause=cause, finished_at=now)
        try:
            store.append(name, change)
            return True
        except HistoryMoved:
            continue  # the engine was faster by a step: stop it after that one
    raise HistoryMoved(f"{name} moved on {_TRIES} times while it was being stopped")
