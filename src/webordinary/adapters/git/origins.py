"""Origins: the repository a project lives in, found, checked, or made from a folder.

GitSourceRollback: a branch gets the content of an earlier release, by a new commit on top.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from webordinary.adapters.durable import make_folder, move_durably
from webordinary.adapters.git import objects
from webordinary.adapters.git.command import REMOTE_SECONDS, Git, GitFailed, harden_origin, sync_refs, write_attributes
from webordinary.adapters.git.credentials import Credentials, check_writable, refuse_secret_in
from webordinary.adapters.git.mirrors import Mirrors, live_branch, main_branch
from webordinary.adapters.git.objects import check_commit, check_sources
from webordinary.adapters.git.repository import GitLines, live_start
from webordinary.adapters.git.workspaces import FenceMark, project_fence_ref, read_mark
from webordinary.jobs.history import LiveState, Notes, compare, no_longer_public, put_back
from webordinary.jobs.site_files import Stage
from webordinary.jobs.source import SourceTree
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient, WebOrdinaryError
from webordinary.model.projects import Project
from webordinary.model.text import clean

_OPERATOR = "operator"
_MOST_FOLDERS, _FOLDER_CHARACTERS = 10, 80


class Origins:
    """Bare repositories below one folder, for sites that have no address of their own to push to."""

    def __init__(self, folder: Path, mirrors: Path, credentials: Credentials | None = None) -> None:
        self._folder = folder
        self._mirrors = Mirrors(mirrors, _OPERATOR, credentials)

    def settle(self, project_id: str, repo: str) -> str:
        """The address to use from now on: itself if it is remote or bare, else a bare copy of a folder."""
        refuse_secret_in(repo)
        folder = Path(repo).expanduser()
        try:
            if not folder.is_dir():
                return repo
        except OSError:  # an address, looked for below a working folder that this user may not read
            return repo
        folder = folder.resolve()
        if Git(folder, _OPERATOR).attempt("rev-parse", "--is-bare-repository").out.strip() == b"true":
            return str(folder)
        origin = self._folder / f"{project_id}.git"
        if not origin.exists():
            self._copy(folder, origin)
        return str(origin)

    def holds(self, project_id: str, repo: str) -> bool:
        """Whether the copy of this name has what is committed in a folder: only then does it stand for the folder."""
        folder = Path(repo).expanduser().resolve()
        own = folder / ".git" if (folder / ".git").exists() else folder
        head = Git(own, _OPERATOR).attempt("rev-parse", "--verify", "--quiet", "HEAD")
        known = Git(self._folder / f"{project_id}.git", _OPERATOR)
        return head.code == 0 and known.attempt("cat-file", "-e", f"{head.out.decode().strip()}^{{commit}}").code == 0

    def check_folder(self, project: Project) -> None:
        """Raise Permanent, naming folders that are there, unless main has the site's; after `check`."""
        if not project.folder:
            return
        mirror = self._mirrors.git(project.project_id)
        main, folder = f"refs/heads/{main_branch(mirror, project)}", PurePosixPath(project.folder)
        if _is_folder(mirror, f"{main}:{folder}"):
            return
        near = next((one for one in folder.parents if one.name and _is_folder(mirror, f"{main}:{one}")), None)
        listed = mirror.attempt("ls-tree", "-d", "-z", "--name-only", f"{main}:{near or ''}").out
        found = filter(None, listed.decode(errors="replace").split("\0"))
        names = [str(near / name) if near else name for name in found]
        shown = ", ".join(clean(name)[:_FOLDER_CHARACTERS] for name in names[:_MOST_FOLDERS])
        more = ", …" if len(names) > _MOST_FOLDERS else ""
        there = f"there are {shown}{more}" if shown else "there is none at all"
        raise Permanent(f"{project.repo} has no folder {folder}{f' (in {near})' if near else ''}: {there}")

    def forget_copy(self, project_id: str) -> None:
        """Remove the copy that `settle` made, so that the folder is read anew the next time."""
        shutil.rmtree(self._folder / f"{project_id}.git", ignore_errors=True)

    def check(self, project: Project) -> tuple[str, ...]:
        """Raise Permanent, in words, unless the repository answers, can be served and would take a push.

        Returns the files in it that no site can show.
        """
        try:
            self._mirrors.reach(project)
            mirror = self._mirrors.refresh(project)
            main = main_branch(mirror, project)
            unshown = check_sources(mirror, f"refs/heads/{main}")
            check_commit(mirror, f"refs/heads/{main}")
            check_writable(self._mirrors.remote(mirror, project), project, main)
        except (GitFailed, Transient) as problem:
            raise Permanent(f"{problem}: check the address and that this machine may read and write it") from problem
        return unshown

    def concerns(self, project: Project, since: str, neighbours: Sequence[str]) -> bool:
        """Whether main has changes since a commit outside the folders of other sites; True where that is not known.

        In a workspace of npm and the like, a build may use its neighbours: there every change counts.
        """
        mirror = self._mirrors.refresh(project)
        main = f"refs/heads/{main_branch(mirror, project)}"
        if mirror.attempt("cat-file", "-e", f"{main}:package.json").code == 0:
            return True
        changed = mirror.attempt("diff-tree", "-r", "-z", "--name-only", "--no-renames", since, main)
        paths = [PurePosixPath(path) for path in changed.out.decode(errors="replace").split("\0") if path]
        return not paths or not all(any(path.is_relative_to(folder) for folder in neighbours) for path in paths)

    def export(self, project: Project, into: Path) -> tuple[str, SourceTree]:
        """The files of main as they are now, and which commit that is."""
        mirror = self._mirrors.refresh(project)
        commit = mirror("rev-parse", f"refs/heads/{main_branch(mirror, project)}").strip()
        check_commit(mirror, commit)  # a webhook has whatever was pushed built
        into.mkdir(parents=True)
        copy = Git(into / "index.git", _OPERATOR, tree=into / "tree")
        (into / "tree").mkdir()
        Git(into / "none", _OPERATOR)("clone", "--quiet", "--bare", "--shared", str(mirror.git_dir), str(copy.git_dir))
        write_attributes(copy.git_dir)
        copy("read-tree", commit)
        copy("checkout-index", "--all")
        return commit, objects.tree(copy)

    def _copy(self, folder: Path, origin: Path) -> None:
        """A bare clone of a work tree; a folder without git becomes one commit."""
        make_folder(self._folder)
        draft = origin.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        outside = Git(self._folder / "none", _OPERATOR)
        if (folder / ".git").exists():
            cloned = outside.attempt(
                "clone", "--quiet", "--bare", "--", str(folder), str(draft), seconds=REMOTE_SECONDS
            )
            if b"dubious ownership" in cloned.err:
                what = "give it to the user who runs this, or push it to a git server and name its address"
                raise Permanent(f"{folder} belongs to another user of this machine: {what}")
            if cloned.code:
                raise GitFailed(("clone", str(folder)), cloned)
            if not Git(draft, _OPERATOR)("for-each-ref", "--count=1"):
                raise Permanent(f"{folder} has no commit yet: commit a first page, then add it again")
        else:
            outside("init", "--quiet", "--bare", "--initial-branch=main", str(draft))
            write_attributes(draft)
            self._commit_all(Git(draft, _OPERATOR, tree=folder))
        harden_origin(draft)
        move_durably(draft, origin)

    def _commit_all(self, git: Git) -> None:
        git("add", "--all", "--", ".")
        if not git("ls-files").strip():
            raise Permanent(f"{git.tree} has no files: put a site into it, or name another folder")
        git("commit", "--quiet", "--no-verify", "--message=The site as it was when it came to WebOrdinary")


def _is_folder(git: Git, name: str) -> bool:
    return git.attempt("cat-file", "-t", name).out.strip() == b"tree"


_COMMIT = re.compile(r"[0-9a-f]{40,64}")


def replay_clone(mirrors: Mirrors, project: Project, change: str | None, into: Path) -> str:
    """Make a bare repository whose main stands before `change`, or where main is now; returns that commit."""
    mirror = mirrors.refresh(project)
    base = _before(mirror, change) or mirror("rev-parse", f"refs/heads/{main_branch(mirror, project)}").strip()
    into.parent.mkdir(parents=True, exist_ok=True)
    origin = Git(into, "replay")
    origin("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
    mirror("push", "--quiet", "--no-verify", "--", str(into), f"{base}:refs/heads/main", seconds=REMOTE_SECONDS)
    return base


def _before(mirror: Git, change: str | None) -> str:
    if not change or not _COMMIT.fullmatch(change):
        return ""
    return mirror.attempt("rev-parse", "--verify", "--quiet", f"{change}^").out.decode().strip()


DIFF_CHARACTERS = 200_000
_QUICKLY = 10.0
_NO_JOB = "-"
_HISTORY_COMMIT = re.compile(r"[0-9a-f]{7,64}")


class GitHistory:
    """Reads the mirrors; asks the origin only for a commit that they do not hold yet."""

    def __init__(self, mirrors: Path, credentials: Credentials | None = None) -> None:
        self._mirrors = Mirrors(mirrors, "history", credentials)

    def diff(self, project: Project, commit: str) -> str | None:
        """What a commit changed, as a bounded unified diff; None if the origin does not have it."""
        if not _HISTORY_COMMIT.fullmatch(commit):
            return None
        git = self._mirrors.git(project.project_id)
        if not git.git_dir.exists() or git.attempt("cat-file", "-e", f"{commit}^{{commit}}").code != 0:
            git = self._mirrors.refresh(project)
        shown = git.attempt("show", "--format=", "--no-color", "--no-ext-diff", "--no-textconv", commit, "--")
        return shown.out.decode(errors="replace")[:DIFF_CHARACTERS] if shown.code == 0 else None

    def state(self, project: Project, public: str) -> LiveState:
        """The edit site beside the public one, whose release is `public`; asks the origin."""
        git = self._mirrors.refresh(project)
        name = main_branch(git, project)
        branch = live_branch(name, project)
        main, live = (
            git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{one}").out.decode().strip()
            for one in (name, branch)
        )
        head = live or live_start(git, main, public, branch, project.folder)
        return compare(GitLines(git, project.folder), main, head, _NO_JOB, begun=bool(live or public))

    def put_back(self, project: Project, main: str, release: str) -> tuple[Notes, Notes]:
        """What the edit site loses when it shows this release again, and the undos that it loses."""
        return put_back(GitLines(self._mirrors.git(project.project_id), project.folder), main, release)

    def no_longer_public(self, project: Project, before: LiveState, release: str) -> Notes:
        """What the public site loses when it shows this release again."""
        lines = GitLines(self._mirrors.git(project.project_id), project.folder)
        return no_longer_public(lines, before.main, before.head, release)

    def subjects(self, project: Project, commits: Collection[str]) -> dict[str, str]:
        """The subjects of commits, as far as they are known here or quickly fetched. Never fails."""
        known: dict[str, str] = {}
        git = self._mirrors.git(project.project_id)
        if not git.git_dir.exists():
            return known
        with suppress(WebOrdinaryError, OSError):
            known = _subjects(git, commits)
            for ref in ("HEAD", f"refs/heads/{live_branch(main_branch(git, project), project)}"):
                if len(known) < len(commits):  # the last ones come to a mirror with the next job; no ref moves for us
                    fetch = ("fetch", "--quiet", "--no-write-fetch-head", "--", project.repo, ref)
                    self._mirrors.remote(git, project).attempt(*fetch, seconds=_QUICKLY)
                    known = _subjects(git, commits)
        return known


def _subjects(git: Git, commits: Collection[str]) -> dict[str, str]:
    printed = git.attempt("log", "--no-walk", "--ignore-missing", "--format=%H %s", *commits, "--")
    lines = [line.partition(" ") for line in printed.out.decode(errors="replace").split("\n")]
    return {name: subject for full, _, subject in lines for name in commits if full.startswith(name)}


_ROLLBACK_TRIES = 3


class GitSourceRollback:
    """Works on the mirror, without any workspace; the push is fenced like that of a worker."""

    def __init__(self, mirrors: Path, operator: str, credentials: Credentials | None = None) -> None:
        self._mirrors = Mirrors(mirrors, operator, credentials)

    def restore(self, project: Project, stage: Stage, name: str, lease: ProjectLease) -> str | None:
        """Make the branch's content that of a release; the new commit, or None if it is that already.

        Live may not exist yet: it will begin at the release that is shown then.
        """
        for _ in range(_ROLLBACK_TRIES):
            git = self._mirrors.refresh(project)
            main = main_branch(git, project)
            branch = main if stage is Stage.EDIT else live_branch(main, project)
            ref = f"refs/heads/{branch}"
            head = git.attempt("rev-parse", "--verify", "--quiet", ref).out.decode().strip()
            if not head:
                return None
            tree = self._tree(git, project.folder, branch, head, name)
            if tree == objects.tree_of(git, head):
                return None
            message = f"Go back to {name}\n\nAn operator put the site back to this release.\n\nRolled-Back-To: {name}\n"
            commit = git("commit-tree", tree, "-p", head, "-F", "-", stdin=message.encode()).strip()
            if self._pushed(git, project, lease, ref, head, commit):
                return commit
        raise Transient(f"{project.project_id}: {branch} moved {_ROLLBACK_TRIES} times meanwhile; try again")

    def _tree(self, git: Git, folder: str, branch: str, head: str, name: str) -> str:
        """The content that the branch gets: all of the release's, or its site's folder beside the newest of others."""
        if git.attempt("merge-base", "--is-ancestor", f"{name}^{{commit}}", head).code != 0:
            raise Permanent(f"the commit of release {name} is not on {branch} any more; {branch} stays as it is")
        if not folder:
            return objects.tree_of(git, name)
        with tempfile.TemporaryDirectory(prefix="webordinary-") as scratch:
            index = replace(git, tree=Path(scratch), extra_env={**git.extra_env, "GIT_INDEX_FILE": f"{scratch}/index"})
            index("read-tree", head)
            index("rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", f":(literal,top){folder}")
            index("read-tree", "-i", f"--prefix={folder}/", f"{name}:{folder}")
            return index("write-tree").strip()

    def _pushed(self, git: Git, project: Project, lease: ProjectLease, branch: str, head: str, commit: str) -> bool:
        ref = project_fence_ref(lease.project_id)
        known = git.attempt("rev-parse", "--verify", "--quiet", ref).out.decode().strip()
        mark = (read_mark(git("cat-file", "blob", known)) if known else FenceMark()).moved(lease.fence)
        if mark is None:
            raise ClaimLost(lease.project_id, lease.worker, lease.fence)
        blob = git("hash-object", "-w", "--stdin", stdin=mark.text().encode()).strip()
        pushed = self._mirrors.remote(git, project).attempt(
            "push", "--quiet", "--atomic", "--no-verify",
            f"--force-with-lease={branch}:{head}", f"--force-with-lease={ref}:{known}",
            "--", project.repo, f"{commit}:{branch}", f"{blob}:{ref}", seconds=REMOTE_SECONDS,
        )  # fmt: skip
        if pushed.code == 0:
            sync_refs(project.repo, (branch, ref))
        return pushed.code == 0
