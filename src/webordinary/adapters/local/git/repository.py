"""GitRepository: workspaces and main in real git. Implements the site room's Workspaces and MainLine."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from webordinary.adapters.local.git import reading
from webordinary.adapters.local.git.command import Git, GitFailed
from webordinary.adapters.local.git.copies import Copy, Fence, home_of
from webordinary.adapters.local.git.mirrors import Mirrors, main_branch, reach
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import Permanent, Transient
from webordinary.site.fencemarks import key_fence_ref, project_fence_ref
from webordinary.site.messages import ChangeMessage, Note
from webordinary.site.sources import Change, Conflicted, Joined, Work, Workspace

_SLACK = timedelta(days=1)  # clocks of the machines that write commits differ


class GitRepository:
    """One worker's workspaces below its home folder, with the mirrors that all workers share."""

    def __init__(self, mirrors: Path, home: Path, worker: str) -> None:
        self._mirrors = Mirrors(mirrors, worker)
        self._home = home
        self._worker = worker
        self._copies: dict[Path, Copy] = {}
        self._guard = threading.Lock()

    # -- Workspaces ---------------------------------------------------------------------------------

    def prepare(self, work: Work) -> Workspace:
        """A clean workspace where the thread stands; a broken one is made anew."""
        try:
            return self._stand(self._copy(work) or self._made_copy(work), work)
        except GitFailed:
            reach(self._mirrors.git(work.project.project_id), work.project)
            return self._stand(self._made_copy(work), work)

    def commit(self, workspace: Workspace, message: ChangeMessage) -> Change | None:
        """Record what differs in the workspace; None when nothing does."""
        copy = self._held(workspace)
        copy.git("add", "--all")
        changed = reading.staged_files(copy.git)
        links = [name for name, mode in changed.items() if mode in reading.LINK_MODES]
        if links:
            raise Permanent(f"links cannot be published, and {links[0]} is one: nothing was changed")
        if not changed:
            return None
        name, address = message.author
        author = replace(copy.git, identity={"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": address})
        author(
            "commit",
            "--quiet",
            "--no-verify",
            "--cleanup=verbatim",
            "--file=-",
            stdin=message.text().encode(),
        )
        return Change(reading.head(copy.git), message.summary, tuple(changed))

    def save(self, workspace: Workspace) -> None:
        """Put the thread's branch on the origin under the claim's fence."""
        copy, work = self._held(workspace), workspace.work
        moves = {f"refs/heads/{work.branch}": reading.head(copy.git)}
        if not copy.push(moves, [_key_fence(work)], work.branch):
            raise Transient(f"{work.project.repo}: somebody else moved {work.branch}; the job will start again from it")

    def abandon(self, workspace: Workspace) -> None:
        """Put the thread's branch back to main, here and on the origin."""
        copy, work = self._held(workspace), workspace.work
        main = copy.refs[copy.main_ref]
        self._check_out(copy, work, main)
        if f"refs/heads/{work.branch}" in copy.refs:
            copy.push({f"refs/heads/{work.branch}": main}, [_key_fence(work)], work.branch)

    def last_change(self, workspace: Workspace) -> Change | None:
        """The thread's newest change on main that was not undone."""
        copy = self._held(workspace)
        notes = reading.notes(copy.git, copy.seen(copy.main_ref), f"Thread: {workspace.work.thread_id}", limit=500)
        ours = [(sha, note) for sha, note in notes if note.thread_id == workspace.work.thread_id]
        undone = {note.undoes for _, note in ours}
        for sha, note in ours:
            if note.job_id and not note.undoes and sha not in undone:
                return Change(sha, note.summary, reading.files_of(copy.git, sha))
        return None

    def revert(self, workspace: Workspace, change: Change) -> Conflicted | None:
        """Take a change back in the workspace; a conflict leaves the workspace clean."""
        copy = self._held(workspace)
        if copy.git.attempt("revert", "--no-commit", "--no-edit", change.commit).code == 0:
            return None
        files = reading.conflicted_files(copy.git) or change.changed_files
        copy.git("reset", "--quiet", "--hard")
        return Conflicted(files)

    # -- MainLine -----------------------------------------------------------------------------------

    def enter(self, workspace: Workspace, lease: ProjectLease) -> None:
        """Move the project's fence together with the thread's saved branch, then read."""
        copy, work = self._held(workspace), workspace.work
        moves = {}
        if workspace.made is not None and not workspace.on_main:
            moves[f"refs/heads/{work.branch}"] = workspace.made.commit
        if not copy.push(moves, [_key_fence(work), _project_fence(lease)], work.branch):
            raise Transient(f"{work.project.repo}: somebody else moved {work.branch}; the job will start again from it")
        copy.read(work.branch)

    def join(self, workspace: Workspace) -> Joined | Conflicted:
        """Put the thread's work onto main: by fast-forward, or by a clean rebase."""
        copy, work = self._held(workspace), workspace.work
        main = copy.refs[copy.main_ref]
        done = workspace.made if workspace.on_main else self._change_on_main(copy, work)
        if done is not None:
            self._check_out(copy, work, main)
            return Joined(main, done, reading.tree(copy.git), on_main=True)
        assert workspace.made is not None, "publish needs a change"
        if copy.git.attempt("merge-base", "--is-ancestor", main, "HEAD").code != 0 and not self._rebased(copy, main):
            files = reading.conflicted_files(copy.git)
            copy.git.attempt("rebase", "--abort")
            return Conflicted(files)
        head = reading.head(copy.git)  # asked, not remembered: an earlier round may have rebased already
        return Joined(head, replace(workspace.made, commit=head), reading.tree(copy.git), on_main=False)

    def push(self, workspace: Workspace, joined: Joined, lease: ProjectLease) -> bool:
        """Move main and the thread's branch under both fences; False if somebody moved one of them."""
        copy, work = self._held(workspace), workspace.work
        moves = {copy.main_ref: joined.head, f"refs/heads/{work.branch}": joined.head}
        return copy.push(moves, [_key_fence(work), _project_fence(lease)], work.branch)

    # -- where a thread stands ----------------------------------------------------------------------

    def _stand(self, copy: Copy, work: Work) -> Workspace:
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
            self._check_out(copy, work, main)
            return Workspace(work, path, made=done, on_main=True)
        tip, note = self._tip(copy, work)
        if note.saved_for == work.job_id:
            self._check_out(copy, work, tip)
            copy.git("reset", "--quiet", f"{tip}^")
            return Workspace(work, path, resumed=True)
        if note.job_id == work.job_id:
            self._check_out(copy, work, tip)
            return Workspace(work, path, made=Change(tip, note.summary, reading.files_of(copy.git, tip)))
        # What another job left unpublished was never promised to the customer; somebody's own commit is kept.
        self._check_out(copy, work, main if note.job_id or note.saved_for else tip)
        return Workspace(work, path)

    def _tip(self, copy: Copy, work: Work) -> tuple[str, Note]:
        """The thread's newest commit that is not on main yet, else main."""
        main = copy.refs[copy.main_ref]
        tip = copy.refs.get(f"refs/heads/{work.branch}", main)
        if tip == main:
            return main, Note()
        ahead = reading.notes(copy.git, f"{main}..{tip}", "", limit=1)
        return ahead[0] if ahead else (main, Note())

    def _change_on_main(self, copy: Copy, work: Work) -> Change | None:
        main = copy.refs[copy.main_ref]
        if copy.searched == main:
            return None
        where = f"{copy.searched}..{main}" if copy.searched else main
        since = work.recorded_at - _SLACK
        for sha, note in reading.notes(copy.git, where, f"Job-Id: {work.job_id}", limit=5, since=since):
            if note.job_id == work.job_id:
                return Change(sha, note.summary, reading.files_of(copy.git, sha))
        copy.searched = main
        return None

    def _rebased(self, copy: Copy, main: str) -> bool:
        # An edit that somebody else made alike becomes empty; kept, it still tells that this job is done.
        return (
            copy.git.attempt("rebase", "--quiet", "--no-verify", "--empty=keep", "--reapply-cherry-picks", main).code
            == 0
        )

    def _check_out(self, copy: Copy, work: Work, commit: str) -> None:
        copy.git("checkout", "--quiet", "--force", "-B", work.branch, commit)
        copy.git("clean", "--quiet", "-ffdx")

    # -- copies on disk -----------------------------------------------------------------------------

    def _folder(self, work: Work) -> Path:
        return self._home / work.key.project_id / work.key.user_id

    def _held(self, workspace: Workspace) -> Copy:
        return self._copies[self._folder(workspace.work)]

    def _copy(self, work: Work) -> Copy | None:
        folder = self._folder(work)
        git_dir, tree = home_of(folder)
        if not (git_dir / "ready").exists() or not tree.is_dir():
            return None
        with self._guard:
            copy = self._copies.get(folder)
            if copy is None or copy.project != work.project:
                main = (git_dir / "ready").read_text(encoding="utf-8").strip()
                copy = Copy(Git(git_dir, self._worker, tree), work.project, main)
                self._copies[folder] = copy
            return copy

    def _made_copy(self, work: Work) -> Copy:
        """A new workspace that borrows the mirror's objects; whatever was there goes."""
        folder = self._folder(work)
        git_dir, tree = home_of(folder)
        mirror = self._mirrors.refresh(work.project)
        main = main_branch(mirror, work.project)
        shutil.rmtree(folder, ignore_errors=True)
        tree.mkdir(parents=True)
        git = Git(git_dir, self._worker, tree)
        git("init", "--quiet", "--template=")
        alternates = git_dir / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{(mirror.git_dir / 'objects').resolve()}\n", encoding="utf-8")
        (git_dir / "ready").write_text(f"{main}\n", encoding="utf-8")
        with self._guard:
            self._copies[folder] = Copy(git, work.project, main)
            return self._copies[folder]


def _key_fence(work: Work) -> Fence:
    return Fence(key_fence_ref(work.key), work.fence, work.key, work.worker)


def _project_fence(lease: ProjectLease) -> Fence:
    return Fence(project_fence_ref(lease.project_id), lease.fence, lease.project_id, lease.worker)
