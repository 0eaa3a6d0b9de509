"""A large site in two buckets of the emulator: one that we publish to, and one that `aws s3 sync` keeps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from webordinary.adapters.aws.provision.shapes import make_site_bucket
from webordinary.adapters.aws.site.deploy import plan_deploy
from webordinary.adapters.aws.site.objects import S3Objects
from webordinary.adapters.aws.site.releases import LocalCopies, S3Releases
from webordinary.adapters.builders import PlainFiles
from webordinary.jobs.site_files import FOLDER, Mark, Release, Stage
from webordinary.jobs.source import Built, SourceTree
from webordinary.model.claims import OperatorToken

sys.path.append(str(Path(__file__).parents[2]))
from tests.aws.emulator import credentials, running_ministack
from tests.aws.site_bucket import Requests, clients_of

PAGE_BYTES = 4000
OURS, THEIRS = "ours.example", "theirs.example"


class LargeSite:
    """`files` pages and a home page that changes with each publication."""

    def __init__(self, folder: Path, files: int, endpoint: str, aws: Path) -> None:
        self.folder, self.source, self.endpoint, self.program = folder, folder / "source", endpoint, aws
        self.s3, self.count, self.workers = clients_of(endpoint).s3, 0, 0
        self.ids: dict[str, str] = {}
        self.requests = Requests(self.s3)
        for number in range(files):
            self.write(f"section-{number % 200:03d}/page-{number:05d}.html", f"page {number} ")
        for bucket in (OURS, THEIRS):
            make_site_bucket(self.s3, bucket)
        self.releases = self.worker()
        self.publish()
        plan = plan_deploy({}, dict.fromkeys(self.ids, Mark("", 1)))
        S3Objects(self.s3, THEIRS).put_all([(upload, self.source / upload.path) for upload in plan.uploads])

    def worker(self) -> S3Releases:
        """One that has never seen the site."""
        self.workers += 1
        copies = LocalCopies(self.folder / f"w-{self.workers}")
        return S3Releases(
            lambda _: self.s3,
            lambda project, stage: OURS,
            lambda project: f"{OURS}/.previews/",
            copies,
            lambda: datetime.now(UTC),
        )

    def write(self, name: str, words: str) -> None:
        content = (words * (PAGE_BYTES // len(words))).encode()
        (self.source / name).parent.mkdir(parents=True, exist_ok=True)
        (self.source / name).write_bytes(content)
        self.ids[name] = f"{words}{len(content)}"

    def change(self) -> None:
        self.count += 1
        self.write("index.html", f"home {'!' * self.count} ")  # of another length each time, as sync looks at that

    def built(self, releases: S3Releases) -> Release:
        staged = releases.stage("large", Stage.EDIT, self.count)
        tree = SourceTree(self.source, dict(self.ids))
        built = PlainFiles().build(tree, staged, releases.current("large", Stage.EDIT), OperatorToken("bench"))
        assert isinstance(built, Built)
        return releases.finish("large", Stage.EDIT, staged, f"{self.count:040x}"[::-1])

    def publish(self) -> float:
        """From the built release to the changed bucket, in milliseconds."""
        self.change()
        release = self.built(self.releases)
        began = time.perf_counter()
        assert self.releases.activate(release, self.count)
        return (time.perf_counter() - began) * 1000

    def requests_of(self, releases: S3Releases) -> dict[str, int]:
        """What one publication asks of the bucket, all its looks included."""
        self.change()
        self.requests.made.clear()
        assert releases.activate(self.built(releases), self.count)
        kinds = (f"{how} {'manifest' if key.startswith(FOLDER) else 'object'}" for how, key in self.requests.made)
        return dict(sorted(Counter(kinds).items()))

    def sync(self) -> float:
        """From the changed folder to the changed bucket, in milliseconds."""
        self.change()
        flags = ("--delete", "--only-show-errors", "--endpoint-url", self.endpoint)
        took = self._aws("s3", "sync", str(self.source), f"s3://{THEIRS}", *flags)
        shown = self.s3.get_object(Bucket=THEIRS, Key="index.html")["Body"].read()
        assert shown == (self.source / "index.html").read_bytes()
        return took

    def start_of_aws(self) -> float:
        """How long the program takes to start, in milliseconds."""
        return self._aws("--version")

    def _aws(self, *words: str) -> float:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **credentials()}
        began = time.perf_counter()
        subprocess.run([str(self.program), *words], env=env, check=True, stdout=subprocess.DEVNULL, timeout=600)
        return (time.perf_counter() - began) * 1000


@contextmanager
def large_site(folder: Path, files: int, aws: Path) -> Iterator[LargeSite]:
    """On an emulator that runs until the block ends."""
    (folder / "emulator").mkdir()
    with running_ministack(folder / "emulator") as emulator:
        yield LargeSite(folder, files, emulator.endpoint, aws)
