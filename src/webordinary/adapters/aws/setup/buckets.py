"""Buckets for what only we read: mails as they came, and what we keep of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import code_of, translated

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

RAW_PREFIX = "raw/"
KEPT_MAIL_DAYS = 30
_OURS = "BucketAlreadyOwnedByYou"
_DEFAULT_REGION = "us-east-1"


def make_private_bucket(s3: S3Client, bucket: str, kept_days: int | None = None) -> None:
    """Make it, or make an existing one of ours what it should be; its objects go after so many days."""
    with translated(f"making the bucket {bucket}"):
        try:
            _create(s3, bucket)
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
            _expire(s3, bucket, kept_days)


def _create(s3: S3Client, bucket: str) -> None:
    region = s3.meta.region_name
    if region == _DEFAULT_REGION:
        s3.create_bucket(Bucket=bucket)
    else:
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})  # type: ignore[typeddict-item]


def _expire(s3: S3Client, bucket: str, days: int) -> None:
    s3.put_bucket_lifecycle_configuration(
        Bucket=bucket,
        LifecycleConfiguration={
            "Rules": [{"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": days}}]
        },
    )
