"""What any process that has the store may tell the engine. Waking the engine is the caller's business."""

from __future__ import annotations

from datetime import datetime

from webordinary.asl.errors import Failure, HistoryMoved, UnknownExecution
from webordinary.asl.events import Event
from webordinary.asl.json_types import JSON, dump, too_large
from webordinary.asl.ports import PAST, Change, ExecutionStore, Outcome, Status, TaskTokens

_TRIES = 20


def send_task_success(tokens: TaskTokens, token: str, output: JSON) -> bool:
    """Answer a token well; False = lost: the token is unknown, closed or answered already."""
    if too_large(dump(output)):
        raise Failure("States.DataLimitExceeded", "the output is larger than 256 KiB: store it, and send where it is")
    return tokens.answer_token(token, Outcome(output=output))


def send_task_failure(tokens: TaskTokens, token: str, error: str | None = None, cause: str | None = None) -> bool:
    """Answer a token with an error that Retry and Catch can name; False = lost."""
    return tokens.answer_token(token, Outcome(error=error, cause=cause, failed=True))


def send_task_heartbeat(tokens: TaskTokens, token: str, now: datetime) -> bool:
    """Say that the work goes on; False = lost: stop working, nobody waits for it."""
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
        aborted = Event("ExecutionAborted", "", now.timestamp(), {"error": error, "cause": cause})
        change = Change(stored.seq, (aborted,), PAST, status=Status.ABORTED, error=error, cause=cause, finished_at=now)
        try:
            store.append(name, change)
            return True
        except HistoryMoved:
            continue  # the engine was faster by a step: stop it after that one
    raise HistoryMoved(f"{name} moved on {_TRIES} times while it was being stopped")
