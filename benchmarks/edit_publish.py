"""How long does it take to publish one changed page of a large site, and what does it cost in a bucket?

Plan and publish to a folder: from the tracked files of the new commit to visitors seeing it, durably. `young` is a
site with fewer releases than are kept, `grown` one that gives an outlived release back with each new one.
For a bucket the requests are counted; the emulator's own speed is another question.
"""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path

from harness import bar, interleaved, options, report, summary, working_folder
from webordinary.adapters.aws.site.deploy import deploy
from webordinary.adapters.builders import PlainFiles
from webordinary.adapters.files.releases import FolderReleases
from webordinary.jobs.site_files import Release, Stage
from webordinary.jobs.source import Built, SourceTree
from webordinary.model.claims import OperatorToken, ProjectLease

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests have a bucket in memory
from tests.fakes.objects import MemoryObjects

PAGE_BYTES = 4000


class Site:
    def __init__(self, folder: Path, files: int, keep: int) -> None:
        self.source, self.count = folder / "source", 0
        self.ids: dict[str, str] = {}
        self.releases = FolderReleases(folder / "sites", keep=keep)
        for number in range(files):
            self.write(f"section-{number % 200:03d}/page-{number:05d}.html", f"page {number} ")
        self.publish()

    def write(self, name: str, words: str) -> None:
        content = (words * (PAGE_BYTES // len(words))).encode()
        (self.source / name).parent.mkdir(parents=True, exist_ok=True)
        (self.source / name).write_bytes(content)
        self.ids[name] = hashlib.sha1(content).hexdigest()

    def publish(self) -> Release:
        self.count += 1
        self.write("index.html", f"home {self.count} ")
        tree = SourceTree(self.source, dict(self.ids))
        began = time.perf_counter()
        staged = self.releases.stage("large", Stage.EDIT, self.count)
        built = PlainFiles().build(tree, staged, self.releases.current("large", Stage.EDIT), OperatorToken("bench"))
        assert isinstance(built, Built)
        release = self.releases.finish("large", Stage.EDIT, staged, f"{self.count:040x}"[::-1])
        assert self.releases.activate(release, self.count)
        self.took = time.perf_counter() - began
        return release

    def timed(self) -> float:
        self.publish()
        return self.took * 1000


def requests(site: Site) -> dict[str, int]:
    store = MemoryObjects()
    deploy(site.publish(), ProjectLease("large", "bench", 1), store, lambda: None)
    store.requests.clear()
    deploy(site.publish(), ProjectLease("large", "bench", 2), store, lambda: None)
    kinds = [kind for kind, _ in store.requests]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


def main() -> None:
    chosen = options(__doc__ or "", repeats=15)
    files = chosen.pick(10_000, 100)
    with working_folder(chosen) as folder:
        young, grown = Site(folder / "young", files, keep=1000), Site(folder / "grown", files, keep=3)
        for _ in range(5):
            grown.publish()
        taken = interleaved(chosen, {"young": young.timed, "grown": grown.timed})
        results = {name: {"ms": summary(values)} for name, values in taken.items()}
        bars = {name: bar(summary(values)["median"], at_most=300) for name, values in taken.items()}
        counted = requests(grown)
    report(
        "plan and publish one changed page of a large site to a folder, in milliseconds; requests to a bucket",
        {"files": files, "page_bytes": PAGE_BYTES, "changed": 1},
        {**results, "bars": bars, "bucket_requests": counted},
        chosen,
    )


if __name__ == "__main__":
    main()
