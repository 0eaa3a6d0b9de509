"""Git origins and workspaces in memory. A workspace knows of its origin what it last read, as a clone does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Protocol

from webordinary.adapters.git.workspaces import FenceMark, key_fence_ref, project_fence_ref
from webordinary.jobs.history import LiveState, Notes, WaitingChange, compare, standing
from webordinary.jobs.site_files import release_name
from webordinary.jobs.source import (
    Change,
    ChangeMessage,
    JobContext,
    MergeConflict,
    Merged,
    Note,
    PastChange,
    SourceTree,
    Workspace,
    read_note,
)
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Transient

MAIN = "main"
LIVE = "live"
Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    """One commit, with its whole tree and what its message says."""

    oid: str
    parent: str
    files: Files
    note: Note


@dataclass(frozen=True, slots=True)
class Seen:
    """An origin as it was read."""

    refs: Mapping[str, str]
    marks: Mapping[str, FenceMark]


@dataclass(frozen=True, slots=True)
class Pushed:
    """A push that was accepted: which refs it moved and which fences it carried."""

    moves: Mapping[str, str]
    fences: Mapping[str, int]


@dataclass(slots=True)
class MemoryOrigin:
    """One project's repository, shared by all workers."""

    name: str
    first_files: Files = field(default_factory=lambda: {"index.html": "hello"})
    commits: dict[str, MemoryCommit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    marks: dict[str, FenceMark] = field(default_factory=dict)
    pushes: list[Pushed] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        root = self.commit("", self.first_files, Note())
        self.refs[MAIN] = root.oid

    def commit(self, parent: str, files: Files, note: Note) -> MemoryCommit:
        """Make a commit object; no ref moves. Objects are made locally, so this is no effect."""
        commit = MemoryCommit(f"{self.name}-{next(self._numbers):04d}", parent, dict(files), note)
        self.commits[commit.oid] = commit
        return commit

    def read(self) -> Seen:
        """What a fetch brings."""
        return Seen(dict(self.refs), dict(self.marks))

    def push(self, moves: Mapping[str, str], marks: Mapping[str, FenceMark], seen: Seen) -> bool:
        """Move refs and marks if every one of them is where `seen` saw it."""
        refs_stand = all(self.refs.get(ref) == seen.refs.get(ref) for ref in moves)
        marks_stand = all(self.marks.get(ref) == seen.marks.get(ref) for ref in marks)
        if not (refs_stand and marks_stand):
            return False
        self.accept(moves, marks)
        return True

    def accept(self, moves: Mapping[str, str], marks: Mapping[str, FenceMark]) -> None:
        """The push is in."""
        self.refs |= moves
        self.marks |= marks
        self.pushes.append(Pushed(moves, {ref: mark.fence for ref, mark in marks.items()}))

    def files_before(self, commit: MemoryCommit) -> Files:
        """The tree of a commit's parent."""
        return self.commits[commit.parent].files if commit.parent else {}

    def change(self, commit: MemoryCommit) -> Change:
        """A commit as a job knows it."""
        before, note = self.files_before(commit), commit.note
        names = {name for name in {**before, **commit.files} if before.get(name) != commit.files.get(name)}
        return Change(commit.oid, note.summary, tuple(sorted(names)), note.undoes, note.then)

    def history(self, oid: str) -> Iterator[MemoryCommit]:
        """A commit and all before it, newest first."""
        while oid:
            commit = self.commits[oid]
            yield commit
            oid = commit.parent


_PUSH_TRIES = 40


class MemoryRemote(Protocol):
    """An origin over the network."""

    def read(self) -> Seen: ...
    def push(self, moves: Mapping[str, str], marks: Mapping[str, FenceMark], seen: Seen) -> bool: ...


@dataclass(slots=True)
class Copy:
    """A workspace: what was read of the origin, the checked-out commit and the files as they are now."""

    objects: MemoryOrigin
    remote: MemoryRemote
    seen: Seen = field(default_factory=lambda: Seen({}, {}))
    head: str = ""
    branch: str = ""
    """Where the thread's branch stands; a publication or a preview is checked out beside it."""
    files: dict[str, str] = field(default_factory=dict)
    stands_on: int = 0

    @property
    def main(self) -> str:
        """Main as it was read."""
        return self.seen.refs[MAIN]

    def read(self) -> None:
        """Fetch."""
        self.seen = self.remote.read()

    def check_out(self, oid: str, *, detached: bool = False) -> None:
        """A clean tree of this commit."""
        self.head, self.files = oid, dict(self.objects.commits[oid].files)
        self.branch = self.branch if detached else oid

    def ahead(self) -> list[MemoryCommit]:
        """What is checked out and not on main, newest first."""
        on_main = {commit.oid for commit in self.objects.history(self.main)}
        return [commit for commit in self.objects.history(self.head) if commit.oid not in on_main]

    def push(self, moves: Mapping[str, str], fences: Mapping[str, tuple[int, ClaimLost]]) -> bool:
        """Push under fences; False when somebody moved one of the refs, ClaimLost when a higher fence spoke."""
        moving = {ref: oid for ref, oid in moves.items() if self.seen.refs.get(ref) != oid}  # no server checks the rest
        for _ in range(_PUSH_TRIES):
            marks = {ref: _moved(self.seen.marks.get(ref), *fence) for ref, fence in fences.items()}
            if self.remote.push(moving, marks, self.seen):
                self.seen = Seen({**self.seen.refs, **moving}, {**self.seen.marks, **marks})
                return True
            before = self.seen
            self.read()
            for ref, fence in fences.items():
                _moved(self.seen.marks.get(ref), *fence)
            if any(self.seen.refs.get(ref) != before.refs.get(ref) for ref in moves):
                return False
        raise Transient("the fence moved too often during one push")


def _moved(mark: FenceMark | None, fence: int, lost: ClaimLost) -> FenceMark:
    after = (mark or FenceMark()).moved(fence)
    if after is None:
        raise lost
    return after


class MemoryRepository:
    """One worker's workspaces: Workspaces, MainBranch and LiveBranch, as GitRepository implements them.

    Every read and push of the origin is one call of its `Remote`, by default of the origin itself.
    """

    def __init__(
        self,
        origins: Mapping[str, MemoryOrigin],
        remotes: Mapping[str, MemoryRemote] | None = None,
        quick: Callable[[], bool] = lambda: True,
    ) -> None:
        self._origins, self._remotes, self._quick = origins, remotes or origins, quick
        self._copies: dict[Path, Copy] = {}

    def files_at(self, path: Path) -> dict[str, str]:
        """The files of a workspace, for the agent to change."""
        return self._copies[path].files

    # -- Workspaces ---------------------------------------------------------------------------------

    def prepare(self, work: JobContext) -> Workspace:
        """Move the key's fence on the origin, then read, then stand where the thread stands."""
        path = Path(work.key.project_id, work.key.user_id)
        copy = self._copies.setdefault(path, self._new_copy(work.key.project_id))
        if copy.stands_on != work.fence:
            copy.read()
            copy.push({}, _key_fence(work))
            copy.stands_on = work.fence
        copy.read()
        # At a first start, git does not search all of main: a push to main moves the thread's branch along.
        branch = copy.seen.refs.get(work.branch, copy.main)
        done = _on_main(copy, work, branch if work.is_first_start else copy.main)
        if done:
            copy.check_out(copy.main)
            return Workspace(work, path, made=copy.objects.change(done), on_main=True)
        return self._stand(copy, work, path)

    def commit(self, workspace: Workspace, message: ChangeMessage) -> Change | None:
        """Record what differs."""
        copy = self._copies[workspace.path]
        if copy.files == copy.objects.commits[copy.head].files:
            return None
        made = copy.objects.commit(copy.head, copy.files, read_note(message.text()))
        copy.check_out(made.oid)
        return copy.objects.change(made)

    def save(self, workspace: Workspace) -> None:
        """Put the thread's branch on the origin."""
        copy, work = self._copies[workspace.path], workspace.work
        if not copy.push({work.branch: copy.branch}, _key_fence(work)):
            raise Transient(f"another commit came to {work.branch}")

    def abandon(self, workspace: Workspace) -> None:
        """Put the thread's branch back to main."""
        copy, work = self._copies[workspace.path], workspace.work
        copy.check_out(copy.main)
        if work.branch in copy.seen.refs:
            copy.push({work.branch: copy.main}, _key_fence(work))

    def changes(self, workspace: Workspace) -> tuple[PastChange, ...]:
        """The thread's changes on main, the newest first."""
        copy, thread_id = self._copies[workspace.path], workspace.work.thread_id
        history = copy.objects.history
        left = standing(lambda head: ((c.oid, c.note) for c in history(head)), copy.main, thread_id)
        ours = [c for c in history(copy.main) if c.note.thread_id == thread_id and c.note.job_id and not c.note.undoes]
        return tuple(PastChange(copy.objects.change(c), c.note.job_id, c.note.title, c.oid in left) for c in ours)

    def revert(self, workspace: Workspace, change: Change) -> MergeConflict | None:
        """Take a change back in the workspace."""
        copy = self._copies[workspace.path]
        commit = copy.objects.commits[change.commit]
        before = copy.objects.files_before(commit)
        reverted = _applied(copy.files, old=commit.files, new=before)
        if reverted is None:
            return MergeConflict(change.changed_files)
        copy.files = reverted
        return None

    # -- MainLine -----------------------------------------------------------------------------------

    def enter(self, workspace: Workspace, lease: ProjectLease) -> None:
        """A quick job goes on with what it knows; a slow one saves its branch under both fences and reads."""
        copy, work = self._copies[workspace.path], workspace.work
        if self._quick():
            return
        moves = {} if workspace.on_main else {work.branch: copy.head}
        if not copy.push(moves, {**_key_fence(work), **_project_fence(lease)}):
            raise Transient(f"another commit came to {work.branch}")
        copy.read()

    def join(self, workspace: Workspace) -> Merged | MergeConflict:
        """Rebase the thread's commits onto main."""
        copy = self._copies[workspace.path]
        done = workspace.made if workspace.on_main else None
        if done is None and (found := _on_main(copy, workspace.work, copy.main)):
            done = copy.objects.change(found)
        if done is not None:
            copy.check_out(copy.main)
            return Merged(copy.main, done, _tree(copy), on_main=True)
        assert workspace.made is not None, "publish needs a change"
        conflicts = self._rebase(copy)
        if conflicts:
            return MergeConflict(conflicts)
        return Merged(copy.head, replace(workspace.made, commit=copy.head), _tree(copy), on_main=False)

    def push(self, workspace: Workspace, joined: Merged, lease: ProjectLease) -> bool:
        """Move main and the branch under both fences."""
        copy, work = self._copies[workspace.path], workspace.work
        moves = {MAIN: joined.head} if joined.on_main else {MAIN: joined.head, work.branch: joined.head}
        return copy.push(moves, {**_key_fence(work), **_project_fence(lease)})

    # -- LiveBranch ---------------------------------------------------------------------------------

    def compare(self, workspace: Workspace, public: str) -> LiveState:
        """Live beside main, as they were read."""
        copy = self._copies[workspace.path]
        live = copy.seen.refs.get(LIVE, "")
        head = live or _start_of_live(copy, public)
        return compare(
            MemoryLineHistory(copy.objects), copy.main, head, workspace.work.job_id, begun=bool(live or public)
        )

    def bring(
        self, workspace: Workspace, state: LiveState, picks: Sequence[WaitingChange] | None, message: ChangeMessage
    ) -> Merged | MergeConflict:
        """One commit on top of live."""
        copy = self._copies[workspace.path]
        copy.check_out(state.head, detached=True)
        main = copy.objects.commits[state.main].files
        done = bool(state.made) or (picks is not None and not picks and state.begun)
        if not done:
            if picks is None:
                copy.files = dict(main)
            for pick in picks or ():
                commit = copy.objects.commits[pick.commit]
                files = _applied(copy.files, old=copy.objects.files_before(commit), new=commit.files)
                if files is None:
                    return MergeConflict(pick.files)
                copy.files = files
            note = read_note(replace(message, shows=state.main if copy.files == main else "").text())
            copy.check_out(copy.objects.commit(state.head, copy.files, note).oid, detached=True)
        change = Change(copy.head, message.summary)
        return Merged(copy.head, change, _tree(copy), done, state.main if copy.files == main else "")

    def push_live(self, workspace: Workspace, merged: Merged, lease: ProjectLease) -> bool:
        """Move live under both fences."""
        copy, work = self._copies[workspace.path], workspace.work
        return copy.push({LIVE: merged.head}, {**_key_fence(work), **_project_fence(lease)})

    # -- in the workspace ---------------------------------------------------------------------------

    def _new_copy(self, project_id: str) -> Copy:
        return Copy(self._origins[project_id], self._remotes[project_id])

    def _stand(self, copy: Copy, work: JobContext, path: Path) -> Workspace:
        copy.check_out(copy.seen.refs.get(work.branch, copy.main))
        ahead = copy.ahead()
        note = ahead[0].note if ahead else Note()
        if note.job_id == work.job_id:
            return Workspace(work, path, made=copy.objects.change(ahead[0]))
        if note.saved_for == work.job_id:
            unfinished = copy.files
            copy.check_out(ahead[0].parent)
            copy.files = unfinished
            return Workspace(work, path, resumed=True)
        copy.check_out(copy.main)
        return Workspace(work, path)

    def _rebase(self, copy: Copy) -> tuple[str, ...]:
        tip = copy.main
        head = copy.head
        for commit in reversed(copy.ahead()):
            if commit.parent == tip:
                tip = commit.oid
                continue
            before = copy.objects.files_before(commit)
            onto = copy.objects.commits[tip].files
            files = _applied(onto, old=before, new=commit.files)
            if files is None:
                copy.check_out(head)
                return copy.objects.change(commit).changed_files
            tip = copy.objects.commit(tip, files, commit.note).oid
        copy.check_out(tip)
        return ()


class MemoryLineHistory:
    """See LineHistory."""

    def __init__(self, origin: MemoryOrigin) -> None:
        self._origin = origin

    def between(self, excluded: str, commit: str) -> Notes:
        known = {one.oid for one in self._origin.history(excluded)}
        return [(one.oid, one.note) for one in self._origin.history(commit) if one.oid not in known]

    def on_main(self, excluded: str, commit: str) -> Notes:
        return self.between(excluded, commit)

    def fork_point(self, main: str, commit: str) -> str:
        known = {one.oid for one in self._origin.history(main)}
        return next(one.oid for one in self._origin.history(commit) if one.oid in known)

    def files_of(self, commits: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {oid: self._origin.change(self._origin.commits[oid]).changed_files for oid in commits}


def _start_of_live(copy: Copy, public: str) -> str:
    """Where live begins: at the release that is public, else before any change."""
    if public:
        return next(oid for oid in copy.objects.commits if release_name(oid) == release_name(public))
    made = [commit for commit in copy.objects.history(copy.main) if commit.note.job_id]
    return (made[-1].parent if made else "") or copy.main


def _applied(files: Files, *, old: Files, new: Files) -> dict[str, str] | None:
    """`files` with what changed from `old` to `new`; None where another change of the same file differs."""
    changed = {name for name in {**old, **new} if old.get(name) != new.get(name)}
    if any(files.get(name) not in (old.get(name), new.get(name)) for name in changed):
        return None
    kept = {name: text for name, text in files.items() if name not in changed}
    return kept | {name: new[name] for name in changed if name in new}


def _on_main(copy: Copy, work: JobContext, tip: str) -> MemoryCommit | None:
    """The job's commit in the history of `tip`, if main has it."""
    on_main = {commit.oid for commit in copy.objects.history(copy.main)}
    ours = (commit for commit in copy.objects.history(tip) if commit.note.job_id == work.job_id)
    return next((commit for commit in ours if commit.oid in on_main), None)


def _tree(copy: Copy) -> SourceTree:
    return SourceTree(Path(copy.head), copy.objects.commits[copy.head].files)


def _key_fence(work: JobContext) -> dict[str, tuple[int, ClaimLost]]:
    return {key_fence_ref(work.key): (work.fence, ClaimLost(work.key, work.worker, work.fence))}


def _project_fence(lease: ProjectLease) -> dict[str, tuple[int, ClaimLost]]:
    lost = ClaimLost(lease.project_id, lease.worker, lease.fence)
    return {project_fence_ref(lease.project_id): (lease.fence, lost)}
