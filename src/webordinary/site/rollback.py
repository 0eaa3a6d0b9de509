"""Rolling back: an operator shows an earlier release again, and the source follows.

It is an operator's act and no job: the project's lease is taken in the operator's own name, for as long as the command
runs, under a new fence. No build is waited for: whoever builds loses the lease, and goes on afterwards from what is
shown then; only what is being pushed and shown this moment comes to its end. The site flips first. Then main gets a
commit with the same content, so that the next change starts from what is shown and does not bring back what was taken
away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Permanent, Transient
from webordinary.model.projects import Project
from webordinary.site.ports import ProjectLeases, Releases, Restoring
from webordinary.site.releases import Release, Stage

WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class OperatorHold:
    """What an operator acts under: no claim, no job, nobody who interrupts."""

    worker: str
    fence: int = 0
    job_id: str = ""

    def check(self) -> None:
        """Go on."""

    @contextmanager
    def on_stop(self, stop: Callable[[], None]) -> Iterator[None]:
        """Nothing is coming."""
        yield


@dataclass(frozen=True, slots=True)
class RolledBack:
    """`commit` is what main got; None if it had that content already, or is not concerned."""

    release: Release
    flipped: bool
    commit: str | None = None
    problem: str = ""
    """Why main could not follow: the next change would bring back what was taken away."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """The ports of one rollback."""

    leases: ProjectLeases
    releases: Releases
    main: Restoring
    now: Callable[[], datetime]
    wait: Callable[[float], None]

    def roll_back(self, project: Project, stage: Stage, name: str, operator: str) -> RolledBack:
        """Show the named release, or the one made before the shown one; raises Permanent if there is none."""
        release = self.find(project.project_id, stage, name)
        lease = self._take(project.project_id, OperatorHold(operator))
        try:
            self.leases.confirm(lease)
            flipped = self.releases.point(release, lease.fence)
            if self.releases.current(project.project_id, stage) != release.path:
                raise Transient(f"a newer publication of {project.project_id} came first; look at it, then try again")
            return self._follow(project, release, flipped, lease)
        finally:
            self.leases.release(lease)

    def find(self, project_id: str, stage: Stage, name: str) -> Release:
        """By the beginning of its name; without one, the release made before the shown one."""
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
        if release.stage is not Stage.EDIT:
            return RolledBack(release, flipped)
        try:
            return RolledBack(release, flipped, self.main.restore(project, release.name, lease))
        except (Transient, Permanent) as problem:
            return RolledBack(release, flipped, problem=str(problem))

    def _take(self, project_id: str, hold: OperatorHold) -> ProjectLease:
        began = self.now()
        while True:
            lease = self.leases.overtake(project_id, hold, self.now())
            if lease is not None:
                return lease
            if (self.now() - began).total_seconds() > WAIT_SECONDS:
                raise Transient(f"a change of {project_id} is being published right now; try again when it is done")
            self.wait(_PAUSE_SECONDS)
