"""What must exist before anything runs: the shapes of the tables, and making them where nobody did.

Infrastructure makes the same shapes; tests, `make up-aws` and onboarding make them from here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import Clients, code_of, translated

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import (
        AttributeDefinitionTypeDef,
        CreateTableInputTypeDef,
        GlobalSecondaryIndexTypeDef,
        KeySchemaElementTypeDef,
    )

EXPIRES_AT = "expiresAt"
_EXISTS = frozenset({"ResourceInUseException"})
EXPIRING = frozenset({"ENABLED", "ENABLING"})


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that a key is made of: text, or a number."""

    name: str
    kind: str = "S"


@dataclass(frozen=True, slots=True)
class IndexShape:
    """A sparse index: only items that have its attributes are in it, with their keys alone."""

    name: str
    hash: Attribute
    range: Attribute | None = None


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table as DynamoDB wants to know it; `ttl` names the attribute after whose time an item is garbage."""

    hash: Attribute
    range: Attribute | None = None
    indexes: tuple[IndexShape, ...] = ()
    ttl: str = EXPIRES_AT


TABLES: dict[str, TableShape] = {
    names.JOBS: TableShape(
        Attribute("projectUserId"),
        Attribute("order", "N"),
        (
            IndexShape(names.OPEN_INDEX, Attribute("openShard"), Attribute("projectUserId")),
            IndexShape(names.OWED_INDEX, Attribute("owes"), Attribute("projectUserId")),
        ),
    ),
    names.OWNERSHIP: TableShape(
        Attribute("projectKey"), indexes=(IndexShape(names.WORKER_INDEX, Attribute("containerId")),), ttl="ttl"
    ),
    names.CLAIM_REQUESTS: TableShape(Attribute("projectKey")),
    names.INTERRUPTIONS: TableShape(Attribute("messageId"), Attribute("recordId")),
    names.THREADS: TableShape(Attribute("id")),
    names.PROJECTS: TableShape(Attribute("email"), Attribute("projectId")),
    names.MAILS: TableShape(
        Attribute("emailId"),
        Attribute("part"),
        (
            IndexShape(names.DUE_INDEX, Attribute("due"), Attribute("dueAt")),
            IndexShape(names.RECENT_INDEX, Attribute("receivedDay"), Attribute("receivedAt")),
        ),
    ),
    names.COSTS: TableShape(Attribute("day"), Attribute("part")),
}


def create_tables(
    clients: Clients, only: Collection[str] = tuple(TABLES), suffix: str = "", *, expiring: bool = True
) -> None:
    """Make the tables that are not there yet. Idempotent: killed on the way, doing it again goes on.

    `suffix` keeps tests apart from one another; without `expiring` they may live in the past.
    """
    for name in only:
        _create_table(clients, name + suffix, TABLES[name])
    for name in only:
        with translated(f"waiting for table {name}"):
            clients.dynamodb.get_waiter("table_exists").wait(
                TableName=name + suffix, WaiterConfig={"Delay": 1, "MaxAttempts": 120}
            )
        if expiring:
            _expire(clients, name + suffix, TABLES[name].ttl)


def _create_table(clients: Clients, name: str, shape: TableShape) -> None:
    keys = [shape.hash, shape.range, *(key for index in shape.indexes for key in (index.hash, index.range))]
    wanted: CreateTableInputTypeDef = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": _definitions([key for key in keys if key]),
        "KeySchema": _schema(shape.hash, shape.range),
    }
    if shape.indexes:
        wanted["GlobalSecondaryIndexes"] = [_index(index) for index in shape.indexes]
    try:
        clients.dynamodb.create_table(**wanted)
    except ClientError as problem:
        if code_of(problem) not in _EXISTS:  # perhaps we made it just now, and were not told
            with translated(f"making table {name}"):
                raise


def _expire(clients: Clients, name: str, attribute: str) -> None:
    with translated(f"making items of table {name} expire"):
        there = clients.dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        set_already = there.get("AttributeName") == attribute and there["TimeToLiveStatus"] in EXPIRING
        if not set_already:  # else it could not be set again
            clients.dynamodb.update_time_to_live(
                TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute}
            )


def _definitions(keys: Collection[Attribute]) -> list[AttributeDefinitionTypeDef]:
    kinds = {key.name: key.kind for key in keys}
    return [{"AttributeName": name, "AttributeType": "N" if kind == "N" else "S"} for name, kind in kinds.items()]


def _schema(hash_key: Attribute, range_key: Attribute | None) -> list[KeySchemaElementTypeDef]:
    schema: list[KeySchemaElementTypeDef] = [{"AttributeName": hash_key.name, "KeyType": "HASH"}]
    if range_key:
        schema.append({"AttributeName": range_key.name, "KeyType": "RANGE"})
    return schema


def _index(index: IndexShape) -> GlobalSecondaryIndexTypeDef:
    return {
        "IndexName": index.name,
        "KeySchema": _schema(index.hash, index.range),
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
