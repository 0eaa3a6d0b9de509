"""Map: one iteration per item, so many at a time as MaxConcurrency says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webordinary.asl.errors import Failure, InvalidDefinition, runtime
from webordinary.asl.intrinsics import Field, QueryLanguage
from webordinary.asl.jsonpath import path_expression
from webordinary.asl.run import Phase
from webordinary.asl.states import State
from webordinary.asl.values import JSON, Data, dump, is_number

if TYPE_CHECKING:
    from webordinary.asl.run import Frame
    from webordinary.asl.step import RunStep


class Tolerance:
    """ToleratedFailureCount and ToleratedFailurePercentage; zero unless given."""

    def __init__(self, raw: Mapping[str, Any], language: QueryLanguage, where: str) -> None:
        self._count = language.field(raw, "ToleratedFailureCount", where)
        self._percentage = language.field(raw, "ToleratedFailurePercentage", where)

    def count(self, data: Data, items: int) -> int:
        """The number of failures that the Map survives; the smaller bound wins."""
        bounds = []
        if self._count is not None:
            if (count := whole_number(self._count, data)) < 0:
                raise runtime("ToleratedFailureCount cannot be negative.")
            bounds.append(count)
        if self._percentage is not None:
            percentage = _float(self._percentage, data)
            if not 0 <= percentage <= 100:
                raise runtime("ToleratedFailurePercentage must be between 0 and 100.")
            bounds.append(int(items * percentage / 100))
        return min(bounds, default=0)


def whole_number(field: Field, data: Data) -> int:
    """An integer, or a string that spells one."""
    value = field.read(data)
    try:
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return int(value)
    except ValueError:
        pass
    raise _not_a(field, value, "integer")


def _float(field: Field, data: Data) -> float:
    value = field.read(data)
    try:
        if isinstance(value, str) or is_number(value):
            return float(value)  # type: ignore[arg-type]
    except ValueError:
        pass
    raise _not_a(field, value, "float")


def _not_a(field: Field, value: JSON, kind: str) -> Exception:
    text = value if isinstance(value, str) else dump(value)
    return runtime(f'The {field.label} field refers to value "{text}" which is not a valid {kind}: {field.source}')


INLINE_CONCURRENCY = 40  # what AWS runs at once when MaxConcurrency says 0
_NOT_YET = ("ItemReader", "ItemBatcher", "ResultWriter", "Items")


@dataclass(frozen=True, slots=True)
class MapPlan:
    """What a Map computes of its input, the same every time: its items and its bounds."""

    effective: JSON
    items: list[JSON]
    concurrency: int
    tolerated: int


class Map(State):
    """One machine, run once for each item."""

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

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Start as many iterations as may run at once."""
        data = step.data(frame)
        effective = data.on(self.flow.effective_input(data))
        items = self._items(effective)
        concurrency = self._concurrency(effective)
        step.record(frame, "MapStateStarted", length=len(items))
        tolerated = self.tolerance.count(effective, len(items))
        frame.scratch = MapPlan(effective.input, items, concurrency, tolerated)
        if self.distributed:
            step.record(frame, "MapRunStarted")
        self._go_on(step, frame)

    def child_ended(self, step: RunStep, frame: Frame, child: Frame) -> None:
        """Keep its output, start the next item."""
        step.record(frame, self._event("Succeeded"), index=child.index)
        self._go_on(step, frame)

    def child_failed(self, step: RunStep, frame: Frame, child: Frame, failure: Failure) -> None:
        """Continue within the tolerated failures; beyond them end the other items and fail."""
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

    def _go_on(self, step: RunStep, frame: Frame) -> None:
        plan = self._plan(step, frame)
        started = len(frame.children) + len(frame.results) + frame.failures
        while started < len(plan.items) and len(frame.children) < plan.concurrency:
            self._start(step, frame, plan, started)
            started += 1
        if not frame.children:
            self._complete(step, frame)

    def _start(self, step: RunStep, frame: Frame, plan: MapPlan, index: int) -> None:
        value = plan.items[index]
        if self.selector is None:
            step.record(frame, self._event("Started"), index=index, input=value)
            return
        data = step.data(frame, item={"Index": index, "Value": value}).on(plan.effective)
        step.record(frame, self._event("Started"), index=index, input=self.selector(data), value=value)

    def _complete(self, step: RunStep, frame: Frame) -> None:
        outputs = [frame.results[index] for index in sorted(frame.results)]
        if self.distributed:
            step.record(frame, "MapRunSucceeded")
        step.record(frame, "MapStateSucceeded")
        step.complete(frame, step.data(frame), outputs)

    def _event(self, what: str) -> str:
        return f"mapChild{what}" if self.distributed else f"MapIteration{what}"

    def _plan(self, step: RunStep, frame: Frame) -> MapPlan:
        """The plan again, after a restart: all of it follows from the state's input."""
        if frame.scratch is None:
            data = step.data(frame)
            effective = data.on(self.flow.effective_input(data))
            items = self._items(effective)
            tolerated = self.tolerance.count(effective, len(items))
            frame.scratch = MapPlan(effective.input, items, self._concurrency(effective), tolerated)
        plan: MapPlan = frame.scratch
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


class Parallel(State):
    """One machine for each branch."""

    type = "Parallel"
    retriable = True

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        if not isinstance(raw.get("Branches"), list) or not raw["Branches"]:
            raise InvalidDefinition(name, "Branches", "must be a list of at least one branch")

    def begin(self, step: RunStep, frame: Frame) -> None:
        """Start every branch, each in its own child frame."""
        data = step.data(frame)
        arguments = self.flow.arguments(data, self.flow.effective_input(data))
        changed = {} if arguments is frame.input else {"arguments": arguments}
        step.record(frame, "ParallelStateStarted", **changed)

    def child_ended(self, step: RunStep, frame: Frame, child: Frame) -> None:
        """The last branch to end completes the state."""
        branches = frame.children
        if all(branch.phase is Phase.OVER for branch in branches.values()):
            outputs = [branches[index].carry for index in range(len(self.machines))]
            step.complete(frame, step.data(frame), outputs)

    def child_failed(self, step: RunStep, frame: Frame, child: Frame, failure: Failure) -> None:
        """One branch's failure is the state's."""
        step.fail(frame, failure, announce="ParallelStateFailed")
