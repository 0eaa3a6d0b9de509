"""The sample project on disk, with the worker's jobs done for real: git, folders, the built-in agent."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.fakes.cancel_token import FakeCancelToken
from tests.fakes.events import EventRecorder
from tests.unit.jobs.fixtures import SCOTT, THREAD, leases, started
from webordinary.adapters.agents.builtin import BuiltinAgent
from webordinary.adapters.builders import PlainFiles
from webordinary.adapters.files.releases import FolderReleases
from webordinary.adapters.files.system import SystemClock
from webordinary.adapters.git import GitRepository
from webordinary.adapters.git.repository import QUICK_SECONDS
from webordinary.jobs.job import SiteJobs
from webordinary.jobs.ports import AgentResult, AgentTask, Answered
from webordinary.jobs.run import JobDeps
from webordinary.jobs.site_files import Stage
from webordinary.model.claims import CancelToken
from webordinary.model.jobs import Settlement
from webordinary.model.mail import Attachment, Command, Instruction
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project, SenderRole
from webordinary.operations.sample import ensure_sample_origin, sample_photo


@cache
def _origin() -> tempfile.TemporaryDirectory[str]:
    """The origin as it begins, made once by each process: a copy is made without git."""
    folder = tempfile.TemporaryDirectory(prefix="origin-")
    ensure_sample_origin(Path(folder.name) / "amelia.git")
    return folder


class SampleProject:
    """The sample project on disk, with everything that its workers share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.origin = folder / "origins" / "amelia.git"
        shutil.copytree(Path(_origin().name) / "amelia.git", self.origin)
        self.project = Project("amelia", str(self.origin))
        self.releases = FolderReleases(folder / "sites")
        self.dead: set[str] = set()
        self.leases = leases(self.dead)
        self.heard = EventRecorder()
        self.photo = folder / "photo"
        self.photo.write_bytes(sample_photo())

    def deps(self, worker: str = "w-1", quick_seconds: float = QUICK_SECONDS) -> JobDeps:
        repository = GitRepository(self.folder / "mirrors", self.folder / worker, worker, quick_seconds=quick_seconds)
        return JobDeps(
            workspaces=repository, main=repository, live=repository, leases=self.leases, releases=self.releases,
            agents={"builtin": BuiltinAgent()}, builders={"plain": PlainFiles()},
            project_of=lambda project_id: self.project, attachment_path=lambda attachment: self.photo,
            site_url=lambda project_id, stage: f"http://{stage}.{project_id}.localhost/",
            role_of=lambda *_: SenderRole.BOTH,
        )  # fmt: skip

    def send(
        self, text: str, job_id: str, *, deps: JobDeps | None = None, command: Command = Command.EDIT,
        thread: str = THREAD, key: ProjectUser = SCOTT, worker: str = "w-1", fence: int = 10,
        photos: tuple[Attachment, ...] = (), token: CancelToken | None = None, subject: str = "a wish",
        named: str = "", answers: str = "", sender: str = "", replies: bool = False,
    ) -> Settlement:  # fmt: skip
        begun = started(job_id, command, key=key, thread=thread, worker=worker, fence=fence)
        sender = sender or f"{key.user_id}@example.com"
        mail = Instruction(text, subject, sender, command, photos, named, answers, replies=replies)
        site_work = SiteJobs(deps or self.deps(worker), lambda job: mail, self.heard, SystemClock().now)
        return site_work.perform(begun, token or FakeCancelToken(worker, fence, job_id))

    def page(self, name: str = "index.html", stage: Stage = Stage.EDIT) -> str:
        current = self.releases.current("amelia", stage)
        assert current is not None
        return (current / name).read_text(encoding="utf-8")

    def git(self, *args: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.origin), *args], check=True, capture_output=True, text=True
        ).stdout.strip()

    def jobs_on_main(self) -> list[str]:
        return self.git("log", "--format=%(trailers:key=Job-Id,valueonly,separator=)", "main").split()

    def check(self) -> None:
        """What must hold after every story."""
        commits = self.git("log", "--format=%H", "main").split()
        releases = self.releases.list("amelia", Stage.EDIT)
        assert len(self.jobs_on_main()) == len(set(self.jobs_on_main()))
        assert {release.name for release in releases} <= {commit[:12] for commit in commits}
        current = self.releases.current("amelia", Stage.EDIT)
        if current is not None:
            link = self.folder / "sites" / "amelia" / "edit" / "current"
            assert link.resolve() == current.resolve()


class EndsWith:
    """An agent that changes nothing and ends with a follow-up."""

    is_free = True

    def __init__(self, then: str) -> None:
        self._then = then

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        return Answered("As you wish.", then=self._then)
