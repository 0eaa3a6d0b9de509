"""What all states share: their way on, their data flow, their errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from webordinary.asl.errors import Failure, InvalidDefinition
from webordinary.asl.query.base import QueryLanguage
from webordinary.asl.retry import compile_catch, compile_retry

if TYPE_CHECKING:
    from webordinary.asl.definition import Machine
    from webordinary.asl.run import Frame
    from webordinary.asl.step import RunStep


class State(ABC):
    """A compiled state. It holds nothing of any execution: all of that is in the Frame."""

    type: ClassVar[str]
    retriable: ClassVar[bool] = False  # has Retry and Catch, and so $$.State.RetryCount
    moves_on: ClassVar[bool] = True  # has Next or End

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        self.name = name
        self.next: str | None = raw.get("Next")
        self.flow = language.flow(raw, name)
        self.assign = language.template(raw["Assign"], "Assign", name) if "Assign" in raw else None
        self.retriers = compile_retry(raw, name) if self.retriable else ()
        self.catchers = compile_catch(raw, language, name) if self.retriable else ()
        self.machines: tuple[Machine, ...] = ()
        self._check_fields(raw)

    def _check_fields(self, raw: Mapping[str, Any]) -> None:
        if self.moves_on and ("Next" in raw) == (raw.get("End") is True):
            raise InvalidDefinition(self.name, "Next", "give either Next or End: true")
        for field in ("Arguments", "Output"):
            if field in raw:
                raise InvalidDefinition(self.name, field, "belongs to JSONata, which is not supported yet")
        for field in ("Retry", "Catch"):
            if field in raw and not self.retriable:
                raise InvalidDefinition(self.name, field, f"a {self.type} state has none")

    def targets(self) -> list[str]:
        """The states that this one can go to, for checking the definition."""
        return [name for name in (self.next, *(catcher.next for catcher in self.catchers)) if name is not None]

    @abstractmethod
    def begin(self, step: RunStep, frame: Frame) -> None:
        """Do the state's work, or start it; again for every retry."""

    def wake(self, step: RunStep, frame: Frame) -> None:
        """The time that this state waited for has come."""
        raise AssertionError(f"{self.type} state {self.name} does not wait")

    def child_ended(self, step: RunStep, frame: Frame, child: Frame) -> None:
        """A branch or iteration has its output."""
        raise AssertionError(f"{self.type} state {self.name} has no children")

    def child_failed(self, step: RunStep, frame: Frame, child: Frame, failure: Failure) -> None:
        """A branch or iteration failed for good."""
        raise AssertionError(f"{self.type} state {self.name} has no children")
