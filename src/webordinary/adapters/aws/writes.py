"""Conditional writes as values: the same for a write of its own and for one in a transaction.

In expressions `#name` is an attribute and `:name` a value given by that name, so that no word is reserved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from webordinary.adapters.aws.items import to_item, to_value

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

_NAME = re.compile(r"#(\w+)")


def put(table: str, fields: Mapping[str, object], when: str = "", **values: object) -> Write:
    """Write a whole item, if `when` holds for the one that is there."""
    return {"Put": {"TableName": table, "Item": to_item(fields), **_conditioned(when, when, values)}}  # type: ignore[typeddict-item]


def check(table: str, key: Mapping[str, object], when: str, **values: object) -> Write:
    """Write nothing, but let a transaction fail unless `when` holds."""
    return {"ConditionCheck": {"TableName": table, "Key": to_item(key), **_conditioned(when, when, values)}}  # type: ignore[typeddict-item]


def update(table: str, key: Mapping[str, object], change: str, when: str = "", **values: object) -> Write:
    """Change some attributes of an item, if `when` holds."""
    return {
        "Update": {
            "TableName": table,
            "Key": to_item(key),
            "UpdateExpression": change,
            **_conditioned(when, f"{change} {when}", values),  # type: ignore[typeddict-item]
        }
    }


def delete(table: str, key: Mapping[str, object], when: str = "", **values: object) -> Write:
    """Remove an item, if `when` holds."""
    return {"Delete": {"TableName": table, "Key": to_item(key), **_conditioned(when, when, values)}}  # type: ignore[typeddict-item]


def expressed(text: str, values: Mapping[str, object]) -> dict[str, object]:
    """The names and values that an expression uses; for reads too."""
    named: dict[str, object] = {}
    if names := {f"#{name}": name for name in _NAME.findall(text)}:
        named["ExpressionAttributeNames"] = names
    if values:
        named["ExpressionAttributeValues"] = {f":{name}": to_value(value) for name, value in values.items()}
    return named


def _conditioned(when: str, text: str, values: Mapping[str, object]) -> dict[str, object]:
    """Whose condition does not hold says how the item is, which spares a look."""
    condition = {"ConditionExpression": when, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if when else {}
    return {**condition, **expressed(text, values)}
