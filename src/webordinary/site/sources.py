"""Workspaces and changes: the source of a site on its way from the thread's branch to main."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from webordinary.model.names import ProjectUser, branch_of
from webordinary.model.projects import Project


@dataclass(frozen=True, slots=True)
class Work:
    """Which job acts on which thread of a project, and under which claim."""

    project: Project
    key: ProjectUser
    thread_id: str
    job_id: str
    worker: str
    fence: int
    recorded_at: datetime
    """No commit of this job is older, so that looking for one need not read the whole history."""

    @property
    def branch(self) -> str:
        """The thread's branch."""
        return branch_of(self.thread_id)


@dataclass(frozen=True, slots=True)
class Change:
    """A commit that a job made."""

    commit: str
    summary: str
    changed_files: tuple[str, ...] = ()
    undoes: str = ""
    """The commit that it takes back."""


@dataclass(frozen=True, slots=True)
class PastChange:
    """A change that a job of a thread brought to main; `stands` unless it was undone or rolled back since."""

    change: Change
    job_id: str
    title: str
    stands: bool


@dataclass(frozen=True, slots=True)
class Workspace:
    """A key's copy of the source, clean, on the branch of the work's thread."""

    work: Work
    path: Path
    made: Change | None = None
    """What an earlier attempt of this job recorded already: the agent need not run again."""
    on_main: bool = False
    """`made` is on main already; only the release may be missing."""
    resumed: bool = False
    """An interrupted attempt's unfinished work lies in the workspace."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The tracked files of one commit, with an id of each one's content."""

    path: Path
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Joined:
    """The thread's work sits on top of main; `tree` is what will be built."""

    head: str
    change: Change
    tree: SourceTree
    on_main: bool
    """Nothing is to be pushed: main holds this job's change already."""


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Somebody else changed the same lines; nothing was changed."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unfit:
    """What was left in the workspace cannot be part of the site; nothing was recorded. `reason` is for the customer."""

    reason: str


@dataclass(frozen=True, slots=True)
class Built:
    """A site's files are ready."""

    files: int
    builder: str
    log: str = ""
    """What the site's own programs said."""


@dataclass(frozen=True, slots=True)
class BuildFailed:
    """No site came out; `reason` is for the customer, `log` for the operator."""

    reason: str
    log: str = ""
    mendable: bool = True
    """Another change of the source might build; otherwise something on this machine is missing."""
