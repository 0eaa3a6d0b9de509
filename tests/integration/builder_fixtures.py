"""Sources to build, and builders in a real jail."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.attacks.targets import SMALL, working_jail
from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters.builders import BuildEnv, Dependencies, builders
from webordinary.adapters.builders.outside import OutputLimits
from webordinary.adapters.files.releases import FolderReleases
from webordinary.adapters.sandbox.bubblewrap import SandboxLimits
from webordinary.adapters.sandbox.sandbox import SandboxedPrograms
from webordinary.jobs.edit import choose_builder
from webordinary.jobs.ports import Builder
from webordinary.jobs.site_files import Release, Stage
from webordinary.jobs.source import BuildFailed, Built, SourceTree

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
    project_id: str = "amelia"
    token: FakeCancelToken = field(default_factory=FakeCancelToken)
    counter: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def build(self, tree: SourceTree, name: str = "") -> Built | BuildFailed:
        """Build as a worker does it; a good build becomes the current release."""
        builder = choose_builder(self.builders, name, tree)
        if isinstance(builder, BuildFailed):
            return builder
        fence = next(self.counter)
        staged = self.releases.stage("amelia", Stage.EDIT, fence)
        own = replace(tree, project_id=self.project_id)
        built = builder.build(own, staged, self.releases.current("amelia", Stage.EDIT), self.token)
        if isinstance(built, Built):
            self.releases.activate(self.releases.finish("amelia", Stage.EDIT, staged, f"{fence:040d}"[::-1]), fence)
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
    folder: Path, command: tuple[str, ...] = (), *, cache: Path | None = None, limits: SandboxLimits = SMALL,
    seconds: float = 60.0, output: OutputLimits | None = None, scripts: bool = False,
) -> Yard:  # fmt: skip
    """Builders in a jail that works; skipped where none does."""
    jail = working_jail(folder / "jail", limits)
    shop = BuildEnv(SandboxedPrograms(jail), folder / "scratch", jail.why_not, seconds, output or OutputLimits())
    known = builders(shop, Dependencies(cache or folder / "cache", scripts), command)
    return Yard(folder, known, FolderReleases(folder / "sites"))
