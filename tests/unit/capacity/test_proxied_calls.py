"""What a proxy sees on the wire is counted under boto3's names and priced as the call itself would be."""

from __future__ import annotations

import json

import pytest

from tests.aws.proxied_calls import ProxiedCall, call_of

PUT = {"Put": {"TableName": "jobs"}}
KEY = {"id": {"S": "a"}}
QUEUE = "http://127.0.0.1:4566/1/webordinary-input-amelia-scott"
STORE, SITE = "/webordinary-store-1/blobs/a", "/webordinary-sites-1/amelia/edit/index.html"


def named(service: str, operation: str, **asked: object) -> ProxiedCall:
    """A request whose operation stands in a header."""
    return call_of(service, operation, "POST", "/", False, json.dumps(asked).encode())


def plain(service: str, method: str, path: str, *, copies: bool = False) -> ProxiedCall:
    """A request that is known by its method and path alone."""
    return call_of(service, "", method, path, copies, b"no JSON")


CASES = [
    (named("dynamodb", "TransactWriteItems", TransactItems=[PUT] * 3), {"dynamodb.write": 6}),
    (named("dynamodb", "TransactGetItems", TransactItems=[{"Get": {}}] * 2), {"dynamodb.read": 4}),
    (
        named("dynamodb", "BatchGetItem", RequestItems={"jobs": {"Keys": [KEY] * 3, "ConsistentRead": True}}),
        {"dynamodb.read": 3},
    ),
    (
        named("dynamodb", "BatchGetItem", RequestItems={"a": {"Keys": [KEY]}, "b": {"Keys": [KEY]}}),
        {"dynamodb.read": 1},
    ),
    (named("dynamodb", "BatchWriteItem", RequestItems={"a": [PUT], "b": [PUT, PUT]}), {"dynamodb.write": 3}),
    (named("dynamodb", "GetItem", Key=KEY, ConsistentRead=True), {"dynamodb.read": 1}),
    (named("dynamodb", "Query", IndexName="open-index"), {"dynamodb.read": 0.5}),
    (named("dynamodb", "UpdateItem", Key=KEY), {"dynamodb.write": 1}),
    (named("sqs", "SendMessage", QueueUrl=f"{QUEUE}.fifo"), {"sqs.fifo": 1}),
    (named("sqs", "ReceiveMessage", QueueUrl=QUEUE), {"sqs.standard": 1}),
    (named("sqs", "GetQueueUrl", QueueName="webordinary-input-amelia-scott.fifo"), {"sqs.fifo": 1}),
    (named("states", "SendTaskSuccess", taskToken="t"), {}),
    (plain("ses", "POST", "/v2/email/outbound-emails"), {"ses.out": 1}),
    (plain("ses", "GET", "/v2/email/identities/edit%40example.net"), {}),
    (plain("s3", "PUT", STORE), {"s3.put": 1}),
    (plain("s3", "PUT", SITE, copies=True), {"s3.put": 1}),
    (plain("s3", "PUT", f"{SITE}?partNumber=1&uploadId=u"), {"s3.put": 1}),
    (plain("s3", "POST", f"{SITE}?uploads"), {"s3.put": 1}),
    (plain("s3", "GET", "/webordinary-store-1?list-type=2&prefix=a"), {"s3.put": 1}),
    (plain("s3", "GET", STORE), {"s3.get": 1}),
    (plain("s3", "HEAD", STORE), {"s3.get": 1}),
    (plain("s3", "DELETE", SITE), {}),
    (plain("s3", "POST", "/edit.amelia.example?delete"), {}),
]


@pytest.mark.parametrize(("call", "units"), CASES, ids=lambda each: getattr(each, "operation", ""))
def test_a_call_is_priced_by_what_it_asks_for(call: ProxiedCall, units: dict[str, float]) -> None:
    from benchmarks.parts.aws_calls import counted

    twice = counted({call: 2})
    assert dict(twice.usage) == {meter: 2 * each for meter, each in units.items()}
    assert twice.total == 2


def test_the_bucket_of_the_sites_is_told_from_our_own() -> None:
    assert plain("s3", "GET", SITE) == ProxiedCall("s3", "GetObject", site=True)
    assert plain("s3", "GET", STORE) == ProxiedCall("s3", "GetObject")


def test_what_makes_no_difference_to_the_price_is_forgotten() -> None:
    keys = [f"{STORE}-{number}" for number in range(100)]
    assert {plain("s3", "PUT", key) for key in keys} == {ProxiedCall("s3", "PutObject")}
