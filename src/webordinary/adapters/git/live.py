"""The live branch in git: where it begins, how it compares with main, and what goes onto it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webordinary.adapters.git import objects
from webordinary.adapters.git.command import Git, GitFailed
from webordinary.jobs.history import LiveState, Notes, WaitingChange
from webordinary.model.errors import Permanent

_MOST_COMMITS = 2000
"""Of one line apart from the other. A publication after which both lines are equal ends the counting."""


class GitLines:
    """See LineHistory. For one comparison: it reads each part of the history once."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._read: dict[tuple[str, str], Notes] = {}

    def between(self, excluded: str, commit: str) -> Notes:
        if (excluded, commit) not in self._read:
            self._read[excluded, commit] = self._notes(excluded, commit)
        return self._read[excluded, commit]

    def _notes(self, excluded: str, commit: str) -> Notes:
        if excluded == commit:
            return ()
        try:
            return objects.notes(self._git, f"{excluded}..{commit}", "", _MOST_COMMITS)
        except GitFailed:
            if self._git.attempt("cat-file", "-e", f"{commit}^{{commit}}").code == 0:
                raise
            return ()  # a rollback named a commit that a person has rewritten since

    def fork_point(self, main: str, commit: str) -> str:
        found = self._git.attempt("merge-base", main, commit)
        return found.out.decode().strip() if found.code == 0 else main

    def files_of(self, commits: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return objects.files_of_each(self._git, commits) if commits else {}


def live_start(git: Git, main: str, public: str) -> str:
    """Where live begins: at the public release, or before the first change that a mail made."""
    if public:
        found = git.attempt("rev-parse", "--verify", "--quiet", f"{public}^{{commit}}")
        if found.code != 0:
            raise Permanent(
                f"the commit of the public release {public} is not in the repository: push a branch `live` with the "
                "content of the public site, then send the mail again"
            )
        return found.out.decode().strip()
    made = git("log", "--format=%H", "--extended-regexp", "--grep=^Job-Id: ", main, "--").split()
    before = git.attempt("rev-parse", "--verify", "--quiet", f"{made[-1]}^") if made else None
    return before.out.decode().strip() if before and before.code == 0 else main


def take_over(git: Git, state: LiveState, picks: Sequence[WaitingChange] | None) -> tuple[str, ...]:
    """Put changes, or main's whole content, into tree and index; after a conflict both are clean. Returns its files."""
    if picks is None:
        git("read-tree", "--reset", "-u", state.main)
        return ()
    for pick in picks:
        if git.attempt("cherry-pick", "--no-commit", pick.commit).code != 0:
            files = objects.conflicted_files(git) or pick.files
            git("reset", "--quiet", "--hard")
            return files
    return ()
