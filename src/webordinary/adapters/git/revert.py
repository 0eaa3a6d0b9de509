"""Going back: a line gets the content of an earlier release, a change is taken out; by a new commit on top."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from webordinary.adapters.git import objects
from webordinary.adapters.git.command import REMOTE_SECONDS, Git, sync_refs
from webordinary.adapters.git.credentials import Credentials
from webordinary.adapters.git.mirrors import Mirrors, live_branch, main_branch
from webordinary.adapters.git.workspaces import FenceMark, project_fence_ref, read_mark
from webordinary.jobs.site_files import Stage, becomes_page
from webordinary.model.claims import ProjectLease
from webordinary.model.errors import ClaimLost, Permanent, Transient
from webordinary.model.projects import Project

_TRIES = 3


class GitSourceRollback:
    """Works on the mirror, without any workspace; the push is fenced like that of a worker."""

    def __init__(self, mirrors: Path, operator: str, credentials: Credentials | None = None) -> None:
        self._mirrors = Mirrors(mirrors, operator, credentials)

    def restore(self, project: Project, stage: Stage, name: str, lease: ProjectLease) -> str | None:
        """Make the branch's content that of a release; the new commit, or None if it is that already.

        Live may not exist yet: it will begin at the release that is shown then.
        """
        for _ in range(_TRIES):
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
        raise Transient(f"{project.project_id}: {branch} moved {_TRIES} times meanwhile; try again")

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
