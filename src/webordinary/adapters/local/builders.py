"""PlainFiles: a site that needs no build; its tracked files are its pages."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath

from webordinary.model.hold import Hold
from webordinary.site.roots import site_root
from webordinary.site.sources import BuildFailed, Built, SourceTree

_CHECK_EACH = 500
_CHUNK = 1 << 20


class PlainFiles:
    """Copies tracked files but no dotfiles; unchanged ones share their bytes with the last release."""

    def fits(self, tree: SourceTree) -> bool:
        """There is a home page to show."""
        return site_root(tree.files) is not None

    def build(self, tree: SourceTree, into: Path, previous: Path | None, hold: Hold) -> Built | BuildFailed:
        """Fill `into`. Never links to the workspace: an agent may change a file there in place."""
        root = site_root(tree.files)
        if root is None:
            return BuildFailed("The site has no index.html, so there would be no home page to show.")
        made: set[Path] = {into}
        count = 0
        for name in sorted(tree.files):
            relative = PurePosixPath(name)
            if not relative.is_relative_to(root) or any(part.startswith(".") for part in relative.parts):
                continue
            source, inside = tree.path / relative, relative.relative_to(root)
            if source.is_symlink() or not source.is_file():
                return BuildFailed(f"{name} is a link or not a file, and links cannot be published.")
            target = into / inside
            if target.parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(target.parent)
            _place(source, target, previous / inside if previous else None)
            count += 1
            if count % _CHECK_EACH == 0:
                hold.check()
        return Built(files=count, builder="plain")


def _place(source: Path, target: Path, earlier: Path | None) -> None:
    if earlier is not None and _same(source, earlier):
        os.link(earlier, target)
    else:
        shutil.copyfile(source, target)
        target.chmod(0o644)


def _same(one: Path, other: Path) -> bool:
    """Compared by content: times and sizes can agree by accident."""
    if not other.is_file() or one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        while chunk := left.read(_CHUNK):
            if chunk != right.read(_CHUNK):
                return False
    return True
