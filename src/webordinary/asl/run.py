"""A running execution in memory: a fold over its history, and nothing that the history does not say."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Any

from webordinary.asl.ports import Execution, HistoryEvent, Status
from webordinary.asl.values import JSON, to_microseconds

if TYPE_CHECKING:
    from webordinary.asl.definition import Definition, Machine


class Phase(Enum):
    """What a frame waits for."""

    NEW = auto()  # to enter its first state
    ENTERED = auto()  # to begin the state's work
    CALLING = auto()  # for its handler to be called
    AWAITING = auto()  # for its token's answer, or its deadline
    SLEEPING = auto()  # for its Wait to end
    RETRYING = auto()  # for its next attempt
    BRANCHING = auto()  # for its children
    OVER = auto()  # for its parent to take its output


ACTIONABLE = frozenset({Phase.NEW, Phase.ENTERED, Phase.CALLING})


@dataclass(slots=True)
class Attempt:
    """One scheduled attempt of a Task."""

    parameters: JSON
    since: float
    token: str | None = None
    timeout: float | None = None
    heartbeat: float | None = None


@dataclass(slots=True, eq=False)
class Frame:
    """One thread of states: the top, a branch of a Parallel, an iteration of a Map."""

    scope: str
    machine: Machine
    carry: JSON  # output of the last state, input of the next
    parent: Frame | None = None
    index: int = 0
    item: dict[str, Any] | None = None
    variables: dict[str, JSON] = field(default_factory=dict)
    phase: Phase = Phase.NEW
    state: str = ""
    input: JSON = None
    entered_number: int = 0
    entered_at: float = 0.0
    tries: dict[int, int] = field(default_factory=dict)  # per retrier
    attempt: Attempt | None = None
    wake_at: float | None = None
    children: dict[int, Frame] = field(default_factory=dict)
    results: dict[int, JSON] = field(default_factory=dict)
    failures: int = 0
    scratch: Any = None  # what a state may compute again from its input at any time

    def due_at(self, beats: dict[str, float]) -> float | None:
        """When a timer of this frame ends."""
        attempt = self.attempt
        if self.phase is not Phase.AWAITING or attempt is None:
            return self.wake_at
        times: list[float] = []
        if attempt.timeout is not None:
            times.append(attempt.since + attempt.timeout)
        if attempt.heartbeat is not None:
            times.append(max(attempt.since, beats.get(attempt.token or "", 0.0)) + attempt.heartbeat)
        return to_microseconds(min(times)) if times else None


class Run:
    """The state of one execution. Changes only through `apply`, so a replay rebuilds it exactly.

    `queue` holds the scopes that can act, in the order in which events made them able to: it is part of the
    fold, so that a run continued after a crash acts in the same order as one that never crashed.
    """

    def __init__(self, execution: Execution, definition: Definition) -> None:
        self.execution = execution
        self.definition = definition
        self.status = Status.RUNNING
        self.seq = 0
        self.number = 0
        self.nonce = ""
        self.root = Frame("", definition.machine, execution.input)
        self.frames: dict[str, Frame] = {"": self.root}
        self.queue: dict[str, None] = {}
        self.tokens: dict[str, Frame] = {}
        self.beats: dict[str, float] = {}
        self.output: JSON = None
        self.error: str | None = None
        self.cause: str | None = None
        self.changed_at = 0.0
        self.deadline: float | None = None
        """When the whole execution times out."""
        if definition.timeout_seconds is not None:
            self.deadline = to_microseconds(execution.started_at.timestamp() + definition.timeout_seconds)

    def finished(self) -> Execution:
        """The execution as it ended."""
        end = datetime.fromtimestamp(self.changed_at, UTC)
        return replace(
            self.execution,
            status=self.status,
            output=self.output,
            error=self.error,
            cause=self.cause,
            finished_at=end,
        )

    def apply(self, event: HistoryEvent) -> None:
        """Fold one event into the state."""
        self.seq += 1
        self.changed_at = event.at
        if event.numbered:
            self.number += 1
        fold = FOLDS.get(event.type)
        if fold is None:
            return
        frame = self.frames[event.scope]
        fold(self, frame, event)
        self.queue.pop(frame.scope, None)
        if frame.phase in ACTIONABLE and frame.scope in self.frames:
            self.queue[frame.scope] = None

    def spawn(self, parent: Frame, index: int, machine: Machine, carry: JSON, *, hidden: bool = False) -> Frame:
        """A child frame, ready to enter its first state."""
        prefix = f"{parent.scope}." if parent.scope else ""
        scope = f"{prefix}{'~' if hidden else ''}{index}"
        child = Frame(scope, machine, carry, parent, index, variables=dict(parent.variables))
        parent.children[index] = child
        self.frames[scope] = child
        self.queue[scope] = None
        return child

    def drop(self, child: Frame) -> None:
        """Remove a child frame and all below it."""
        for grandchild in list(child.children.values()):
            self.drop(grandchild)
        self.close_attempt(child)
        self.frames.pop(child.scope, None)
        self.queue.pop(child.scope, None)
        if child.parent is not None:
            child.parent.children.pop(child.index, None)

    def close_attempt(self, frame: Frame) -> None:
        """Forget a Task's attempt and its token."""
        if frame.attempt is not None and frame.attempt.token is not None:
            self.tokens.pop(frame.attempt.token, None)
        frame.attempt = None

    def timed(self) -> Iterator[tuple[float, Frame]]:
        """Every frame that waits for time, with its time."""
        for frame in self.frames.values():
            if frame.phase in TIMED and (due := frame.due_at(self.beats)) is not None:
                yield due, frame

    def chance(self) -> Random:
        """Randomness that a replay repeats: seeded by the execution's nonce and its place in the history."""
        return Random(f"{self.nonce}:{self.number}")  # noqa: S311  jitter and UUIDs, no secrets

    def new_token(self, frame: Frame) -> str:
        """A token that cannot be guessed, and that is the same if the step is decided again after a crash."""
        seed = f"{self.nonce}:{self.execution.name}:{frame.scope}:{self.number}"
        return hashlib.sha256(seed.encode()).hexdigest()


TIMED = frozenset({Phase.AWAITING, Phase.SLEEPING, Phase.RETRYING})
Fold = Callable[[Run, Frame, HistoryEvent], None]
FOLDS: dict[str, Fold] = {}


STATE_TYPES = ("Task", "Pass", "Choice", "Wait", "Succeed", "Fail", "Parallel", "Map")
ATTEMPT_KINDS = ("Task", "LambdaFunction", "Activity")


def _on(*types: str) -> Callable[[Fold], Fold]:
    def register(fold: Fold) -> Fold:
        FOLDS.update(dict.fromkeys(types, fold))
        return fold

    return register


@_on("ExecutionStarted")
def _started(run: Run, frame: Frame, event: HistoryEvent) -> None:
    run.nonce = event.data["nonce"]


@_on(*(f"{kind}StateEntered" for kind in STATE_TYPES))
def _entered(run: Run, frame: Frame, event: HistoryEvent) -> None:
    frame.state = event.data["name"]
    frame.input = frame.carry
    frame.entered_number = run.number
    frame.entered_at = event.at
    frame.tries = {}
    frame.scratch = None
    frame.phase = Phase.ENTERED


@_on(*(f"{kind}StateExited" for kind in STATE_TYPES))
def _exited(run: Run, frame: Frame, event: HistoryEvent) -> None:
    _clear(run, frame)
    frame.carry = event.data["output"]
    frame.variables.update(event.data.get("assigned", {}))
    frame.phase = Phase.OVER


@_on(*(f"{kind}Scheduled" for kind in ATTEMPT_KINDS))
def _scheduled(run: Run, frame: Frame, event: HistoryEvent) -> None:
    data = event.data
    frame.wake_at = None
    frame.attempt = Attempt(
        parameters=data.get("parameters", frame.input),
        since=event.at,
        token=data.get("token"),
        timeout=data.get("timeoutInSeconds"),
        heartbeat=data.get("heartbeatInSeconds"),
    )
    if frame.attempt.token is not None:
        run.tokens[frame.attempt.token] = frame
    frame.phase = Phase.CALLING


@_on("TaskSubmitted")
def _submitted(run: Run, frame: Frame, event: HistoryEvent) -> None:
    frame.phase = Phase.AWAITING


@_on(*(f"{kind}{end}" for kind in ATTEMPT_KINDS for end in ("Succeeded", "Failed", "TimedOut")))
def _attempt_over(run: Run, frame: Frame, event: HistoryEvent) -> None:
    run.close_attempt(frame)
    frame.phase = Phase.OVER


@_on("waitPlanned")
def _wait_planned(run: Run, frame: Frame, event: HistoryEvent) -> None:
    frame.wake_at = event.data["until"]
    frame.phase = Phase.SLEEPING


@_on("retryPlanned")
def _retry_planned(run: Run, frame: Frame, event: HistoryEvent) -> None:
    _clear(run, frame)
    retrier = event.data["retrier"]
    frame.tries[retrier] = frame.tries.get(retrier, 0) + 1
    frame.wake_at = event.data["until"]
    frame.phase = Phase.RETRYING


@_on("ParallelStateStarted")
def _parallel_started(run: Run, frame: Frame, event: HistoryEvent) -> None:
    frame.phase = Phase.BRANCHING
    frame.wake_at = None
    arguments = event.data.get("arguments", frame.input)
    for index, branch in enumerate(frame.machine.states[frame.state].machines):
        run.spawn(frame, index, branch, arguments)


@_on("MapStateStarted")
def _map_started(run: Run, frame: Frame, event: HistoryEvent) -> None:
    frame.phase = Phase.BRANCHING
    frame.wake_at = None


@_on("MapIterationStarted", "mapChildStarted")
def _iteration_started(run: Run, frame: Frame, event: HistoryEvent) -> None:
    machine = frame.machine.states[frame.state].machines[0]
    child = run.spawn(frame, event.data["index"], machine, event.data["input"], hidden=event.type[0] == "m")
    child.item = {"Index": child.index, "Value": event.data.get("value", child.carry)}


@_on("MapIterationSucceeded", "mapChildSucceeded")
def _iteration_succeeded(run: Run, frame: Frame, event: HistoryEvent) -> None:
    child = frame.children[event.data["index"]]
    frame.results[child.index] = child.carry
    run.drop(child)


@_on("MapIterationFailed", "mapChildFailed")
def _iteration_failed(run: Run, frame: Frame, event: HistoryEvent) -> None:
    frame.failures += 1
    run.drop(frame.children[event.data["index"]])


@_on("MapIterationAborted", "mapChildAborted")
def _iteration_aborted(run: Run, frame: Frame, event: HistoryEvent) -> None:
    run.drop(frame.children[event.data["index"]])


@_on("ParallelStateFailed", "MapStateFailed")
def _branching_failed(run: Run, frame: Frame, event: HistoryEvent) -> None:
    _clear(run, frame)


@_on("ExecutionSucceeded")
def _succeeded(run: Run, frame: Frame, event: HistoryEvent) -> None:
    run.output = frame.carry
    _finish(run, Status.SUCCEEDED)


@_on("ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted")
def _failed(run: Run, frame: Frame, event: HistoryEvent) -> None:
    run.error, run.cause = event.data.get("error"), event.data.get("cause")
    statuses = {"ExecutionTimedOut": Status.TIMED_OUT, "ExecutionAborted": Status.ABORTED}
    _finish(run, statuses.get(event.type, Status.FAILED))


def _finish(run: Run, status: Status) -> None:
    _clear(run, run.root)
    run.status = status
    run.root.phase = Phase.OVER


def _clear(run: Run, frame: Frame) -> None:
    """Leave nothing of the state's work: no attempt, no children, no timer."""
    run.close_attempt(frame)
    for child in list(frame.children.values()):
        run.drop(child)
    frame.results = {}
    frame.failures = 0
    frame.wake_at = None
