"""JobDeps: the ports of a worker's jobs. JobRun: one started job, as its stages see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path

from webordinary.jobs.deploy import SiteDeployer
from webordinary.jobs.ports import (
    Agent,
    AgentLimits,
    Builder,
    BuildLogs,
    Ledger,
    LiveBranch,
    MainBranch,
    ProjectLeases,
    Releases,
    ScreenshotPair,
    Screenshotter,
    Sessions,
    Workspaces,
)
from webordinary.jobs.site_files import Stage, address_of
from webordinary.jobs.source import ChangeMessage, JobContext
from webordinary.model.claims import CancelToken, StartedJob
from webordinary.model.events import Event, EventKind, Events
from webordinary.model.jobs import Job
from webordinary.model.mail import Command, Instruction
from webordinary.model.names import ProjectUser, branch_of, first_job_of
from webordinary.model.projects import Project, SenderRole

SCREENSHOTS_AFTER_SECONDS = 5.0
"""A job that took this long may wait for its pictures as long as the settings say."""
QUICK_SECONDS, LEAST_SECONDS = 2.2, 1.0
"""When the reply to a quick job stops waiting for its pictures, counted from the job's start, and its shortest wait.

A browser that is late takes a third of a second more to be ended: the answer is there within three seconds of a mail.
"""


@dataclass(frozen=True, slots=True)
class Screenshots:
    """Takes and keeps screenshots; with `always`, the replies to quick jobs wait for them as long as others do."""

    screenshotter: Screenshotter
    keep: Callable[[bytes], str]
    seconds: float
    always: bool = False

    def wait_seconds(self, job_seconds: float) -> float:
        """Seconds that the reply may wait for pictures; later pictures are left out."""
        quick = not self.always and job_seconds < SCREENSHOTS_AFTER_SECONDS
        return min(self.seconds, max(QUICK_SECONDS - job_seconds, LEAST_SECONDS)) if quick else self.seconds

    def take(self, before: Path | None, after: Path, page: str, job_seconds: float) -> ScreenshotPair:
        """The page before and after, of a job that took so long until now."""
        return self.screenshotter.take(before, after, page, self.wait_seconds(job_seconds))


class NoLedger:
    """A ledger that records nothing."""

    def spend(self, job: Job, usd: float, now: datetime) -> None: ...

    def on_day(self, project_id: str, day: date) -> float:
        return 0.0

    def of_job(self, job_id: str) -> float:
        return 0.0


class NoSessions:
    """For agents without a memory of the thread."""

    def session_of(self, thread_id: str) -> str:
        return ""

    def keep_session(self, thread_id: str, session: str) -> None: ...


class NoLogs:
    """A build log that keeps nothing."""

    def add(self, job_id: str, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class JobDeps:
    """The ports of one worker; `agents` and `builders` by the names that projects use."""

    workspaces: Workspaces
    main: MainBranch
    live: LiveBranch
    leases: ProjectLeases
    releases: Releases
    agents: Mapping[str, Agent]
    builders: Mapping[str, Builder]
    project_of: Callable[[str], Project | None]
    attachment_path: Callable[[str], Path]
    """The file with the bytes of this digest, on this machine."""
    site_url: Callable[[str, Stage], str]
    role_of: Callable[[str, str], SenderRole]
    """The role of an address in a project now."""
    user_of: Callable[[str, str], str] = lambda *_: ""
    """The user of a project with this address; empty for none."""
    sessions: Sessions = field(default_factory=NoSessions)
    build_logs: BuildLogs = field(default_factory=NoLogs)
    screenshots: Screenshots | None = None
    ledger: Ledger = field(default_factory=NoLedger)
    daily_cap_usd: float = 0.0
    has_previews: bool = True
    """The release store has room for a preview of each conversation."""
    limits: AgentLimits = field(default_factory=AgentLimits)
    wait: Callable[[float], None] = time.sleep
    longest_ahead: timedelta = timedelta(days=350)
    """How far ahead a mail may wait for its date: its mail must still be there."""
    put_off: Callable[[ProjectUser], int] = lambda _: 0
    """How many mails of a person wait for a date."""


@dataclass(frozen=True)
class JobRun:
    """One started job; passed from stage to stage."""

    started: StartedJob
    instruction: Instruction
    project: Project
    token: CancelToken
    deps: JobDeps
    deployer: SiteDeployer
    events: Events
    now: Callable[[], datetime]

    @property
    def job(self) -> Job:
        """The job's record at its start."""
        return self.started.job

    @property
    def request(self) -> str:
        """The customer's request: the mail's text, else its subject, else the project's default."""
        instruction = self.instruction
        return instruction.text.strip() or instruction.subject.strip() or self.project.default_instruction.strip()

    @cached_property
    def due_at(self) -> datetime | None:
        """The date that the customer named, if it has come."""
        return self.job.due_at

    @cached_property
    def takes_back(self) -> str:
        """The commit that this job made earlier and takes back now, as its customer wanted it until a date."""
        result = self.job.result
        return (result.commit or "") if self.due_at and result else ""

    @cached_property
    def first_job_id(self) -> str:
        """The job that the mail became at first."""
        return first_job_of(self.job.job_id)

    @cached_property
    def commit_id(self) -> str:
        """The job as its commits name it; the one that takes back is another commit of the same job."""
        return f"{self.first_job_id}-until" if self.takes_back else self.first_job_id

    @cached_property
    def agent_is_free(self) -> bool:
        """Whether the project's agent declares that it costs nothing; no budget applies to it."""
        return bool(getattr(self.deps.agents.get(self.project.agent), "is_free", False))

    def sender_may_publish(self) -> bool:
        """Asked again where something would become public."""
        role = self.deps.role_of(self.project.project_id, self.instruction.sender)
        return role.may(Command.PUBLISH)

    @cached_property
    def sender(self) -> str:
        """Who wrote this mail, as a user of the site; its conversation may be another person's."""
        return self.deps.user_of(self.project.project_id, self.instruction.sender) or self.job.key.user_id

    @cached_property
    def edit_site(self) -> str:
        """The address of the edit site."""
        return self.deps.site_url(self.project.project_id, Stage.EDIT)

    def edit_url(self, page: str) -> str:
        """The address of this page on the edit site."""
        return self.edit_site + address_of(page)

    def context(self) -> JobContext:
        """The job as the source knows it; a redriven job has the id of the job that was given up."""
        job = self.job
        return JobContext(
            self.project,
            job.key,
            job.thread_id,
            branch_of(job.thread_id),
            self.commit_id,
            self.token.worker,
            self.token.fence,
            is_first_start=self.started.is_first and job.job_id == self.first_job_id,
        )

    def message(self, summary: str, undoes: str = "", unfinished: bool = False, then: str = "") -> ChangeMessage:
        """The message of this job's commit."""
        job = self.job
        return ChangeMessage(
            self.request,
            summary,
            self.commit_id,
            job.thread_id,
            job.key.user_id,
            self.instruction.sender,
            undoes,
            unfinished,
            then=then,
            wish=self.instruction.wish,
        )

    def seconds_since_start(self) -> float:
        now = self.now()
        return (now - (self.job.started_at or now)).total_seconds()

    def emit(self, kind: EventKind, since: datetime, **data: object) -> None:
        """Emit an event of this job with its duration."""
        took = round((self.now() - since).total_seconds() * 1000, 1)
        job = self.job
        self.events.emit(
            Event(kind, job.email_id, job.job_id, job.key, self.token.worker, {**data, "duration_ms": took})
        )
