"""Rollback: an operator activates an earlier release, and the branch of that site gets its content.

A rollback is not a job: the operator's command takes the project's lease under a new fence. It does not wait for a
build: the job that builds loses the lease and starts again from the new state; a push that has begun ends first. The
site is switched first. Then main, or live for the public site, gets a commit with the same content, so that the next
change does not restore what was rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from webordinary.jobs.ports import ProjectLeases, Releases, SourceRollback
from webordinary.jobs.site_files import Release, Stage
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Permanent, Transient
from webordinary.model.projects import Project

WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class OperatorToken:
    """The cancel token of an operator: no claim, no job, never cancelled."""

    worker: str
    fence: int = 0
    job_id: str = ""

    def check(self) -> None:
        """Never raises."""

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Never calls `stop`."""
        yield


@dataclass(frozen=True, slots=True)
class RolledBack:
    """`commit` is the new one on the site's branch; None if the branch had that content, or does not exist yet."""

    release: Release
    flipped: bool
    commit: str | None = None
    problem: str = ""
    """Why the branch has no such commit: the next change would restore what was rolled back."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """The ports of one rollback."""

    leases: ProjectLeases
    releases: Releases
    source: SourceRollback
    now: Callable[[], datetime]
    wait: Callable[[float], None]

    def roll_back(self, project: Project, stage: Stage, name: str, operator: str) -> RolledBack:
        """Activate the named release, or the one before the current one; raises Permanent if there is none."""
        release = self.find(project.project_id, stage, name)
        lease = self._take(project.project_id, OperatorToken(operator))
        try:
            self.leases.confirm(lease)
            flipped = self.releases.activate(release, lease.fence)
            if self.releases.current(project.project_id, stage) != release.path:
                raise Transient(f"a newer publication of {project.project_id} came first; look at it, then try again")
            return self._follow(project, release, flipped, lease)
        finally:
            self.leases.release(lease)

    def find(self, project_id: str, stage: Stage, name: str) -> Release:
        """By a prefix of its name; without a name, the release before the current one."""
        kept = self.releases.list(project_id, stage)
        if name:
            found = [release for release in kept if release.name.startswith(name)]
            if len(found) == 1:
                return found[0]
            words = "several releases begin" if found else "no kept release begins"
            raise Permanent(f"{words} with {name!r}; see `webordinary release list {project_id}`")
        paths = [release.path for release in kept]
        shown = self.releases.current(project_id, stage)
        before = kept[paths.index(shown) + 1 :] if shown in paths else ()
        if not before:
            raise Permanent(f"{project_id} has no earlier release on its {stage} site to go back to")
        return before[0]

    def _follow(self, project: Project, release: Release, flipped: bool, lease: ProjectLease) -> RolledBack:
        try:
            return RolledBack(release, flipped, self.source.restore(project, release.stage, release.name, lease))
        except (Transient, Permanent) as problem:
            return RolledBack(release, flipped, problem=str(problem))

    def _take(self, project_id: str, token: OperatorToken) -> ProjectLease:
        began = self.now()
        while True:
            lease = self.leases.overtake(project_id, token, self.now())
            if lease is not None:
                return lease
            if (self.now() - began).total_seconds() > WAIT_SECONDS:
                raise Transient(f"a change of {project_id} is being published right now; try again when it is done")
            self.wait(_PAUSE_SECONDS)
