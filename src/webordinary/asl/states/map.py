"""Map: one iteration per item, so many at a time as MaxConcurrency says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webordinary.asl.errors import Failure, InvalidDefinition, runtime
from webordinary.asl.json_types import JSON, dump
from webordinary.asl.query.base import Data, QueryLanguage
from webordinary.asl.query.expressions import path_expression
from webordinary.asl.states.base import State
from webordinary.asl.states.tolerance import Tolerance, whole_number

if TYPE_CHECKING:
    from webordinary.asl.run import Frame
    from webordinary.asl.step import Step

INLINE_CONCURRENCY = 40  # what AWS runs at once when MaxConcurrency says 0
_NOT_YET = ("ItemReader", "ItemBatcher", "ResultWriter", "Items")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a Map computes of its input, the same every time: its items and its bounds."""

    effective: JSON
    items: list[JSON]
    concurrency: int
    tolerated: int


class Map(State):
    """Its one machine is run once per item."""

    type = "Map"
    retriable = True

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        selector = raw.get("ItemSelector", raw.get("Parameters"))
        super().__init__(name, {key: value for key, value in raw.items() if key != "Parameters"}, language)
        for field in _NOT_YET:
            if field in raw:
                raise InvalidDefinition(name, field, "is not supported yet")
        config = processor(raw, name).get("ProcessorConfig", {})
        self.distributed = config.get("Mode") == "DISTRIBUTED"
        self.items_path = path_expression(raw.get("ItemsPath", "$"), "ItemsPath", name)
        self.items_source = raw.get("ItemsPath", "$")
        self.selector = None if selector is None else language.template(selector, "ItemSelector", name)
        self.max_concurrency = language.field(raw, "MaxConcurrency", name)
        self.tolerance = Tolerance(raw, language, name)

    def begin(self, step: Step, frame: Frame) -> None:
        """Start as many iterations as may run at once."""
        data = step.data(frame)
        effective = data.on(self.flow.effective_input(data))
        items = self._items(effective)
        concurrency = self._concurrency(effective)
        step.record(frame, "MapStateStarted", length=len(items))
        tolerated = self.tolerance.count(effective, len(items))
        frame.scratch = Plan(effective.input, items, concurrency, tolerated)
        if self.distributed:
            step.record(frame, "MapRunStarted")
        self._go_on(step, frame)

    def child_ended(self, step: Step, frame: Frame, child: Frame) -> None:
        """Keep its output, start the next item."""
        step.record(frame, self._event("Succeeded"), index=child.index)
        self._go_on(step, frame)

    def child_failed(self, step: Step, frame: Frame, child: Frame, failure: Failure) -> None:
        """Go on within the tolerance; beyond it, end the others and fail."""
        step.record(frame, self._event("Failed"), index=child.index)
        if not failure.fatal and frame.failures <= self._plan(step, frame).tolerated:
            self._go_on(step, frame)
            return
        for sibling in sorted(frame.children):
            step.record(frame, self._event("Aborted"), index=sibling)
        if self.distributed:
            step.record(frame, "MapRunFailed")
            cause = "The specified tolerated failure threshold was exceeded"
            failure = Failure("States.ExceedToleratedFailureThreshold", cause)
        step.fail(frame, failure, announce="MapStateFailed")

    def _go_on(self, step: Step, frame: Frame) -> None:
        plan = self._plan(step, frame)
        started = len(frame.children) + len(frame.results) + frame.failures
        while started < len(plan.items) and len(frame.children) < plan.concurrency:
            self._start(step, frame, plan, started)
            started += 1
        if not frame.children:
            self._complete(step, frame)

    def _start(self, step: Step, frame: Frame, plan: Plan, index: int) -> None:
        value = plan.items[index]
        if self.selector is None:
            step.record(frame, self._event("Started"), index=index, input=value)
            return
        data = step.data(frame, item={"Index": index, "Value": value}).on(plan.effective)
        step.record(frame, self._event("Started"), index=index, input=self.selector(data), value=value)

    def _complete(self, step: Step, frame: Frame) -> None:
        outputs = [frame.results[index] for index in sorted(frame.results)]
        if self.distributed:
            step.record(frame, "MapRunSucceeded")
        step.record(frame, "MapStateSucceeded")
        step.complete(frame, step.data(frame), outputs)

    def _event(self, what: str) -> str:
        return f"mapChild{what}" if self.distributed else f"MapIteration{what}"

    def _plan(self, step: Step, frame: Frame) -> Plan:
        """The plan again, after a restart: all of it follows from the state's input."""
        if frame.scratch is None:
            data = step.data(frame)
            effective = data.on(self.flow.effective_input(data))
            items = self._items(effective)
            tolerated = self.tolerance.count(effective, len(items))
            frame.scratch = Plan(effective.input, items, self._concurrency(effective), tolerated)
        plan: Plan = frame.scratch
        return plan

    def _items(self, effective: Data) -> list[JSON]:
        items = self.items_path(effective)
        if not isinstance(items, list):
            raise runtime(f'Reference path "{self.items_source}" must point to array.')
        return items

    def _concurrency(self, effective: Data) -> int:
        if self.max_concurrency is None:
            return INLINE_CONCURRENCY
        value = whole_number(self.max_concurrency, effective)
        if value < 0:
            raise runtime("MaxConcurrency cannot be negative.")
        return value or INLINE_CONCURRENCY


def processor(raw: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """ItemProcessor, or Iterator as it used to be called."""
    found = raw.get("ItemProcessor", raw.get("Iterator"))
    if not isinstance(found, dict):
        raise InvalidDefinition(where, "ItemProcessor", f"must be a state machine, not {dump(found)}")
    return found
