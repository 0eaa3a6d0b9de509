"""The bucket of a site: private, and what is replaced in it is kept long enough to be shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webordinary.adapters.aws.clients import translated
from webordinary.adapters.aws.setup.buckets import make_private_bucket

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

KEPT_VERSIONS = 60
"""Each of 20 kept releases needs at most one version of an object; of the manifest a publication takes two."""
KEPT_DAYS = 30
UNFINISHED_DAYS = 1
"""The parts of an upload that nobody finished cost money and are seen by nobody."""


def make_site_bucket(s3: S3Client, bucket: str) -> None:
    """Make it, or make an existing one of ours what it should be."""
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
                    }
                ]
            },
        )
