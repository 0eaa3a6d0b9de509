"""What an operator does with releases: look at them, and go back to one; the branch of that site gets its content.

A rollback is not a job: the operator's command takes the project's lease under a new fence. It does not wait for a
build: the job that builds loses the lease and starts again from the new state; a push that has begun ends first. The
site is switched first. Then main, or live for the public site, gets a commit with the same content, so that the next
change does not restore what was rolled back.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from webordinary.adapters.git.revert import GitSourceRollback
from webordinary.compose.container import Container
from webordinary.jobs.ports import ProjectLeases, Releases, SourceRollback
from webordinary.jobs.site_files import Release, Stage, manifest_of
from webordinary.model.claims import OperatorToken, ProjectLease
from webordinary.model.errors import Permanent, Transient
from webordinary.model.events import Event, EventKind
from webordinary.model.projects import Project
from webordinary.operations.onboarding import project_of


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """One release as an operator sees it; `files` is 0 where it does not tell, `change` is empty."""

    release: str
    made_at: datetime
    files: int
    shown: bool
    change: str


def releases_of(services: Container, project_id: str, stage: Stage) -> list[KeptRelease]:
    """The kept releases of a site, the newest first."""
    project = project_of(services, project_id)
    shown, kept = services.releases.current(project_id, stage), services.releases.list(project_id, stage)
    changes = services.history.subjects(project, [release.name for release in kept])
    return [
        KeptRelease(
            release.name,
            release.made_at or datetime.fromtimestamp(0, UTC),
            release.files or len(manifest_of(release.path)),
            release.path == shown,
            changes.get(release.name, ""),
        )
        for release in kept
    ]


def roll_back(services: Container, project_id: str, stage: Stage, name: str) -> RolledBack:
    """Show an earlier release again, under the project's lease in the operator's own name."""
    project, operator = project_of(services, project_id), f"operator-{os.getpid()}-{secrets.token_hex(4)}"
    rollback = Rollback(
        leases=services.leases,
        releases=services.releases,
        source=GitSourceRollback(services.config.data / "mirrors", operator, services.credentials),
        now=services.clock.now,
        wait=time.sleep,
    )
    with services.registered(operator):
        done = rollback.roll_back(project, stage, name, operator)
    data = {"project": project_id, "stage": stage.value, "release": done.release.name, "commit": done.commit}
    services.events.emit(Event(EventKind.SITE_ROLLED_BACK, worker=operator, data=data))
    return done


WAIT_SECONDS = 30.0
_PAUSE_SECONDS = 0.05


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
