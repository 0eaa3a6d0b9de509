"""What a build left behind becomes a release: plain files only, bounded, and with a home page."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.local.builders.bench import NotBuilt
from webordinary.adapters.local.builders.filling import Filling
from webordinary.model.hold import Hold
from webordinary.site.manifests import is_hidden, keep_manifest

CANDIDATES = ("dist", "build", "out", "public", "_site", "site")
_CHECK_EACH = 200


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """How large a site may be."""

    files: int = 50_000
    bytes: int = 2_000_000_000


def find_output(bench: Path, tracked: Container[str], named: str = "") -> Path:
    """The folder with the home page: the named one, else the first known name that is no source itself."""
    for name in (named,) if named else CANDIDATES:
        folder = bench / name
        if f"{name}/index.html" not in tracked and _is_inside(folder, bench) and (folder / "index.html").is_file():
            return folder
    where = f"{named}/" if named else ", ".join(f"{name}/" for name in CANDIDATES[:-1]) + f" or {CANDIDATES[-1]}/"
    raise NotBuilt(f"The build ended well, but left no index.html in {where}.")


def publish_output(output: Path, into: Path, previous: Path | None, limits: OutputLimits, hold: Hold) -> int:
    """Fill the release with the output; what did not change is shared with the last one. How many files it has."""
    found = dict(_files(output, limits))
    if "index.html" not in found:
        raise NotBuilt("The build ended well, but left no index.html, so there would be no home page to show.")
    filling = Filling(into, previous, found)
    for count, (path, origin) in enumerate(sorted(found.items())):
        if count % _CHECK_EACH == 0:
            hold.check()
        filling.copied(path, origin)
    keep_manifest(into, filling.manifest)
    return len(found)


def _files(output: Path, limits: OutputLimits) -> Iterator[tuple[str, str]]:
    root = f"{os.fspath(output)}/"
    unread, count, size = [root], 0, 0
    while unread:
        with os.scandir(unread.pop()) as entries:
            for entry in entries:
                path = entry.path.removeprefix(root)
                if is_hidden(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    unread.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    raise NotBuilt(f"The build left {path}, which is a link or no file: that cannot be published.")
                else:
                    count, size = count + 1, size + entry.stat(follow_symlinks=False).st_size
                    yield path, entry.path
                if count > limits.files or size > limits.bytes:
                    most = f"{limits.files:,} files or {limits.bytes // 1_000_000:,} MB"
                    raise NotBuilt(f"The build left more than {most}: that is too much for one site.")


def _is_inside(folder: Path, bench: Path) -> bool:
    """A real folder of the bench, not a link to somewhere else."""
    return folder.is_dir() and folder.resolve() == bench.resolve() / folder.relative_to(bench)
