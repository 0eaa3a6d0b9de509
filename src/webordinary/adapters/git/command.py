"""One git call: by list, never by shell, without hooks, prompts and configuration of users.

And repositories that survive a power cut: the settings of our origins, and the folders of their refs.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from webordinary.adapters.durable import disk_errors, sync_path, write_durably
from webordinary.adapters.processes import WORKER_MARK, Finished, run
from webordinary.model.errors import (
    KILLED_CODES,
    MachineFault,
    Permanent,
    ProgramKilled,
    Transient,
    speaks_of_machine_fault,
)

LOCAL_SECONDS = 60.0
REMOTE_SECONDS = 300.0
MEMORY_BYTES = 2_000_000_000
"""Of each git process: a push of a few MB may hold objects of gigabytes, which git reads whole."""
_ERROR_CHARACTERS = 600
_NO_ROOM = "unable to create temporary"  # all that a push says when the origin's disk is full
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,  # the default lies in the operator's home
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.protectHFS": "true",  # no name that another file system takes for `.git` is ever stored or checked out
    "core.protectNTFS": "true",
    "core.quotePath": "false",
    "core.autocrlf": "false",
    "pack.windowMemory": "100m",  # of each thread: well within MEMORY_BYTES
    "gc.auto": "0",  # workspaces share the mirror's objects: nothing may prune them
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
    "log.mailmap": "false",  # a tree's own, of any size
    "protocol.version": "2",
    "protocol.allow": "never",  # no `ext::`, which runs a program, and no helper that happens to be installed
    **{f"protocol.{name}.allow": "always" for name in ("file", "git", "http", "https", "ssh")},
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "fetch.writeCommitGraph": "false",
}
GIT_CONFIG = Path(__file__).with_name("gitconfig")
"""Unlike _SETTINGS it reaches the receive-pack of a push, and a repository may overrule it."""
_ATTRIBUTES = "* !filter !ident !text !eol !crlf !working-tree-encoding !conflict-marker-size !diff !delta\n"
"""Stronger than any `.gitattributes` in a tree: files are stored and checked out byte by byte, and never decoded.

Git writes past its memory where the marks of conflicts are longer than it can count.
"""
_NAME, _ADDRESS = "WebOrdinary", "webordinary@localhost"
COMMITTER = f"{_NAME} <{_ADDRESS}>"
_PASSED_ON = ("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR")


def write_attributes(git_dir: Path) -> None:
    """Switch conversions of content off in a repository that is to have a work tree."""
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")


class GitFailed(Transient):
    """git failed; the message has its output."""

    def __init__(self, args: tuple[str, ...], finished: Finished) -> None:
        words = finished.err.decode(errors="replace").strip()[-_ERROR_CHARACTERS:]
        super().__init__(f"git {' '.join(args)[:120]} ended with {finished.code}: {words or 'no words'}")
        self.words = words
        self.__cause__ = machine_fault_in(words)


def machine_fault_in(words: str) -> MachineFault | None:
    """The cause, if git complains of the machine, here or at an origin on it."""
    if speaks_of_machine_fault(words) or _NO_ROOM in words:
        return MachineFault(words[-_ERROR_CHARACTERS:])
    return None


@dataclass(frozen=True, slots=True)
class Git:
    """Git on one repository for one worker; the git folder is outside the tree that agents can write to."""

    git_dir: Path
    worker: str
    tree: Path | None = None
    extra_env: Mapping[str, str] = field(default_factory=dict)
    """Who commits, or how to get into the origin."""

    def __call__(self, *args: str, stdin: bytes = b"", seconds: float = LOCAL_SECONDS) -> str:
        """Run it and return what it prints; raise GitFailed unless it ends well."""
        finished = self.attempt(*args, stdin=stdin, seconds=seconds)
        if finished.code != 0:
            raise GitFailed(args, finished)
        return finished.out.decode(errors="surrogateescape")

    def attempt(self, *args: str, stdin: bytes = b"", seconds: float = LOCAL_SECONDS) -> Finished:
        """Run git and return its exit code and output."""
        where = ["git", f"--git-dir={self.git_dir}"]
        if self.tree is not None:
            where.append(f"--work-tree={self.tree}")
        try:
            finished = run(
                [*where, *args],
                cwd=self.tree or self.git_dir.parent,
                stdin=stdin,
                env=self._env(),
                seconds=seconds,
                memory_bytes=MEMORY_BYTES,
            )
        except FileNotFoundError as problem:
            if self.git_dir.parent.exists() and (self.tree is None or self.tree.exists()):
                raise Permanent("git is not installed: install it, then start the worker again") from problem
            raise Transient(f"{self.git_dir.parent} is gone; it will be made again") from problem
        if finished.timed_out or finished.overflowed:
            raise GitFailed(args, finished)
        if finished.code in KILLED_CODES:
            raise ProgramKilled("git")
        return finished

    def _env(self) -> dict[str, str]:
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        env |= {
            WORKER_MARK: self.worker,
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "true",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_CONFIG_GLOBAL": os.fspath(GIT_CONFIG),
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",  # `refs/replace` of an origin must not show us another tree than it serves
            "GIT_EDITOR": "true",
            "GIT_AUTHOR_NAME": _NAME,
            "GIT_AUTHOR_EMAIL": _ADDRESS,
            "GIT_COMMITTER_NAME": _NAME,
            "GIT_COMMITTER_EMAIL": _ADDRESS,
            "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        }
        for number, (name, value) in enumerate(_SETTINGS.items()):
            env |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
        return {**env, **self.extra_env}


STALE_SECONDS = 3.0  # git holds a ref's lock for milliseconds


def mentions_lock(words: str) -> bool:
    """Whether a refused push complains about a lock."""
    return ".lock" in words or "cannot lock ref" in words or "failed to lock" in words


def local_origin(repo: str) -> Path | None:
    """The repository of an origin on this machine; None if it is elsewhere."""
    folder = Path(repo)
    for git_dir in (folder, folder / ".git"):
        if (git_dir / "HEAD").is_file():
            return git_dir
    return None


def refs_in(git_dir: Path, names: Sequence[str]) -> dict[str, str] | None:
    """These refs of a repository, and those below these names, by what they point to; None if git is to be asked.

    What is packed is read last: git packs a ref before it removes its file.
    """
    if (git_dir / "reftable").exists():
        return None
    found: dict[str, str] = {}
    for ref in (one for name in names for one in _loose_refs(git_dir, name)):
        with suppress(FileNotFoundError):  # removed or packed meanwhile
            found[ref] = (git_dir / ref).read_text(encoding="ascii").strip()
    packed = git_dir / "packed-refs"
    for line in packed.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if packed.exists() else ():
        oid, _, ref = line.partition(" ")
        if any(ref == name or ref.startswith(f"{name}/") for name in names):
            found.setdefault(ref, oid)
    return found if all(map(_OID.fullmatch, found.values())) else None


def _loose_refs(git_dir: Path, name: str) -> Iterator[str]:
    """A ref, or all below it, that have a file."""
    path = os.path.join(git_dir, name)  # noqa: PTH118  once for every mark of a project
    if not os.path.isdir(path):  # noqa: PTH112
        yield name
        return
    for folder, _, files in os.walk(path):
        below = f"{name}{folder.removeprefix(path)}"
        yield from (f"{below}/{file}" for file in files if not file.endswith(".lock"))


_OID = re.compile(r"[0-9a-f]{40}")
_PROCESSES = Path("/proc")


def is_worked_on(repository: Path) -> bool:
    """Whether a process of this machine runs in a repository or is told to work on it.

    The age of a file says nothing after the clock of the machine was set.
    """
    where = os.fspath(repository.resolve())
    own_paths = {os.fsencode(text) for name in (where, repository) for text in (name, f"--git-dir={name}")}
    for process in _PROCESSES.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if not own_paths.isdisjoint((process / "cmdline").read_bytes().split(b"\0")):
                return True
            if Path(os.readlink(process / "cwd")).is_relative_to(where):  # noqa: PTH115  a folder may be gone
                return True
    return False


def remove_stale_locks(repo: str) -> int:
    """Remove old lock files of a local origin that no process works on; an origin elsewhere looks after its own."""
    git_dir = local_origin(repo)
    if git_dir is None or is_worked_on(git_dir):
        return 0
    removed = 0
    for lock in [*git_dir.glob("*.lock"), *(git_dir / "refs").rglob("*.lock")]:
        try:
            if time.time() - lock.stat().st_mtime > STALE_SECONDS:
                lock.unlink()
                removed += 1
        except FileNotFoundError:
            continue
    return removed


_LEFTOVERS = ("incoming-*", "tmp_objdir-*", "pack/tmp_*", "pack/.tmp-*", "??/tmp_obj_*")
"""Quarantine folders of pushes, and unfinished packs and objects."""
_LEFTOVER_AGE = timedelta(hours=1)
_ORIGIN_SETTINGS = """\
[core]
	fsync = all
	fsyncMethod = fsync
[receive]
	unpackLimit = 1
	autogc = false
"""
"""One pack per push needs two syncs, and a third of the space; loose objects need one each. Upkeep packs them."""


def harden_origin(git_dir: Path) -> bool:
    """Append our settings to an origin's configuration, where they take precedence; False if they are there."""
    config = git_dir / "config"
    text = config.read_text(encoding="utf-8")
    if _ORIGIN_SETTINGS in text:
        return False
    write_durably(config, f"{text.rstrip()}\n{_ORIGIN_SETTINGS}".encode())
    return True


_OTHER_WAYS = re.compile(r"(?i)hook|receive|transfer|fsck|include|extensions")
_RECEIVE_HOOKS = ("pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction")


def is_plain_origin(git_dir: Path) -> bool:
    """Whether a push to a repository does nothing but store objects and move refs: it is as we made it."""
    try:
        config = (git_dir / "config").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    made = config.removesuffix(_ORIGIN_SETTINGS)
    is_ours = made != config and "bare = true" in made and not _OTHER_WAYS.search(made)
    return is_ours and not any((git_dir / "hooks" / name).exists() for name in _RECEIVE_HOOKS)


def harden_origins(folder: Path) -> int:
    """Harden the origins of a data folder that an earlier version made; returns how many changed."""
    hardened = 0
    for git_dir in folder.glob("[!.]*.git"):
        with suppress(FileNotFoundError):  # a damaged repository: the first job on it says so
            hardened += harden_origin(git_dir)
    return hardened


def clear_leftovers(folder: Path, now: datetime) -> int:
    """Remove what killed git processes left in the repositories of a folder; returns how many.

    A worker started by hand may be fetching at this moment: young files stay, and all where a process is at work.
    """
    before, removed = (now - _LEFTOVER_AGE).timestamp(), 0
    for repository in folder.glob("[!.]*.git"):
        left = [path for pattern in _LEFTOVERS for path in (repository / "objects").glob(pattern)]
        for path in left if left and not is_worked_on(repository) else ():
            with suppress(OSError):  # another process has removed it
                if path.stat().st_mtime < before:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                    removed += 1
    return removed


def sync_refs(repo: str, refs: Iterable[str]) -> None:
    """Make moved refs of an origin on this machine durable: git syncs their files, but not their folders."""
    git_dir = local_origin(repo)
    if git_dir is None:
        return
    folders: set[str] = set()
    for ref in refs:
        while (ref := ref.rpartition("/")[0]) and ref not in folders:
            folders.add(ref)
    with disk_errors(git_dir):
        for folder in sorted(folders, reverse=True):  # the innermost first
            with suppress(FileNotFoundError):  # packed meanwhile
                sync_path(git_dir / folder)
        sync_path(git_dir / "objects" / "pack")
