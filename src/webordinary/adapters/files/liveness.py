"""Lock files of living processes: who lives, who died, and who holds the database while it is frozen."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from webordinary.adapters.durable import FileLock, is_locked
from webordinary.adapters.processes import JOB_MARK, WORKER_MARK
from webordinary.model.errors import Permanent
from webordinary.model.snapshot import WorkerEntry

_SURVIVOR_SECONDS = 10.0
_NOTE_CHARACTERS = 500


class LockFiles:
    """`{folder}/{worker}` is locked while that worker's process lives; it holds the process id, and perhaps a name.

    A note, what keeps it from work, lies beside it: the time of the file itself is the last beat.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own: dict[str, FileLock] = {}

    def enter(self, worker: str, name: str = "") -> None:
        """Register this process as `worker` until it ends; `name` is its display name."""
        fresh = self._folder / f".{worker}"
        lock = FileLock(fresh)
        lock.acquire(blocking=True)
        fresh.write_text(f"{os.getpid()}\n{name}", encoding="utf-8")
        fresh.rename(self._folder / worker)  # after the lock: an unlocked file would mean a dead worker
        self._own[worker] = lock

    def leave(self, worker: str) -> None:
        """Unregister a worker that has released its claims."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / worker).unlink()
        self._own.pop(worker).release()
        self._note_file(worker).unlink(missing_ok=True)

    def beat(self, worker: str) -> None:
        """Record that this worker's loop runs."""
        os.utime(self._own[worker].fileno())

    def note(self, worker: str, words: str) -> None:
        """Store, for health checks, the reason why this worker cannot work; empty = none."""
        if worker in self._own:  # else it has left
            self._note_file(worker).write_text(" ".join(words.split())[:_NOTE_CHARACTERS], encoding="utf-8")

    def note_of(self, worker: str) -> str:
        """The stored reason why a worker cannot work; empty = none."""
        return _text(self._note_file(worker))

    def last_beat(self, worker: str) -> float | None:
        """When, in seconds since the epoch, that worker's loop last went round; None if it left no file."""
        try:
            return (self._folder / worker).stat().st_mtime
        except FileNotFoundError:
            return None

    def is_dead(self, worker: str) -> bool:
        if worker in self._own:
            return False
        try:
            return not is_locked(self._folder / worker)
        except FileNotFoundError:
            return True

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """Kills the processes and waits until they have ended."""
        doomed = [pid for pid in _processes() if _runs_for(worker, jobs, _environment(pid))]
        deadline = time.monotonic() + _SURVIVOR_SECONDS
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in doomed:
            _wait_gone(pid, deadline)

    def peers(self) -> dict[str, int]:
        names = (path.name for path in self._folder.iterdir() if not path.name.startswith("."))
        alive = (name for name in names if name not in self._own and not self.is_dead(name))
        return {name: pid for name in alive if (pid := self._pid(name))}

    def present(self) -> list[WorkerEntry]:
        """The workers whose process lives; the slots are not recorded here."""
        return [WorkerEntry(worker, self.name_of(worker), pid, slots=0) for worker, pid in self.peers().items()]

    def names(self, workers: Iterable[str]) -> dict[str, str]:
        return {worker: name for worker in workers if (name := self.name_of(worker))}

    def clear_dead(self, worker: str) -> None:
        """Forget a dead worker's files."""
        (self._folder / worker).unlink(missing_ok=True)
        self._note_file(worker).unlink(missing_ok=True)

    def name_of(self, worker: str) -> str:
        """The display name, or the worker's id."""
        return _text(self._folder / worker).partition("\n")[2] or worker

    def _pid(self, worker: str) -> int | None:
        try:
            return int(_text(self._folder / worker).partition("\n")[0])
        except ValueError:
            return None

    def _note_file(self, worker: str) -> Path:
        return self._folder / f".{worker}.note"


class DeathWatch:
    """Descriptors that become readable when a peer's process ends (Linux); elsewhere there are none."""

    def __init__(self, lock_files: LockFiles) -> None:
        self._lock_files = lock_files
        self._watched: dict[str, int] = {}

    def refresh(self) -> None:
        """Watch the peers that live now."""
        if not hasattr(os, "pidfd_open"):
            return
        peers = self._lock_files.peers()
        for gone in self._watched.keys() - peers.keys():
            os.close(self._watched.pop(gone))
        for name in peers.keys() - self._watched.keys():
            with contextlib.suppress(OSError):
                self._watched[name] = os.pidfd_open(peers[name])

    @property
    def descriptors(self) -> list[int]:
        """What to wait on."""
        return list(self._watched.values())

    def died(self, readable: list[int]) -> list[str]:
        """The peers behind these descriptors; they are not watched any longer."""
        names = [name for name, descriptor in self._watched.items() if descriptor in readable]
        for name in names:
            os.close(self._watched.pop(name))
        return names

    def close(self) -> None:
        """Close all descriptors."""
        for descriptor in self._watched.values():
            os.close(descriptor)
        self._watched.clear()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _processes() -> Iterator[int]:
    proc = Path("/proc")
    if proc.is_dir():
        yield from (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _runs_for(worker: str, jobs: Collection[str] | None, environment: list[bytes]) -> bool:
    if f"{WORKER_MARK}={worker}".encode() not in environment:
        return False
    return jobs is None or any(f"{JOB_MARK}={job}".encode() in environment for job in jobs)


def _wait_gone(pid: int, deadline: float) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    os.close(descriptor)


MAX_HOMES = 256


class WorkerHome:
    """One of `{workspaces}/w0`, `w1`, …: a restarted worker finds the checkouts of the one before."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path, self._lock = path, lock

    def close(self) -> None:
        """Release it for the next worker."""
        self._lock.release()


def lock_worker_home(workspaces: Path) -> WorkerHome:
    """The first home that no living process has."""
    workspaces.mkdir(parents=True, exist_ok=True)
    for number in range(MAX_HOMES):
        lock = FileLock(workspaces / f".w{number}.lock")
        if lock.acquire():
            path = workspaces / f"w{number}"
            path.mkdir(exist_ok=True)
            return WorkerHome(path, lock)
    raise Permanent(f"{workspaces}: {MAX_HOMES} workers run here already; stop some of them")


_LOCKS = Path("/proc/locks")  # Linux only; elsewhere the holder of a lock is unknown
_WRITE_LOCK = 120  # the byte of the -shm file that a writer locks: part of SQLite's file format
_STOPPED = ("T", "t")  # by a signal, by a debugger
_log = logging.getLogger(__name__)


class FrozenWriters:
    """Looks now and then at the kernel's list of locks. (Opening the database's file would break SQLite's locks.)"""

    name = "frozen-writers"

    def __init__(
        self,
        database: Path,
        stall_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        lock_folder: Path | None = None,
    ) -> None:
        """`lock_folder` has the mirrors' lock files."""
        self._shared, self._stall_seconds, self._monotonic = Path(f"{database}-shm"), stall_seconds, monotonic
        self._lock_folder = lock_folder
        self._since: dict[int, float] = {}

    def run_once(self, now: datetime) -> int:
        return len(self.look())

    def look(self) -> list[int]:
        """End the processes that have stood still with a lock in hand for too long; which they were."""
        now = self._monotonic()
        stopped = {pid for pid in self._holders() if _is_stopped(pid)}
        self._since = {pid: self._since.get(pid, now) for pid in stopped}
        overdue = [pid for pid, since in self._since.items() if now - since >= self._stall_seconds]
        return [pid for pid in overdue if self._end(pid)]

    def _end(self, pid: int) -> bool:
        del self._since[pid]
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError as problem:  # it has ended meanwhile, or belongs to another user
            _log.warning("process %d is stopped, holds a lock and cannot be ended: %s", pid, problem)
            return False
        _log.warning("process %d was stopped while it held a lock that others wait for: ended", pid)
        return True

    def _holders(self) -> Iterator[int]:
        try:
            database, locks = str(self._shared.stat().st_ino), _LOCKS.read_text(encoding="ascii")
        except OSError:
            return
        for line in locks.splitlines():
            match line.split():
                case [_, "POSIX", _, "WRITE", pid, place, first, last] if place.rpartition(":")[2] == database:
                    if int(first) <= _WRITE_LOCK and (last == "EOF" or int(last) >= _WRITE_LOCK):
                        yield int(pid)
                case [_, "FLOCK", _, "WRITE", pid, place, _, _] if self._is_lock_file(int(pid), place):
                    yield int(pid)

    def _is_lock_file(self, pid: int, place: str) -> bool:
        """Whether a stopped process has this file of the lock folder open. An inode alone may be another disk's."""
        if self._lock_folder is None or not _is_stopped(pid):
            return False
        folder, inode = self._lock_folder.resolve(), int(place.rpartition(":")[2])
        opened = (path for path in _open_files(pid) if path.parent == folder)
        return any(path.exists() and path.stat().st_ino == inode for path in opened)


def _open_files(pid: int) -> list[Path]:
    try:
        return [descriptor.readlink() for descriptor in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it has ended meanwhile, or belongs to another user
        return []


def _is_stopped(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] in _STOPPED
