"""A mail put where SES puts those that it receives, as SES would have stored it: for emulators, which receive none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webordinary.adapters.aws.clients import translated
from webordinary.testing.ses_inbound import Reception, as_received

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


def post(s3: S3Client, bucket: str, raw: bytes, mail_from: str, recipient: str) -> str:
    """Store it; whoever may write into the bucket vouches for the sender. Returns the object's key."""
    seen = Reception(mail_from, recipient)
    key = f"raw/{seen.ses_id}"
    with translated(f"putting the mail into {bucket}"):
        s3.put_object(Bucket=bucket, Key=key, Body=as_received(raw, seen))
    return key
