"""What every query language must answer; the states speak only to this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from webordinary.asl.paths import Missing, Path
from webordinary.asl.values import JSON


@dataclass(frozen=True, slots=True)
class Data:
    """All that an expression of a state may look at. Nobody changes any of it in place."""

    input: JSON
    variables: Mapping[str, JSON]
    context: Callable[[], JSON]
    chance: Callable[[], Random]

    def on(self, value: JSON) -> Data:
        """The same view, of another `$`."""
        return Data(value, self.variables, self.context, self.chance)

    def look_up(self, path: Path) -> JSON:
        """The value at a path; raises Missing."""
        if path.root == "$":
            return path.find(self.input)
        if path.root == "$$":
            return path.find(self.context())
        if path.root not in self.variables:
            raise Missing(f"No results for path: ${path.root}")
        return path.find(self.variables[path.root])


Expression = Callable[[Data], JSON]
Condition = Callable[[Data], bool]


class Field(Protocol):
    """A field that is given as a value or as an expression; `label` names it in error texts."""

    @property
    def label(self) -> str:
        """The field as the definition spells it, `SecondsPath` or `Seconds`."""

    @property
    def source(self) -> str:
        """The expression's text, for error texts."""

    def read(self, data: Data) -> JSON:
        """The field's value for this state's data."""


class DataFlow(Protocol):
    """The way of data through one state."""

    def effective_input(self, data: Data) -> JSON:
        """What the state works on: the input, filtered and before any template."""

    def arguments(self, data: Data, effective: JSON) -> JSON:
        """What the state hands to its work: the effective input or the template made of it."""

    def output(self, data: Data, result: JSON) -> JSON:
        """What the state passes on, of its input and its work's result."""

    def shaped(self, data: Data, result: JSON) -> JSON:
        """The result after its selector: what Assign sees."""


class QueryLanguage(Protocol):
    """Compiles the expressions of a state; raises InvalidDefinition for what it cannot read."""

    def flow(self, raw: Mapping[str, Any], where: str) -> DataFlow:
        """The data flow of a state."""

    def field(self, raw: Mapping[str, Any], name: str, where: str) -> Field | None:
        """A field or its …Path form, None if neither is given."""

    def text(self, raw: Mapping[str, Any], name: str, where: str) -> Field | None:
        """A field of text (Error, Cause), which may also be computed by a function."""

    def template(self, value: JSON, field: str, where: str) -> Expression:
        """A payload template (Parameters, ItemSelector, Assign…)."""

    def condition(self, rule: Mapping[str, Any], where: str) -> Condition:
        """A Choice rule's test."""

    def placement(self, raw: Mapping[str, Any], where: str) -> Callable[[Data, JSON], JSON]:
        """Where a caught error goes in the state's input."""
