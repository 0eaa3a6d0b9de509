"""A state machine's definition: loaded, substituted, checked and compiled once."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webordinary.asl.errors import InvalidDefinition
from webordinary.asl.intrinsics import QueryLanguage
from webordinary.asl.jsonpath import JsonPath
from webordinary.asl.map_state import Map, Parallel, processor
from webordinary.asl.states import Choice, Fail, Pass, State, Succeed, Task, Wait
from webordinary.asl.values import JSON

_STATE_TYPES: dict[str, type[State]] = {
    kind.type: kind for kind in (Task, Pass, Choice, Wait, Succeed, Fail, Parallel, Map)
}
_LANGUAGES: dict[str, QueryLanguage] = {"JSONPath": JsonPath()}
_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")
_SUBSTITUTED_FIELDS = frozenset({"Resource", "FunctionName"})


@dataclass(frozen=True, slots=True)
class Machine:
    """A StartAt and its States: the top, a branch, or an item processor."""

    start_at: str
    states: Mapping[str, State]

    def walk(self) -> Iterator[State]:
        """Every state, nested ones included."""
        for state in self.states.values():
            yield state
            for inner in state.machines:
                yield from inner.walk()


@dataclass(frozen=True, slots=True)
class Definition:
    """A compiled definition. `text` is what is stored with executions; `digest` is its name there."""

    name: str
    text: str
    digest: str
    machine: Machine
    timeout_seconds: float | None

    @staticmethod
    def load(
        source: str | Mapping[str, Any],
        substitutions: Mapping[str, str] | None = None,
        name: str = "StateMachine",
    ) -> Definition:
        """Compile a definition; `${Name}` in Resource and FunctionName is replaced.

        Raises InvalidDefinition, naming the state and the field.
        """
        raw = _substituted(_parsed(source), substitutions or {}, "")
        text = json.dumps({"name": name, "definition": raw}, sort_keys=True, separators=(",", ":"))
        return _compiled(text)

    @staticmethod
    def stored(text: str) -> Definition:
        """Compile a definition from the text that was stored with its executions."""
        return _compiled(text)

    @property
    def handlers(self) -> frozenset[str]:
        """The handlers that are named outright, so that a missing one shows before anything runs."""
        tasks = (state for state in self.machine.walk() if isinstance(state, Task))
        return frozenset(task.handler for task in tasks if task.handler is not None)


def _compiled(text: str) -> Definition:
    stored = json.loads(text)
    raw = stored["definition"]
    timeout = raw.get("TimeoutSeconds")
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Definition(stored["name"], text, digest, _machine(raw, "", _language(raw, "", "JSONPath")), timeout)


def _parsed(source: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    try:
        raw = json.loads(source)
    except ValueError as problem:
        raise InvalidDefinition("", "definition", f"is no JSON: {problem}") from problem
    if not isinstance(raw, dict):
        raise InvalidDefinition("", "definition", "must be an object")
    return raw


def _substituted(value: JSON, names: Mapping[str, str], field: str) -> JSON:
    if isinstance(value, dict):
        return {key: _substituted(inner, names, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_substituted(inner, names, field) for inner in value]
    if isinstance(value, str) and field in _SUBSTITUTED_FIELDS:
        return _PLACEHOLDER.sub(lambda match: _substitute(match[1], names, field), value)
    return value


def _substitute(name: str, names: Mapping[str, str], field: str) -> str:
    if name not in names:
        raise InvalidDefinition("", field, f"nothing is given for ${{{name}}}")
    return names[name]


def _language(raw: Mapping[str, Any], where: str, default: str) -> str:
    name: str = raw.get("QueryLanguage", default)
    if name not in _LANGUAGES:
        raise InvalidDefinition(where, "QueryLanguage", f"{name} is not supported yet, only JSONPath")
    return name


def _machine(raw: Mapping[str, Any], where: str, language: str) -> Machine:
    states = raw.get("States")
    if not isinstance(states, Mapping) or not states:
        raise InvalidDefinition(where, "States", "must hold at least one state")
    compiled = {name: _state(name, state, language) for name, state in states.items()}
    machine = Machine(str(raw.get("StartAt")), compiled)
    if machine.start_at not in compiled:
        raise InvalidDefinition(where, "StartAt", f"there is no state {machine.start_at!r} here")
    for state in compiled.values():
        for target in state.targets():
            if target not in compiled:
                raise InvalidDefinition(state.name, "Next", f"there is no state {target!r} here")
    return machine


def _state(name: str, raw: JSON, language: str) -> State:
    if not isinstance(raw, dict) or raw.get("Type") not in _STATE_TYPES:
        raise InvalidDefinition(name, "Type", f"must be one of {', '.join(_STATE_TYPES)}")
    language = _language(raw, name, language)
    state = _STATE_TYPES[raw["Type"]](name, raw, _LANGUAGES[language])
    state.machines = tuple(_machine(inner, name, language) for inner in _inner(name, raw))
    return state


def _inner(name: str, raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if raw["Type"] == "Parallel":
        return list(raw["Branches"])
    return [processor(raw, name)] if raw["Type"] == "Map" else []
