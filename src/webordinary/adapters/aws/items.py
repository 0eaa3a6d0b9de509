"""Values to DynamoDB's items and back: the one place that knows how numbers, sets and points in time are written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import AttributeValueTypeDef

    Item = dict[str, AttributeValueTypeDef]


def to_item(fields: Mapping[str, Any]) -> Item:
    """A record as an item; what is None is left out, so that conditions can ask whether it is there."""
    return {name: to_value(value) for name, value in fields.items() if value is not None}


def from_item(item: Mapping[str, AttributeValueTypeDef]) -> dict[str, Any]:
    """An item as a record."""
    return {name: from_value(value) for name, value in item.items()}


def to_value(value: object) -> AttributeValueTypeDef:
    """One value. A float keeps all its digits; a set is one of strings and not empty."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": str(value)}
        case int() | float():
            return {"N": _digits(value)}
        case bytes():
            return {"B": value}
        case set() | frozenset():
            return {"SS": sorted(value)}
        case Mapping():
            return {"M": {str(name): to_value(inner) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [to_value(inner) for inner in value]}
    raise TypeError(f"an item cannot hold {type(value).__name__}")


def from_value(value: AttributeValueTypeDef) -> object:
    """One value back; a whole number is an int, whatever it was."""
    [(kind, inner)] = value.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return _number(str(inner))
        case "M":
            return from_item(value["M"])
        case "L":
            return [from_value(one) for one in value["L"]]
        case "SS":
            return set(value["SS"])
    return inner


def moment(at: datetime) -> str:
    """A point in time as text that sorts as time does."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def moment_or_none(at: datetime | None) -> str | None:
    """A point in time that may not have come yet."""
    return None if at is None else moment(at)


def at(text: str) -> datetime:
    """A stored point in time."""
    return datetime.fromisoformat(text)


def at_or_none(text: str | None) -> datetime | None:
    """A stored point in time that may not have come yet."""
    return None if text is None else at(text)


def epoch(at: datetime, plus_seconds: float = 0.0) -> int:
    """What TTL attributes hold."""
    return int(at.timestamp() + plus_seconds)


def _digits(number: float) -> str:
    """As DynamoDB itself would write it."""
    return str(int(number)) if float(number).is_integer() else format(Decimal(repr(number)), "f")


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else number
