"""Parallel: all branches on the same input; the first failure ends the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from webordinary.asl.errors import Failure, InvalidDefinition
from webordinary.asl.query.base import QueryLanguage
from webordinary.asl.run import Phase
from webordinary.asl.states.base import State

if TYPE_CHECKING:
    from webordinary.asl.run import Frame
    from webordinary.asl.step import Step


class Parallel(State):
    """Its machines are its branches."""

    type = "Parallel"
    retriable = True

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        if not isinstance(raw.get("Branches"), list) or not raw["Branches"]:
            raise InvalidDefinition(name, "Branches", "must be a list of at least one branch")

    def begin(self, step: Step, frame: Frame) -> None:
        """Start every branch, each in its own child frame."""
        data = step.data(frame)
        arguments = self.flow.arguments(data, self.flow.effective_input(data))
        changed = {} if arguments is frame.input else {"arguments": arguments}
        step.record(frame, "ParallelStateStarted", **changed)

    def child_ended(self, step: Step, frame: Frame, child: Frame) -> None:
        """The last branch to end completes the state."""
        branches = frame.children
        if all(branch.phase is Phase.OVER for branch in branches.values()):
            outputs = [branches[index].carry for index in range(len(self.machines))]
            step.complete(frame, step.data(frame), outputs)

    def child_failed(self, step: Step, frame: Frame, child: Frame, failure: Failure) -> None:
        """One branch's failure is the state's."""
        step.fail(frame, failure, announce="ParallelStateFailed")
