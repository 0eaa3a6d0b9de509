"""Choice: the first rule that holds says where to go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webordinary.asl.errors import Failure, InvalidDefinition
from webordinary.asl.query.base import Condition, Expression, QueryLanguage
from webordinary.asl.states.base import State

if TYPE_CHECKING:
    from webordinary.asl.run import Frame
    from webordinary.asl.step import Step


@dataclass(frozen=True, slots=True)
class Rule:
    """A test, and what follows if it holds."""

    holds: Condition
    next: str
    assign: Expression | None


class Choice(State):
    """Rules in order, then Default."""

    type = "Choice"
    moves_on = False

    def __init__(self, name: str, raw: Mapping[str, Any], language: QueryLanguage) -> None:
        super().__init__(name, raw, language)
        rules = raw.get("Choices")
        if not isinstance(rules, list) or not rules:
            raise InvalidDefinition(name, "Choices", "must be a list of at least one rule")
        self.rules = tuple(_rule(rule, language, name) for rule in rules)
        self.default: str | None = raw.get("Default")

    def targets(self) -> list[str]:
        """Every rule's Next, and Default."""
        return [rule.next for rule in self.rules] + ([self.default] if self.default is not None else [])

    def begin(self, step: Step, frame: Frame) -> None:
        """Decide at once."""
        data = step.data(frame)
        effective = data.on(self.flow.effective_input(data))
        for rule in self.rules:
            if rule.holds(effective):
                step.complete(frame, data, effective.input, next_state=rule.next, assign=rule.assign)
                return
        if self.default is None:
            raise Failure("States.NoChoiceMatched", f"No choice rule of '{self.name}' matched", located=True)
        step.complete(frame, data, effective.input, next_state=self.default, assign=self.assign)


def _rule(raw: Mapping[str, Any], language: QueryLanguage, where: str) -> Rule:
    if "Next" not in raw:
        raise InvalidDefinition(where, "Choices", "each rule needs a Next")
    assign = language.template(raw["Assign"], "Assign", where) if "Assign" in raw else None
    return Rule(language.condition(raw, where), raw["Next"], assign)
