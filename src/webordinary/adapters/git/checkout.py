"""Copy: one workspace's repository, what it last read of its origin, and its only way to push."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.adapters.git.command import (
    REMOTE_SECONDS,
    Git,
    GitFailed,
    local_origin,
    machine_fault_in,
    mentions_lock,
    remove_stale_locks,
)
from webordinary.adapters.git.credentials import check_access
from webordinary.adapters.git.durability import sync_refs
from webordinary.adapters.git.objects import write_blob
from webordinary.adapters.processes import Finished
from webordinary.jobs.history import live_branch
from webordinary.jobs.source import FenceMark, read_mark
from webordinary.model.errors import ClaimLost, Permanent, Transient
from webordinary.model.projects import Project

PUSH_TRIES = 40
LOCK_WAIT_SECONDS = 0.2
_SEEN = "refs/origin/"
_REF_FORMAT = "%(refname)%00%(objectname)%00%(if:equals=blob)%(objecttype)%(then)%(raw)%(end)%00"
_NEVER = (
    "checked out branch",
    "hook declined",
    "protected branch",
    "ermission denied",
    "not permitted",
    "denied to",
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence that a push must carry: where it is marked, its number and whose it is."""

    ref: str
    number: int
    holder: object
    worker: str

    def moved(self, mark: FenceMark) -> FenceMark:
        """The next mark; a stale worker stands down here."""
        after = mark.moved(self.number)
        if after is None:
            raise ClaimLost(self.holder, self.worker, self.number)
        return after


@dataclass(slots=True)
class Checkout:
    """A workspace's repository. `refs` and `marks` are the origin's, as of the last read or push."""

    git: Git
    project: Project
    main: str
    remote: Git
    """The same repository for what leaves this machine: it alone has the project's credential."""
    refs: dict[str, str] = field(default_factory=dict)
    marks: dict[str, FenceMark] = field(default_factory=dict)
    read_at: float = float("-inf")
    """When, on the monotonic clock, the origin was last read."""
    stands_on: int = 0
    """The claim's fence under which this copy moved the key's mark."""
    searched: str = ""
    """The main commit up to which this job's own commit was looked for in vain."""
    based_on: str = ""
    """A main commit that what is checked out is known to contain."""
    checked: str = ""
    """A commit that an agent may get to see; see `check_commit`."""
    untouched: bool = False
    """No job has worked in it since it was made."""

    @property
    def main_ref(self) -> str:
        """The published branch."""
        return f"refs/heads/{self.main}"

    @property
    def live_ref(self) -> str:
        """The branch of the public site."""
        return f"refs/heads/{live_branch(self.main)}"

    def read(self, branch: str) -> None:
        """Learn the origin's main and live, the thread's branch and all fence marks; what they name is here then."""
        wanted = (self.main_ref, self.live_ref, f"refs/heads/{branch}", "refs/fence")
        here = set(self.refs.values())
        if not self._look(wanted) or not self._has({self.refs[ref] for ref in wanted if ref in self.refs} - here):
            self._fetch(branch)
            self._learn(self.git, [self._seen(ref) for ref in wanted])
        if self.main_ref not in self.refs:
            raise Permanent(f"{self.project.repo} has no commit on {self.main}: push a first page to it")
        self.read_at = time.monotonic()

    def _look(self, wanted: Sequence[str]) -> bool:
        """Read the refs of an origin on this machine where they are: a fetch takes five times as long."""
        origin = local_origin(self.project.repo)
        return origin is not None and self._learn(Git(origin, self.git.worker), wanted)

    def _learn(self, git: Git, wanted: Sequence[str]) -> bool:
        listing = git.attempt("for-each-ref", f"--format={_REF_FORMAT}", *wanted)
        if listing.code != 0:
            return False
        self.refs, self.marks = {}, {}
        fields = listing.out.decode(errors="surrogateescape").split("\0")
        for name, oid, text in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            ref = "refs/" + name.strip().removeprefix(_SEEN).removeprefix("refs/")
            self.refs[ref] = oid
            if ref.startswith("refs/fence/"):
                self.marks[ref] = read_mark(text)
        return True

    def _has(self, commits: set[str]) -> bool:
        if not commits:
            return True
        asked = "".join(f"{oid}\n" for oid in commits)
        return " missing" not in self.git("cat-file", "--batch-check", stdin=asked.encode())

    def _fetch(self, branch: str) -> None:
        args = (
            "fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--", self.project.repo,
            f"+{self.main_ref}:{self._seen(self.main_ref)}",
            *(f"+{ref}*:{self._seen(ref)}*" for ref in (f"refs/heads/{branch}", self.live_ref)),  # they may not exist
            f"+refs/fence/*:{_SEEN}fence/*",
        )  # fmt: skip
        finished = self.remote.attempt(*args, seconds=REMOTE_SECONDS)
        if finished.code != 0:
            check_access(self.project, finished.err.decode(errors="replace"))
            raise GitFailed(args, finished)

    def _seen(self, ref: str) -> str:
        """Where a fetched ref is kept here."""
        return _SEEN + ref.removeprefix("refs/")

    def push(self, moves: Mapping[str, str], fences: Sequence[Fence], branch: str) -> bool:
        """Move refs and fence marks together or not at all; False when another push moved one of the refs.

        A ref that is to stay where it was read counts too: who moves it moves a fence mark with it.
        Raises ClaimLost when a higher fence has spoken; then nothing on the origin has changed.
        """
        moving = {ref: oid for ref, oid in moves.items() if self.refs.get(ref) != oid}
        for _ in range(PUSH_TRIES):
            marks = {fence.ref: fence.moved(self.marks.get(fence.ref, FenceMark())) for fence in fences}
            wanted = {**moving, **self._written(marks)}
            finished = self._push(wanted)
            if finished.code != 0:
                before = self.refs
                self.read(branch)
                if any(self.refs.get(ref) != oid for ref, oid in wanted.items()):
                    if self._must_stop(finished, before, moves, fences):
                        return False
                    continue
            sync_refs(self.project.repo, wanted)
            self.refs |= wanted
            self.marks |= marks
            return True
        raise Transient(f"{self.project.repo}: its fence moved {PUSH_TRIES} times during one push; try again")

    def _written(self, marks: Mapping[str, FenceMark]) -> dict[str, str]:
        return {ref: write_blob(self.git.git_dir, mark.text().encode()) for ref, mark in marks.items()}

    def _push(self, wanted: Mapping[str, str]) -> Finished:
        leases = [f"--force-with-lease={ref}:{self.refs.get(ref, '')}" for ref in wanted]
        # No `+` here: it would force the push past its own leases.
        refspecs = [f"{oid}:{ref}" for ref, oid in wanted.items()]
        return self.remote.attempt(
            "push", "--porcelain", "--atomic", "--no-verify", *leases, "--", self.project.repo, *refspecs,
            seconds=REMOTE_SECONDS,
        )  # fmt: skip

    def _must_stop(
        self, finished: Finished, before: Mapping[str, str], moves: Mapping[str, str], fences: Sequence[Fence]
    ) -> bool:
        """Why was it refused? Told by what the origin holds now, as words differ among servers."""
        for fence in fences:
            fence.moved(self.marks.get(fence.ref, FenceMark()))
        if any(self.refs.get(ref) != before.get(ref) for ref in moves):
            return True
        if any(self.refs.get(fence.ref) != before.get(fence.ref) for fence in fences):
            return False
        words = (finished.out + finished.err).decode(errors="replace")
        if mentions_lock(words):
            remove_stale_locks(self.project.repo)
            time.sleep(LOCK_WAIT_SECONDS)
            return False
        check_access(self.project, words)
        kind = Permanent if any(never in words for never in _NEVER) else Transient
        raise kind(f"{self.project.repo} refused a push: {words.strip()[-400:]}") from machine_fault_in(words)


def checkout_folder(folder: Path) -> tuple[Path, Path]:
    """The repository and the tree of a workspace, apart: an agent in the tree does not meet the former."""
    return folder / "git", folder / "tree"
