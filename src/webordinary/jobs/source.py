"""Workspaces, changes and commit messages: the source of a site between thread and main."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project


@dataclass(frozen=True, slots=True)
class JobContext:
    """The job that acts on a thread of a project, and its claim."""

    project: Project
    key: ProjectUser
    thread_id: str
    branch: str
    """The thread's branch."""
    job_id: str
    worker: str
    fence: int
    is_first_start: bool = False
    """Neither this job nor an earlier run of its mail was started before. Else the commit may be anywhere on main."""


@dataclass(frozen=True, slots=True)
class Change:
    """A commit that a job made."""

    commit: str
    summary: str
    changed_files: tuple[str, ...] = ()
    undoes: str = ""
    """The commit that it takes back."""
    then: str = ""
    """What the customer asked for in the same mail: `publish`, or `until` with a time."""


@dataclass(frozen=True, slots=True)
class PastChange:
    """A change of a thread on main; `stands` unless it was undone or rolled back."""

    change: Change
    job_id: str
    title: str
    stands: bool


@dataclass(frozen=True, slots=True)
class Workspace:
    """A key's copy of the source, clean, on the branch of the work's thread."""

    work: JobContext
    path: Path
    made: Change | None = None
    """The commit of an earlier attempt of this job: the agent does not run again."""
    on_main: bool = False
    """`made` is on main; only the release may be missing."""
    resumed: bool = False
    """The workspace holds the unfinished work of an interrupted attempt."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The tracked files of one commit, with an id of each one's content."""

    path: Path
    files: Mapping[str, str]
    project_id: str = ""
    """Set for a build: caches of builders are kept by project."""
    folder: str = ""
    """Where the site lies in it; empty: at the top."""

    def of(self, project: Project) -> SourceTree:
        """The same for a build of this project."""
        return replace(self, project_id=project.project_id, folder=project.folder)

    @property
    def site(self) -> SourceTree:
        """The part below the site's folder, as if that were all there is."""
        if not self.folder:
            return self
        prefix = f"{self.folder}/"
        files = {name.removeprefix(prefix): oid for name, oid in self.files.items() if name.startswith(prefix)}
        return SourceTree(self.path / self.folder, files, self.project_id)


@dataclass(frozen=True, slots=True)
class Merged:
    """The thread's work on top of main; `tree` is the source to build."""

    head: str
    change: Change
    tree: SourceTree
    on_main: bool
    """The branch holds this job's change already; only fences are pushed."""
    like_main: str = ""
    """On live: the commit of main that has the same content, if main has it now."""


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """Another change touched the same lines; nothing was changed."""

    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidChange:
    """The workspace holds a file that cannot be part of a site; nothing was committed. `reason` is for the customer."""

    reason: str


@dataclass(frozen=True, slots=True)
class Built:
    """A site's files are ready."""

    files: int
    builder: str
    log: str = ""
    """The output of the build programs."""


@dataclass(frozen=True, slots=True)
class BuildFailed:
    """The build failed; `reason` is for the customer, `log` for the operator."""

    reason: str
    log: str = ""
    mendable: bool = True
    """Another change of the source might build; False: a program is missing on this machine."""


SUBJECT_LENGTH = 68
INSTRUCTION_LENGTH = 4_000
SUMMARY_LENGTH = 4_000
_QUOTE = "> "


@dataclass(frozen=True, slots=True)
class ChangeMessage:
    """The content of a commit message. An `unfinished` commit never reaches main."""

    instruction: str
    summary: str
    job_id: str
    thread_id: str
    user_id: str
    sender: str
    undoes: str = ""
    unfinished: bool = False
    publishes: tuple[str, ...] = ()
    """On live: the commits of main whose changes this commit brings."""
    takes_back: tuple[str, ...] = ()
    """On live: the commits of main whose changes this commit removes."""
    shows: str = ""
    """On live: the commit of main whose whole content this commit has."""
    then: str = ""
    """What the customer asked for in the same mail: `publish`, or `until` with a time."""
    wish: str = ""
    """What was wished, where the instruction only answers a question about that: it is the title."""

    def text(self) -> str:
        """The commit message; quoting keeps the customer's text from posing as a trailer."""
        paragraphs = [
            self._subject(),
            _plain(self.summary, SUMMARY_LENGTH),
            _quoted(f"{self.wish}\n\n{self.instruction}" if self.wish else self.instruction),
            self._trailers(),
        ]
        return "\n\n".join(filter(None, paragraphs)) + "\n"

    @property
    def author(self) -> tuple[str, str]:
        """Name and address that git records."""
        return self.user_id, _one_line(self.sender).replace("<", "").replace(">", "") or "unknown"

    def _subject(self) -> str:
        words = _one_line(self.wish or self.instruction) or "A change"
        subject = words if len(words) <= SUBJECT_LENGTH else words[: SUBJECT_LENGTH - 1].rstrip() + "…"
        return f"Unfinished: {subject}" if self.unfinished else subject

    def _trailers(self) -> str:
        name, address = self.author
        lines = [
            f"{'Saved-For' if self.unfinished else 'Job-Id'}: {self.job_id}",
            f"Thread: {self.thread_id}",
            f"Customer: {name} <{address}>",
        ]
        if self.undoes:
            lines.append(f"Undoes: {self.undoes}")
        if self.then:
            lines.append(f"Then: {self.then}")
        lines += [f"Publishes: {commit}" for commit in self.publishes]
        lines += [f"Takes-Back: {commit}" for commit in self.takes_back]
        if self.shows:
            lines.append(f"Shows: {self.shows}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Note:
    """What our own commits say of themselves; all empty for anybody else's commit."""

    summary: str = ""
    job_id: str = ""
    saved_for: str = ""
    thread_id: str = ""
    undoes: str = ""
    then: str = ""
    title: str = ""
    rolled_back_to: str = ""
    """The commit whose content an operator brought back."""
    customer: str = ""
    """The user id of the person who asked for it."""
    sender: str = ""
    """The mail address that asked for it: several people may write in one conversation."""
    publishes: tuple[str, ...] = ()
    takes_back: tuple[str, ...] = ()
    shows: str = ""

    @property
    def content_of(self) -> str:
        """The earlier commit whose whole content this one has; empty for an ordinary change."""
        return self.rolled_back_to or self.shows


def read_note(text: str) -> Note:
    """Read a commit message back. Only the last paragraph can hold trailers, and never the first."""
    paragraphs = [p for p in text.strip("\n").split("\n\n") if p.strip()]
    if len(paragraphs) < 2:
        return Note()
    lines = [_trailer(line) for line in paragraphs[-1].splitlines()]
    trailers = dict(lines)
    body = [p for p in paragraphs[1:-1] if not p.startswith(_QUOTE.strip())]
    return Note(
        summary="\n\n".join(body),
        job_id=trailers.get("Job-Id", ""),
        saved_for=trailers.get("Saved-For", ""),
        thread_id=trailers.get("Thread", ""),
        undoes=trailers.get("Undoes", ""),
        then=trailers.get("Then", ""),
        title=paragraphs[0].strip() if "Job-Id" in trailers else "",
        rolled_back_to=trailers.get("Rolled-Back-To", ""),
        customer=trailers.get("Customer", "").partition(" <")[0],
        sender=trailers.get("Customer", "").partition(" <")[2].removesuffix(">"),
        publishes=tuple(value for name, value in lines if name == "Publishes"),
        takes_back=tuple(value for name, value in lines if name == "Takes-Back"),
        shows=trailers.get("Shows", ""),
    )


def _trailer(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name, value.strip()


def _plain(text: str, limit: int) -> str:
    lines = (" " + line if line.startswith(_QUOTE.strip()) else line for line in _lines(text, limit))
    return "\n".join(lines).strip("\n")


def _quoted(text: str) -> str:
    return "\n".join((_QUOTE + line).rstrip() for line in _lines(text, INSTRUCTION_LENGTH))


def _lines(text: str, limit: int) -> list[str]:
    printable = "".join(c for c in text[:limit] if c == "\n" or c.isprintable())
    return list(map(str.rstrip, printable.strip().split("\n")))


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
