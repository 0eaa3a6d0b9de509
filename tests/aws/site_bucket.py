"""A site's buckets on the emulator, and workers that publish to them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import boto3
from botocore.awsrequest import AWSPreparedRequest

from tests.aws.emulator import REGION, RunningEmulator
from webordinary.adapters.aws.clients import Clients, connect
from webordinary.adapters.aws.provision.shapes import make_site_bucket
from webordinary.adapters.aws.site.objects import MANIFEST, split
from webordinary.adapters.aws.site.releases import LocalCopies, S3Releases
from webordinary.jobs.site_files import Mark, Release, Stage, keep_manifest

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


@cache
def clients_of(endpoint: str) -> Clients:
    """As a worker makes them, with credentials that nobody checks."""
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
    return connect(REGION, endpoint, session)


def fill(folder: Path, site: Mapping[str, str]) -> None:
    """What a builder does."""
    for path, text in site.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    keep_manifest(folder, {p: Mark(hashlib.sha256(t.encode()).hexdigest(), len(t)) for p, t in site.items()})


@dataclass
class SiteBucket:
    """A bucket that no other test knows."""

    emulator: RunningEmulator
    folder: Path
    projects: tuple[str, ...] = ("amelia", "bob")
    sites: str = field(default_factory=lambda: f"sites-{secrets.token_hex(6)}")
    workers: int = 0
    now: datetime | None = None
    """Of every worker; the system's own by default."""

    def __post_init__(self) -> None:
        self.s3 = clients_of(self.emulator.endpoint).s3
        make_site_bucket(self.s3, self.sites)

    def store(self, project_id: str, stage: Stage) -> str:
        folder = f".previews/{project_id}" if stage.is_preview else project_id
        return f"{self.sites}/{folder}/{stage}/"

    def previews(self, project_id: str) -> str:
        return f"{self.sites}/.previews/{project_id}/"

    def text(self, stage: Stage, path: str) -> str:
        """A file of Amelia's site."""
        bucket, folder = split(self.store("amelia", stage))
        found = self.s3.get_object(Bucket=bucket, Key=folder + path)
        return found["Body"].read().decode()

    def worker(self, keep: int = 3, s3: S3Client | None = None) -> S3Releases:
        """Another worker, which has never seen anything."""
        self.workers += 1
        copies = LocalCopies(self.folder / f"w-{self.workers}")
        return S3Releases(
            lambda _: s3 or self.s3, self.store, self.previews, copies, lambda: self.now or datetime.now(UTC), keep
        )

    def publish(
        self, releases: S3Releases, commit: str, site: Mapping[str, str], fence: int,
        check: Callable[[], None] = lambda: None,
    ) -> Release:  # fmt: skip
        release = self.built(releases, commit, site, fence)
        releases.activate(release, fence, check)
        return release

    def built(self, releases: S3Releases, commit: str, site: Mapping[str, str], fence: int) -> Release:
        staged = releases.stage("amelia", Stage.EDIT, fence)
        fill(staged, site)
        return releases.finish("amelia", Stage.EDIT, staged, commit)

    def shown(self, stage: Stage = Stage.EDIT) -> dict[str, str]:
        """What visitors could get."""
        folder = split(self.store("amelia", stage))[1]
        found = self.s3.list_objects_v2(Bucket=self.sites, Prefix=folder).get("Contents", [])
        paths = [each["Key"].removeprefix(folder) for each in found]
        return {path: self.text(stage, path) for path in paths if path != MANIFEST}


class Requests:
    """Every request that a client sends, repeats included: method and path in Amelia's edit site."""

    def __init__(self, s3: S3Client) -> None:
        self.made: list[tuple[str, str]] = []
        s3.meta.events.register("before-send.s3", self._note)

    def _note(self, request: AWSPreparedRequest, **_: object) -> None:
        self.made.append((str(request.method), self._path(request)))

    @staticmethod
    def _path(request: AWSPreparedRequest) -> str:
        key = unquote(urlsplit(request.url).path.lstrip("/").partition("/")[2])
        return key.removeprefix("amelia/edit/")
