"""Files by content in a bucket, with local copies, and bytes of items that are too large for a table."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import code_of, translated
from webordinary.adapters.durable import disk_errors
from webordinary.model.errors import Permanent

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

PREFIX = "blobs"
INLINE_BYTES = 16 * 1024
"""A larger body costs more in the table, written twice, than an object of its own."""
MOST_BYTES = 64 * 1024 * 1024

_DIGEST = re.compile(r"[0-9a-f]{64}")
_THERE = frozenset({"PreconditionFailed", "412"})
_GONE = frozenset({"NoSuchKey", "404"})


class S3Blobs:
    """See Blobs: `blobs/{digest}`."""

    def __init__(self, s3: S3Client, bucket: str) -> None:
        self._s3, self._bucket = s3, bucket

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        _put(self._s3, self._bucket, f"{PREFIX}/{digest}", data)
        return digest

    def get(self, digest: str) -> bytes:
        if not _DIGEST.fullmatch(digest):
            raise Permanent(f"{digest!r} is not a SHA-256 digest: the manifest that names it is damaged")
        return fetch(self._s3, self._bucket, f"{PREFIX}/{digest}")


class Bodies:
    """The bytes that belong to an item: in the item while they are small, else beside it in a bucket."""

    def __init__(self, s3: S3Client, bucket: str, prefix: str) -> None:
        self._s3, self._bucket, self._prefix = s3, bucket, prefix

    def keep(self, data: bytes) -> dict[str, object]:
        """The attributes that stand for these bytes; an object is named by its content, so that none is replaced."""
        if len(data) <= INLINE_BYTES:
            return {"body": data}
        key = f"{self._prefix}/{hashlib.sha256(data).hexdigest()}"
        _put(self._s3, self._bucket, key, data)
        return {"bodyKey": key}

    def read(self, item: dict[str, Any]) -> bytes:
        """The bytes that belong to an item."""
        if "bodyKey" in item:
            return fetch(self._s3, self._bucket, item["bodyKey"])
        return bytes(item["body"])


def _put(s3: S3Client, bucket: str, key: str, data: bytes) -> None:
    """Write an object that is named by its content. Over its equal, too: the days until it expires begin anew."""
    with translated(f"keeping {key} in {bucket}"):
        s3.put_object(Bucket=bucket, Key=key, Body=data)


def put_once(s3: S3Client, bucket: str, key: str, data: bytes) -> None:
    """Write an object unless one of this name is there, which stays."""
    with translated(f"keeping {key} in {bucket}"):
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except ClientError as problem:
            if code_of(problem) not in _THERE:
                raise


def fetch(s3: S3Client, bucket: str, key: str, most_bytes: int = MOST_BYTES, *, only: int = 0) -> bytes:
    """The bytes of an object, or `only` the first of them.

    Raises Permanent where it is gone, or larger than anything that we keep.
    """
    with translated(f"reading {key} of {bucket}"):
        try:
            if only:
                found = s3.get_object(Bucket=bucket, Key=key, Range=f"bytes=0-{only - 1}")
            else:
                found = s3.get_object(Bucket=bucket, Key=key)
        except ClientError as problem:
            if code_of(problem) == "InvalidRange":  # it is empty
                return b""
            if code_of(problem) not in _GONE:
                raise
            words = f"no file {key} is stored in {bucket}: it expired or was removed; restore a backup"
            raise Permanent(words) from problem
        with found["Body"] as body:
            if found["ContentLength"] > most_bytes:
                raise Permanent(f"{key} of {bucket} has {found['ContentLength']} bytes and was not written by us")
            return body.read()


MOST_COPIES = 500


class FetchedFiles:
    """Copies by digest, made again where they are gone; the oldest go when there are many."""

    def __init__(self, blobs: S3Blobs, folder: Path, most_files: int = MOST_COPIES) -> None:
        self._blobs, self._folder, self._most_files = blobs, folder, most_files
        self._guard = threading.Lock()
        shutil.rmtree(folder, ignore_errors=True)

    def path(self, digest: str) -> Path:
        """Where the bytes of a digest are, for as long as a job takes."""
        path = self._folder / digest
        with disk_errors(path):
            if path.exists():
                path.touch()
                return path
            content = self._blobs.get(digest)
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{threading.get_ident()}")
            partial.write_bytes(content)
            partial.rename(path)
            self._drop_oldest()
        return path

    def _drop_oldest(self) -> None:
        with self._guard:
            kept = sorted(os.scandir(self._folder), key=lambda entry: entry.stat().st_mtime, reverse=True)
            for old in kept[self._most_files :]:
                Path(old.path).unlink(missing_ok=True)
