"""Buckets: each is ours alone, encrypted and spoken to by HTTPS only."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.settings import Settings


def removal_of(settings: Settings) -> RemovalPolicy:
    """What becomes of things that hold something when their stack goes.

    What a failed creation has made goes again, so that the next try does not find it in its way. CloudFormation adopts
    what exists already only if it has a literal name and would be left behind again, too.
    """
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if settings.keep else RemovalPolicy.DESTROY


def private_bucket(
    scope: Construct,
    called: str,
    settings: Settings,
    *,
    bucket_name: str,
    lifecycle_rules: Sequence[s3.LifecycleRule],
    versioned: bool = False,
    access_logs: s3.IBucket | None = None,
    log_folder: str | None = None,
) -> s3.Bucket:
    """One bucket; with `access_logs` it is written down in `log_folder` of that one who asked for what."""
    return s3.Bucket(
        scope,
        called,
        bucket_name=bucket_name,
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        versioned=versioned,
        server_access_logs_bucket=access_logs,
        server_access_logs_prefix=log_folder,
        lifecycle_rules=list(lifecycle_rules),
        removal_policy=removal_of(settings),
    )
