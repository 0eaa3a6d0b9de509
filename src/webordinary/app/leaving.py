"""A customer leaves: everything that onboarding made is undone; the repository is the customer's, and stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from webordinary.app.services import Services
from webordinary.app.sites import project_of
from webordinary.model.errors import Permanent
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender


@dataclass(frozen=True, slots=True)
class Leaving:
    """What would go."""

    project: Project
    senders: tuple[Sender, ...]
    busy: tuple[ProjectUser, ...]
    """Whose jobs are still open; without their project they end as dead letters."""

    @property
    def keys(self) -> tuple[ProjectUser, ...]:
        """Everybody who could change it."""
        return tuple(dict.fromkeys(sender.key for sender in self.senders))


def look_at_leaving(services: Services, project_id: str) -> Leaving:
    """What removing a project would take away; raises Permanent if it is not there."""
    project = project_of(services, project_id)
    senders = tuple(sender for sender in services.directory.senders() if sender.key.project_id == project_id)
    leaving = Leaving(project, senders, ())
    busy = tuple(key for key in leaving.keys if services.jobs.open_jobs(key, limit=1))
    return Leaving(project, senders, busy)


def remove(services: Services, leaving: Leaving, progress: Callable[[str], None], *, force: bool = False) -> None:
    """Take it all away; killed on the way, doing it again goes on. Its records go last: they say what there was."""
    project_id = leaving.project.project_id
    if leaving.busy and not force:
        raise Permanent(
            f"{project_id} has open jobs ({', '.join(map(str, leaving.busy))}): wait until they are done, see "
            "`webordinary queues`, or say --force to give them up"
        )
    progress("removing what was made for it")
    services.clear_room(project_id, leaving.keys)
    services.credentials.forget(project_id)
    services.directory.remove_project(project_id)
