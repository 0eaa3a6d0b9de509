"""The composition of an operator's acts on releases: looking at them, and going back to one."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from webordinary.adapters.local.git.restoring import GitRestoring
from webordinary.adapters.sqlite.project_leases import SqliteProjectLeases
from webordinary.app.services import Services
from webordinary.app.sites import project_of
from webordinary.model.events import Event
from webordinary.site.manifests import manifest_of
from webordinary.site.releases import Stage
from webordinary.site.rollback import Rollback, RolledBack


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """One release as an operator sees it; `files` is 0 where it does not tell."""

    release: str
    made_at: datetime
    files: int
    shown: bool


def releases_of(services: Services, project_id: str, stage: Stage) -> list[KeptRelease]:
    """The kept releases of a site, the newest first."""
    project_of(services, project_id)
    shown = services.releases.current(project_id, stage)
    return [
        KeptRelease(
            release.name,
            datetime.fromtimestamp(release.path.stat().st_ctime, UTC),
            len(manifest_of(release.path)),
            release.path == shown,
        )
        for release in services.releases.list(project_id, stage)
    ]


def roll_back(services: Services, project_id: str, stage: Stage, name: str) -> RolledBack:
    """Show an earlier release again, under the project's lease in the operator's own name."""
    project, operator = project_of(services, project_id), f"operator-{os.getpid()}-{secrets.token_hex(4)}"
    rollback = Rollback(
        leases=SqliteProjectLeases(services.db, services.lock_files.is_dead),
        releases=services.releases,
        main=GitRestoring(services.config.data / "mirrors", operator, services.credentials),
        now=services.clock.now,
        wait=time.sleep,
    )
    services.lock_files.enter(operator)
    try:
        done = rollback.roll_back(project, stage, name, operator)
    finally:
        services.lock_files.leave(operator)
    data = {"project": project_id, "stage": stage.value, "release": done.release.name, "commit": done.commit}
    services.events.emit(Event("SiteRolledBack", worker=operator, data=data))
    return done
