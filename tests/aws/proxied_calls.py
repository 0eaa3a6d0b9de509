"""A request to AWS as a proxy sees it, under boto3's name and with what its price depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

_SITES = "webordinary-sites-"
"""The bucket of all sites is called so."""
_OBJECT = {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
_BUCKET = {"GET": "ListObjects", "HEAD": "HeadBucket", "PUT": "CreateBucket", "DELETE": "DeleteBucket"}
_UPLOADS = {
    "GET": "ListParts",
    "PUT": "UploadPart",
    "POST": "CompleteMultipartUpload",
    "DELETE": "AbortMultipartUpload",
}


@dataclass(frozen=True, slots=True)
class ProxiedCall:
    """Equal ones cost the same, so a proxy that counts them keeps a few dozen whatever happens."""

    service: str
    operation: str
    items: int = 0
    """Of a transaction or a batch."""
    consistent: bool = False
    fifo: bool = False
    site: bool = False
    """It asks the sites' bucket."""


def call_of(service: str, target: str, method: str, path: str, copies: bool, body: bytes) -> ProxiedCall:
    """`target` is the operation where a header names it; `copies` where one names the source of a copy."""
    if target:
        return _named(service, target, json.loads(body or b"{}"))
    if service == "s3":
        bucket = urlsplit(path).path.split("/")[1]
        site = bucket.startswith(_SITES)
        return ProxiedCall(service, _s3_operation(method, path, copies), site=site)
    if method == "POST" and urlsplit(path).path == "/v2/email/outbound-emails":
        return ProxiedCall(service, "SendEmail")
    return ProxiedCall(service, method)


def _named(service: str, operation: str, asked: Mapping[str, Any]) -> ProxiedCall:
    if service == "sqs":
        queue = asked.get("QueueUrl") or asked.get("QueueName") or ""
        return ProxiedCall(service, operation, fifo=str(queue).endswith(".fifo"))
    if service == "dynamodb":
        tables = [_keys(table) for table in asked.get("RequestItems", {}).values()]
        items = len(asked.get("TransactItems", ())) + sum(map(len, tables))
        return ProxiedCall(service, operation, items, consistent=_consistent(asked))
    return ProxiedCall(service, operation)


def _keys(table: Any) -> Any:  # noqa: ANN401 - a list of writes, or a table's keys
    return table["Keys"] if isinstance(table, dict) else table


def _consistent(asked: Mapping[str, Any]) -> bool:
    tables = asked.get("RequestItems", {}).values()
    return any(table.get("ConsistentRead", False) for table in (asked, *tables) if isinstance(table, dict))


def _s3_operation(method: str, path: str, copies: bool) -> str:
    parts = urlsplit(path)
    _, _, key = parts.path.lstrip("/").partition("/")
    query = parse_qs(parts.query, keep_blank_values=True)
    if not key:
        return _s3_bucket_operation(method, query)
    if "uploadId" in query:
        return _UPLOADS.get(method, method)
    if method == "POST":
        return "CreateMultipartUpload" if "uploads" in query else method
    return "CopyObject" if copies else _OBJECT.get(method, method)


def _s3_bucket_operation(method: str, query: Mapping[str, list[str]]) -> str:
    if method == "POST":
        return "DeleteObjects" if "delete" in query else method
    if "list-type" in query:
        return "ListObjectsV2"
    return "ListObjectVersions" if "versions" in query else _BUCKET.get(method, method)
