"""PlainFiles: a site that needs no build; its tracked files are its pages."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from webordinary.jobs.site_files import (
    FOLDER,
    OPENING,
    SPARE,
    Mark,
    is_foreign,
    is_hidden,
    keep_manifest,
    manifest_of,
    site_root,
)
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import CancelToken
from webordinary.model.errors import Permanent, is_machine_fault

_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o644


class NotAFile(Permanent):
    """Something that is neither link-free nor a plain file stands where a file of the site should be."""


class OutputSync:
    """One release on its way; `manifest` grows with each file.

    An outlived release may lie in the folder to begin with: then only what differs from it is touched.
    """

    def __init__(self, into: Path, previous: Path | None, sources: Iterable[str]) -> None:
        self._into, self._previous = os.fspath(into), os.fspath(previous or "")
        self._earlier = manifest_of(previous)
        self._lying = _taken_over(into)
        self._keep_only(set(sources))
        self._made = {"", *map(_folder, self._lying)}
        self.manifest: dict[str, Mark] = {}

    def shared(self, path: str, source: str) -> bool:
        """Share a file that was made from the same tracked content last time; neither is read."""
        mark = self._earlier.get(path)
        return mark is not None and bool(source) and mark.source == source and self._linked(path, mark)

    def copied(self, path: str, origin: str, source: str = "") -> None:
        """Copy a file, or share it after all where its bytes turn out to be the same. Raises NotAFile."""
        with _opened(origin) as file:
            mark = _mark_of(path, file)._replace(source=source)
            earlier = self._earlier.get(path)
            if earlier is not None and earlier.digest == mark.digest and self._linked(path, mark):
                return
            self._make_room(path)
            file.seek(0)
            with open(f"{self._into}/{path}", "xb", opener=partial(os.open, mode=_MODE)) as copy:
                shutil.copyfileobj(file, copy, _CHUNK)
        self.manifest[path] = mark

    def _linked(self, path: str, mark: Mark) -> bool:
        lying = self._lying.get(path)
        if lying is None or lying.digest != mark.digest:
            self._make_room(path)
            try:
                os.link(f"{self._previous}/{path}", f"{self._into}/{path}", follow_symlinks=False)
            except OSError:  # pruned meanwhile, or a file with as many names as the file system allows
                return False
        self.manifest[path] = mark
        return True

    def _make_room(self, path: str) -> None:
        if self._lying.pop(path, None):
            Path(self._into, path).unlink()
        folder = _folder(path)
        if folder not in self._made:
            Path(self._into, folder).mkdir(parents=True, exist_ok=True)
            self._made.add(folder)

    def _keep_only(self, sources: set[str]) -> None:
        """First of all, as a folder of old may bear the name of a new file."""
        for path in self._lying.keys() - sources:
            del self._lying[path]
            file = Path(self._into, path)
            file.unlink()
            with suppress(OSError):  # not empty
                for folder in file.relative_to(self._into).parents:
                    if folder.name:
                        Path(self._into, folder).rmdir()


def _taken_over(into: Path) -> dict[str, Mark]:
    spare = into / SPARE
    lying = manifest_of(spare)
    if lying:
        for entry in spare.iterdir():
            if entry.name != FOLDER:
                entry.rename(into / entry.name)
    return lying


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _mark_of(path: str, file: IO[bytes]) -> Mark:
    digest, size = hashlib.sha256(), 0
    chunk = file.read(OPENING)
    foreign = is_foreign(path, chunk)
    while chunk:
        digest.update(chunk)
        size += len(chunk)
        chunk = file.read(_CHUNK)
    return Mark(digest.hexdigest(), size, foreign=foreign)


def _opened(origin: str) -> IO[bytes]:
    try:
        descriptor = os.open(origin, _READ)
    except OSError as problem:
        raise NotAFile(f"{origin} cannot be read as a file ({problem.strerror})") from problem
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotAFile(f"{origin} is not a plain file")
    return open(descriptor, "rb", buffering=0)  # noqa: PTH123  of a descriptor


_CHECK_EACH = 500


class PlainFiles:
    """Copies tracked files but no dotfiles; what has the same tracked content is shared with the last release."""

    def fits(self, tree: SourceTree) -> bool:
        """Whether the source has a home page."""
        return site_root(tree.files) is not None

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        """Fill `into`. Never links to the workspace: an agent may change a file there in place."""
        tree = tree.site
        root = site_root(tree.files)
        if root is None:
            return BuildFailed("The site has no index.html, so there would be no home page to show.")
        prefix = "" if root == PurePosixPath(".") else f"{root}/"
        sources = _sources(tree, prefix)
        output_sync = OutputSync(into, previous, sources)
        for count, (path, name) in enumerate(sources.items()):
            content = tree.files[name]
            try:
                if not output_sync.shared(path, content):
                    output_sync.copied(path, f"{tree.path}/{name}", content)
            except NotAFile as problem:
                if is_machine_fault(problem):
                    raise
                return BuildFailed(f"{name} is a link or not a file, and links cannot be published.")
            if count % _CHECK_EACH == 0:
                token.check()
        keep_manifest(into, output_sync.manifest)
        return Built(files=len(output_sync.manifest), builder="plain")


def _sources(tree: SourceTree, prefix: str) -> dict[str, str]:
    """What is published, by its path in the site, with its name in the source."""
    sources = {}
    for name in sorted(tree.files):
        path = name.removeprefix(prefix)
        if name.startswith(prefix) and not is_hidden(path):
            sources[path] = name
    return sources
