"""RFC 3339 as AWS reads and writes it: a capital T, a zone, and up to nine decimals."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

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
