"""Releases in memory, with the rule of the real ones: the pointer with the highest fence is current."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.jobs.ports import no_check
from webordinary.jobs.site_files import KEPT_RELEASES, Release, Stage, release_name


@dataclass(slots=True)
class MemoryReleases:
    """`finished` counts how often each release was made: once, if all is well."""

    keep: int = KEPT_RELEASES
    finished: dict[tuple[str, Stage, str], int] = field(default_factory=dict)
    pointers: dict[tuple[str, Stage], dict[int, str]] = field(default_factory=dict)

    def stage(self, project_id: str, stage: Stage, fence: int) -> Path:
        return Path("/memory/staging") / project_id / stage.value / str(fence)

    def finish(self, project_id: str, stage: Stage, staged: Path, commit: str) -> Release:
        key = (project_id, stage, release_name(commit))
        if key not in self.finished:
            self.finished[key] = 1
        return self._release(*key)

    def find(self, project_id: str, stage: Stage, commit: str) -> Release | None:
        key = (project_id, stage, release_name(commit))
        return self._release(*key) if key in self.finished else None

    def promote(self, project_id: str, source: Stage, target: Stage, fence: int, commit: str) -> Release | None:
        current = self.current(project_id, source)
        return self.finish(project_id, target, current, commit) if current else None

    def activate(self, release: Release, fence: int, check: Callable[[], None] = no_check) -> bool:
        before = self.current(release.project_id, release.stage)
        self.pointers.setdefault((release.project_id, release.stage), {})[fence] = release.name
        after = self.current(release.project_id, release.stage)
        self._prune(release.project_id, release.stage)
        return after == release.path and before != after

    def current(self, project_id: str, stage: Stage) -> Path | None:
        _, name = max(self.pointers.get((project_id, stage), {}).items(), default=(0, ""))
        return self._release(project_id, stage, name).path if name else None

    def list(self, project_id: str, stage: Stage) -> tuple[Release, ...]:
        mine = [key for key in self.finished if key[:2] == (project_id, stage)]
        return tuple(self._release(*key) for key in reversed(mine))

    def previews(self, project_id: str) -> tuple[Stage, ...]:
        return tuple(stage for project, stage in reversed(self.pointers) if project == project_id and stage.is_preview)

    def drop(self, project_id: str, preview: Stage) -> None:
        self.pointers.pop((project_id, preview), None)
        self.finished = {key: made for key, made in self.finished.items() if key[:2] != (project_id, preview)}

    def _prune(self, project_id: str, stage: Stage) -> None:
        shown = self.current(project_id, stage)
        for release in self.list(project_id, stage)[self.keep :]:
            if release.path != shown:
                del self.finished[project_id, stage, release.name]

    @staticmethod
    def _release(project_id: str, stage: Stage, name: str) -> Release:
        return Release(project_id, stage, name, Path("/memory/sites") / project_id / stage.value / name)
