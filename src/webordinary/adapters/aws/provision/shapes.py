"""The resources that must exist before anything runs: shapes of tables, queues and buckets, and their creation.

Infrastructure makes the same shapes; tests, `make up-aws` and onboarding make them from here.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws import names
from webordinary.adapters.aws.clients import LONG_POLL_SECONDS, NOT_THERE, Clients, code_of, translated
from webordinary.adapters.aws.pool.queues import VISIBILITY_SECONDS
from webordinary.model.errors import InvalidName, Transient
from webordinary.model.names import ProjectUser

if TYPE_CHECKING:
    from types_boto3_dynamodb.type_defs import (
        AttributeDefinitionTypeDef,
        CreateTableInputTypeDef,
        GlobalSecondaryIndexTypeDef,
        KeySchemaElementTypeDef,
    )
    from types_boto3_s3 import S3Client


RAW_PREFIX = "raw/"
_OURS = "BucketAlreadyOwnedByYou"
_DEFAULT_REGION = "us-east-1"


def make_private_bucket(s3: S3Client, bucket: str, kept_days: int | None = None) -> None:
    """Make the bucket, or correct an existing one; objects expire after `days`."""
    with translated(f"making the bucket {bucket}"):
        try:
            _buckets_create(s3, bucket)
        except ClientError as problem:
            if code_of(problem) != _OURS:
                raise
        s3.put_public_access_block(
            Bucket=bucket,
            PublicAccessBlockConfiguration={
                "BlockPublicAcls": True,
                "IgnorePublicAcls": True,
                "BlockPublicPolicy": True,
                "RestrictPublicBuckets": True,
            },
        )
        if kept_days:
            _buckets_expire(s3, bucket, kept_days)


def _buckets_create(s3: S3Client, bucket: str) -> None:
    region = s3.meta.region_name
    if region == _DEFAULT_REGION:
        s3.create_bucket(Bucket=bucket)
    else:
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})  # type: ignore[typeddict-item]


def _buckets_expire(s3: S3Client, bucket: str, days: int) -> None:
    s3.put_bucket_lifecycle_configuration(
        Bucket=bucket,
        LifecycleConfiguration={
            "Rules": [{"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": days}}]
        },
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
            IndexShape(names.PENDING_CALLBACKS_INDEX, Attribute("owes"), Attribute("projectUserId")),
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
    request: CreateTableInputTypeDef = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": _definitions([key for key in keys if key]),
        "KeySchema": _schema(shape.hash, shape.range),
    }
    if shape.indexes:
        request["GlobalSecondaryIndexes"] = [_index(index) for index in shape.indexes]
    try:
        clients.dynamodb.create_table(**request)
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


if TYPE_CHECKING:
    from types_boto3_sqs.literals import QueueAttributeNameType

    Attributes = dict[QueueAttributeNameType, str]

RETENTION_SECONDS = 14 * 24 * 3600
MAX_RECEIVES = 100
_QUEUE_SHAPES_LEAVING = frozenset({"QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently"})
_QUEUE_SHAPES_EXISTS = frozenset({"QueueAlreadyExists", "QueueNameExists"})


@dataclass(frozen=True, slots=True)
class QueueShape:
    """A queue. A message that is received too often is moved to the queue `dead_letters`."""

    name: str
    dead_letters: str = ""
    receives: int = 0

    @property
    def fifo(self) -> bool:
        """Whether a queue is FIFO, by its name."""
        return self.name.endswith(".fifo")

    def attributes(self) -> Attributes:
        """As SQS wants them, but for the redrive policy."""
        attributes: Attributes = {
            "MessageRetentionPeriod": str(RETENTION_SECONDS),
            "VisibilityTimeout": str(VISIBILITY_SECONDS),
            "ReceiveMessageWaitTimeSeconds": str(LONG_POLL_SECONDS),
            "SqsManagedSseEnabled": "true",
        }
        return {**attributes, "FifoQueue": "true"} if self.fifo else attributes


SHARED_QUEUES = (
    QueueShape(names.UNCLAIMED_DLQ),
    QueueShape(names.UNCLAIMED, names.UNCLAIMED_DLQ, MAX_RECEIVES),
    QueueShape(names.DEAD_LETTERS),
    QueueShape(names.INPUT_DLQ),
)


def key_queues(key: ProjectUser) -> tuple[QueueShape, ...]:
    """One customer's own. They share one queue of dead letters: an alarm looks at a queue by its name."""
    queues = names.queues_of(key)
    return (
        QueueShape(queues.input, names.INPUT_DLQ, MAX_RECEIVES),
        QueueShape(queues.interrupts),
        QueueShape(queues.output),
    )


def create_key_queues(clients: Clients, key: ProjectUser) -> None:
    """Make a customer's queues, or make them as they should be. Idempotent.

    An empty queue of dead letters that an earlier version made goes; one with messages is for a person to look at.
    """
    for shape in key_queues(key):
        _create(clients, shape)
    if own_dead_letters_of(clients, key) == 0:
        _remove(clients, names.own_dead_letters(key))


def own_dead_letters_of(clients: Clients, key: ProjectUser) -> int | None:
    """How many messages lie in the customer's own queue of dead letters; None without such a queue."""
    name = names.own_dead_letters(key)
    try:
        found = clients.sqs.get_queue_attributes(QueueUrl=_url(clients, name), AttributeNames=["All"])["Attributes"]
    except ClientError as problem:
        if code_of(problem) in NOT_THERE:
            return None
        with translated(f"looking at queue {name}"):
            raise
    return int(found["ApproximateNumberOfMessages"]) + int(found["ApproximateNumberOfMessagesNotVisible"])


def create_shared_queues(clients: Clients, suffix: str = "") -> None:
    """Make the queues of everybody. Idempotent; `suffix` keeps tests apart from one another."""
    for shape in SHARED_QUEUES:
        apart = "" if shape.fifo else suffix  # customers' queues know one queue of dead letters
        dead_letters = shape.dead_letters and shape.dead_letters + apart
        _create(clients, QueueShape(shape.name + apart, dead_letters, shape.receives))


def keys_with_queues(clients: Clients, project_id: str) -> tuple[ProjectUser, ...]:
    """The users of a project that have queues, including removed senders."""
    prefix = names.queues_of(ProjectUser(project_id, "x")).output.removesuffix("x")
    keys = []
    with translated(f"looking for queues of {project_id}"):
        for page in clients.sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix):
            for url in page.get("QueueUrls", []):
                with suppress(InvalidName):  # of a project whose name begins like this one's
                    keys.append(ProjectUser(project_id, url.rpartition("/")[2].removeprefix(prefix)))
    return tuple(keys)


def remove_key_queues(clients: Clients, key: ProjectUser) -> None:
    """Remove a customer's queues with all that is in them, and last the one that they are found by. Idempotent."""
    for name in (names.own_dead_letters(key), *(shape.name for shape in key_queues(key))):
        _remove(clients, name)


def _remove(clients: Clients, name: str) -> None:
    with translated(f"removing queue {name}"):
        try:
            clients.sqs.delete_queue(QueueUrl=_url(clients, name))
        except ClientError as problem:
            if code_of(problem) not in NOT_THERE:
                raise


def _create(clients: Clients, shape: QueueShape) -> None:
    with translated(f"making queue {shape.name}"):
        attributes: Attributes = {**shape.attributes(), **_redrive(clients, shape)}
        try:
            clients.sqs.create_queue(QueueName=shape.name, Attributes=attributes)
        except ClientError as problem:
            if code_of(problem) in _QUEUE_SHAPES_LEAVING:
                words = f"the queue {shape.name} was removed a moment ago, and SQS keeps its name for a minute"
                raise Transient(f"{words}: say it again then") from problem
            if code_of(problem) not in _QUEUE_SHAPES_EXISTS:
                raise
            changeable = attributes.copy()
            changeable.pop("FifoQueue", None)
            clients.sqs.set_queue_attributes(QueueUrl=_url(clients, shape.name), Attributes=changeable)


def _redrive(clients: Clients, shape: QueueShape) -> Attributes:
    if not shape.dead_letters:
        return {}
    url = _url(clients, shape.dead_letters)
    arn = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": shape.receives})}


def _url(clients: Clients, name: str) -> str:
    return clients.sqs.get_queue_url(QueueName=name)["QueueUrl"]


KEPT_VERSIONS = 60
"""Each of 20 kept releases needs at most one version of an object; of the manifest a publication takes two."""
KEPT_DAYS = 30
UNFINISHED_DAYS = 1
"""Unfinished multipart uploads cost money and are not listed as objects."""


def make_site_bucket(s3: S3Client, bucket: str) -> None:
    """Make the bucket, or correct an existing one."""
    make_private_bucket(s3, bucket)
    with translated(f"letting the bucket {bucket} keep what is replaced"):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_lifecycle_configuration(
            Bucket=bucket,
            LifecycleConfiguration={
                "Rules": [
                    {
                        "ID": "earlier-releases",
                        "Status": "Enabled",
                        "Filter": {"Prefix": ""},
                        "NoncurrentVersionExpiration": {
                            "NoncurrentDays": KEPT_DAYS,
                            "NewerNoncurrentVersions": KEPT_VERSIONS,
                        },
                        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": UNFINISHED_DAYS},
                    },
                    {
                        "ID": "previews",
                        "Status": "Enabled",
                        "Filter": {"Prefix": names.PREVIEWS},
                        "Expiration": {"Days": names.PREVIEW_DAYS},
                        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
                    },
                ]
            },
        )


def remove_versions(s3: S3Client, bucket: str, prefix: str) -> None:
    """Remove every version of the objects whose names begin so. Idempotent."""
    with translated(f"removing {prefix}* of {bucket}"):
        try:
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
                found: list[Any] = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
                _delete(s3, bucket, [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found])
        except ClientError as problem:
            if code_of(problem) not in NOT_THERE:
                raise


def remove_objects(s3: S3Client, bucket: str, prefix: str) -> None:
    """Remove the objects whose names begin so. Idempotent."""
    with translated(f"removing {prefix}* of {bucket}"):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            _delete(s3, bucket, [{"Key": one["Key"]} for one in page.get("Contents", [])])


def _delete(s3: S3Client, bucket: str, objects: list[Any]) -> None:
    """At most a page, which is what S3 takes in one call."""
    if not objects:
        return
    errors = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True}).get("Errors", [])
    if errors:
        raise Transient(f"{len(errors)} objects of {bucket} stay ({errors[0].get('Message', 'no reason given')})")
