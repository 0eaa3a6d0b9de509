"""Origins and workspaces in memory: files are texts, a commit is a number, and the fences are the real ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from webordinary.jobs.history import LiveState, Notes, WaitingChange, compare, live_branch, standing
from webordinary.jobs.site_files import release_name
from webordinary.jobs.source import (
    Change,
    ChangeMessage,
    FenceMark,
    JobContext,
    MergeConflict,
    Merged,
    Note,
    PastChange,
    SourceTree,
    Workspace,
    key_fence_ref,
    project_fence_ref,
    read_note,
)
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Transient

MAIN = "main"
LIVE = live_branch(MAIN)


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    """Immutable, like the real thing."""

    commit: str
    parent: str | None
    files: Mapping[str, str]
    note: Note = field(default_factory=Note)


class MemoryOrigin:
    """What all workers share: one project's commits, branches and fence marks."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.commits: dict[str, MemoryCommit] = {}
        self.marks: dict[str, FenceMark] = {}
        self.lock = threading.Lock()
        self.branches = {MAIN: self.add(None, files, Note()).commit}

    def add(self, parent: str | None, files: Mapping[str, str], note: Note) -> MemoryCommit:
        """A new commit; it is on no branch yet."""
        commit = MemoryCommit(f"{len(self.commits) + 1:012x}{0:028x}", parent, dict(files), note)
        self.commits[commit.commit] = commit
        return commit

    def history(self, commit: str | None) -> Iterator[MemoryCommit]:
        """From a commit back to the first."""
        while commit is not None:
            yield self.commits[commit]
            commit = self.commits[commit].parent

    def push(
        self, moves: Mapping[str, str], known: Mapping[str, str], fences: Mapping[str, int], who: tuple[object, str]
    ) -> bool:
        """All refs and fences, or nothing: the one atomic step that the real origin offers."""
        with self.lock:
            for ref, fence in fences.items():
                if self.marks.get(ref, FenceMark()).moved(fence) is None:
                    raise ClaimLost(who[0], who[1], fence)
            if any(self.branches.get(name) != known.get(name) for name in moves):
                return False
            for ref, fence in fences.items():
                self.marks[ref] = FenceMark(fence, self.marks.get(ref, FenceMark()).counter + 1)
            self.branches.update(moves)
            return True


@dataclass(slots=True)
class _Desk:
    """A workspace: the files being edited, the commit they stand on, and the branches as last read."""

    files: dict[str, str]
    head: str
    known: dict[str, str]
    overtaken: bool = False
    """Main has moved since it was read, or may have."""


class MemoryRepository:
    """One worker's workspaces. Agents and tests read and write a workspace's files through `files`."""

    def __init__(self, origins: Mapping[str, MemoryOrigin], *, quick: bool = True) -> None:
        self._origins, self._quick = origins, quick
        self._desks: dict[Path, _Desk] = {}

    def files(self, path: Path) -> dict[str, str]:
        """The files of a workspace, to be changed in place."""
        return self._desks[path].files

    def prepare(self, work: JobContext) -> Workspace:
        origin, path = self._origin(work), Path("/memory") / work.worker / str(work.key)
        self._push(work, {}, {})
        known = dict(origin.branches)
        desk = self._desks[path] = _Desk({}, known[MAIN], known)
        done = self._on_main(origin, work, desk)
        if done is not None:
            self._stand(origin, desk, known[MAIN])
            return Workspace(work, path, made=done, on_main=True)
        tip = origin.commits[known.get(work.branch, known[MAIN])]
        if any(tip.commit == commit.commit for commit in origin.history(known[MAIN])):
            tip = origin.commits[known[MAIN]]
        elif tip.note.saved_for == work.job_id:
            self._stand(origin, desk, tip.commit)
            desk.head = tip.parent or tip.commit
            return Workspace(work, path, resumed=True)
        elif tip.note.job_id == work.job_id:
            self._stand(origin, desk, tip.commit)
            return Workspace(work, path, made=_change(origin, tip))
        elif tip.note.job_id or tip.note.saved_for:
            tip = origin.commits[known[MAIN]]
        self._stand(origin, desk, tip.commit)
        return Workspace(work, path)

    def commit(self, workspace: Workspace, message: ChangeMessage) -> Change | None:
        origin, desk = self._origin(workspace.work), self._desks[workspace.path]
        if desk.files == origin.commits[desk.head].files:
            return None
        commit = origin.add(desk.head, desk.files, read_note(message.text()))
        desk.head = commit.commit
        return Change(commit.commit, message.summary, _change(origin, commit).changed_files, message.undoes)

    def save(self, workspace: Workspace) -> None:
        desk, branch = self._desks[workspace.path], workspace.work.branch
        if not self._push(workspace.work, {branch: desk.head}, desk.known):
            raise Transient(f"somebody else moved {branch}")
        desk.known[branch] = desk.head
        desk.overtaken = True

    def abandon(self, workspace: Workspace) -> None:
        origin, desk, work = self._origin(workspace.work), self._desks[workspace.path], workspace.work
        self._stand(origin, desk, desk.known[MAIN])
        if work.branch in desk.known and self._push(work, {work.branch: desk.head}, desk.known):
            desk.known[work.branch] = desk.head

    def changes(self, workspace: Workspace) -> tuple[PastChange, ...]:
        origin, thread_id = self._origin(workspace.work), workspace.work.thread_id
        head = self._desks[workspace.path].known[MAIN]
        left = standing(lambda at: ((c.commit, c.note) for c in origin.history(at)), head, thread_id)
        ours = [c for c in origin.history(head) if c.note.thread_id == thread_id]
        return tuple(
            PastChange(_change(origin, c), c.note.job_id, c.note.title, c.commit in left)
            for c in ours
            if c.note.job_id and not c.note.undoes
        )

    def revert(self, workspace: Workspace, change: Change) -> MergeConflict | None:
        origin, desk = self._origin(workspace.work), self._desks[workspace.path]
        commit = origin.commits[change.commit]
        before = origin.commits[commit.parent].files if commit.parent else {}
        return _merge(desk.files, base=commit.files, theirs=before)

    def enter(self, workspace: Workspace, lease: ProjectLease) -> None:
        desk, work = self._desks[workspace.path], workspace.work
        if self._quick and not desk.overtaken:
            return
        desk.overtaken = False
        moves = {} if workspace.on_main else {work.branch: desk.head}
        if not self._push(work, moves, desk.known, lease):
            raise Transient(f"somebody else moved {work.branch}")
        desk.known = dict(self._origin(work).branches)

    def join(self, workspace: Workspace) -> Merged | MergeConflict:
        origin, desk, work = self._origin(workspace.work), self._desks[workspace.path], workspace.work
        main = origin.commits[desk.known[MAIN]]
        done = self._on_main(origin, work, desk)
        if done is not None:
            self._stand(origin, desk, main.commit)
            return Merged(main.commit, done, SourceTree(workspace.path, dict(main.files)), on_main=True)
        assert workspace.made is not None
        mine = origin.commits[desk.head]
        if mine.parent != main.commit:
            files = dict(main.files)
            conflict = _merge(files, base=origin.commits[mine.parent or main.commit].files, theirs=mine.files)
            if conflict is not None:
                return conflict
            mine = origin.add(main.commit, files, mine.note)
            self._stand(origin, desk, mine.commit)
        change = replace(workspace.made, commit=mine.commit)
        return Merged(mine.commit, change, SourceTree(workspace.path, dict(mine.files)), on_main=False)

    def push(self, workspace: Workspace, joined: Merged, lease: ProjectLease) -> bool:
        desk, work = self._desks[workspace.path], workspace.work
        moves = {MAIN: joined.head} if joined.on_main else {MAIN: joined.head, work.branch: joined.head}
        if not self._push(work, moves, desk.known, lease):
            desk.overtaken = True
            return False
        desk.known.update(moves)
        return True

    def compare(self, workspace: Workspace, public: str) -> LiveState:
        origin, known = self._origin(workspace.work), self._desks[workspace.path].known
        main, live = known[MAIN], known.get(LIVE, "")
        head = live or _live_start(origin, main, public)
        return compare(_Lines(origin), main, head, workspace.work.job_id, begun=bool(live or public))

    def bring(
        self, workspace: Workspace, state: LiveState, picks: Sequence[WaitingChange] | None, message: ChangeMessage
    ) -> Merged | MergeConflict:
        origin, desk = self._origin(workspace.work), self._desks[workspace.path]
        self._stand(origin, desk, state.head)
        main = origin.commits[state.main]
        done = bool(state.made) or (picks is not None and not picks and state.begun)
        if not done:
            if picks is None:
                desk.files = dict(main.files)
            for pick in picks or ():
                commit = origin.commits[pick.commit]
                before = origin.commits[commit.parent].files if commit.parent else {}
                if conflict := _merge(desk.files, base=before, theirs=commit.files):
                    return conflict
            message = replace(message, shows=state.main if desk.files == main.files else "")
            self._stand(origin, desk, origin.add(state.head, desk.files, read_note(message.text())).commit)
        tree = SourceTree(workspace.path, dict(desk.files))
        like_main = state.main if desk.files == main.files else ""
        return Merged(desk.head, Change(desk.head, message.summary), tree, on_main=done, like_main=like_main)

    def push_live(self, workspace: Workspace, merged: Merged, lease: ProjectLease) -> bool:
        desk, work = self._desks[workspace.path], workspace.work
        moved = self._push(work, {LIVE: merged.head}, desk.known, lease)
        if moved:
            desk.known[LIVE] = merged.head
        else:
            desk.known = dict(self._origin(work).branches)
        return moved

    def _origin(self, work: JobContext) -> MemoryOrigin:
        return self._origins[work.project.project_id]

    def _push(
        self, work: JobContext, moves: Mapping[str, str], known: Mapping[str, str], lease: ProjectLease | None = None
    ) -> bool:
        fences = {key_fence_ref(work.key): work.fence}
        if lease is not None:
            fences[project_fence_ref(lease.project_id)] = lease.fence
        return self._origin(work).push(moves, known, fences, (work.key, work.worker))

    @staticmethod
    def _stand(origin: MemoryOrigin, desk: _Desk, commit: str) -> None:
        desk.head = commit
        desk.files = dict(origin.commits[commit].files)

    @staticmethod
    def _on_main(origin: MemoryOrigin, work: JobContext, desk: _Desk) -> Change | None:
        found = (c for c in origin.history(desk.known[MAIN]) if c.note.job_id == work.job_id)
        commit = next(found, None)
        return _change(origin, commit) if commit else None


class _Lines:
    """See LineHistory."""

    def __init__(self, origin: MemoryOrigin) -> None:
        self._origin = origin

    def between(self, excluded: str, commit: str) -> Notes:
        known = {one.commit for one in self._origin.history(excluded)}
        return [(one.commit, one.note) for one in self._origin.history(commit) if one.commit not in known]

    def fork_point(self, main: str, commit: str) -> str:
        known = {one.commit for one in self._origin.history(main)}
        return next(one.commit for one in self._origin.history(commit) if one.commit in known)

    def files_of(self, commits: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return {commit: _change(self._origin, self._origin.commits[commit]).changed_files for commit in commits}


def _live_start(origin: MemoryOrigin, main: str, public: str) -> str:
    if public:
        return next(commit for commit in origin.commits if release_name(commit) == public)
    made = [one for one in origin.history(main) if one.note.job_id]
    return (made[-1].parent if made else None) or main


def _change(origin: MemoryOrigin, commit: MemoryCommit) -> Change:
    before = origin.commits[commit.parent].files if commit.parent else {}
    names = sorted(n for n in {*before, *commit.files} if before.get(n) != commit.files.get(n))
    return Change(commit.commit, commit.note.summary, tuple(names), commit.note.undoes)


def _merge(ours: dict[str, str], base: Mapping[str, str], theirs: Mapping[str, str]) -> MergeConflict | None:
    """Bring base → theirs into ours, file by file; all of it or nothing."""
    moved = {name for name in {*base, *theirs} if base.get(name) != theirs.get(name)}
    clash = sorted(n for n in moved if ours.get(n) != base.get(n) and ours.get(n) != theirs.get(n))
    if clash:
        return MergeConflict(tuple(clash))
    for name in moved:
        if name in theirs:
            ours[name] = theirs[name]
        else:
            ours.pop(name, None)
    return None
