"""Copy: one workspace's repository, what it last read of its origin, and its only way to push."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webordinary.adapters.local.git.command import REMOTE_SECONDS, Git
from webordinary.adapters.local.git.origin_locks import mentions_lock, remove_stale_locks
from webordinary.adapters.local.processes import Finished
from webordinary.model.errors import ClaimLost, Permanent, Transient
from webordinary.model.projects import Project
from webordinary.site.fencemarks import FenceMark, read_mark

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
class Copy:
    """A workspace's repository. `refs` and `marks` are the origin's, as of the last read or push."""

    git: Git
    project: Project
    main: str
    refs: dict[str, str] = field(default_factory=dict)
    marks: dict[str, FenceMark] = field(default_factory=dict)
    stands_on: int = 0
    """The claim's fence under which this copy moved the key's mark."""
    searched: str = ""
    """The main commit up to which this job's own commit was looked for in vain."""

    @property
    def main_ref(self) -> str:
        """The published branch."""
        return f"refs/heads/{self.main}"

    def seen(self, ref: str) -> str:
        """Where the origin's ref is kept here."""
        return _SEEN + ref.removeprefix("refs/")

    def read(self, branch: str) -> None:
        """Learn the origin's main, the thread's branch and all fence marks."""
        self.git(
            "fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--", self.project.repo,
            f"+{self.main_ref}:{self.seen(self.main_ref)}",
            f"+refs/heads/{branch}*:{_SEEN}heads/{branch}*",  # a pattern, as the branch may not exist yet
            f"+refs/fence/*:{_SEEN}fence/*",
            seconds=REMOTE_SECONDS,
        )  # fmt: skip
        listing = self.git(
            "for-each-ref", f"--format={_REF_FORMAT}",
            self.seen(self.main_ref), f"{_SEEN}heads/{branch}", f"{_SEEN}fence",
        )  # fmt: skip
        self.refs, self.marks = {}, {}
        fields = listing.split("\0")
        for name, oid, text in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            ref = "refs/" + name.strip().removeprefix(_SEEN)
            self.refs[ref] = oid
            if ref.startswith("refs/fence/"):
                self.marks[ref] = read_mark(text)

    def push(self, moves: Mapping[str, str], fences: Sequence[Fence], branch: str) -> bool:
        """Move refs and fence marks together or not at all; False when somebody moved one of the refs.

        Raises ClaimLost when a higher fence has spoken; then nothing on the origin has changed.
        """
        moves = {ref: oid for ref, oid in moves.items() if self.refs.get(ref) != oid}
        for _ in range(PUSH_TRIES):
            marks = {fence.ref: fence.moved(self.marks.get(fence.ref, FenceMark())) for fence in fences}
            wanted = {**moves, **self._written(marks)}
            finished = self._push(wanted)
            if finished.code != 0:
                before = self.refs
                self.read(branch)
                if any(self.refs.get(ref) != oid for ref, oid in wanted.items()):
                    if self._must_stop(finished, before, moves, fences):
                        return False
                    continue
            self.refs |= wanted
            self.marks |= marks
            return True
        raise Transient(f"{self.project.repo}: its fence moved {PUSH_TRIES} times during one push; try again")

    def _written(self, marks: Mapping[str, FenceMark]) -> dict[str, str]:
        paths = []
        for number, mark in enumerate(marks.values()):
            path = self.git.git_dir / f"fence-mark-{number}"
            path.write_text(mark.text(), encoding="utf-8")
            paths.append(str(path))
        return dict(zip(marks, self.git("hash-object", "-w", "--no-filters", "--", *paths).split(), strict=True))

    def _push(self, wanted: Mapping[str, str]) -> Finished:
        leases = [f"--force-with-lease={ref}:{self.refs.get(ref, '')}" for ref in wanted]
        # No `+` here: it would force the push past its own leases.
        refspecs = [f"{oid}:{ref}" for ref, oid in wanted.items()]
        return self.git.attempt(
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
        kind = Permanent if any(never in words for never in _NEVER) else Transient
        raise kind(f"{self.project.repo} refused a push: {words.strip()[-400:]}")


def home_of(folder: Path) -> tuple[Path, Path]:
    """The repository and the tree of a workspace, apart: an agent in the tree does not meet the former."""
    return folder / "git", folder / "tree"
