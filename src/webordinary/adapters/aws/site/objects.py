"""S3Objects: a site in a folder of a bucket. The manifest is moved by ETag, and versions name what was replaced."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import IO, TYPE_CHECKING

from botocore.exceptions import ClientError

from webordinary.adapters.aws.clients import code_of, translated
from webordinary.adapters.aws.site.deploy import Origin, StoredManifest, StoredObject, Upload
from webordinary.jobs.site_files import FOLDER
from webordinary.model.errors import Permanent

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import PutObjectRequestTypeDef

MANIFEST = f"{FOLDER}/manifest.json"
"""The bucket's policy denies CloudFront these folders."""
AT_ONCE = 16
_MOVED = frozenset({"PreconditionFailed", "NoSuchKey", "412"})
_AT_THE_SAME_MOMENT = frozenset({"ConditionalRequestConflict", "409"})
_TRIES = 5
_UNWRITTEN, _UNWRITTEN_OR_HIDDEN = frozenset({"NoSuchKey"}), frozenset({"NoSuchKey", "AccessDenied"})
"""S3 says of a missing object that it is forbidden, unless the caller may list the bucket; a publisher may not.

Where a manifest is there and really forbidden, the publisher's write that follows fails: it asks that there be none.
"""
_GONE = frozenset({"NoSuchKey", "NoSuchVersion", "404"})
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class S3Objects:
    """See ObjectStore. `name` is the bucket, or the bucket and a folder as `bucket/folder/`. Thread-safe.

    With `may_list` False, as a publisher has it, a forbidden manifest counts as one that is not there.
    """

    def __init__(self, s3: S3Client, name: str, *, may_list: bool = True) -> None:
        self._s3, self.name = s3, name
        self._bucket, self._folder = split(name)
        self._unwritten = _UNWRITTEN if may_list else _UNWRITTEN_OR_HIDDEN

    def manifest(self) -> StoredManifest | None:
        with translated(f"reading what {self.name} shows"):
            try:
                found = self._s3.get_object(Bucket=self._bucket, Key=self._folder + MANIFEST)
                return StoredManifest(found["Body"].read(), _version(found["ETag"], found.get("VersionId")))
            except ClientError as problem:
                if code_of(problem) in self._unwritten:
                    return None
                raise

    def recall(self, version: str) -> bytes:
        version_id = version.partition(" ")[2]
        if not version_id:
            raise Permanent(f"{self.name} keeps no earlier releases: run `webordinary doctor`")
        with translated(f"reading what {self.name} showed earlier"):
            try:
                return self._recalled(version_id)
            except ClientError as problem:
                raise self._gone(problem, "this release") from problem

    def read(self, path: str, version: str, most_bytes: int) -> bytes:
        """A file as it was under this version. Raises Permanent where it is gone or too large."""
        with translated(f"reading {path} of {self.name}"):
            try:
                found = self._s3.get_object(Bucket=self._bucket, Key=self._folder + path, VersionId=version)
            except ClientError as problem:
                raise self._gone(problem, path) from problem
            with found["Body"] as body:
                if found["ContentLength"] > most_bytes:
                    raise Permanent(f"{path} of {self.name} has {found['ContentLength']} bytes, which are too many")
                return body.read()

    def swap_manifest(self, text: bytes, expected: str | None) -> str | None:
        with translated(f"writing what {self.name} shows"):
            for left in reversed(range(_TRIES)):
                try:
                    return self._swap(text, expected)
                except ClientError as problem:
                    if code_of(problem) in _MOVED:
                        break
                    if code_of(problem) not in _AT_THE_SAME_MOMENT or not left:
                        raise
        # An answer may have been lost, and the write been repeated: then what stands there is ours.
        stands = self.manifest()
        return stands.version if stands and stands.text == text else None

    def put_all(self, uploads: Sequence[tuple[Upload, Origin]]) -> Mapping[str, str]:
        if len(uploads) == 1:
            return {upload.path: self._put(upload, origin) for upload, origin in uploads}
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="upload") as pool:
            started = {upload.path: pool.submit(self._put, upload, origin) for upload, origin in uploads}
            wait(started.values(), return_when=FIRST_EXCEPTION)
            pool.shutdown(wait=True, cancel_futures=True)
        failed = (one.exception() for one in started.values() if one.done() and not one.cancelled())
        if problem := next(filter(None, failed), None):
            raise problem
        return {path: one.result() for path, one in started.items()}

    def delete(self, paths: Sequence[str]) -> None:
        with translated(f"removing stale files of {self.name}"):
            answer = self._s3.delete_objects(
                Bucket=self._bucket,
                Delete={"Objects": [{"Key": self._folder + path} for path in paths], "Quiet": True},
            )
            for error in answer.get("Errors", []):
                raise ClientError({"Error": {"Code": error.get("Code", ""), "Message": str(error)}}, "DeleteObjects")

    def _swap(self, text: bytes, expected: str | None) -> str:
        request: PutObjectRequestTypeDef = {
            "Bucket": self._bucket,
            "Key": self._folder + MANIFEST,
            "Body": text,
            "ContentType": "application/json",
            "CacheControl": "no-store",
        }
        if expected is None:
            request["IfNoneMatch"] = "*"
        else:
            request["IfMatch"] = expected.partition(" ")[0]
        done = self._s3.put_object(**request)
        return _version(done["ETag"], done.get("VersionId"))

    def _put(self, upload: Upload, origin: Origin) -> str:
        with translated(f"writing {upload.path} to {self.name}"):
            return self._copy(upload, origin) if isinstance(origin, StoredObject) else self._send(upload, origin)

    def _send(self, upload: Upload, file: Path) -> str:
        with _opened(file) as body:
            done = self._s3.put_object(
                Bucket=self._bucket,
                Key=self._folder + upload.path,
                Body=body,
                ContentType=upload.media_type,
                CacheControl=upload.cache_control,
            )
        return done.get("VersionId", "")

    def _copy(self, upload: Upload, origin: StoredObject) -> str:
        bucket, folder = split(origin.store)
        try:
            done = self._s3.copy_object(
                Bucket=self._bucket,
                Key=self._folder + upload.path,
                CopySource={"Bucket": bucket, "Key": folder + upload.path, "VersionId": origin.version},
                MetadataDirective="REPLACE",
                ContentType=upload.media_type,
                CacheControl=upload.cache_control,
            )
        except ClientError as problem:
            raise self._gone(problem, upload.path) from problem
        return done.get("VersionId", "")

    def _recalled(self, version_id: str) -> bytes:
        key = self._folder + MANIFEST
        return self._s3.get_object(Bucket=self._bucket, Key=key, VersionId=version_id)["Body"].read()

    def _gone(self, problem: ClientError, what: str) -> Exception:
        if code_of(problem) not in _GONE:
            return problem
        return Permanent(f"{self.name} does not keep {what} any longer: publish it anew")


def split(name: str) -> tuple[str, str]:
    """The bucket of a store, and the folder in it, which may be empty."""
    bucket, _, folder = name.partition("/")
    return bucket, folder


def _version(etag: str, version_id: str | None) -> str:
    """The ETag to swap it, and the version to recall it."""
    return f"{etag} {version_id or ''}".rstrip()


def _opened(file: Path) -> IO[bytes]:
    """Never through a link: a build may have made one."""
    try:
        descriptor = os.open(file, _READ)
    except OSError as problem:
        raise Permanent(f"{file.name} cannot be read as a file ({problem.strerror}): it is not published") from problem
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Permanent(f"{file.name} is not a plain file: it is not published")
    return open(descriptor, "rb")  # noqa: PTH123  of a descriptor
