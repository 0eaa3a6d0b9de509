"""What jobs keep in a bucket of their own: build logs, one bounded object per build, and agents' sessions.

Old ones expire by a rule of the bucket.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import code_of, translated
from webordinary.adapters.durable import disk_errors
from webordinary.model.errors import Permanent, Transient

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


LOGS_PREFIX = "build-logs"
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
        key = f"{LOGS_PREFIX}/{job_id}/{self._now():%Y%m%d%H%M%S%f}-{secrets.token_hex(4)}.log"
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
                Bucket=self._bucket, Prefix=f"{LOGS_PREFIX}/{job_id}/", MaxKeys=MOST_BUILDS
            ).get("Contents", [])
            parts = [self._s3.get_object(Bucket=self._bucket, Key=each["Key"])["Body"].read() for each in listed]
        return b"".join(parts)[:LOG_BYTES].decode(errors="replace")


SESSIONS_PREFIX = "sessions"
MOST_SESSION_BYTES = 80_000_000
"""An archive of the largest session there may be, with its own overhead."""


class S3SessionFiles:
    """See SessionFiles: `sessions/{project}/{thread}.tar`, with the client that may act for the project."""

    def __init__(self, s3_of: Callable[[str], S3Client], bucket: str) -> None:
        self._s3_of, self._bucket = s3_of, bucket

    def fetch(self, project_id: str, thread_id: str, folder: Path) -> Path | None:
        key, copy = session_key(project_id, thread_id), folder / "session.tar"
        with translated(f"fetching the agent's session of thread {thread_id}"):
            try:
                found = self._s3_of(project_id).get_object(Bucket=self._bucket, Key=key)
            except ClientError as problem:
                if code_of(problem) in ("NoSuchKey", "AccessDenied"):  # S3 tells only those who may list
                    return None
                raise
            with found["Body"] as body, disk_errors(copy), copy.open("wb") as file:
                if found["ContentLength"] > MOST_SESSION_BYTES:
                    _log.warning("%s is too large for an agent's session; the thread starts afresh", key)
                    return None
                shutil.copyfileobj(body, file)
        return copy

    def keep(self, project_id: str, thread_id: str, archive: Path) -> None:
        with translated(f"keeping the agent's session of thread {thread_id}"), archive.open("rb") as body:
            self._s3_of(project_id).put_object(
                Bucket=self._bucket,
                Key=session_key(project_id, thread_id),
                Body=body,
                ContentType="application/x-tar",
            )

    def drop(self, project_id: str, thread_id: str) -> None:
        with translated(f"dropping the agent's session of thread {thread_id}"):
            self._s3_of(project_id).delete_object(Bucket=self._bucket, Key=session_key(project_id, thread_id))


def session_key(project_id: str, thread_id: str) -> str:
    """Below its project, so that a project's own credentials reach it and no other."""
    return f"{SESSIONS_PREFIX}/{project_id}/{thread_id}.tar"
