"""Ports of jobs: sources, agents, builders, releases, sandboxed programs and project leases.

AgentTask is what an agent is asked, with the four ways it can end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Protocol

from webordinary.jobs.history import LiveState, WaitingChange
from webordinary.jobs.sandbox_policy import NO_ACCESS, SandboxPolicy
from webordinary.jobs.site_files import Release, Stage
from webordinary.jobs.source import (
    BuildFailed,
    Built,
    Change,
    ChangeMessage,
    InvalidChange,
    JobContext,
    MergeConflict,
    Merged,
    PastChange,
    SourceTree,
    Workspace,
)
from webordinary.model.claims import CancelToken, ProjectLease
from webordinary.model.jobs import Job
from webordinary.model.mail import Attachment
from webordinary.model.projects import Project

SMALLER = "Nothing was changed. Please ask for it in smaller steps."


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What one run may use up; of money, what earlier runs for the same mail have left."""

    seconds: float = 1800.0
    output_bytes: int = 1_000_000
    turns: int = 60
    cost_usd: float = 5.0
    """For one mail, all runs together."""
    spent_usd: float = 0.0
    """By earlier runs."""

    @property
    def left_usd(self) -> float:
        """What this run may cost."""
        return max(0.0, self.cost_usd - self.spent_usd)

    @property
    def too_costly(self) -> str:
        """The exceeded limit of cost, in words."""
        return f"more work than one mail may cost (${self.cost_usd:.2f})"


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A customer's file, where the agent can read it."""

    attachment: Attachment
    path: Path
    webp: Path | None = None
    """The same photo as WebP, to stand beside it where a page can name both."""


def ignore_progress(message: object) -> None:
    """Ignores progress."""


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One instruction, to be followed in one workspace.

    `tell` gets a few words now and then about what the agent does, a bounded number of times; `spent` gets what the
    run cost in dollars, once, also when it fails. Both may be called from any thread.
    """

    instruction: str
    workspace: Path
    attachments: tuple[AttachedFile, ...] = ()
    session: str = ""
    limits: AgentLimits = field(default_factory=AgentLimits)
    project_id: str = ""
    thread_id: str = ""
    tell: Callable[[str], None] = ignore_progress
    spent: Callable[[float], None] = ignore_progress
    note: str = ""
    """What went wrong the first time, for an agent that can use it."""

    wishes: tuple[str, ...] = ()
    """What holds for every change of this site."""

    now: datetime | None = None
    """The time, in the time zone of the site: what dates in the instruction are counted from."""
    is_due: bool = False
    """An earlier run ended with `later`, and that time has come."""
    subject: str = ""
    """What the customer wrote above the instruction, as its subject."""

    @property
    def words(self) -> str:
        """The instruction with the site's standing wishes and the note, as one text."""
        kept = "\n".join(
            ["Standing wishes for this site, for whatever you write:", *(f"- {one}" for one in self.wishes)]
        )
        return "\n\n".join(filter(None, (self.instruction, kept if self.wishes else "", self.note)))


@dataclass(frozen=True, slots=True)
class Changed:
    """The agent has changed the workspace; `summary` describes it to the customer."""

    summary: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""
    then: str = ""
    """`publish` or `undo`: what the customer wants done after it; `later` or `until`: see `at`; empty for nothing."""
    at: str = ""
    """An ISO date or time in the site's time zone: do nothing before (`later`), or take the change back (`until`)."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer without a change."""

    text: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""
    then: str = ""
    """`publish` or `undo`: what the customer wants done after it; `later` or `until`: see `at`; empty for nothing."""
    at: str = ""
    """An ISO date or time in the site's time zone: do nothing before (`later`), or take the change back (`until`)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question back to the customer; nothing is changed."""

    question: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """The agent did not understand; `text` says what it can do. Nothing is changed."""

    text: str
    session: str = ""
    cost_usd: float = 0.0
    agent: str = ""


AgentResult = Changed | Answered | Asked | NotUnderstood


@dataclass(frozen=True, slots=True)
class ScreenshotPair:
    """PNG screenshots of one page; empty if the page did not exist or the time was over."""

    page: str
    before: bytes = b""
    after: bytes = b""


def no_check() -> None:
    """A check that never raises, for callers without a cancel token."""


class ProjectLeases(Protocol):
    """Mutual exclusion of deployments, by project. Each method is one atomic step."""

    def take(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        """Take the lease for the token's job, under a new and higher fence; None while another job holds it.

        The lease of a job that no longer runs, or of a dead process, is free. A retried job does not wait for its own
        lease. A token without a job is an operator's; its lease lasts as long as the operator's process.
        """

    def overtake(self, project_id: str, token: CancelToken, now: datetime) -> ProjectLease | None:
        """Take the lease also from a job that has not confirmed it: an operator does not wait for a build."""

    def confirm(self, lease: ProjectLease) -> None:
        """Before the first effect: `overtake` fails from now on. Raises ClaimLost if a newer lease exists."""

    def release(self, lease: ProjectLease) -> None:
        """End the lease; no effect if a newer one exists."""


class Workspaces(Protocol):
    """A key's copy of its site's source, on the branch of one thread. Every write to the origin is fenced."""

    def prepare(self, work: JobContext) -> Workspace:
        """A clean workspace at the head of the thread's branch; moves the key's fence on the origin before it reads.

        Raises ClaimLost if a newer claim acts for the key, Transient if the origin does not answer.
        """

    def commit(self, workspace: Workspace, message: ChangeMessage) -> Change | InvalidChange | None:
        """Commit the differences; None if there are none, InvalidChange if a file cannot be part of a site."""

    def save(self, workspace: Workspace) -> None:
        """Push the thread's branch under the claim's fence, so that any worker can resume from it."""

    def abandon(self, workspace: Workspace) -> None:
        """Reset the thread's branch to main, here and on the origin; its next mail starts from main."""

    def changes(self, workspace: Workspace) -> tuple[PastChange, ...]:
        """The thread's changes on main, newest first, at most some hundreds; undone ones included."""

    def revert(self, workspace: Workspace, change: Change) -> MergeConflict | None:
        """Revert a change in the workspace, without a commit; after a conflict the workspace is clean."""


class MainBranch(Protocol):
    """The main branch of a project's source. Only the holder of the project's lease moves it."""

    def enter(self, workspace: Workspace, lease: ProjectLease) -> None:
        """Read main: its state now, or a moment ago when the workspace was prepared.

        Saves long work on the thread's branch first, under both fences. Excludes no other worker: only `push`
        decides, because it moves main only from the commit that `join` found.
        """

    def join(self, workspace: Workspace) -> Merged | MergeConflict:
        """Merge the thread's work onto main as last read; pushes nothing."""

    def push(self, workspace: Workspace, joined: Merged, lease: ProjectLease) -> bool:
        """Move main and the thread's branch to the merged commit under both fences; False if main had moved.

        If the commit is on main already, only the fences move: no older lease can move main after that.
        """


class LiveBranch(Protocol):
    """The branch that the public site shows. Only the holder of the project's lease moves it.

    It begins at the commit of the public release, or before the first change of a site that was never public.
    """

    def compare(self, workspace: Workspace, public: str) -> LiveState:
        """Live beside main, both as last read; `public` is the release that the public site shows, if there is one."""

    def bring(
        self, workspace: Workspace, state: LiveState, picks: Sequence[WaitingChange] | None, message: ChangeMessage
    ) -> Merged | MergeConflict:
        """Commit these changes on top of live, in this order, or the whole content of main; pushes nothing.

        Without any pick, and for a job that has its commit on live, the result is live as it is.
        """

    def push_live(self, workspace: Workspace, merged: Merged, lease: ProjectLease) -> bool:
        """Move live under both fences; False if live had moved. Only the fences move if live is there already."""


class SourceRollback(Protocol):
    """Restores an earlier content of main or live, for an operator."""

    def restore(self, project: Project, stage: Stage, name: str, lease: ProjectLease) -> str | None:
        """Commit the content of a release on top of the stage's branch, fenced; None if it has that content.

        Raises ClaimLost if a higher fence was used, Permanent if the release's commit is not on that branch.
        """


class Agent(Protocol):
    """Follows an instruction in a workspace."""

    def run(self, task: AgentTask, token: CancelToken) -> AgentResult:
        """Follow the instruction; raises what `token.check` raises if it had to stop early."""


class Builder(Protocol):
    """Turns a source tree into the files of a site."""

    def fits(self, tree: SourceTree) -> bool:
        """Whether this builder can build the source."""

    def build(self, tree: SourceTree, into: Path, previous: Path | None, token: CancelToken) -> Built | BuildFailed:
        """Fill the empty folder `into`; unchanged files may be hard links to `previous`, the last release."""


class Releases(Protocol):
    """The releases of a site, by stage; each is immutable, and one is current.

    With sites in S3, other workers know a release once it has been current.
    """

    def stage(self, project_id: str, stage: Stage, fence: int) -> Path:
        """An empty folder to build into; removes the folders of lower fences."""

    def finish(self, project_id: str, stage: Stage, staged: Path, commit: str) -> Release:
        """Make the staged folder the release of this commit, durably; returns an existing one instead."""

    def find(self, project_id: str, stage: Stage, commit: str) -> Release | None:
        """The finished release of a commit."""

    def promote(self, project_id: str, source: Stage, target: Stage, fence: int, commit: str) -> Release | None:
        """Make one stage's current release the release of `commit` of another stage; None if there is none."""

    def activate(self, release: Release, fence: int, check: Callable[[], None] = no_check) -> bool:
        """Make it current unless a higher fence was used; True if visitors now see another release.

        A long activation calls `check` and ends with what it raises; the next lease holder completes it.
        """

    def current(self, project_id: str, stage: Stage) -> Path | None:
        """The folder of the current release; with sites in S3, this worker may have no copy of it."""

    def list(self, project_id: str, stage: Stage) -> tuple[Release, ...]:
        """All kept releases, newest first."""

    def previews(self, project_id: str) -> tuple[Stage, ...]:
        """The previews of conversations that show something, the newest first."""

    def drop(self, project_id: str, preview: Stage) -> None:
        """Remove a preview with its releases; what cannot be removed now is left. Idempotent."""


class ProgramRunner(Protocol):
    """Runs an outside program to its end in its own sandbox, with bounded time and output."""

    def run(
        self,
        args: Sequence[str],
        cwd: Path,
        stdin: bytes,
        env: Mapping[str, str],
        seconds: float,
        token: CancelToken,
        policy: SandboxPolicy = NO_ACCESS,
        hear: Callable[[str], None] = ignore_progress,
    ) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr; a cancelled token ends the program and `token.check` raises.

        `hear` gets each line of stderr while the program runs.
        Raises JobTimedOut if the time is over, Permanent if it exceeded another limit or no sandbox works here.
        """


class SandboxRun(Protocol):
    """One sandbox for one run of a program, which the caller starts and talks to. No process outlives it."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment for starting the program; the program itself sees the one given to `Sandbox.open`."""

    def argv(self, args: Sequence[str]) -> list[str]:
        """The arguments that start the program in the sandbox, once. Paths are the same inside and outside."""

    def program(self, args: Sequence[str]) -> Path:
        """The same as an executable file, for libraries that need a path; their arguments are appended."""

    def url(self, upstream: str) -> str:
        """The address of an upstream of the policy's network, inside the sandbox."""

    def interrupt(self) -> None:
        """Send SIGINT to the program's process group; callable from any thread, also after its end."""


class Sandbox(Protocol):
    """Runs outside programs without privileges, with access to named files only."""

    def open(
        self, workspace: Path, env: Mapping[str, str], policy: SandboxPolicy = NO_ACCESS
    ) -> AbstractContextManager[SandboxRun]:
        """A sandbox for a program in `workspace`; at the end of the block all its processes are gone.

        The exit raises Permanent if the program exceeded its memory, processes, CPU time or disk, or left a special
        file; MachineFault if the disk is full for another reason. The entry raises Permanent if no sandbox works here
        and the operator did not allow unconfined programs.
        The thread that starts the program must live as long as the program.
        """


class Ledger(Protocol):
    """Costs of agents."""

    def spend(self, job: Job, usd: float, now: datetime) -> None:
        """Record the cost of one run of an agent."""

    def on_day(self, project_id: str, day: date) -> float:
        """The cost of a project on a day, UTC."""

    def of_job(self, job_id: str) -> float:
        """The cost of all runs of a job."""


class Sessions(Protocol):
    """The agent sessions of threads, so that a reply continues the conversation on any worker."""

    def session_of(self, thread_id: str) -> str:
        """The agent's session, empty for a new thread."""

    def keep_session(self, thread_id: str, session: str) -> None:
        """Store the session of a thread."""


class Screenshotter(Protocol):
    """Takes screenshots of pages."""

    def take(self, before: Path | None, after: Path, page: str, seconds: float) -> ScreenshotPair:
        """A page in two releases, in bounded time; never raises, returns empty images after an error."""


class BuildLogs(Protocol):
    """The output of build programs, by job."""

    def add(self, job_id: str, text: str) -> None:
        """Append to the log, bounded; never raises."""


class SessionFiles(Protocol):
    """The files of agents' sessions: one archive per thread, replaced whole, found by any worker."""

    def fetch(self, project_id: str, thread_id: str, folder: Path) -> Path | None:
        """The archive, read-only; None if there is none. An implementation may download it to `folder`."""

    def keep(self, project_id: str, thread_id: str, archive: Path) -> None:
        """Replace it, durably. Raises Transient."""

    def drop(self, project_id: str, thread_id: str) -> None:
        """Delete it, if there is one."""
