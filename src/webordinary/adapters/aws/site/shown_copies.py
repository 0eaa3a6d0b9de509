"""What site buckets show, as folders on this machine, for a page that serves sites where no CloudFront does."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from webordinary.adapters.aws.blobs import fetch
from webordinary.adapters.aws.site.objects import S3Objects
from webordinary.adapters.durable import disk_errors
from webordinary.model.errors import Permanent, Transient
from webordinary.site.manifests import Manifest
from webordinary.site.releases import Stage
from webordinary.site.shown import Shown, read_shown

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MOST_FILE_BYTES = 100_000_000
Site = tuple[str, Stage]


class ShownCopies:
    """Fetches of each release what differs from the one before. For operators who look; visitors have CloudFront."""

    def __init__(self, s3: S3Client, bucket_of: Callable[[str, Stage], str], folder: Path) -> None:
        self._s3, self._bucket_of, self._folder = s3, bucket_of, folder
        self._have: dict[Site, tuple[Shown, Path]] = {}
        self._guard = threading.Lock()

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """A folder with what the bucket shows now; None if that is nothing, or there is no bucket."""
        bucket = self._bucket_of(project_id, stage)
        try:
            shown = read_shown(S3Objects(self._s3, bucket).manifest())
        except (Permanent, Transient):
            return None
        if not shown.files:
            return None
        with self._guard:
            before = self._have.get((project_id, stage))
            if before is None or before[0].release != shown.release:
                before = shown, self._fetch(bucket, shown, before)
                self._have[project_id, stage] = before
        return before[1]

    def _fetch(self, bucket: str, shown: Shown, before: tuple[Shown, Path] | None) -> Path:
        path = self._folder / bucket / shown.release
        known: Manifest = before[0].files if before else {}
        with disk_errors(path):
            for name, mark in shown.files.items():
                file = path / name
                file.parent.mkdir(parents=True, exist_ok=True)
                if before and name in known and known[name].digest == mark.digest:
                    shutil.copyfile(before[1] / name, file)
                else:
                    file.write_bytes(fetch(self._s3, bucket, name, MOST_FILE_BYTES))
        if before:
            shutil.rmtree(before[1], ignore_errors=True)
        return path
