"""Which workers of this machine are alive: each holds a lock on its file, and the kernel lets go of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

MARKER, JOB_MARKER = "WEBORDINARY_WORKER", "WEBORDINARY_JOB"
_SURVIVOR_SECONDS = 10.0
_NOTE_CHARACTERS = 500


class LockFiles:
    """`{folder}/{worker}` is locked while that worker's process lives; it holds the process id, and perhaps a name.

    A note, what keeps it from work, lies beside it: the time of the file itself is the last beat.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own: dict[str, int] = {}

    def enter(self, worker: str, name: str = "") -> None:
        """Say that this process is `worker`, until it ends; `name` is what people call it."""
        fresh = self._folder / f".{worker}"
        descriptor = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, f"{os.getpid()}\n{name}".encode())
        fresh.rename(self._folder / worker)  # nobody ever sees it without its lock
        self._own[worker] = descriptor

    def leave(self, worker: str) -> None:
        """End in good order: everything was released."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / worker).unlink()
        os.close(self._own.pop(worker))
        self._note_file(worker).unlink(missing_ok=True)

    def beat(self, worker: str) -> None:
        """Say that this worker's loop goes round."""
        os.utime(self._own[worker])

    def note(self, worker: str, words: str) -> None:
        """Leave word, for whoever asks after this worker's health, what keeps it from work; empty: nothing does."""
        if worker in self._own:  # else it has left
            self._note_file(worker).write_text(" ".join(words.split())[:_NOTE_CHARACTERS], encoding="utf-8")

    def note_of(self, worker: str) -> str:
        """What keeps it from work; empty if nothing does."""
        return _text(self._note_file(worker))

    def last_beat(self, worker: str) -> float | None:
        """When, in seconds since the epoch, that worker's loop last went round; None if it left no file."""
        try:
            return (self._folder / worker).stat().st_mtime
        except FileNotFoundError:
            return None

    def is_dead(self, worker: str) -> bool:
        """True only if that process has certainly ended."""
        if worker in self._own:
            return False
        try:
            descriptor = os.open(self._folder / worker, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            # Shared, so that two who look at the same time do not take each other for the owner.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True

    def end_survivors(self, worker: str, jobs: Collection[str] | None = None) -> None:
        """End what a worker left running, all of it or what runs for these jobs, and wait until it is gone."""
        doomed = [pid for pid in _processes() if _runs_for(worker, jobs, _environment(pid))]
        deadline = time.monotonic() + _SURVIVOR_SECONDS
        for pid in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in doomed:
            _wait_gone(pid, deadline)

    def peers(self) -> dict[str, int]:
        """The other workers that live here, with their process ids."""
        names = (path.name for path in self._folder.iterdir() if not path.name.startswith("."))
        alive = (name for name in names if name not in self._own and not self.is_dead(name))
        return {name: pid for name in alive if (pid := self._pid(name))}

    def clear_dead(self, worker: str) -> None:
        """Forget a dead worker's files."""
        (self._folder / worker).unlink(missing_ok=True)
        self._note_file(worker).unlink(missing_ok=True)

    def name_of(self, worker: str) -> str:
        """What people call it; else what it is called here."""
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
        """Watch nobody."""
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
    if f"{MARKER}={worker}".encode() not in environment:
        return False
    return jobs is None or any(f"{JOB_MARKER}={job}".encode() in environment for job in jobs)


def _wait_gone(pid: int, deadline: float) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    os.close(descriptor)
