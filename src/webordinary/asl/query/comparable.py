"""Values of one kind that a Choice rule may compare; None for a value of another kind."""

from __future__ import annotations

from webordinary.asl.json_types import JSON, is_number
from webordinary.asl.timestamps import parse_nanoseconds


def text(value: JSON) -> bytes | None:
    """Strings compare by UTF-16 code units, as Java does."""
    return value.encode("utf-16-be", "surrogatepass") if isinstance(value, str) else None


def number(value: JSON) -> float | int | None:
    """Numbers, without booleans."""
    return value if is_number(value) else None  # type: ignore[return-value]


def boolean(value: JSON) -> bool | None:
    """Booleans only."""
    return value if isinstance(value, bool) else None


def timestamp(value: JSON) -> int | None:
    """Strict RFC 3339 strings, as nanoseconds."""
    return parse_nanoseconds(value) if isinstance(value, str) else None
