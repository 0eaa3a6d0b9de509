"""GitRepository: workspaces, main and live in real git. Implements Workspaces, MainBranch and LiveBranch.

GitLines knows where the live branch begins, how it compares with main, and what goes onto it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from webordinary.adapters.dot_git import MAX_RULES_BYTES, remove_dot_git
from webordinary.adapters.git import objects
from webordinary.adapters.git.command import Git, GitFailed
from webordinary.adapters.git.credentials import Credentials
from webordinary.adapters.git.mirrors import Mirrors
from webordinary.adapters.git.objects import check_commit, find_invalid, not_taken_in
from webordinary.adapters.git.revert import keep_what_others_use, take_out_added_lines
from webordinary.adapters.git.workspaces import (
    Checkout,
    Fence,
    GitWorkspaces,
    WorkspaceCache,
    key_fence_ref,
    project_fence_ref,
)
from webordinary.jobs.history import LiveState, Notes, WaitingChange, compare
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
            found = self._git.attempt("merge-base", main, commit)
            self._forks[main, commit] = found.out.decode().strip() if found.code == 0 else main
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
    made = ("log", "--format=%P", "--extended-regexp", "--grep=^Job-Id: ", main, "--", *objects.below(folder))
    parents_of_made = git(*made).splitlines()
    return next(iter(parents_of_made[-1].split()), main) if parents_of_made else main


def take_over(git: Git, state: LiveState, picks: Sequence[WaitingChange] | None, folder: str = "") -> tuple[str, ...]:
    """Put changes, or main's whole content, into tree and index; after a conflict both are clean. Returns its files."""
    if picks is None:
        git("read-tree", "--reset", "-u", state.main)
        return ()
    for pick in picks:
        picked = git.attempt("cherry-pick", "--no-commit", pick.commit).code == 0
        if not picked or objects.differs_beside(git, folder, "--cached"):
            files = objects.conflicted_files(git) or pick.files
            git("reset", "--quiet", "--hard")
            return files
    return ()


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
        changed = objects.staged_files(copy.git)
        if not changed:
            return None
        if objects.differs_beside(copy.git, copy.project.folder, "--cached"):
            self._workspaces.distrust(copy)
            return InvalidChange(f"it would change files beside {copy.project.folder}, which are not part of the site.")
        if problem := find_invalid(workspace.path, changed):
            self._workspaces.distrust(copy)  # it holds objects that are of no use
            return problem
        copy.checked = objects.commit(copy.git, message)
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
            return Merged(main, done, objects.tree(copy.git), on_main=True)
        assert workspace.made is not None, "publish needs a change"
        if copy.based_on != main and not self._is_ancestor(copy, main, "HEAD"):
            if not self._rebased(copy, main):
                files = objects.conflicted_files(copy.git)
                copy.git.attempt("rebase", "--abort")
                return MergeConflict(objects.for_people(files))
            if objects.differs_beside(copy.git, copy.project.folder, main, "HEAD"):
                return MergeConflict(workspace.made.changed_files)
        copy.based_on = main
        head = objects.head(copy.git)  # asked, not remembered: an earlier round may have rebased already
        return Merged(head, replace(workspace.made, commit=head), objects.tree(copy.git), on_main=False)

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
        """Cherry-pick without commits, then make one commit of it; the thread's branch stays where it is.

        What is saved later is the thread's work, never a publication or a preview.
        """
        copy = self._workspaces.held(workspace)
        self._check_out(copy, state.head, "--detach")
        done = bool(state.made) or (picks is not None and not picks and state.begun)
        if not done and (files := take_over(copy.git, state, picks, copy.project.folder)):
            return MergeConflict(objects.for_people(files))
        like_main = state.main if objects.staged_tree(copy.git) == objects.tree_of(copy.git, state.main) else ""
        if not done:
            self._check(copy, objects.commit(copy.git, replace(message, shows=like_main), empty=True))
        head = objects.head(copy.git)
        return Merged(head, Change(head, message.summary), objects.tree(copy.git), on_main=done, like_main=like_main)

    def push_live(self, workspace: Workspace, merged: Merged, lease: ProjectLease) -> bool:
        copy, work = self._workspaces.held(workspace), workspace.work
        return copy.push({copy.live_ref: merged.head}, [_key_fence(work), _project_fence(lease)], work.branch)

    # -- where a thread stands ----------------------------------------------------------------------

    def _stand(self, copy: Checkout, work: JobContext) -> Workspace:
        if copy.stands_on != work.fence:
            if not copy.refs:
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
            if note.job_id == work.job_id and self._is_ancestor(copy, sha, main):
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

    def _is_ancestor(self, copy: Checkout, commit: str, of: str) -> bool:
        return copy.git.attempt("merge-base", "--is-ancestor", commit, of).code == 0

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
