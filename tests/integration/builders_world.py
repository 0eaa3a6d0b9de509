"""Sources to build, and builders in a real jail."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.attacks.world import SMALL, working_jail
from tests.unit.site.world import TestHold
from webordinary.adapters.local.builders import Dependencies, Workshop, builders
from webordinary.adapters.local.builders.output import OutputLimits
from webordinary.adapters.local.jail.limits import JailLimits
from webordinary.adapters.local.jail.programs import JailedPrograms
from webordinary.adapters.local.releases import FolderReleases
from webordinary.site.builders import choose_builder
from webordinary.site.ports import Builder
from webordinary.site.releases import Release, Stage
from webordinary.site.sources import BuildFailed, Built, SourceTree

DATA = Path(__file__).parent.parent / "data"


def source(folder: Path, files: Mapping[str, str]) -> SourceTree:
    """A tree of tracked files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return tracked(folder)


def tracked(folder: Path) -> SourceTree:
    """Everything in a folder, as if git tracked it."""
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file() or path.is_symlink()}
    return SourceTree(folder, {name: hashlib.sha1(_content(path)).hexdigest() for name, path in files.items()})


def _content(path: Path) -> bytes:
    return str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()


@dataclass
class Yard:
    """One project's releases, and all builders."""

    folder: Path
    builders: Mapping[str, Builder]
    releases: FolderReleases
    hold: TestHold = field(default_factory=TestHold)
    counter: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def build(self, tree: SourceTree, name: str = "") -> Built | BuildFailed:
        """Build as a worker does it; a good build becomes the current release."""
        builder = choose_builder(self.builders, name, tree)
        if isinstance(builder, BuildFailed):
            return builder
        fence = next(self.counter)
        staged = self.releases.stage("amelia", Stage.EDIT, fence)
        built = builder.build(tree, staged, self.releases.current("amelia", Stage.EDIT), self.hold)
        if isinstance(built, Built):
            self.releases.point(self.releases.finish("amelia", Stage.EDIT, staged, f"{fence:040d}"[::-1]), fence)
        return built

    @property
    def site(self) -> Path:
        """What visitors see."""
        current = self.releases.current("amelia", Stage.EDIT)
        assert current is not None
        return current

    def all(self) -> tuple[Release, ...]:
        return self.releases.list("amelia", Stage.EDIT)


def yard(
    folder: Path, command: tuple[str, ...] = (), *, cache: Path | None = None, limits: JailLimits = SMALL,
    seconds: float = 60.0, output: OutputLimits | None = None,
) -> Yard:  # fmt: skip
    """Builders in a jail that works; skipped where none does."""
    jail = working_jail(folder / "jail", limits)
    shop = Workshop(JailedPrograms(jail), folder / "scratch", jail.why_not, seconds, output or OutputLimits())
    known = builders(shop, Dependencies(cache or folder / "cache"), command)
    return Yard(folder, known, FolderReleases(folder / "sites"))
