"""One worker's real site work on a site of a given size, with the agent's and the build's own time known."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.builders import PlainFiles
from webordinary.adapters.files.releases import FolderReleases
from webordinary.adapters.git import GitRepository
from webordinary.adapters.sqlite.claims import SqliteProjectLeases
from webordinary.adapters.sqlite.database import Database
from webordinary.adapters.sqlite.events import SqliteEvents
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.ports import AgentResult, AgentTask
from webordinary.jobs.run import JobDeps
from webordinary.jobs.source import BuildFailed, Built, SourceTree
from webordinary.model.claims import CancelToken, Claim, ClaimStatus, StartedJob
from webordinary.model.jobs import Job, JobOutcome, JobState
from webordinary.model.mail import Command, Instruction
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, SenderRole
from webordinary.operations.sample import make_origin
from webordinary.worker.claims import JobCancelToken

PAGE = "<!doctype html>\n<title>{0}</title>\n<main>\n<h1>{0}</h1>\n{1}</main>\n"
WORDS = "<p>Hand-made things for every day, fired twice and glazed by hand in a small workshop.</p>\n"


def site_of(files: int) -> dict[str, bytes]:
    """A plain site: a home page, and pages of some kilobytes in folders of fifty."""
    pages = {"index.html": PAGE.format("Home", WORDS).encode()}
    for number in range(files - 1):
        pages[f"part-{number // 50}/page-{number}.html"] = PAGE.format(f"Page {number}", WORDS * 30).encode()
    return pages


@dataclass(slots=True)
class Timed:
    """How long the customer's own things took: not ours to answer for."""

    seconds: float = 0.0


@dataclass(slots=True)
class TimedAgent:
    """The built-in agent with a watch."""

    timed: Timed
    inside: BuiltinAgent = field(default_factory=BuiltinAgent)

    def run(self, task: AgentTask, hold: CancelToken) -> AgentResult:
        """Follow the instruction."""
        began = time.perf_counter()
        try:
            return self.inside.run(task, hold)
        finally:
            self.timed.seconds += time.perf_counter() - began


@dataclass(slots=True)
class TimedFiles:
    """The plain builder with a watch."""

    timed: Timed
    inside: PlainFiles = field(default_factory=PlainFiles)

    def fits(self, tree: SourceTree) -> bool:
        """As inside."""
        return self.inside.fits(tree)

    def build(self, tree: SourceTree, into: Path, previous: Path | None, hold: CancelToken) -> Built | BuildFailed:
        """Fill the folder."""
        began = time.perf_counter()
        try:
            return self.inside.build(tree, into, previous, hold)
        finally:
            self.timed.seconds += time.perf_counter() - began


class MonotonicClock:
    """What a hold asks for the time."""

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic()

    def now(self) -> datetime:
        """Time of day."""
        return datetime.now(UTC)


class Workbench:
    """A data folder with one project; workers come and go on it."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        make_origin(folder / "origin.git", site_of(files))
        self.project = Project("bench", str(folder / "origin.git"))
        self.db = Database(folder / "webordinary.db")
        self.db.migrate()
        self.events = SqliteEvents(self.db, lambda _: None)
        self.releases = FolderReleases(folder / "sites")
        self.count = 0

    def worker(self, name: str) -> Bench:
        """A worker with a home of its own."""
        return Bench(self, name)

    def close(self) -> None:
        """Close the database."""
        self.events.close()
        self.db.close()


class Bench:
    """One worker; its workspaces stay warm from edit to edit."""

    def __init__(self, workbench: Workbench, name: str, mirrors: Path | None = None) -> None:
        self._on, self._name, self._timed = workbench, name, Timed()
        folder = workbench.folder
        repository = GitRepository(mirrors or folder / "mirrors", folder / "workspaces" / name, name)
        self._kit = JobDeps(
            workspaces=repository, main=repository, live=repository,
            leases=SqliteProjectLeases(workbench.db, lambda worker: False), releases=workbench.releases,
            agents={"builtin": TimedAgent(self._timed)}, builders={"plain": TimedFiles(self._timed)},
            project_of=lambda _: workbench.project, attachment_path=lambda attachment: folder,
            site_url=lambda project_id, stage: f"http://{stage}.{project_id}.localhost/",
            role_of=lambda *_: SenderRole.BOTH,
        )  # fmt: skip

    def edit(self, fence: int = 1, user: str = "scott") -> float:
        """One mail's edit from its start to its settlement: milliseconds around agent and build."""
        self._on.count += 1
        number, now = self._on.count, datetime.now(UTC)
        key = ProjectUser("bench", user)
        job = Job(
            f"job-{number}", key, number, 1, f"{number:016x}", f"mail-{number}", Command.EDIT, JobState.RUNNING, now
        )
        started = StartedJob(Claim(key, self._name, fence, 0, ClaimStatus.HELD, now, now, now), job)
        hold = JobCancelToken(started, MonotonicClock(), time.monotonic() + 600, lambda: time.monotonic() + 600)
        wish = Instruction(f"change the homepage title to Sale {number}", "", "scott@example.com", Command.EDIT)
        self._timed.seconds, began = 0.0, time.perf_counter()
        settled = SiteJobs(self._kit, lambda job: wish, self._on.events, MonotonicClock().now).perform(started, hold)
        took = time.perf_counter() - began - self._timed.seconds
        assert settled.outcome is JobOutcome.SUCCEEDED, settled
        assert settled.result.commit, settled
        return took * 1000
