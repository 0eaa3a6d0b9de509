"""JSONPath as Step Functions knows it: `$` the input, `$$` the context, `$name` a variable.

Definite paths (`$.a['b'][0]`) are walked here. Wildcards, slices, filters and descents go to
python-jsonpath; they always yield a list, empty if nothing matches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import jsonpath

from webordinary.asl.values import JSON

_HEAD = re.compile(r"\$(\$|[^\W\d]\w*)?")
_STEP = re.compile(
    r"\.([^\s.\[\]()*'\"@?,:]+)(?!\()|\[\s*(-?\d+)\s*\]|\[\s*'((?:[^'\\]|\\.)*)'\s*\]|\[\s*\"((?:[^\"\\]|\\.)*)\"\s*\]"
)
_ESCAPE = re.compile(r"\\(.)")
_LENGTH = ".length()"


class BadPath(ValueError):
    """A text that is no path."""


class Missing(Exception):
    """A definite path that leads nowhere; the text is what AWS's path library says."""


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path. `root` is "$", "$$" or the name of a variable."""

    text: str
    root: str
    steps: tuple[str | int, ...]
    query: jsonpath.JSONPath | jsonpath.CompoundJSONPath | None
    length: bool

    @property
    def definite(self) -> bool:
        """Whether it names one place rather than a set of places."""
        return self.query is None and not self.length

    def find(self, root: JSON) -> JSON:
        """The value at this path under `root`; raises Missing where a definite path ends early."""
        if self.query is not None:
            found: JSON = list(self.query.findall(root))
        else:
            found = self._walk(root)
        return len(found) if self.length and isinstance(found, list | dict | str) else found

    def _walk(self, value: JSON) -> JSON:
        for position, step in enumerate(self.steps):
            if isinstance(step, str):
                if isinstance(value, dict) and step in value:
                    value = value[step]
                    continue
            elif isinstance(value, list) and -len(value) <= step < len(value):
                value = value[step]
                continue
            raise Missing(self._complaint(position))
        return value

    def _complaint(self, position: int) -> str:
        if position == len(self.steps) - 1:
            return f"No results for path: {normal_form(self.steps)}"
        return f"Missing property in path {normal_form(self.steps[: position + 1])}"


def normal_form(steps: tuple[str | int, ...]) -> str:
    """`$['a'][0]`, the way error texts spell a path."""
    return "$" + "".join(f"['{s}']" if isinstance(s, str) else f"[{s}]" for s in steps)


@lru_cache(maxsize=4096)
def compile_path(text: str) -> Path:
    """Compile once per text; raises BadPath."""
    head = _HEAD.match(text)
    if head is None:
        raise BadPath(f"a path starts with $, this one does not: {text}")
    root = "$" if head[1] is None else "$$" if head[1] == "$" else head[1]
    rest = text[head.end() :]
    length = rest.endswith(_LENGTH)
    if length:
        rest = rest[: -len(_LENGTH)]
    steps = _definite_steps(rest)
    if steps is not None:
        return Path(text, root, steps, None, length)
    try:
        return Path(text, root, (), jsonpath.compile("$" + rest), length)
    except (jsonpath.JSONPathError, RecursionError) as problem:
        raise BadPath(f"{text}: {problem}") from problem


def _definite_steps(rest: str) -> tuple[str | int, ...] | None:
    steps: list[str | int] = []
    position = 0
    while position < len(rest):
        step = _STEP.match(rest, position)
        if step is None:
            return None
        name, index, single, double = step.groups()
        if index is not None:
            steps.append(int(index))
        else:
            quoted = single if single is not None else double
            steps.append(name if quoted is None else _ESCAPE.sub(r"\1", quoted))
        position = step.end()
    return tuple(steps)


class CannotPlace(Exception):
    """A result cannot be put where ResultPath points: something else than an object is in the way."""


def place(target: JSON, steps: tuple[str | int, ...], value: JSON) -> JSON:
    """`target` with `value` at `steps`; copies along the way, changes nothing in place."""
    if not steps:
        return value
    step, deeper = steps[0], steps[1:]
    if isinstance(step, int):
        if not isinstance(target, list) or not -len(target) <= step < len(target):
            raise CannotPlace
        items = list(target)
        items[step] = place(items[step], deeper, value)
        return items
    if not isinstance(target, dict):
        raise CannotPlace
    return {**target, step: place(target.get(step, {}), deeper, value)}
