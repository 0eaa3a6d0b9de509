"""What building programs said, in a bucket: one bounded object per build. Old ones expire there by themselves."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from webordinary.adapters.aws.clients import translated
from webordinary.model.errors import Permanent, Transient

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

PREFIX = "build-logs"
LOG_BYTES = 400_000
MOST_BUILDS = 20
_JOB = re.compile(r"[A-Za-z0-9-]{1,80}")
_log = logging.getLogger(__name__)


class S3BuildLogs:
    """`build-logs/{job}/{time}-{random}.log`; a job that is tried again builds again."""

    def __init__(self, s3: S3Client, bucket: str, now: Callable[[], datetime]) -> None:
        self._s3, self._bucket, self._now = s3, bucket, now

    def add(self, job_id: str, text: str) -> None:
        """Keep it; never fails its caller, as a site may be published without it."""
        key = f"{PREFIX}/{job_id}/{self._now():%Y%m%d%H%M%S%f}-{secrets.token_hex(4)}.log"
        try:
            with translated(f"keeping the build log of {job_id}"):
                self._s3.put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=text.encode(errors="replace")[-LOG_BYTES:],
                    ContentType="text/plain; charset=utf-8",
                )
        except (Transient, Permanent) as problem:
            _log.warning("%s", problem)

    def of(self, job_id: str) -> str:
        """All that was said, in the order of the builds, as far as it fits; empty if nothing was."""
        if not _JOB.fullmatch(job_id):
            return ""
        with translated(f"reading the build logs of {job_id}"):
            listed = self._s3.list_objects_v2(
                Bucket=self._bucket, Prefix=f"{PREFIX}/{job_id}/", MaxKeys=MOST_BUILDS
            ).get("Contents", [])
            parts = [self._s3.get_object(Bucket=self._bucket, Key=each["Key"])["Body"].read() for each in listed]
        return b"".join(parts)[:LOG_BYTES].decode(errors="replace")
