"""Tables, shared queues and the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.infra.templates import ACCOUNT, Resource, StackTemplates, plain, ready
from webordinary.adapters.aws import names
from webordinary.adapters.aws.provision.shapes import SHARED_QUEUES, TABLES, Attribute, IndexShape, QueueShape

pytestmark = pytest.mark.xdist_group("infra")


def test_every_table_is_made(cloud: StackTemplates) -> None:
    made = cloud.data.named("AWS::DynamoDB::Table", "TableName")
    assert made.keys() == set(names.TABLES) == TABLES.keys()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_shape_that_tests_and_emulators_make(cloud: StackTemplates, name: str) -> None:
    made, shape = _table(cloud, name), TABLES[name]
    kinds = {one["AttributeName"]: one["AttributeType"] for one in made["AttributeDefinitions"]}
    assert _keys(made["KeySchema"], kinds) == (shape.hash, shape.range)
    indexes = [
        IndexShape(index["IndexName"], *_keys(index["KeySchema"], kinds))
        for index in made.get("GlobalSecondaryIndexes", [])
    ]
    assert sorted(indexes, key=str) == sorted(shape.indexes, key=str)
    assert all(one["Projection"] == {"ProjectionType": "KEYS_ONLY"} for one in made.get("GlobalSecondaryIndexes", []))
    assert made["TimeToLiveSpecification"] == {"AttributeName": shape.ttl, "Enabled": True}
    assert made["BillingMode"] == "PAY_PER_REQUEST"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_encrypted_and_can_be_taken_back_to_any_second(cloud: StackTemplates, name: str) -> None:
    made = _table(cloud, name)
    assert made["SSESpecification"] == {"SSEEnabled": False}, "DynamoDB encrypts at rest all the same, by AWS's own key"
    assert made["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


@pytest.mark.parametrize("shape", SHARED_QUEUES, ids=lambda shape: shape.name)
def test_a_shared_queue_has_the_shape_that_tests_and_emulators_make(cloud: StackTemplates, shape: QueueShape) -> None:
    made = _queue(cloud, shape.name)
    for attribute, value in shape.attributes().items():
        assert str(made[attribute]).lower() == value, attribute
    redrive = made.get("RedrivePolicy")
    assert bool(redrive) == bool(shape.dead_letters)
    if redrive:
        assert redrive["maxReceiveCount"] == shape.receives
        dead_letters = cloud.data.template["Resources"][redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]]
        assert dead_letters["Properties"]["QueueName"] == shape.dead_letters


def test_messages_wait_fourteen_days(cloud: StackTemplates) -> None:
    made = cloud.data.of_type("AWS::SQS::Queue").values()
    assert {queue["MessageRetentionPeriod"] for queue in made} == {14 * 24 * 3600}
    assert all(queue["SqsManagedSseEnabled"] is True for queue in made)


def test_nobody_speaks_to_queues_and_buckets_in_plain_http(cloud: StackTemplates) -> None:
    for stack in cloud.stacks.values():
        for kind, policy_kind, named in (
            ("AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "Queues"),
            ("AWS::S3::Bucket", "AWS::S3::BucketPolicy", "Bucket"),
        ):
            closed = {
                _reference(owner)
                for policy in stack.of_type(policy_kind).values()
                if any(map(_refuses_plain_http, policy["PolicyDocument"]["Statement"]))
                for owner in (policy[named] if isinstance(policy[named], list) else [policy[named]])
            }
            assert stack.of_type(kind).keys() <= closed


def test_every_bucket_is_private_and_encrypted(cloud: StackTemplates) -> None:
    buckets = [bucket for stack in cloud.stacks.values() for bucket in stack.of_type("AWS::S3::Bucket").values()]
    assert len(buckets) == 4  # store, access logs, raw mails, sites
    for bucket in buckets:
        assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
        [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"


def test_the_store_forgets(cloud: StackTemplates) -> None:
    store = cloud.data.named("AWS::S3::Bucket", "BucketName")[names.store_bucket(ACCOUNT)]
    rules = {rule["Prefix"]: rule["ExpirationInDays"] for rule in store["LifecycleConfiguration"]["Rules"]}
    assert rules == dict.fromkeys(("parsed/", "replies/", "build-logs/", "blobs/", "sessions/"), 30)


def test_retention_follows_the_setting(tmp_path: Path) -> None:
    ready()
    from aws_cdk import App
    from aws_cdk.assertions import Template
    from infra.app import FLAGS
    from infra.data import DataStack
    from infra.mail import MailStack
    from infra.settings import Settings

    app = App(outdir=str(tmp_path), context=FLAGS)
    settings = Settings(retention_days=77)
    kept = [
        rule["ExpirationInDays"]
        for stack in (DataStack(app, settings), MailStack(app, settings))
        for bucket in Template.from_stack(stack).find_resources("AWS::S3::Bucket").values()
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
    ]
    assert sorted(kept) == [3, *[77] * 6, 90]  # those without admission first, access logs last


def _table(cloud: StackTemplates, name: str) -> Resource:
    return cloud.data.named("AWS::DynamoDB::Table", "TableName")[name]


def _queue(cloud: StackTemplates, name: str) -> Resource:
    return cloud.data.named("AWS::SQS::Queue", "QueueName")[name]


def _keys(schema: list[dict[str, str]], kinds: dict[str, str]) -> tuple[Attribute, Attribute | None]:
    found = {key["KeyType"]: Attribute(key["AttributeName"], kinds[key["AttributeName"]]) for key in schema}
    return found["HASH"], found.get("RANGE")


def _refuses_plain_http(statement: dict[str, Any]) -> bool:
    return statement["Effect"] == "Deny" and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}


def _reference(owner: object) -> str:
    return str(plain(owner)).strip("<>")
