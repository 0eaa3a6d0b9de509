"""Removing what a customer had: buckets with all their versions, and objects by the beginning of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import NOT_THERE, code_of, translated
from webordinary.model.errors import Transient

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


def remove_bucket(s3: S3Client, bucket: str) -> None:
    """Remove a bucket and every version of every object in it. Idempotent."""
    with translated(f"removing the bucket {bucket}"):
        try:
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
                found: list[Any] = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
                _delete(s3, bucket, [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found])
            s3.delete_bucket(Bucket=bucket)
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
