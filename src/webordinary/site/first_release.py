"""The first release: a site can be seen before anybody asks for a change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from webordinary.model.projects import Project
from webordinary.site.builders import choose_builder
from webordinary.site.ports import Builder, Releases
from webordinary.site.releases import Stage
from webordinary.site.sources import BuildFailed, SourceTree

LOWEST_FENCE = 0
Export = Callable[[Project, Path], tuple[str, SourceTree]]


def show_first(project: Project, export: Export, builders: Mapping[str, Builder], releases: Releases) -> str | None:
    """Show main on the edit site unless something is shown there; the reason in words if it cannot be built.

    It uses the lowest fence there is: whatever a worker publishes meanwhile or later wins.
    """
    if releases.current(project.project_id, Stage.EDIT) is not None:
        return None
    with tempfile.TemporaryDirectory(prefix="webordinary-") as scratch:
        commit, tree = export(project, Path(scratch) / "export")
        builder = choose_builder(builders, project.builder, tree)
        if isinstance(builder, BuildFailed):
            return builder.reason
        staged = releases.stage(project.project_id, Stage.EDIT, LOWEST_FENCE)
        built = builder.build(tree, staged, None, _Unhurried())
        if isinstance(built, BuildFailed):
            return built.reason
        releases.point(releases.finish(project.project_id, Stage.EDIT, staged, commit), LOWEST_FENCE)
    return None


class _Unhurried:
    """A hold for work that nobody interrupts and that carries no claim."""

    worker = "operator"
    fence = LOWEST_FENCE
    job_id = ""

    def check(self) -> None:
        """Go on."""

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Nothing is coming."""
        yield
