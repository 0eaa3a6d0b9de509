"""JSON as Python sees it, measured and copied the one way that the whole interpreter uses."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
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
