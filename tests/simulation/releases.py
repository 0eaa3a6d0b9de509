"""Releases in memory: what each site shows. Paths are only names here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from webordinary.jobs.ports import no_check
from webordinary.jobs.site_files import Release, Stage


@dataclass(slots=True)
class StageReleases:
    """One stage of one project: finished releases by commit, and the pointer of each fence."""

    finished: dict[str, Mapping[str, str]] = field(default_factory=dict)
    pointers: dict[int, str] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[int, str] | None:
        """The highest fence and the commit it points to; none, if that is no commit."""
        highest = max(self.pointers.items(), default=None)
        return highest if highest and highest[1] else None


class SimulatedReleases:
    """See Releases; shared by all workers."""

    def __init__(self) -> None:
        self.sites: dict[tuple[str, Stage], StageReleases] = {}
        self._staged: dict[Path, Mapping[str, str]] = {}
        self._numbers: Iterator[int] = count()

    def fill(self, staged: Path, files: Mapping[str, str]) -> None:
        """What a builder does."""
        self._staged[staged] = files

    def stage(self, project_id: str, stage: Stage, fence: int) -> Path:
        """An empty folder to build into."""
        return Path(project_id, stage, f"{fence}-{next(self._numbers)}")

    def finish(self, project_id: str, stage: Stage, staged: Path, commit: str) -> Release:
        """Make the staged folder the release of this commit."""
        self._site(project_id, stage).finished.setdefault(commit, self._staged.pop(staged))
        return _release(project_id, stage, commit)

    def find(self, project_id: str, stage: Stage, commit: str) -> Release | None:
        """The finished release of a commit."""
        known = commit in self._site(project_id, stage).finished
        return _release(project_id, stage, commit) if known else None

    def promote(self, project_id: str, source: Stage, target: Stage, fence: int, commit: str) -> Release | None:
        """Make one stage's current release the release of a commit of another stage."""
        shown = self._site(project_id, source).shown
        if shown is None:
            return None
        files = self._site(project_id, source).finished[shown[1]]
        self._site(project_id, target).finished.setdefault(commit, files)
        return _release(project_id, target, commit)

    def activate(self, release: Release, fence: int, check: Callable[[], None] = no_check) -> bool:
        """Make it current unless a higher fence has spoken."""
        site = self._site(release.project_id, release.stage)
        before = site.shown
        site.pointers[fence] = release.name
        return site.shown is not None and (before is None or site.shown[1] != before[1])

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """The folder that visitors see."""
        shown = self._site(project_id, stage).shown
        return _release(project_id, stage, shown[1]).path if shown else None

    def list(self, project_id: str, stage: Stage) -> tuple[Release, ...]:
        """All releases, newest first."""
        return tuple(_release(project_id, stage, commit) for commit in reversed(self._site(project_id, stage).finished))

    def previews(self, project_id: str) -> tuple[Stage, ...]:
        """The newest first."""
        mine = [stage for project, stage in self.sites if project == project_id and stage.is_preview]
        return tuple(stage for stage in reversed(mine) if self.sites[project_id, stage].shown)

    def drop(self, project_id: str, preview: Stage) -> None:
        """Remove a preview."""
        self.sites.pop((project_id, preview), None)

    def _site(self, project_id: str, stage: Stage) -> StageReleases:
        return self.sites.setdefault((project_id, stage), StageReleases())


def _release(project_id: str, stage: Stage, commit: str) -> Release:
    return Release(project_id, stage, commit, Path(project_id, stage, commit))
