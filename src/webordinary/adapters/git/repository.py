"""GitRepository: workspaces, main and live in real git. Implements Workspaces, MainBranch and LiveBranch.

GitLines knows where the live branch begins, how it compares with main, and what goes onto it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from webordinary.adapters.dot_git import MAX_RULES_BYTES, remove_dot_git
from webordinary.adapters.git import objects
from webordinary.adapters.git.command import Git, GitFailed
from webordinary.adapters.git.credentials import Credentials
from webordinary.adapters.git.mirrors import Mirrors
from webordinary.adapters.git.objects import check_commit, find_invalid, not_taken_in
from webordinary.adapters.git.workspaces import (
    Checkout,
    Fence,
    GitWorkspaces,
    WorkspaceCache,
    key_fence_ref,
    project_fence_ref,
)
from webordinary.jobs.history import LiveState, Notes, WaitingChange, compare
from webordinary.jobs.site_files import becomes_page
from webordinary.jobs.source import (
    Change,
    ChangeMessage,
    InvalidChange,
    JobContext,
    MergeConflict,
    Merged,
    Note,
    PastChange,
    Workspace,
)
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Permanent, Transient, is_machine_fault

_MOST_COMMITS = 2000
"""Of one line apart from the other. A publication after which both lines are equal ends the counting."""


class GitLines:
    """See LineHistory. For one comparison: it reads each part of the history once."""

    def __init__(self, git: Git, folder: str = "") -> None:
        self._git, self._folder = git, folder
        self._read: dict[tuple[str, str, str], Notes] = {}
        self._forks: dict[tuple[str, str], str] = {}

    def between(self, excluded: str, commit: str) -> Notes:
        return self._notes(excluded, commit, "")

    def on_main(self, excluded: str, commit: str) -> Notes:
        return self._notes(excluded, commit, self._folder)

    def _notes(self, excluded: str, commit: str, folder: str) -> Notes:
        if excluded == commit:
            return ()
        wanted = excluded, commit, folder
        if wanted not in self._read:
            try:
                found: Notes = objects.notes(self._git, f"{excluded}..{commit}", "", _MOST_COMMITS, folder=folder)
            except GitFailed:
                if self._git.attempt("cat-file", "-e", f"{commit}^{{commit}}").code == 0:
                    raise
                found = ()  # a rollback named a commit that a person has rewritten since
            self._read[wanted] = found
        return self._read[wanted]

    def fork_point(self, main: str, commit: str) -> str:
        if (main, commit) not in self._forks:
            self._forks[main, commit] = objects.fork_point(self._git, main, commit)
        return self._forks[main, commit]

    def files_of(self, commits: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return objects.files_of_each(self._git, commits) if commits else {}


def live_start(git: Git, main: str, public: str, live: str = "live", folder: str = "") -> str:
    """Where live begins: at the public release, or before the first change of the site that a mail made."""
    if public:
        found = git.attempt("rev-parse", "--verify", "--quiet", f"{public}^{{commit}}")
        if found.code != 0:
            raise Permanent(
                f"the commit of the public release {public} is not in the repository: push a branch `{live}` with the "
                "content of the public site, then send the mail again"
            )
        return found.out.decode().strip()
    parents_of_made = objects.parents_of_changes(git, main, folder)
    return next(iter(parents_of_made[-1]), main) if parents_of_made else main


QUICK_SECONDS = 5.0
"""What took longer is worth a push of its own before it is built, and main is worth another look."""
_NEWEST_COMMITS = 100
"""How many are searched for a job's own commit: others may have committed on top, by hand or in a restored past."""


class GitRepository:
    """One worker's workspaces below its home folder, with the mirrors that all workers share."""

    def __init__(
        self,
        mirrors: Path,
        home: Path,
        worker: str,
        credentials: Credentials | None = None,
        cache: WorkspaceCache | None = None,
        quick_seconds: float = QUICK_SECONDS,
    ) -> None:
        self._mirrors = Mirrors(mirrors, worker, credentials)
        self._workspaces = GitWorkspaces(self._mirrors, cache or WorkspaceCache(home), worker)
        self._quick_seconds = quick_seconds

    # -- Workspaces ---------------------------------------------------------------------------------

    def prepare(self, work: JobContext) -> Workspace:
        """A clean workspace where the thread stands; a broken one is made anew."""
        try:
            workspace = self._stand(self._workspaces.find(work) or self._workspaces.make(work), work)
        except GitFailed:
            self._mirrors.reach(work.project)
            workspace = self._stand(self._workspaces.make(work), work)
        self._workspaces.make_room(work)
        return workspace

    def commit(self, workspace: Workspace, message: ChangeMessage) -> Change | InvalidChange | None:
        """Record what differs in the workspace; None when nothing does."""
        copy = self._workspaces.held(workspace)
        if refused := self._add_all(copy, workspace.path):
            self._workspaces.distrust(copy)
            return refused
        staged = objects.staged_tree(copy.git)
        changed = objects.changed_files(copy.git, staged)
        if not changed:
            return None
        if objects.differs_beside(copy.git, copy.project.folder, "--cached"):
            self._workspaces.distrust(copy)
            return InvalidChange(f"it would change files beside {copy.project.folder}, which are not part of the site.")
        if problem := find_invalid(workspace.path, changed):
            self._workspaces.distrust(copy)  # it holds objects that are of no use
            return problem
        copy.checked = objects.commit(copy.git, message, staged)
        return Change(copy.checked, message.summary, objects.for_people(changed), message.undoes, message.then)

    def save(self, workspace: Workspace) -> None:
        copy, work = self._workspaces.held(workspace), workspace.work
        branch = f"refs/heads/{work.branch}"
        self._save(copy, work, {branch: objects.commit_of(copy.git, branch)}, [_key_fence(work)])
        copy.read_at = float("-inf")  # who saves has to wait, and others move main meanwhile

    def abandon(self, workspace: Workspace) -> None:
        copy, work = self._workspaces.held(workspace), workspace.work
        main = copy.refs[copy.main_ref]
        self._stand_at(copy, work, main)
        if f"refs/heads/{work.branch}" in copy.refs:
            copy.push({f"refs/heads/{work.branch}": main}, [_key_fence(work)], work.branch)

    def changes(self, workspace: Workspace) -> tuple[PastChange, ...]:
        copy, thread_id = self._workspaces.held(workspace), workspace.work.thread_id
        return objects.past_changes(copy.git, copy.refs[copy.main_ref], thread_id, copy.project.folder)

    def revert(self, workspace: Workspace, change: Change) -> MergeConflict | None:
        """Take a change back in the workspace; a conflict leaves the workspace clean."""
        copy = self._workspaces.held(workspace)
        if copy.git.attempt("revert", "--no-commit", "--no-edit", change.commit).code != 0:
            files = objects.conflicted_files(copy.git)
            if not take_out_added_lines(copy.git, change.commit, files):
                copy.git("reset", "--quiet", "--hard")
                return MergeConflict(objects.for_people(files) or change.changed_files)
        keep_what_others_use(copy.git, change.commit)
        return None

    # -- MainLine -----------------------------------------------------------------------------------

    def enter(self, workspace: Workspace, lease: ProjectLease) -> None:
        """A quick job uses main as it was read at the start. Other jobs save their work, once, and fetch main again."""
        copy, work = self._workspaces.held(workspace), workspace.work
        if time.monotonic() - copy.read_at < self._quick_seconds:
            return
        made, branch = workspace.made, f"refs/heads/{work.branch}"
        if made is not None and not workspace.on_main and copy.refs.get(branch) != made.commit:
            self._save(copy, work, {branch: made.commit}, [_key_fence(work), _project_fence(lease)])
        copy.read(work.branch)

    def join(self, workspace: Workspace) -> Merged | MergeConflict:
        """Put the thread's work onto main: by fast-forward, or by a clean rebase."""
        copy, work = self._workspaces.held(workspace), workspace.work
        main = copy.refs[copy.main_ref]
        done = workspace.made if workspace.on_main else self._change_on_main(copy, work)
        if done is not None:
            self._stand_at(copy, work, main)
            return Merged(main, done, objects.tree_at(copy.git, main), on_main=True)
        assert workspace.made is not None, "publish needs a change"
        if copy.based_on != main and not objects.is_ancestor(copy.git, main, objects.head(copy.git)):
            if not self._rebased(copy, main):
                files = objects.conflicted_files(copy.git)
                copy.git.attempt("rebase", "--abort")
                return MergeConflict(objects.for_people(files))
            if objects.differs_beside(copy.git, copy.project.folder, main, "HEAD"):
                return MergeConflict(workspace.made.changed_files)
        copy.based_on = main
        head = objects.head(copy.git)  # asked, not remembered: an earlier round may have rebased already
        return Merged(head, replace(workspace.made, commit=head), objects.tree_at(copy.git, head), on_main=False)

    def push(self, workspace: Workspace, joined: Merged, lease: ProjectLease) -> bool:
        copy, work = self._workspaces.held(workspace), workspace.work
        moves = {copy.main_ref: joined.head}
        if not joined.on_main:
            moves[f"refs/heads/{work.branch}"] = joined.head
        return copy.push(moves, [_key_fence(work), _project_fence(lease)], work.branch)

    # -- LiveBranch ---------------------------------------------------------------------------------

    def compare(self, workspace: Workspace, public: str) -> LiveState:
        copy = self._workspaces.held(workspace)
        if public and copy.live_ref not in copy.refs:  # another job may have begun live since the last read
            copy.read(workspace.work.branch)
        main, live = copy.refs[copy.main_ref], copy.refs.get(copy.live_ref, "")
        folder, branch = copy.project.folder, copy.live_ref.removeprefix("refs/heads/")
        head = live or live_start(copy.git, main, public, branch, folder)
        return compare(GitLines(copy.git, folder), main, head, workspace.work.job_id, begun=bool(live or public))

    def bring(
        self, workspace: Workspace, state: LiveState, picks: Sequence[WaitingChange] | None, message: ChangeMessage
    ) -> Merged | MergeConflict:
        """Merge the picks beside the workspace, then make one commit of them; the thread's branch stays where it is.

        What is saved later is the thread's work, never a publication or a preview.
        """
        copy = self._workspaces.held(workspace)
        head = state.head
        done = bool(state.made) or (picks is not None and not picks and state.begun)
        content = objects.tree_of(copy.git, head if done or picks is not None else state.main)
        for pick in () if done else picks or ():
            merged = objects.merge_change(copy.git, content, pick.commit)
            if isinstance(merged, tuple) or objects.differs_beside(copy.git, copy.project.folder, state.head, merged):
                return MergeConflict(objects.for_people(merged if isinstance(merged, tuple) and merged else pick.files))
            content = merged
        like_main = state.main if content == objects.tree_of(copy.git, state.main) else ""
        if not done:
            head = objects.commit_on(copy.git, head, replace(message, shows=like_main), content)
        self._check_out(copy, head, "--detach")
        source = objects.tree_at(copy.git, head)
        return Merged(head, Change(head, message.summary), source, on_main=done, like_main=like_main)

    def push_live(self, workspace: Workspace, merged: Merged, lease: ProjectLease) -> bool:
        copy, work = self._workspaces.held(workspace), workspace.work
        return copy.push({copy.live_ref: merged.head}, [_key_fence(work), _project_fence(lease)], work.branch)

    # -- where a thread stands ----------------------------------------------------------------------

    def _stand(self, copy: Checkout, work: JobContext) -> Workspace:
        if copy.stands_on != work.fence:
            if not copy.look(work.branch) and not copy.refs:
                copy.read(work.branch)
            copy.push({}, [_key_fence(work)], work.branch)
            copy.stands_on = work.fence
        copy.read(work.branch)
        copy.searched = ""
        main = copy.refs[copy.main_ref]
        path = copy.git.tree
        assert path is not None
        done = self._change_on_main(copy, work)
        if done is not None:
            self._stand_at(copy, work, main)
            return Workspace(work, path, made=done, on_main=True)
        tip, note = self._tip(copy, work)
        if note.saved_for == work.job_id:
            self._check(copy, f"{tip}^")
            self._stand_at(copy, work, tip)
            copy.git("reset", "--quiet", f"{tip}^")
            return Workspace(work, path, resumed=True)
        if note.job_id == work.job_id:
            self._stand_at(copy, work, tip)
            return Workspace(work, path, made=objects.change(copy.git, tip, note))
        # What another job left unpublished was never promised to the customer; a person's own commit is kept.
        self._stand_at(copy, work, main if note.job_id or note.saved_for else tip)
        return Workspace(work, path)

    def _tip(self, copy: Checkout, work: JobContext) -> tuple[str, Note]:
        """The thread's newest commit that is not on main yet, else main."""
        main = copy.refs[copy.main_ref]
        tip = copy.refs.get(f"refs/heads/{work.branch}", main)
        if tip == main:
            return main, Note()
        ahead = objects.notes(copy.git, f"{main}..{tip}", "", limit=1)
        return ahead[0] if ahead else (main, Note())

    def _change_on_main(self, copy: Checkout, work: JobContext) -> Change | None:
        main = copy.refs[copy.main_ref]
        if copy.searched == main:
            return None
        for sha, note in self._commits_of(copy, work, main):
            if note.job_id == work.job_id and objects.is_ancestor(copy.git, sha, main):
                return objects.change(copy.git, sha, note)
        copy.searched = main
        return None

    def _commits_of(self, copy: Checkout, work: JobContext, main: str) -> list[tuple[str, Note]]:
        """Where this job's commit can be: what is new on main, or the top of the thread's branch."""
        if copy.searched or not work.is_first_start:
            # Git moves the refs of one push one by one: a push that was killed may have moved main, and not the branch.
            where = f"{copy.searched}..{main}" if copy.searched else main
            return objects.notes(copy.git, where, f"Job-Id: {work.job_id}", limit=5)
        # Only a store that lost its newest rows knows nothing of an earlier start. A push to main moves the thread's
        # branch along, and no later job of the thread runs before this one has ended. Main is looked at where a
        # person removed the branch.
        tip = copy.refs.get(f"refs/heads/{work.branch}", main)
        return objects.newest_of_job(copy.git, tip, work.job_id, _NEWEST_COMMITS)

    def _rebased(self, copy: Checkout, main: str) -> bool:
        self._check(copy, main)
        # An edit that is on main already becomes empty; kept, it still tells that this job is done.
        return (
            copy.git.attempt("rebase", "--quiet", "--no-verify", "--empty=keep", "--reapply-cherry-picks", main).code
            == 0
        )

    def _add_all(self, copy: Checkout, tree: Path) -> InvalidChange | None:
        """Put all files into the index. Git would open a repository inside the tree: so there is none any more."""
        try:
            if remove_dot_git(tree) > MAX_RULES_BYTES:
                return InvalidChange(
                    f"there is more than {MAX_RULES_BYTES // 1000} kB in .gitignore and .gitattributes."
                )
            copy.git("add", "--all")
        except OSError as problem:
            if is_machine_fault(problem):
                raise
            return InvalidChange("some of the files cannot be read.")
        except GitFailed as failed:
            if refused := not_taken_in(failed.words):
                return refused
            raise
        return None

    def _check(self, copy: Checkout, commit: str) -> None:
        if copy.checked != commit:
            check_commit(copy.git, commit, copy.checked)
            copy.checked = commit

    def _stand_at(self, copy: Checkout, work: JobContext, commit: str) -> None:
        """Set the thread's branch to this commit."""
        self._check_out(copy, commit, "-B", work.branch)

    def _check_out(self, copy: Checkout, commit: str, *how: str) -> None:
        self._check(copy, commit)
        if not copy.untouched:
            self._remove_dot_git(copy)
        copy.git("checkout", "--quiet", "--force", *how, commit)
        if not copy.untouched:
            copy.git("clean", "--quiet", "-ffdx")
        copy.untouched = False
        copy.based_on = commit if commit == copy.refs[copy.main_ref] else ""

    def _remove_dot_git(self, copy: Checkout) -> None:
        """A worker that was killed did not look at what its agent left, and git never cleans this name."""
        assert copy.git.tree is not None
        problem = ""
        try:
            if remove_dot_git(copy.git.tree) > MAX_RULES_BYTES:
                problem = "it is full of rules for git"
        except OSError as error:
            if is_machine_fault(error):
                raise
            problem = f"it cannot be searched, {error.strerror}"
        if problem:
            self._workspaces.distrust(copy)
            raise Transient(f"{copy.git.tree} will be made again: {problem}")

    def _save(self, copy: Checkout, work: JobContext, moves: dict[str, str], fences: list[Fence]) -> None:
        if not copy.push(moves, fences, work.branch):
            raise Transient(
                f"{work.project.repo}: another commit came to {work.branch}; the job will start again from it"
            )


def _key_fence(work: JobContext) -> Fence:
    return Fence(key_fence_ref(work.key), work.fence, work.key, work.worker)


def _project_fence(lease: ProjectLease) -> Fence:
    return Fence(project_fence_ref(lease.project_id), lease.fence, lease.project_id, lease.worker)


_HUNK = re.compile(r"^@@ -\d+(?:,(?P<removed>\d+))? \+(?P<first>\d+)(?:,(?P<count>\d+))? @@", re.MULTILINE)
_LINE_OF = re.compile(r"^(?P<commit>[0-9a-f]{40,64}) \d+ (?P<line>\d+)", re.MULTILINE)
_TABLE_BEGINS = re.compile(rb"\|?[ \t]*:?-+:?[ \t]*\|[ \t|:-]*")
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")


def take_out_added_lines(git: Git, commit: str, files: Sequence[str]) -> bool:
    """Write these files into the tree without what a commit added to them; False, and none of them, if one cannot."""
    assert git.tree is not None
    contents = {file: without_added_lines(git, commit, file) for file in files}
    if not files or None in contents.values() or any((git.tree / file).is_symlink() for file in files):
        return False
    for file, content in contents.items():
        (git.tree / file).write_bytes(content or b"")
    return True


def without_added_lines(git: Git, commit: str, file: str) -> bytes | None:
    """The checked out file without what this commit added to it; None if not exactly that can be taken out."""
    hunks = list(_HUNK.finditer(git("diff", "--unified=0", *_PLAIN, f"{commit}^", commit, "--", file)))
    if not hunks or any(hunk["removed"] != "0" for hunk in hunks):
        return None
    before, then, now = (_lines(git, f"{where}:{file}") for where in (f"{commit}^", commit, "HEAD"))
    if before is None or then is None or now is None:
        return None
    starts = ((int(hunk["first"]) - 1, int(hunk["count"] or 1)) for hunk in hunks)
    added = [then[start : start + count] for start, count in starts]
    theirs = _lines_of(git, commit, file)
    runs = [list(run) for its, run in groupby(range(len(now)), key=theirs.__contains__) if its]
    if [[now[number] for number in run] for run in runs] != added:
        return None
    if any(_bears(lines, now[run[-1] + 1 :]) for lines, run in zip(added, runs, strict=True)):
        return None
    return b"".join(line for number, line in enumerate(now) if number not in theirs)


def _bears(lines: Sequence[bytes], rest: Sequence[bytes]) -> bool:
    """Whether what follows these lines may mean something else without them: rows of their table, or parts of them."""
    if any(_TABLE_BEGINS.fullmatch(line.strip()) for line in lines):
        return True
    first, following = (next(filter(bytes.strip, some), b"") for some in (lines, rest))
    return _indentation(following) > _indentation(first)


def _indentation(line: bytes) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _lines(git: Git, name: str) -> list[bytes] | None:
    shown = git.attempt("cat-file", "blob", name)
    return re.findall(rb"[^\n]*\n|[^\n]+$", shown.out) if shown.code == 0 else None


def _lines_of(git: Git, commit: str, file: str) -> set[int]:
    """Which lines of the checked out file this commit wrote, counted from 0."""
    blamed = git("blame", "--porcelain", f"{commit}^..HEAD", "--", file)
    return {int(line["line"]) - 1 for line in _LINE_OF.finditer(blamed) if line["commit"] == commit}


def keep_what_others_use(git: Git, commit: str) -> None:
    """After a commit was reverted in the tree: bring back what it added, but for pages, where a text still names it."""
    gone = [name for name in objects.files_removed(git) if not becomes_page(name)]
    added = objects.files_added_by(git, commit) if gone else frozenset()
    for name in gone:
        if name in added and _named_somewhere(git, name):
            git("--literal-pathspecs", "checkout", "--quiet", "HEAD", "--", name)


def _named_somewhere(git: Git, name: str) -> bool:
    base = PurePosixPath(name).name
    ways = {base, quote(os.fsencode(base))}
    words = [part for way in sorted(ways) for part in ("-e", way)]
    return git.attempt("grep", "--quiet", "-I", "--fixed-strings", "--word-regexp", *words).code == 0
