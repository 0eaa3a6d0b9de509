"""How each event type changes a Run. Importing this module fills the table."""

from __future__ import annotations

from collections.abc import Callable

from webordinary.asl.events import Event
from webordinary.asl.ports import Status
from webordinary.asl.run import FOLDS, Attempt, Fold, Frame, Phase, Run

STATE_TYPES = ("Task", "Pass", "Choice", "Wait", "Succeed", "Fail", "Parallel", "Map")
ATTEMPT_KINDS = ("Task", "LambdaFunction", "Activity")


def _on(*types: str) -> Callable[[Fold], Fold]:
    def register(fold: Fold) -> Fold:
        FOLDS.update(dict.fromkeys(types, fold))
        return fold

    return register


@_on("ExecutionStarted")
def _started(run: Run, frame: Frame, event: Event) -> None:
    run.nonce = event.data["nonce"]


@_on(*(f"{kind}StateEntered" for kind in STATE_TYPES))
def _entered(run: Run, frame: Frame, event: Event) -> None:
    frame.state = event.data["name"]
    frame.input = frame.carry
    frame.entered_number = run.number
    frame.entered_at = event.at
    frame.tries = {}
    frame.scratch = None
    frame.phase = Phase.ENTERED


@_on(*(f"{kind}StateExited" for kind in STATE_TYPES))
def _exited(run: Run, frame: Frame, event: Event) -> None:
    _clear(run, frame)
    frame.carry = event.data["output"]
    frame.variables.update(event.data.get("assigned", {}))
    frame.phase = Phase.OVER


@_on(*(f"{kind}Scheduled" for kind in ATTEMPT_KINDS))
def _scheduled(run: Run, frame: Frame, event: Event) -> None:
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
def _submitted(run: Run, frame: Frame, event: Event) -> None:
    frame.phase = Phase.AWAITING


@_on(*(f"{kind}{end}" for kind in ATTEMPT_KINDS for end in ("Succeeded", "Failed", "TimedOut")))
def _attempt_over(run: Run, frame: Frame, event: Event) -> None:
    run.close_attempt(frame)
    frame.phase = Phase.OVER


@_on("waitPlanned")
def _wait_planned(run: Run, frame: Frame, event: Event) -> None:
    frame.wake_at = event.data["until"]
    frame.phase = Phase.SLEEPING


@_on("retryPlanned")
def _retry_planned(run: Run, frame: Frame, event: Event) -> None:
    _clear(run, frame)
    retrier = event.data["retrier"]
    frame.tries[retrier] = frame.tries.get(retrier, 0) + 1
    frame.wake_at = event.data["until"]
    frame.phase = Phase.RETRYING


@_on("ParallelStateStarted")
def _parallel_started(run: Run, frame: Frame, event: Event) -> None:
    frame.phase = Phase.BRANCHING
    frame.wake_at = None
    arguments = event.data.get("arguments", frame.input)
    for index, branch in enumerate(frame.machine.states[frame.state].machines):
        run.spawn(frame, index, branch, arguments)


@_on("MapStateStarted")
def _map_started(run: Run, frame: Frame, event: Event) -> None:
    frame.phase = Phase.BRANCHING
    frame.wake_at = None


@_on("MapIterationStarted", "mapChildStarted")
def _iteration_started(run: Run, frame: Frame, event: Event) -> None:
    machine = frame.machine.states[frame.state].machines[0]
    child = run.spawn(frame, event.data["index"], machine, event.data["input"], hidden=event.type[0] == "m")
    child.item = {"Index": child.index, "Value": event.data.get("value", child.carry)}


@_on("MapIterationSucceeded", "mapChildSucceeded")
def _iteration_succeeded(run: Run, frame: Frame, event: Event) -> None:
    child = frame.children[event.data["index"]]
    frame.results[child.index] = child.carry
    run.drop(child)


@_on("MapIterationFailed", "mapChildFailed")
def _iteration_failed(run: Run, frame: Frame, event: Event) -> None:
    frame.failures += 1
    run.drop(frame.children[event.data["index"]])


@_on("MapIterationAborted", "mapChildAborted")
def _iteration_aborted(run: Run, frame: Frame, event: Event) -> None:
    run.drop(frame.children[event.data["index"]])


@_on("ParallelStateFailed", "MapStateFailed")
def _branching_failed(run: Run, frame: Frame, event: Event) -> None:
    _clear(run, frame)


@_on("ExecutionSucceeded")
def _succeeded(run: Run, frame: Frame, event: Event) -> None:
    run.output = frame.carry
    _finish(run, Status.SUCCEEDED)


@_on("ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted")
def _failed(run: Run, frame: Frame, event: Event) -> None:
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
