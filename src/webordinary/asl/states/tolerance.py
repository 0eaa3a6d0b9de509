"""How many items of a Map may fail before the Map does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webordinary.asl.errors import runtime
from webordinary.asl.json_types import JSON, dump, is_number
from webordinary.asl.query.base import Data, Field, QueryLanguage


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
