"""One engine step: acts for every frame that can act, records what happens, commits before effects."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import partial
from typing import Any

from webordinary.asl import run
from webordinary.asl.errors import RUNTIME, Failure, HistoryFull, NotReady, result_too_large
from webordinary.asl.ports import (
    HISTORY_LIMIT,
    PAST,
    Append,
    EngineClockPort,
    ExecutionStore,
    HistoryEvent,
    Status,
    TaskAnswer,
)
from webordinary.asl.retry import matches
from webordinary.asl.run import Frame, Phase, Run
from webordinary.asl.states import Handlers, State, Task
from webordinary.asl.values import JSON, Data, Expression, dump, iso, to_microseconds, too_large

assert run.STATE_TYPES  # importing the module is what fills the table of folds


class Journal:
    """Applies events to the run at once and stores them together. If a commit fails, throw away journal and run."""

    def __init__(self, store: ExecutionStore, run: Run) -> None:
        self.pending: list[HistoryEvent] = []
        self._store, self._run = store, run
        self._stored_tokens = set(run.tokens)
        self.answered: set[str] = set()
        """The tokens that had an answer when the events to come were decided."""

    def write(self, happened: HistoryEvent) -> None:
        """Make something happen: in memory now, on disk with the next commit."""
        self.pending.append(happened)
        self._run.apply(happened)

    def commit(self, look_at: datetime | None) -> None:
        """Store all that is pending, in one append."""
        if look_at is PAST and not self.pending:
            return  # left in the middle, and stored so
        run, tokens = self._run, set(self._run.tokens)
        closed, ended = self._stored_tokens - tokens, run.status is not Status.RUNNING
        change = Append(
            expected_seq=run.seq - len(self.pending),
            events=tuple(self.pending),
            look_at=look_at,
            opened=tuple(sorted(tokens - self._stored_tokens)),
            consumed=tuple(sorted(closed & self.answered)),
            dropped=tuple(sorted(closed - self.answered)),
            status=run.status,
            output=run.output,
            error=run.error,
            cause=run.cause,
            finished_at=datetime.fromtimestamp(run.changed_at, UTC) if ended else None,
        )
        self._store.append(run.execution.name, change)
        self.pending, self._stored_tokens = [], tokens


_ARN = "arn:aws:states:local:000000000000"  # the embedded engine has no account; the shape is what matters


def context_object(run: Run, frame: Frame, token: str | None, item: dict[str, Any] | None) -> JSON:
    """`$$` as this frame's state sees it."""
    execution, machine = run.execution, run.definition.name
    state: dict[str, Any] = {"Name": frame.state, "EnteredTime": iso(frame.entered_at)}
    if frame.machine.states[frame.state].retriable:
        state["RetryCount"] = sum(frame.tries.values())
    made: dict[str, Any] = {
        "Execution": {
            "Id": f"{_ARN}:execution:{machine}:{execution.name}",
            "Input": execution.input,
            "Name": execution.name,
            "RoleArn": "arn:aws:iam::000000000000:role/embedded",
            "StartTime": iso(execution.started_at.timestamp()),
            "RedriveCount": 0,
        },
        "StateMachine": {"Id": f"{_ARN}:stateMachine:{machine}", "Name": machine},
        "State": state,
    }
    if token is not None:
        made["Task"] = {"Token": token}
    if (item := item or _item(frame)) is not None:
        made["Map"] = {"Item": item}
    return made


def _item(frame: Frame | None) -> dict[str, Any] | None:
    while frame is not None:
        if frame.item is not None:
            return frame.item
        frame = frame.parent
    return None


CallsAgain = Callable[[str, Exception], bool]


BATCH = 256  # events that one commit may hold while nothing outside has to happen


class RunStep:
    """Drives one run until it rests or ends. If a commit fails, throw away both this and the run."""

    def __init__(
        self,
        store: ExecutionStore,
        run: Run,
        handlers: Handlers,
        clock: EngineClockPort,
        repeatable: Collection[str] = (),
        calls_again: CallsAgain | None = None,
    ) -> None:
        self.run, self.handlers, self.clock, self._calls_again = run, handlers, clock, calls_again
        self._repeatable = repeatable
        self._result_pending = False  # of a handler that must not be called again once it has returned
        self.at = clock.now().timestamp()
        self._journal = Journal(store, run)

    # -- what states call -------------------------------------------------------------------------

    def check_ready(self, frame: Frame, failure: Failure) -> None:
        """Raise NotReady if this failure of a handler is not the workflow's business."""
        call = f"{self.run.execution.name}, {frame.state}"
        if self._calls_again is not None and self._calls_again(call, failure):
            raise NotReady(f"{call}: {failure.__cause__ or failure}") from failure

    def tick(self) -> None:
        """Read the clock."""
        self.at = self.clock.now().timestamp()

    def data(self, frame: Frame, token: str | None = None, item: dict[str, Any] | None = None) -> Data:
        """The data that expressions of the state read."""
        return Data(
            frame.input,
            frame.variables,
            partial(context_object, self.run, frame, token, item),
            self.run.chance,
        )

    def record(self, frame: Frame, event: str, **data: JSON) -> None:
        """Make something happen: in memory now, on disk with the next commit."""
        if self.run.number >= HISTORY_LIMIT - 1:
            raise HistoryFull
        self._journal.write(HistoryEvent(event, frame.scope, self.at, data))

    def complete(
        self,
        frame: Frame,
        data: Data,
        result: JSON,
        next_state: str | None = None,
        assign: Expression | None = None,
    ) -> None:
        """The state's work is done: shape its output, leave it, enter the next."""
        state = state_of(frame)
        shaped = state.flow.shaped(data, result)
        output = state.flow.output(data, shaped)
        if next_state is None:
            next_state, assign = state.next, state.assign
        self._leave(frame, output, next_state, assign and assign(data.on(shaped)))

    def fail(self, frame: Frame, failure: Failure, announce: str | None = None) -> None:
        """Handle a failed state: retry, catch, or fail the enclosing state."""
        state = state_of(frame)
        failure = failure.located_at(state.name, frame.entered_number)
        if self._retry(state, frame, failure):
            return
        if announce:
            self.record(frame, announce, error=failure.error, cause=failure.cause)
        try:
            if self._catch(state, frame, failure):
                return
        except Failure as problem:  # the error's own place could not be found
            failure = problem.located_at(state.name, frame.entered_number)
        if frame.parent is None:
            self._record(frame, "ExecutionFailed", _error(failure))
        else:
            parent = frame.parent
            self._guarded(parent, state_of(parent).child_failed, self, parent, frame, failure)

    # -- the loop ---------------------------------------------------------------------------------

    def drive(self, answers: dict[str, TaskAnswer]) -> None:
        """Act until the run rests or ends, and store how it stands."""
        try:
            self._take(answers)
            while self.run.status is Status.RUNNING and self._act():
                if len(self._journal.pending) >= BATCH:
                    self._journal.commit(PAST)
        except HistoryFull:
            cause = f"The execution reached the maximum number of history events ({HISTORY_LIMIT})."
            self._record(self.run.root, "ExecutionFailed", {"error": RUNTIME, "cause": cause})
        self._journal.commit(self._rest())

    def begin(self, nonce: str) -> tuple[HistoryEvent, ...]:
        """The first events of a new run; storing them is the caller's."""
        self._record(self.run.root, "ExecutionStarted", {"nonce": nonce})
        self._enter(self.run.root, self.run.root.machine.start_at)
        return tuple(self._journal.pending)

    def _act(self) -> bool:
        self.tick()
        if self.run.deadline is not None and self.at >= self.run.deadline:
            self._record(self.run.root, "ExecutionTimedOut", {})
            return False
        scope = next(iter(self.run.queue), None)
        if scope is not None:
            self._advance(self.run.frames[scope])
            return True
        return self._fire()

    def _advance(self, frame: Frame) -> None:
        if frame.phase is Phase.NEW:
            self._enter(frame, frame.machine.start_at)
        elif frame.phase is Phase.ENTERED:
            self._guarded(frame, state_of(frame).begin, self, frame)
        else:
            task = state_of(frame)
            assert isinstance(task, Task), f"{frame.state} is calling"
            self._call(task, frame)

    def _call(self, task: Task, frame: Frame) -> None:
        repeatable = task.is_repeatable(self._repeatable)
        if self._result_pending or not repeatable:
            self._journal.commit(PAST)  # on disk first: then act
        self._result_pending = not repeatable
        try:
            self._guarded(frame, task.call, self, frame)
        except NotReady:
            self._journal.commit(PAST)  # the handlers before this one are not called again
            raise

    def _fire(self) -> bool:
        """Wake the frame whose time came first."""
        due = min(self.run.timed(), key=lambda pair: (pair[0], pair[1].scope), default=None)
        if due is None or due[0] > self.at:
            return False
        frame, state = due[1], state_of(due[1])
        begin_again = frame.phase is Phase.RETRYING
        self._guarded(frame, state.begin if begin_again else state.wake, self, frame)
        return True

    def _take(self, answers: dict[str, TaskAnswer]) -> None:
        """Take the answers that came since, in the order of the scopes that wait for them."""
        self._journal.answered = set(answers)
        waiting = sorted(answers.keys() & self.run.tokens.keys(), key=lambda t: self.run.tokens[t].scope)
        for token in waiting:
            frame = self.run.tokens.get(token)
            if frame is None or self.run.status is not Status.RUNNING:
                continue  # an earlier answer ended this frame
            task = state_of(frame)
            assert isinstance(task, Task), f"{frame.state} has a token"
            self._guarded(frame, task.answered, self, frame, answers[token])

    def _rest(self) -> datetime | None:
        if self.run.status is not Status.RUNNING:
            return None if self.run.status is Status.SUCCEEDED else PAST  # due until it is announced
        times = [due for due, _ in self.run.timed()]
        if self.run.deadline is not None:
            times.append(self.run.deadline)
        return datetime.fromtimestamp(min(times), UTC) if times else None

    # -- transitions ------------------------------------------------------------------------------

    def _guarded(self, frame: Frame, action: Callable[..., object], *arguments: object) -> None:
        try:
            action(*arguments)
        except Failure as failure:
            self.fail(frame, failure)

    def _enter(self, frame: Frame, name: str) -> None:
        self.record(frame, f"{frame.machine.states[name].type}StateEntered", name=name)

    def _leave(self, frame: Frame, output: JSON, next_state: str | None, assigned: JSON) -> None:
        state = state_of(frame)
        if too_large(dump(output)):
            raise result_too_large(state.name)
        extra = {"assigned": assigned} if assigned else {}
        self.record(frame, f"{state.type}StateExited", name=state.name, output=output, **extra)
        if next_state is not None:
            self._enter(frame, next_state)
        elif frame.parent is None:
            self._record(frame, "ExecutionSucceeded", {})
        else:
            parent = frame.parent
            self._guarded(parent, state_of(parent).child_ended, self, parent, frame)

    def _retry(self, state: State, frame: Frame, failure: Failure) -> bool:
        for number, retrier in enumerate(state.retriers):
            if matches(retrier.errors, failure):
                tries = frame.tries.get(number, 0)
                if tries >= retrier.max_attempts:
                    return False
                until = to_microseconds(self.at + retrier.delay(tries, self.run.chance))
                self.record(frame, "retryPlanned", retrier=number, until=until)
                return True
        return False

    def _catch(self, state: State, frame: Frame, failure: Failure) -> bool:
        for catcher in state.catchers:
            if matches(catcher.errors, failure):
                data = self.data(frame)
                caught = {"Error": failure.error, "Cause": failure.cause}
                assigned = catcher.assign and catcher.assign(data.on(caught))
                self._leave(frame, catcher.place(data, caught), catcher.next, assigned)
                return True
        return False

    def _record(self, frame: Frame, event: str, data: dict[str, Any]) -> None:
        self._journal.write(HistoryEvent(event, frame.scope, self.at, data))


def state_of(frame: Frame) -> State:
    """The compiled state that a frame is in."""
    return frame.machine.states[frame.state]


def _error(failure: Failure) -> dict[str, Any]:
    return {"error": failure.error, "cause": failure.cause}
