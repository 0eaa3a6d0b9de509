"""A customer leaves: everything that onboarding made is undone; the repository is the customer's, and stays.

Or one person of a site does: then the site stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webordinary.compose.container import Container
from webordinary.model.errors import Permanent
from webordinary.model.jobs import Job, JobOutcome, JobResult, Settlement
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, Sender
from webordinary.operations.onboarding import project_of
from webordinary.pool.callbacks import end_workflow
from webordinary.pool.transitions import all_open

_STOPPED = Settlement(
    JobOutcome.CANCELLED,
    JobResult("Your address may not change this site any more, so this was stopped. Nothing was changed."),
)


@dataclass(frozen=True, slots=True)
class ProjectRemoval:
    """What would go."""

    project: Project
    senders: tuple[Sender, ...]
    keys: tuple[ProjectUser, ...]
    """Everybody who could change it, or has work under way on it."""
    busy: tuple[ProjectUser, ...]
    """Whose jobs are still open; without their project they end as dead letters."""


@dataclass(frozen=True, slots=True)
class SenderRemoval:
    """An address that will not change a site any more."""

    project_id: str
    address: str
    entry: Sender | None
    """None if it may not change it now."""
    others: tuple[Sender, ...]
    """Who still may."""
    jobs: tuple[Job, ...]
    """What its mails have asked for and is not done yet, whoever's conversation they were written in."""


def plan_project_removal(services: Container, project_id: str) -> ProjectRemoval:
    """What removing a project would take away; raises Permanent if it is not there."""
    project = project_of(services, project_id)
    senders = _senders_of(services, project_id)
    keys = _keys_of(services, project_id, senders)
    busy = tuple(key for key in keys if services.jobs.open_jobs(key, limit=1))
    return ProjectRemoval(project, senders, keys, busy)


def plan_sender_removal(services: Container, project_id: str, address: str) -> SenderRemoval:
    """What it would mean that this address may not change the project any more."""
    senders = _senders_of(services, project_id)
    open_jobs = (job for key in _keys_of(services, project_id, senders) for job in all_open(services.jobs, key))
    return SenderRemoval(
        project_id,
        address,
        next((sender for sender in senders if sender.address == address), None),
        tuple(sender for sender in senders if sender.address != address),
        tuple(job for job in open_jobs if _asked_by(services, job) == address),
    )


def remove_person(services: Container, leaving: SenderRemoval, *, force: bool = False) -> tuple[Job, ...]:
    """Let an address change nothing more, then stop what it asked for; again is harmless. What was stopped.

    Its conversations stay, as others of the site may go on in them; on AWS that is what its queues are kept for.
    """
    if leaving.jobs and not force:
        raise Permanent(
            f"{leaving.address} has open jobs on {leaving.project_id} ({len(leaving.jobs)}): wait until they are done, "
            "see `webordinary queues`, or say --force to stop them"
        )
    services.directory.remove_sender(leaving.address, leaving.project_id)
    asked = plan_sender_removal(services, leaving.project_id, leaving.address).jobs  # one may have come meanwhile
    for job in asked:
        end_workflow(job, _STOPPED, services.pool, services.clock.now())
    return asked


def _asked_by(services: Container, job: Job) -> str:
    mail = services.mailroom.parsed_mails.load(job.email_id)
    return mail.sender.lower() if mail else ""


def _senders_of(services: Container, project_id: str) -> tuple[Sender, ...]:
    return tuple(sender for sender in services.directory.senders() if sender.key.project_id == project_id)


def _keys_of(services: Container, project_id: str, senders: Sequence[Sender]) -> tuple[ProjectUser, ...]:
    """Those of the people of a project, and of people who left it while others go on in their conversations."""
    return tuple(dict.fromkeys((*(sender.key for sender in senders), *services.jobs.keys_of(project_id))))


def remove(
    services: Container, leaving: ProjectRemoval, progress: Callable[[str], None], *, force: bool = False
) -> None:
    """Take it all away; killed on the way, doing it again goes on. Its records go last: they say what there was."""
    project_id = leaving.project.project_id
    if leaving.busy and not force:
        raise Permanent(
            f"{project_id} has open jobs ({', '.join(map(str, leaving.busy))}): wait until they are done, see "
            "`webordinary queues`, or say --force to give them up"
        )
    progress("removing what was made for it")
    services.deprovision(project_id, leaving.keys)
    services.credentials.forget(project_id)
    services.directory.remove_project(project_id)
