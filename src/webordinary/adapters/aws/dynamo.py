"""DynamoDB as the adapters use it: consistent reads, conditional writes, and transactions that happen once.

An answer can be lost after the write was done. botocore asks again: a transaction carries a token, so that it is
done once; a single write finds its own condition broken, and its caller sees that from the item it is shown.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import code_of, translated
from webordinary.model.errors import Backoff, Transient

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import AttributeValueTypeDef
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

    Item = dict[str, AttributeValueTypeDef]


def to_item(fields: Mapping[str, Any]) -> Item:
    """A record as an item. None is left out, so that conditions can test for the attribute."""
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
    """A time as TTL attributes hold it: seconds since the epoch."""
    return int(at.timestamp() + plus_seconds)


def _digits(number: float) -> str:
    """A number in the form that DynamoDB returns."""
    return str(int(number)) if float(number).is_integer() else format(Decimal(repr(number)), "f")


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else number


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


CONFLICT_TRIES = 8
_BACKOFF = Backoff(0.02, cap=0.5, jitter=1.0)
_BATCH = 100
_BATCH_TRIES = 5
_BROKEN = "ConditionalCheckFailed"
_PASSES = frozenset({"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})

Fields = dict[str, Any]
Place = tuple[str, Mapping[str, object]]
"""A table and a key."""


@dataclass(frozen=True, slots=True)
class ConditionFailed:
    """Nothing was written. The writes whose conditions did not hold, each with the item as it is; {} if none."""

    by: Mapping[int, Fields]


class Dynamo:
    """One client, shared by threads. Raises Transient when trying again is worth it, after bounded tries of its own."""

    def __init__(self, client: DynamoDBClient, pause: Callable[[float], None] = time.sleep) -> None:
        self._client, self._pause = client, pause
        self._rng = random.Random()  # noqa: S311 - jitter, not a secret

    def get(self, what: str, place: Place) -> Fields | None:
        """One item as it is now."""
        table, key = place
        with translated(what):
            found = self._client.get_item(TableName=table, Key=to_item(key), ConsistentRead=True)
        return from_item(found["Item"]) if "Item" in found else None

    def get_all(self, what: str, table: str, keys: Sequence[Mapping[str, object]]) -> list[Fields]:
        """Those of many items that are there, as they are now, in no order."""
        found: list[Fields] = []
        left = [to_item(key) for key in keys]
        for tries in range(_BATCH_TRIES + len(left) // _BATCH):
            if not left:
                return found
            if tries:
                self.back_off(tries)
            with translated(what):
                answer = self._client.batch_get_item(
                    RequestItems={table: {"Keys": left[:_BATCH], "ConsistentRead": True}}
                )
            found += [from_item(item) for item in answer["Responses"].get(table, [])]
            unread = answer["UnprocessedKeys"].get(table, {"Keys": []})["Keys"]
            left = [dict(key) for key in unread] + left[_BATCH:]
        raise Transient(f"{what}: DynamoDB is too busy to read {len(left)} items")

    def query(
        self,
        what: str,
        table: str,
        where: str,
        values: Mapping[str, object],
        limit: int,
        *,
        index: str = "",
        newest: bool = False,
    ) -> list[Fields]:
        """Up to `limit` items of a partition in the order of their sort key; of an index, as they were lately."""
        pages = self._pages(what, table, where, values, limit, index, newest)
        return list(islice((from_item(item) for page in pages for item in page), limit))

    def write(self, what: str, write: Write) -> Fields | ConditionFailed:
        """One conditional write; what an update leaves behind."""
        [(kind, asked)] = write.items()
        return self._tried(what, lambda: self._write(kind, asked))

    def transact(
        self, what: str, writes: Sequence[Write], request: str, witness: Place | None = None
    ) -> ConditionFailed | None:
        """All of the writes or none, once; None when they are done.

        `request` names this transaction. If no answer comes, the item at `witness` tells: it has been written
        by this transaction if its attribute `request` says so.
        """
        try:
            done = self._tried(what, lambda: self._transact(writes, request))
        except Transient:
            item = self.get(what, witness) if witness else None
            if item and item.get("request") == request:
                return None
            raise
        return done if isinstance(done, ConditionFailed) else None

    def _write(self, kind: str, asked: Any) -> Fields:  # noqa: ANN401 - one of three shapes, by its kind
        if kind == "Update":
            return from_item(self._client.update_item(**asked, ReturnValues="ALL_NEW")["Attributes"])
        (self._client.put_item if kind == "Put" else self._client.delete_item)(**asked)
        return {}

    def _transact(self, writes: Sequence[Write], request: str) -> Fields:
        self._client.transact_write_items(TransactItems=writes, ClientRequestToken=request)
        return {}

    def _tried(self, what: str, ask: Callable[[], Fields]) -> Fields | ConditionFailed:
        """Retry while another writer holds the same items."""
        for tries in range(CONFLICT_TRIES):
            with translated(what):
                try:
                    return ask()
                except ClientError as problem:
                    if refused := _refusal(problem):
                        return refused
                    if not _passes(problem):
                        raise
            self.back_off(tries + 1)
        raise Transient(f"{what}: others kept writing the same items")

    def _pages(
        self, what: str, table: str, where: str, values: Mapping[str, object], limit: int, index: str, newest: bool
    ) -> Iterator[Sequence[Any]]:
        asked: Any = {
            "TableName": table,
            "KeyConditionExpression": where,
            "Limit": limit,
            "ScanIndexForward": not newest,
            **({"IndexName": index} if index else {"ConsistentRead": True}),
            **expressed(where, values),
        }
        while True:
            with translated(what):
                page = self._client.query(**asked)
            yield page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def back_off(self, tries: int) -> None:
        """Wait before the next try, longer after each."""
        self._pause(_BACKOFF.delay(tries, self._rng))


def _refusal(problem: ClientError) -> ConditionFailed | None:
    """Conditions that did not hold; None if it was not that."""
    if code_of(problem) == "ConditionalCheckFailedException":
        return ConditionFailed({0: _item(problem.response)})
    broken = {number: _item(why) for number, why in enumerate(_reasons(problem)) if why.get("Code") == _BROKEN}
    return ConditionFailed(broken) if broken else None


def _passes(problem: ClientError) -> bool:
    """Whether another writer held the same items: worth an immediate retry."""
    if code_of(problem) == "TransactionConflictException":
        return True
    reasons = _reasons(problem)
    return bool(reasons) and all(why.get("Code", "None") in _PASSES for why in reasons)


def _reasons(problem: ClientError) -> list[Any]:
    """Why a transaction was cancelled, write by write."""
    reasons: list[Any] = problem.response.get("CancellationReasons", [])
    return reasons


def _item(response: Any) -> Fields:  # noqa: ANN401 - errors are not typed
    return from_item(response.get("Item", {}))
