"""Which units of the price list an API call of AWS uses, read from its name and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Usage = dict[str, float]
_WRITES = {"PutItem", "UpdateItem", "DeleteItem"}
_READS = {"GetItem", "Query", "Scan"}
_S3_PUTS = {
    "PutObject", "CopyObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload",
    "ListObjects", "ListObjectsV2", "ListObjectVersions",
}  # fmt: skip


def usage_of(service: str, operation: str, params: Mapping[str, Any]) -> Usage:
    """The units of one call, by boto3's names; items of a usual size, and indexes not counted. Empty: it is free."""
    match service:
        case "dynamodb":
            return _dynamodb(operation, params)
        case "sqs":
            return {"sqs.fifo" if str(params.get("QueueUrl", "")).endswith(".fifo") else "sqs.standard": 1.0}
        case "s3":
            return _s3(operation)
        case "sesv2" | "ses" if operation.startswith("Send"):
            return {"ses.out": 1.0}
        case "lambda" if operation == "Invoke":
            return {"lambda.request": 1.0}
    return {}


def _dynamodb(operation: str, params: Mapping[str, Any]) -> Usage:
    if operation in _WRITES:
        return {"dynamodb.write": 1.0}
    if operation in _READS:
        return {"dynamodb.read": _read(params)}
    items = params.get("TransactItems", ())
    match operation:
        case "TransactWriteItems":
            return {"dynamodb.write": 2.0 * len(items)}
        case "TransactGetItems":
            return {"dynamodb.read": 2.0 * len(items)}
        case "BatchWriteItem":
            return {"dynamodb.write": float(sum(map(len, params.get("RequestItems", {}).values())))}
        case "BatchGetItem":
            tables = params.get("RequestItems", {}).values()
            return {"dynamodb.read": sum(_read(table) * len(table.get("Keys", ())) for table in tables)}
    return {}


def _read(params: Mapping[str, Any]) -> float:
    return 1.0 if params.get("ConsistentRead") else 0.5


def _s3(operation: str) -> Usage:
    if operation.startswith(("Delete", "Abort")):
        return {}
    return {"s3.put" if operation in _S3_PUTS else "s3.get": 1.0}
