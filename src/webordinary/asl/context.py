"""The context object `$$`: who runs, in which state, since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webordinary.asl.json_types import JSON
from webordinary.asl.timestamps import iso

if TYPE_CHECKING:
    from webordinary.asl.run import Frame, Run

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
