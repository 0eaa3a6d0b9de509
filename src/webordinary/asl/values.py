"""JSON as Python sees it, and JSONPath as Step Functions knows it: `$` the input, `$$` the context, `$name` a variable.

JSON is measured and copied the one way that the whole interpreter uses. Definite paths (`$.a['b'][0]`) are walked here;
wildcards, slices, filters and descents go to python-jsonpath and always yield a list, empty if nothing matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import jsonpath

JSON: TypeAlias = "dict[str, Any] | list[Any] | str | int | float | bool | None"
PAYLOAD_LIMIT_BYTES = 256 * 1024


def dump(value: JSON) -> str:
    """Compact JSON text; raises ValueError or TypeError for what JSON cannot say."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def too_large(text: str) -> bool:
    """Whether a JSON text passes the bound that AWS puts on every payload."""
    if len(text) * 4 <= PAYLOAD_LIMIT_BYTES:
        return False
    return len(text.encode("utf-8", "surrogatepass")) > PAYLOAD_LIMIT_BYTES


def is_number(value: object) -> bool:
    """A JSON number; Python's bool is an int, JSON's is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def parse_nanoseconds(text: str) -> int | None:
    """Nanoseconds since 1970 of a strict timestamp, None of anything else."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    fraction, sign, zone_hours, zone_minutes = match.groups()[6:]
    if sign:
        offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
        moment = moment - offset if sign == "+" else moment + offset
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    return whole * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))


def to_microseconds(epoch: float) -> float:
    """A time that a datetime can tell, so that "due at t" and "now is t" agree to the last bit."""
    return min(round(epoch, 6), _LAST)


def iso(epoch: float) -> str:
    """Epoch seconds as the context object prints them: `2025-11-16T05:11:00.000Z`."""
    moment = datetime.fromtimestamp(epoch, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


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
    import jsonpath  # noqa: PLC0415 - slow to import, and most commands meet values only

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


@dataclass(frozen=True, slots=True)
class Data:
    """The values that an expression of a state may read. None of them is changed in place."""

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
