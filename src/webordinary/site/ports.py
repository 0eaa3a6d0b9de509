"""What this room needs from the outside: sources, agents, builders, releases, programs and the right to publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from pathlib import Path
from typing import Protocol

from webordinary.model.claims import ProjectLease
from webordinary.model.hold import Hold
from webordinary.model.jobs import Job
from webordinary.model.projects import Project
from webordinary.site.deploy_plan import Origin, StoredManifest, Upload
from webordinary.site.messages import ChangeMessage
from webordinary.site.pictures import Pictures
from webordinary.site.reach import NOTHING_ELSE, Reach
from webordinary.site.releases import Release, Stage
from webordinary.site.sources import (
    BuildFailed,
    Built,
    Change,
    Conflicted,
    Joined,
    PastChange,
    SourceTree,
    Unfit,
    Work,
    Workspace,
)
from webordinary.site.task import AgentResult, AgentTask


def free_to_go_on() -> None:
    """A check for those whom nobody stops."""


class ProjectLeases(Protocol):
    """Who may publish which project. Each method is one atomic step."""

    def take(self, project_id: str, hold: Hold, now: datetime) -> ProjectLease | None:
        """Take the right to publish for the job of `hold`, under a new and higher fence.

        None while another job holds it; a holder whose job no longer runs, or whose process is dead, does not. A job
        that is tried again does not wait for its own.
        A hold without a job is an operator's, and lasts as long as the operator's process.
        """

    def overtake(self, project_id: str, hold: Hold, now: datetime) -> ProjectLease | None:
        """Take it also from a job that has not confirmed yet: for an operator, who does not wait for a build."""

    def confirm(self, lease: ProjectLease) -> None:
        """Before the first effect: nobody overtakes from now on. Raises ClaimLost when a newer lease exists."""

    def release(self, lease: ProjectLease) -> None:
        """Give it back; nothing happens if a newer lease exists."""


class Workspaces(Protocol):
    """A key's copy of its site's source, on the branch of one thread. Every write to the origin is fenced."""

    def prepare(self, work: Work) -> Workspace:
        """A clean workspace where the thread stands; the key's fence on the origin is moved before reading.

        Raises ClaimLost when a newer claim acts for the key, Transient when the origin does not answer.
        """

    def commit(self, workspace: Workspace, message: ChangeMessage) -> Change | Unfit | None:
        """Record what differs in the workspace; None when nothing does. Unfit says what cannot be part of a site."""

    def save(self, workspace: Workspace) -> None:
        """Put the thread's branch on the origin under the claim's fence, so that any worker can go on from it."""

    def abandon(self, workspace: Workspace) -> None:
        """Put the thread's branch back to main, here and on the origin: its next mail starts from the site as it is."""

    def changes(self, workspace: Workspace) -> tuple[PastChange, ...]:
        """The thread's changes on main, the newest first, at most some hundreds; also those that were undone."""

    def revert(self, workspace: Workspace, change: Change) -> Conflicted | None:
        """Take a change back in the workspace (not yet recorded); Conflicted leaves the workspace clean."""

    def shows(self, workspace: Workspace, release: str, commit: str) -> bool:
        """Whether a release, by its name, shows this change of the thread: it was there, and not taken back again."""


class MainLine(Protocol):
    """The published line of a project's source. Only the holder of its lease moves it."""

    def enter(self, workspace: Workspace, lease: ProjectLease) -> None:
        """Know main: as it is now, or as it was a moment ago when the workspace was prepared.

        Work that took long is saved on the thread's branch first, under both fences. Nobody is kept out by this:
        `push` alone decides, as it moves main only from where `join` found it.
        """

    def join(self, workspace: Workspace) -> Joined | Conflicted:
        """Put the thread's work onto main as it is known; nothing leaves the workspace yet."""

    def push(self, workspace: Workspace, joined: Joined, lease: ProjectLease) -> bool:
        """Move main and the thread's branch to the joined commit under both fences; False if main had moved.

        Of what is on main already only the fences move: from then on no older lease can move main.
        """


class Restoring(Protocol):
    """Takes main back to an earlier content, for an operator."""

    def restore(self, project: Project, name: str, lease: ProjectLease) -> str | None:
        """Put a commit with the content of a release on top of main, fenced; None if main has that content.

        Raises ClaimLost when a higher fence has spoken, Permanent when the release's commit is not on main.
        """


class Agent(Protocol):
    """Something that can follow an instruction in a workspace."""

    def run(self, task: AgentTask, hold: Hold) -> AgentResult:
        """Follow the instruction; raises what `hold.check` raises when it had to stop early."""


class Builder(Protocol):
    """Turns a source tree into the files of a site."""

    def fits(self, tree: SourceTree) -> bool:
        """Whether this looks like a source for this builder."""

    def build(self, tree: SourceTree, into: Path, previous: Path | None, hold: Hold) -> Built | BuildFailed:
        """Fill the empty folder `into`; `previous` is the last release, whose unchanged files may be shared."""


class Releases(Protocol):
    """The published states of a site; each is immutable, and one is current.

    Where sites lie in buckets, a release is known to other workers once it has been current.
    """

    def stage(self, project_id: str, stage: Stage, fence: int) -> Path:
        """An empty folder to build into; what holders of lower fences left behind is removed."""

    def finish(self, project_id: str, stage: Stage, staged: Path, commit: str) -> Release:
        """Make the staged folder the release of this commit, durably; an existing one is used instead."""

    def find(self, project_id: str, stage: Stage, commit: str) -> Release | None:
        """The finished release of a commit."""

    def promote(self, project_id: str, source: Stage, target: Stage, fence: int) -> Release | None:
        """Make one stage's current release a release of another stage; None if there is none."""

    def point(self, release: Release, fence: int, check: Callable[[], None] = free_to_go_on) -> bool:
        """Make it current unless a higher fence has spoken; True if visitors now see another release.

        Where that takes long, `check` is asked meanwhile, and what it raises ends it; the next holder finishes it.
        """

    def shut_out(self, project_id: str, stage: Stage, fence: int) -> None:
        """Let no lower fence make anything current from now on; what is current stays, and so does nothing at all."""

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """The folder that visitors see; where sites lie in buckets, a worker may have no copy of it."""

    def list(self, project_id: str, stage: Stage) -> tuple[Release, ...]:
        """All kept releases, newest first."""


class Programs(Protocol):
    """Runs an outside program to its end, in a jail of its own, with bounded time and output."""

    def run(
        self,
        args: Sequence[str],
        cwd: Path,
        stdin: bytes,
        env: Mapping[str, str],
        seconds: float,
        hold: Hold,
        reach: Reach = NOTHING_ELSE,
    ) -> tuple[int, bytes, bytes]:
        """Exit code, output and errors; asked to stop through `hold` it ends and `hold.check` says why.

        Raises JobTimedOut when the time is over, Permanent when it used up something else or no jail works here.
        """


class Cell(Protocol):
    """One jail, for one run of one program that its driver starts and talks to. Nothing outlives it."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment to start the program with; what the program sees was given to `Jail.cell`."""

    def argv(self, args: Sequence[str]) -> list[str]:
        """How to start the program in here. Paths inside are those outside. Start it once."""

    def program(self, args: Sequence[str]) -> Path:
        """The same as a file to execute, for libraries that want a path; what they add to it becomes arguments."""

    def url(self, upstream: str) -> str:
        """Under which address the program finds an upstream of its network."""

    def interrupt(self) -> None:
        """SIGINT to the program and its group; callable from any thread, also when it has ended."""


class Jail(Protocol):
    """Where outside programs run, as nobody, seeing only what they were given."""

    def cell(
        self, workspace: Path, env: Mapping[str, str], reach: Reach = NOTHING_ELSE
    ) -> AbstractContextManager[Cell]:
        """A cell for a program working in `workspace`; when the block ends, all that ran in it is gone.

        Leaving raises Permanent when the program used up its memory, processes or disk, or left what is neither
        file nor folder, and MustWait when others filled the disk. Entering raises Permanent where no jail works,
        unless the operator allows that.
        The thread that starts the program must live as long as the program.
        """


class Ledger(Protocol):
    """What agents cost."""

    def spend(self, job: Job, usd: float, now: datetime) -> None:
        """Write down what one run of an agent cost."""

    def on_day(self, project_id: str, day: date) -> float:
        """What a project cost on a day, UTC."""

    def of_job(self, job_id: str) -> float:
        """What a job cost, all its runs together."""


class Sessions(Protocol):
    """An agent's memory of a thread, so that a reply continues the conversation on any worker."""

    def session_of(self, thread_id: str) -> str:
        """The agent's session, empty for a new thread."""

    def keep_session(self, thread_id: str, session: str) -> None:
        """Remember it."""


class Photographer(Protocol):
    """Takes pictures of pages."""

    def take(self, before: Path | None, after: Path, page: str, seconds: float) -> Pictures:
        """A page in two releases, in bounded time; never raises: at worst there are no pictures."""


class BuildLogs(Protocol):
    """What a site's own programs said while it was built, kept by job."""

    def add(self, job_id: str, text: str) -> None:
        """Keep it, bounded; never fails its caller."""


class SessionFiles(Protocol):
    """The files of agents' sessions: one archive per thread, replaced whole, found by any worker."""

    def fetch(self, project_id: str, thread_id: str, folder: Path) -> Path | None:
        """The archive, to be read only; None if there is none. `folder` has room for a copy of it."""

    def keep(self, project_id: str, thread_id: str, archive: Path) -> None:
        """Replace it, durably. Raises Transient."""

    def drop(self, project_id: str, thread_id: str) -> None:
        """Forget it; there may be none."""


class ObjectStore(Protocol):
    """Where a site lies as objects, one per path, with one manifest that nobody is served.

    What is replaced or removed is kept for long: versions name it.
    """

    @property
    def name(self) -> str:
        """Under which other stores find it."""

    def manifest(self) -> StoredManifest | None:
        """What was written last, with its version."""

    def recall(self, version: str) -> bytes:
        """What was written earlier. Raises Permanent when it is not kept any longer."""

    def swap_manifest(self, text: bytes, expected: str | None) -> str | None:
        """Write it if its version is still the expected one (None: there is none yet); the new version, else None."""

    def put_all(self, uploads: Sequence[tuple[Upload, Origin]]) -> Mapping[str, str]:
        """Write objects with their type and caching, in any order, each whole or not at all; their versions by path.

        Raises Transient, and Permanent when an origin is not kept any longer.
        """

    def delete(self, paths: Sequence[str]) -> None:
        """Remove up to 1000 objects; those that are gone already do not matter. Raises Transient."""
