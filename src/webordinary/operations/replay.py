"""The composition of a replay: a stored mail runs once more, on copies, and no reply is sent."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from webordinary.adapters.files.releases import FolderReleases
from webordinary.adapters.git import GitHistory, GitRepository
from webordinary.adapters.git.mirrors import Mirrors
from webordinary.adapters.git.origins import replay_clone
from webordinary.adapters.sqlite.claims import SqliteProjectLeases
from webordinary.adapters.sqlite.database import MemoryDatabase
from webordinary.compose.container import Container
from webordinary.compose.worker import instructions_of, site_kit
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.run import JobDeps, NoLogs, NoSessions
from webordinary.mail.replies.answers import answer_job
from webordinary.mail.replies.rendering import as_text
from webordinary.model.claims import Claim, ClaimStatus, OperatorToken, StartedJob
from webordinary.model.errors import Permanent
from webordinary.model.events import Event
from webordinary.model.jobs import Job, Settlement
from webordinary.model.mail import Command, RefusedAttachment
from webordinary.model.names import job_id_of
from webordinary.operations.onboarding import project_of

_FENCE = 1


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What would have become of the mail."""

    job_id: str
    project_id: str
    since: str
    """The commit it started from."""
    settlement: Settlement
    diff: str
    reply: str
    steps: tuple[Event, ...]


class RecordedEvents:
    """The events of a replay; the timeline does not learn of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        """Record the event for the operator."""
        self.events.append(event)


def replay(services: Container, name: str, folder: Path) -> ReplayResult:
    """Do a job again below `folder`: origin, workspace, releases are copies, and the agent remembers nothing.

    Raises Permanent when there is no such job, or when it is none that changes the source.
    """
    job = _job(services, name)
    if job.command not in (Command.EDIT, Command.UNDO):
        raise Permanent(f"{job.job_id} was the command {job.command}: only changes of a site can be replayed")
    project = project_of(services, job.key.project_id)
    change = job.result.commit if job.result else None
    mirrors = Mirrors(services.config.data / "mirrors", "replay", services.credentials)
    since = replay_clone(mirrors, project, change, folder / "origin.git")
    rehearsed = replace(project, repo=str(folder / "origin.git"))
    worker, heard = f"replay-{os.getpid()}", RecordedEvents()
    deps = replace(_kit(services, worker, folder), project_of=lambda _: rehearsed)
    work = SiteJobs(deps, instructions_of(services).of, heard, services.clock.now)
    settlement = work.perform(_started(job, worker), OperatorToken(worker, _FENCE, job.job_id))
    commit = settlement.result.commit
    diff = GitHistory(folder / "mirrors").diff(rehearsed, commit) if commit else None
    return ReplayResult(
        job.job_id, project.project_id, since, settlement, diff or "", _reply(services, job, settlement),
        tuple(heard.events),
    )  # fmt: skip


def _job(services: Container, name: str) -> Job:
    job = services.jobs.get(name) or services.jobs.get(job_id_of(name))
    if job is None:
        raise Permanent(
            f"there is no job {name!r}; it was pruned, or its mail never became one: `webordinary status` tells"
        )
    return job


def _kit(services: Container, worker: str, folder: Path) -> JobDeps:
    repository = GitRepository(folder / "mirrors", folder / "home", worker)
    return replace(
        site_kit(services, worker, folder / "home"),
        workspaces=repository,
        main=repository,
        live=repository,
        has_previews=False,
        leases=SqliteProjectLeases(MemoryDatabase(), lambda holder: False),
        releases=FolderReleases(folder / "sites"),
        sessions=NoSessions(),
        build_logs=NoLogs(),
    )


def _started(job: Job, worker: str) -> StartedJob:
    at = job.recorded_at
    return StartedJob(Claim(job.key, worker, _FENCE, 0, ClaimStatus.HELD, at, at, at), job)


def _reply(services: Container, job: Job, settlement: Settlement) -> str:
    mail = services.mail_deps.parsed_mails.load(job.email_id)
    if mail is None:
        return settlement.result.summary
    lines = services.mail_deps.manifest.of(job.email_id)
    refused = (*(line for line in lines if isinstance(line, RefusedAttachment)), *mail.refused_attachments)
    return as_text(answer_job(mail, settlement.outcome, settlement.result, refused))
