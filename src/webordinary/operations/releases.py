"""The composition of an operator's acts on releases: looking at them, and going back to one."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from webordinary.adapters.git.revert import GitSourceRollback
from webordinary.compose.container import Container
from webordinary.jobs.rollback import Rollback, RolledBack
from webordinary.jobs.site_files import Stage, manifest_of
from webordinary.model.events import Event, EventKind
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
