"""JSON as Python sees it, measured and copied the one way that the whole interpreter uses."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

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
