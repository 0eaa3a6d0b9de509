"""Workspaces on disk and their cache. A workspace borrows its objects from the project's mirror.

Checkout: one workspace's repository, what it last read of its origin, and its only way to push.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from webordinary.adapters.durable import remove_tree, sync_path
from webordinary.adapters.git.command import (
    REMOTE_SECONDS,
    Git,
    GitFailed,
    is_plain_origin,
    local_origin,
    machine_fault_in,
    mentions_lock,
    refs_in,
    remove_stale_locks,
    sync_refs,
    write_attributes,
)
from webordinary.adapters.git.credentials import check_access
from webordinary.adapters.git.mirrors import Mirrors, live_branch, main_branch, without_commit
from webordinary.adapters.git.object_store import NotRead, store_of, write_object
from webordinary.adapters.git.objects import head
from webordinary.adapters.processes import Finished
from webordinary.jobs.source import JobContext, Workspace
from webordinary.model.errors import ClaimLost, Permanent, Transient
from webordinary.model.names import ProjectUser
from webordinary.model.projects import Project

PUSH_TRIES = 40
LOCK_WAIT_SECONDS = 0.2
_SEEN = "refs/origin/"
_NO_REF = "0" * 40
_REF_FORMAT = "%(refname)%00%(objectname)%00%(if:equals=blob)%(objecttype)%(then)%(raw)%(end)%00"
_NEVER = (
    "checked out branch",
    "hook declined",
    "protected branch",
    "ermission denied",
    "not permitted",
    "denied to",
)


_MARK = re.compile(r"fence (\d{1,20})\ncounter (\d{1,20})\n")


@dataclass(frozen=True, slots=True)
class FenceMark:
    """The highest fence that was used, and how often the mark has moved."""

    fence: int = 0
    counter: int = 0

    def moved(self, fence: int) -> FenceMark | None:
        """The next mark; None if a higher fence was used already."""
        return FenceMark(fence, self.counter + 1) if fence >= self.fence else None

    def text(self) -> str:
        """The value as it is stored in the origin."""
        return f"fence {self.fence}\ncounter {self.counter}\n"


def read_mark(text: str) -> FenceMark:
    """Read a stored mark. A foreign text counts as the lowest fence, so that moving on repairs it."""
    match = _MARK.fullmatch(text)
    return FenceMark(int(match[1]), int(match[2])) if match else FenceMark()


def key_fence_ref(key: ProjectUser) -> str:
    """Moves with every write to a thread's branch."""
    return f"refs/fence/key/{key.project_id}/{key.user_id}"


def project_fence_ref(project_id: str) -> str:
    """Moves with every write to main or live. Apart from the keys' refs: git cannot hold a ref below another ref."""
    return f"refs/fence/project/{project_id}"


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
        return f"refs/heads/{live_branch(self.main, self.project)}"

    def read(self, branch: str) -> None:
        """Learn the origin's main and live, the thread's branch and all fence marks; what they name is here then."""
        if not self.look(branch) or not self._bring():
            self._fetch(branch)
            self._learn(self.git, [self._seen(ref) for ref in self._names(branch)])
        if self.main_ref not in self.refs:
            raise without_commit(self.project, local_origin(self.project.repo) or self.git.git_dir, self.main)
        self.read_at = time.monotonic()

    def _names(self, branch: str) -> tuple[str, ...]:
        return self.main_ref, self.live_ref, f"refs/heads/{branch}", "refs/fence"

    def look(self, branch: str) -> bool:
        """Read the refs of an origin on this machine where they are; what they name may not be here yet."""
        names = self._names(branch)
        origin = local_origin(self.project.repo)
        if origin is None:
            return False
        with suppress(NotRead, OSError, UnicodeDecodeError):
            if (refs := refs_in(origin, names)) is not None:
                marks = {ref: self._mark(origin, oid) for ref, oid in refs.items() if ref.startswith("refs/fence/")}
                self.refs, self.marks = refs, marks
                return True
        return self._learn(Git(origin, self.git.worker), names)

    def _mark(self, origin: Path, oid: str) -> FenceMark:
        try:
            text = store_of(self.git.git_dir).blob(oid)
        except NotRead:  # another worker's
            text = store_of(origin).blob(oid)
        return read_mark(text.decode("utf-8", "surrogateescape"))

    def _learn(self, git: Git, names: Sequence[str]) -> bool:
        listing = git.attempt("for-each-ref", f"--format={_REF_FORMAT}", *names)
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

    def _bring(self) -> bool:
        """Copy what an origin on this machine has and this repository has not, as one pack; False if a fetch must."""
        origin, store = local_origin(self.project.repo), store_of(self.git.git_dir)
        named = {oid for ref, oid in self.refs.items() if not ref.startswith("refs/fence/")}
        try:
            missing = {oid for oid in named if not store.has(oid)}
            if missing:
                assert origin is not None, "only an origin on this machine is looked at"
                _pack(replace(self.git, tree=None), missing, {head(self.git), *(named - missing)}, origin)
        except (OSError, NotRead, GitFailed):
            return False
        return True

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
            blobs = {ref: write_object(self.git.git_dir, "blob", mark.text().encode()) for ref, mark in marks.items()}
            updates = {**moving, **blobs}
            finished = self._push(updates)
            if finished.code != 0:
                before = self.refs
                self.read(branch)
                if any(self.refs.get(ref) != oid for ref, oid in updates.items()):
                    if self._must_stop(finished, before, moves, fences):
                        return False
                    continue
            sync_refs(self.project.repo, updates)
            self.refs |= updates
            self.marks |= marks
            return True
        raise Transient(f"{self.project.repo}: its fence moved {PUSH_TRIES} times during one push; try again")

    def _push(self, updates: Mapping[str, str]) -> Finished:
        origin = local_origin(self.project.repo)
        if origin is not None and is_plain_origin(origin) and self._move(origin, updates):
            return Finished(0, b"", b"")
        leases = [f"--force-with-lease={ref}:{self.refs.get(ref, '')}" for ref in updates]
        # No `+` here: it would force the push past its own leases.
        refspecs = [f"{oid}:{ref}" for ref, oid in updates.items()]
        return self.remote.attempt(
            "push", "--porcelain", "--atomic", "--no-verify", *leases, "--", self.project.repo, *refspecs,
            seconds=REMOTE_SECONDS,
        )  # fmt: skip

    def _move(self, origin: Path, updates: Mapping[str, str]) -> bool:
        """Do what a push to a plain origin on this machine does: one pack of what is new, then all refs or none.

        A push starts seven programs, which tell each other what both of them can see. What fails here is pushed.
        """
        git = Git(origin, self.git.worker)
        held = {oid for ref, oid in self.refs.items() if not ref.startswith("refs/fence/")}
        try:
            _pack(git, set(updates.values()) - held, held, self.git.git_dir)
            sync_path(origin / "objects" / "pack")
            moves = (f"update {ref} {oid} {self.refs.get(ref, _NO_REF)}\n" for ref, oid in updates.items())
            git("update-ref", "--no-deref", "--stdin", stdin="".join(moves).encode())
        except (OSError, GitFailed):
            return False
        return True

    def _must_stop(
        self, finished: Finished, before: Mapping[str, str], moves: Mapping[str, str], fences: Sequence[Fence]
    ) -> bool:
        """The reason of a refused push, by the present refs of the origin: messages differ between servers."""
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


def _pack(into: Git, wanted: Collection[str], known: Collection[str], source: Path) -> None:
    """Give a repository these objects, with all that its commits do not hold, out of another one as one pack."""
    git = replace(into, extra_env={"GIT_ALTERNATE_OBJECT_DIRECTORIES": str((source / "objects").resolve())})
    asked = "".join(f"{oid}\n" for oid in (*wanted, *(f"^{oid}" for oid in known)))
    place = str(into.git_dir / "objects" / "pack" / "pack")
    git("pack-objects", "--revs", "--quiet", place, stdin=asked.encode(), seconds=REMOTE_SECONDS)


def checkout_folder(folder: Path) -> tuple[Path, Path]:
    """The repository and the tree of a workspace, apart: an agent in the tree does not meet the former."""
    return folder / "git", folder / "tree"


_GONE = ".gone-"
_USED = "used"


def never_busy(key: ProjectUser) -> bool:
    """For callers without workers: no workspace is busy."""
    return False


@dataclass(slots=True)
class WorkspaceCache:
    """The workspaces below one worker's home: `{project}/{user}/`, each with a file that holds its last use.

    `guard` is held during the look-up and the removal of a workspace: a job either finds its workspace or makes a new
    one, and never loses it while it runs.
    """

    home: Path
    bytes: int = 0
    """Disk space of all workspaces together; 0: no limit."""
    in_work: Callable[[ProjectUser], bool] = never_busy
    guard: threading.Lock = field(default_factory=threading.Lock)
    _sizes: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def folder(self, key: ProjectUser) -> Path:
        """The folder of a key's workspace."""
        return self.home / key.project_id / key.user_id

    def use(self, folder: Path) -> None:
        """Mark a workspace as used now."""
        mark = folder / _USED
        mark.touch()
        os.utime(mark)

    def make_room(self, keeping: ProjectUser) -> list[ProjectUser]:
        """Evict the least recently used workspaces until all fit; never a busy one, nor the one to keep."""
        self._sweep()
        if not self.bytes:
            return []
        present = self._all()
        if present == [keeping]:
            return []
        oldest_first = sorted(present, key=lambda key: _used_at(self.folder(key)))
        total = sum(self._size(self.folder(key)) for key in oldest_first)
        removed = []
        for key in oldest_first:
            if total <= self.bytes:
                break
            folder = self.folder(key)
            if key != keeping and self._take_away(key, folder):
                total -= self._sizes.pop(folder, (0, 0))[1]
                removed.append(key)
        self._sweep()
        return removed

    def _take_away(self, key: ProjectUser, folder: Path) -> bool:
        with self.guard:
            if self.in_work(key):
                return False
            folder.rename(self.home / f"{_GONE}{secrets.token_hex(6)}")
        return True

    def _sweep(self) -> None:
        """Delete evicted workspaces, also those of a worker that was killed meanwhile."""
        for gone in self.home.glob(f"{_GONE}*"):
            shutil.rmtree(gone, ignore_errors=True)

    def _all(self) -> list[ProjectUser]:
        found = []
        for project in self.home.iterdir() if self.home.is_dir() else ():
            if project.is_dir() and not project.name.startswith("."):
                found += [ProjectUser(project.name, user.name) for user in project.iterdir() if user.is_dir()]
        return found

    def _size(self, folder: Path) -> int:
        """Measured once after each use: between uses nothing grows."""
        used = _used_at(folder)
        known = self._sizes.get(folder)
        if known is None or known[0] != used:
            known = self._sizes[folder] = (used, size_of(folder))
        return known[1]


def size_of(folder: Path) -> int:
    """The disk space of a folder; files that disappear meanwhile count nothing."""
    total, unread = 0, [os.fspath(folder)]
    while unread:
        try:
            with os.scandir(unread.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        unread.append(entry.path)
        except OSError:
            continue
    return total


def _used_at(folder: Path) -> int:
    try:
        return (folder / _USED).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


_READY = "ready"
_LAYOUT = "3"
"""Of a workspace's repository. One of another layout is made anew: its work is on the origin."""
_WORN_LOOSE, _WORN_PACKS = 7, 50
"""7 objects under one of 256 letters mean some 1,800, the changes of 400 mails in 7 MB. Making anew is cheaper than
packing, and it also drops the branches of finished threads."""
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsync = none\n"
"""No sync: only the origin is precious, and after a power cut every workspace is made anew."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class GitWorkspaces:
    """One worker's checkouts by key. A broken one is removed: the origin has all its work."""

    def __init__(self, mirrors: Mirrors, cache: WorkspaceCache, worker: str) -> None:
        self._mirrors, self._cache, self._worker = mirrors, cache, worker
        self._copies: dict[Path, Checkout] = {}
        self._has_grown = False

    def held(self, workspace: Workspace) -> Checkout:
        """The copy of a workspace that was prepared here."""
        return self._copies[self._cache.folder(workspace.work.key)]

    def find(self, work: JobContext) -> Checkout | None:
        """A complete checkout; None if it is missing, broken or has too many loose objects."""
        folder = self._cache.folder(work.key)
        git_dir, tree = checkout_folder(folder)
        with self._cache.guard:
            main = _ready(git_dir)
            if not main or not tree.is_dir() or _is_worn(git_dir):
                return None
            copy = self._copies.get(folder)
            if copy is None or copy.project != work.project:
                copy = self._copies[folder] = self._copy(work, git_dir, tree, main)
            copy.remote = self._mirrors.remote(copy.git, work.project)  # the operator may have changed the credential
            self._cache.use(folder)
            return copy

    def make(self, work: JobContext) -> Checkout:
        """A new checkout, in place of an existing one."""
        folder = self._cache.folder(work.key)
        git_dir, tree = checkout_folder(folder)
        mirror = self._mirrors.refresh(work.project)
        main = main_branch(mirror, work.project)
        remove_tree(folder)
        tree.mkdir(parents=True)
        _write_repository(git_dir, mirror)
        (git_dir / _READY).write_text(f"{main}\n{_boot()}\n{_LAYOUT}\n", encoding="utf-8")
        copy = self._copies[folder] = self._copy(work, git_dir, tree, main)
        copy.untouched = True
        self._cache.use(folder)
        self._has_grown = True
        return copy

    def make_room(self, work: JobContext) -> None:
        """Evict other workspaces if this one is new."""
        if self._has_grown:
            self._has_grown = False
            self._cache.make_room(work.key)

    def distrust(self, copy: Checkout) -> None:
        """Mark the checkout as broken: the next job makes a new one."""
        (copy.git.git_dir / _READY).unlink(missing_ok=True)

    def _copy(self, work: JobContext, git_dir: Path, tree: Path, main: str) -> Checkout:
        git = Git(git_dir, self._worker, tree)
        return Checkout(git, work.project, main, self._mirrors.remote(git, work.project))


def _write_repository(git_dir: Path, mirror: Git) -> None:
    """Write the files of `git init` that are needed here."""
    for folder in ("objects/info", "objects/pack", "refs/heads"):
        (git_dir / folder).mkdir(parents=True)
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
    (git_dir / "config").write_text(_CONFIG, encoding="utf-8")
    write_attributes(git_dir)
    borrowed = (mirror.git_dir / "objects").resolve()
    (git_dir / "objects" / "info" / "alternates").write_text(f"{borrowed}\n", encoding="utf-8")


def _ready(git_dir: Path) -> str:
    """The main branch of a workspace that was made whole, so, and since the machine was started; else nothing."""
    try:
        main, *made = (git_dir / _READY).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return main if made == [_boot(), _LAYOUT] else ""


def _boot() -> str:
    return _BOOT.read_text(encoding="utf-8").strip() if _BOOT.exists() else "-"


def _is_worn(git_dir: Path) -> bool:
    return _count(git_dir / "objects" / "17") > _WORN_LOOSE or _count(git_dir / "objects" / "pack") > 2 * _WORN_PACKS


def _count(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0
