"""The files of agents' sessions in a bucket: a thread goes on in any container. Old ones expire there by themselves."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import code_of, translated
from webordinary.adapters.durable import disk_errors

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

PREFIX = "sessions"
MOST_BYTES = 80_000_000
"""An archive of the largest session there may be, with its own overhead."""
_log = logging.getLogger(__name__)


class S3SessionFiles:
    """See SessionFiles: `sessions/{project}/{thread}.tar`, with the client that may act for the project."""

    def __init__(self, s3_of: Callable[[str], S3Client], bucket: str) -> None:
        self._s3_of, self._bucket = s3_of, bucket

    def fetch(self, project_id: str, thread_id: str, folder: Path) -> Path | None:
        """See SessionFiles."""
        key, copy = session_key(project_id, thread_id), folder / "session.tar"
        with translated(f"fetching the agent's session of thread {thread_id}"):
            try:
                found = self._s3_of(project_id).get_object(Bucket=self._bucket, Key=key)
            except ClientError as problem:
                if code_of(problem) == "NoSuchKey":
                    return None
                raise
            with found["Body"] as body, disk_errors(copy), copy.open("wb") as file:
                if found["ContentLength"] > MOST_BYTES:
                    _log.warning("%s is too large for an agent's session; the thread starts afresh", key)
                    return None
                shutil.copyfileobj(body, file)
        return copy

    def keep(self, project_id: str, thread_id: str, archive: Path) -> None:
        """See SessionFiles."""
        with translated(f"keeping the agent's session of thread {thread_id}"), archive.open("rb") as body:
            self._s3_of(project_id).put_object(
                Bucket=self._bucket,
                Key=session_key(project_id, thread_id),
                Body=body,
                ContentType="application/x-tar",
            )

    def drop(self, project_id: str, thread_id: str) -> None:
        """See SessionFiles."""
        with translated(f"dropping the agent's session of thread {thread_id}"):
            self._s3_of(project_id).delete_object(Bucket=self._bucket, Key=session_key(project_id, thread_id))


def session_key(project_id: str, thread_id: str) -> str:
    """Below its project, so that a project's own credentials reach it and no other."""
    return f"{PREFIX}/{project_id}/{thread_id}.tar"
