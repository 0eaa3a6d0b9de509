"""JobRun: one started job with everything its stages share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from webordinary.model.claims import Started
from webordinary.model.events import Event, Events
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job
from webordinary.model.mail import Instruction
from webordinary.model.names import first_job_of
from webordinary.model.projects import Project
from webordinary.site.changed_page import address_of
from webordinary.site.kit import SiteKit
from webordinary.site.messages import ChangeMessage
from webordinary.site.publish import Publisher
from webordinary.site.releases import Stage
from webordinary.site.sources import Work

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class JobRun:
    """Made at the start of a job and handed from stage to stage."""

    started: Started
    instruction: Instruction
    project: Project
    hold: Hold
    kit: SiteKit
    events: Events
    now: Callable[[], datetime]

    @property
    def job(self) -> Job:
        """The job's record as it was started."""
        return self.started.job

    @property
    def wish(self) -> str:
        """What the customer asked for; a mail without a body speaks through its subject."""
        texts = (self.instruction.text, self.instruction.subject, self.project.default_instruction)
        return next((text.strip() for text in texts if text.strip()), "")

    def edit_url(self, page: str) -> str:
        """Where the customer sees the change: this page of the edit site."""
        return self.kit.site_url(self.project.project_id, Stage.EDIT) + address_of(page)

    def work(self) -> Work:
        """This job in the words of the site room, where a redriven job goes on as the one that was given up."""
        job, first = self.job, first_job_of(self.job.job_id)
        return Work(
            self.project,
            job.key,
            job.thread_id,
            first,
            self.hold.worker,
            self.hold.fence,
            job.recorded_at if job.job_id == first else LONG_AGO,
        )

    def message(self, summary: str, undoes: str = "", unfinished: bool = False) -> ChangeMessage:
        """What this job's commit will say."""
        job = self.job
        return ChangeMessage(
            self.wish,
            summary,
            first_job_of(job.job_id),
            job.thread_id,
            job.key.user_id,
            self.instruction.sender,
            undoes,
            unfinished,
        )

    def seconds_since_start(self) -> float:
        """How long this job has been under way."""
        now = self.now()
        return (now - (self.job.started_at or now)).total_seconds()

    def publisher(self) -> Publisher:
        """The site room's publisher on this worker's ports."""
        kit = self.kit
        return Publisher(kit.workspaces, kit.main, kit.leases, kit.releases, self.now, kit.wait)

    def tell(self, kind: str, since: datetime, **data: object) -> None:
        """Emit an event of this job, with how long it took."""
        took = round((self.now() - since).total_seconds() * 1000, 1)
        job = self.job
        self.events.emit(
            Event(kind, job.email_id, job.job_id, job.key, self.hold.worker, {**data, "duration_ms": took})
        )
