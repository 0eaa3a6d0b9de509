"""The composition of an operator's acts on releases: looking at them, and going back to one."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from webordinary.adapters.local.git.restoring import GitRestoring
from webordinary.app.embedded import Embedded
from webordinary.app.services import Services
from webordinary.app.sites import project_of
from webordinary.model.events import Event
from webordinary.site.manifests import manifest_of
from webordinary.site.releases import Stage
from webordinary.site.rollback import Rollback, RolledBack


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """One release as an operator sees it; `files` is 0 where it does not tell, `change` is empty."""

    release: str
    made_at: datetime
    files: int
    shown: bool
    change: str


def releases_of(services: Services, project_id: str, stage: Stage) -> list[KeptRelease]:
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


def roll_back(services: Services, project_id: str, stage: Stage, name: str) -> RolledBack:
    """Show an earlier release again, under the project's lease in the operator's own name."""
    project, operator = project_of(services, project_id), f"operator-{os.getpid()}-{secrets.token_hex(4)}"
    rollback = Rollback(
        leases=services.leases,
        releases=services.releases,
        main=GitRestoring(services.config.data / "mirrors", operator, services.credentials),
        now=services.clock.now,
        wait=time.sleep,
    )
    with _alive(services, operator):
        done = rollback.roll_back(project, stage, name, operator)
    data = {"project": project_id, "stage": stage.value, "release": done.release.name, "commit": done.commit}
    services.events.emit(Event("SiteRolledBack", worker=operator, data=data))
    return done


@contextmanager
def _alive(services: Services, operator: str) -> Iterator[None]:
    """On one machine others can tell at once whether the operator's process is gone; on AWS they wait."""
    if not isinstance(services, Embedded):
        yield
        return
    services.lock_files.enter(operator)
    try:
        yield
    finally:
        services.lock_files.leave(operator)
