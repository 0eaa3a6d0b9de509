"""The guard of one sandbox: starts its program after a handshake, measures its use, ends it at a limit."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import select
import signal
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.sandbox.bubblewrap import MEGABYTE, SCRATCH, SandboxLimits
from webordinary.adapters.sandbox.inside import ANSWER, READY

_PAGE = resource.getpagesize()
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_OWNER = 0o700


def family(init: int, most: int) -> list[int]:
    """A process and its descendants, at most `most` and one; orphans are children of `init`."""
    found: list[int] = []
    unread = [init]
    while unread and len(found) <= most:
        pid = unread.pop()
        found.append(pid)
        unread += _children(pid)
    return found


def resident_bytes(pids: list[int]) -> int:
    """The resident memory of all these processes."""
    return sum(map(_resident, pids))


def longest_cpu_seconds(pids: list[int]) -> float:
    """The CPU time of the process that used most of it."""
    return max(map(_cpu_seconds, pids), default=0.0)


def scratch_use(pids: list[int]) -> tuple[int, int]:
    """Bytes and files in the sandbox's /tmp, /dev/shm and home, read through one of its processes."""
    for pid in pids:
        try:
            disks = [os.statvfs(f"/proc/{pid}/root{place}") for place in SCRATCH]
        except OSError:
            continue
        used = sum((disk.f_blocks - disk.f_bfree) * disk.f_frsize for disk in disks)
        return used, sum(disk.f_files - disk.f_ffree for disk in disks)
    return 0, 0


class FileUsage:
    """Counts files against the limits of a sandbox."""

    def __init__(self, limits: SandboxLimits) -> None:
        self._limits, self._count, self._bytes = limits, 0, 0

    def add(self, size: int, depth: int) -> str:
        """Count one file; returns the exceeded limit as text, empty if none."""
        self._count += 1
        self._bytes += size
        if depth > self._limits.depth:
            return f"folders in folders, more than {self._limits.depth} deep"
        if self._count > self._limits.files:
            return f"more than {self._limits.files:,} files"
        if self._bytes > self._limits.disk_bytes:
            return f"more than {self._limits.disk_bytes // MEGABYTE:,} MB in files"
        return ""


def look_at_files(folders: tuple[Path, ...], limits: SandboxLimits) -> str:
    """The limit that these folders exceed, as text; empty if none."""
    return _look(FileUsage(limits), folders)


def look_at_all_files(folders: tuple[Path, ...], limits: SandboxLimits, pids: list[int]) -> str:
    """The same, with deleted files that processes still hold open."""
    usage = FileUsage(limits)
    for size in _nameless(pids, folders[0].stat().st_dev):
        if reached := usage.add(size, 0):
            return reached
    return _look(usage, folders)


def disk_is_full(folder: Path, limits: SandboxLimits) -> bool:
    """Whether the disk has less free space than the limit, for any reason."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize < limits.free_bytes


def _look(usage: FileUsage, folders: tuple[Path, ...]) -> str:
    try:
        for entry, depth in entries(folders):
            if reached := usage.add(_size(entry), depth):
                return reached
    except OSError as problem:
        return f"a file that cannot be reached ({problem.strerror})"
    return ""


def _nameless(pids: list[int], device: int) -> list[int]:
    """The sizes on disk of deleted files that are still open, each once."""
    found: dict[int, int] = {}
    for pid in pids:
        try:
            held = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208  names are all that is wanted
        except OSError:
            continue
        for name in held:
            try:
                status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_dev == device:
                found[status.st_ino] = status.st_blocks * 512
    return list(found.values())


def entries(folders: tuple[Path, ...], make_readable: bool = False) -> Iterator[tuple[os.DirEntry[str], int]]:
    """All entries below these folders, with their depth; links are never followed. Works while they change.

    Raises OSError if an entry cannot be reached: its path is too long, or its folder is not readable.
    """
    unread = [(str(folder), 1) for folder in folders]
    while unread:
        path, depth = unread.pop()
        try:
            if make_readable and (mode := os.lstat(path).st_mode) & _OWNER != _OWNER:
                os.chmod(path, stat.S_IMODE(mode) | _OWNER)  # noqa: PTH101  as plain as the call beside it
            with os.scandir(path) as listing:
                for entry in listing:
                    yield entry, depth
                    if entry.is_dir(follow_symlinks=False):
                        unread.append((entry.path, depth + 1))
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone or replaced meanwhile


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError as problem:
        if problem.errno == errno.ENAMETOOLONG:
            raise
        return 0


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  names are all that is wanted, many times a second
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _cpu_seconds(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()  # the name before may hold anything
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND if len(fields) > 12 else 0.0


_INT = struct.calcsize("i")
_ROUNDS = 10
_END_SECONDS = 10.0
_ADMIT_SECONDS = 30.0


@dataclass(slots=True)
class ProcessTree:
    """The processes of one sandbox: `leader` is its program, `init` the first process of its pid namespace.

    Both are held by pidfds, so that a reused process id is never signalled.
    """

    leader: int
    leader_fd: int
    init: int
    init_fd: int

    def interrupt(self) -> None:
        """SIGINT to the program and its group, as from a terminal."""
        try:
            signal.pidfd_send_signal(self.leader_fd, 0)
            os.killpg(self.leader, signal.SIGINT)
        except (ProcessLookupError, PermissionError, OSError):
            return

    def end(self) -> bool:
        """Kill all processes; True once they are gone. `init` ends last."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.init_fd, signal.SIGKILL)
        return self.gone(_END_SECONDS)

    def gone(self, seconds: float) -> bool:
        """Whether all processes have ended; waits at most so long."""
        poll = select.poll()
        poll.register(self.init_fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def forget(self) -> None:
        """Close the pidfds."""
        os.close(self.leader_fd)
        os.close(self.init_fd)


class Handshake:
    """A socket that is bound into one sandbox. Sends the environment and the system call filter to its launcher."""

    def __init__(self, folder: Path, env: Mapping[str, str], calls: bytes) -> None:
        self.path = folder / "handshake"
        settings = b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items())
        self._answer = ANSWER.pack(READY, len(calls), len(settings)) + calls + settings
        self._listener = socket.socket(socket.AF_UNIX)
        self._refused = os.eventfd(0, os.EFD_CLOEXEC)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._listener.bind(f"/proc/self/fd/{held}/handshake")  # a data folder's path may be too long
        finally:
            os.close(held)
        self._listener.listen(1)

    def answer(self) -> tuple[socket.socket, ProcessTree, socket.socket | None] | None:
        """Wait for the launcher: its connection (it waits for `admit`), its processes, the proxy's listener."""
        readable, _, _ = select.select([self._listener.fileno(), self._refused], [], [])
        if self._refused in readable:
            self._listener.close()  # a later connection fails at once
            return None
        client, _ = self._listener.accept()
        self._listener.close()  # only one connection: no other process can pose as the launcher
        with contextlib.ExitStack() as left:  # closes all if the launcher dies meanwhile
            left.enter_context(client)
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            leader: int = struct.unpack("3i", credentials)[0]
            _, ancillary, _, _ = client.recvmsg(1, socket.CMSG_SPACE(_INT), socket.MSG_CMSG_CLOEXEC)
            given = [data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)]
            listener = socket.socket(fileno=struct.unpack("i", given[0][:_INT])[0]) if given else None
            if listener is not None:
                left.enter_context(listener)
            leader_fd = os.pidfd_open(leader)
            left.callback(os.close, leader_fd)
            init = _init_above(leader)
            tree = ProcessTree(leader, leader_fd, init, os.pidfd_open(init))
            left.pop_all()
        return client, tree, listener

    def admit(self, client: socket.socket) -> None:
        """Let the program start: send it the answer of the handshake."""
        client.settimeout(_ADMIT_SECONDS)
        client.sendall(self._answer)

    def lock(self) -> None:
        """Accept no connection any more; a program that has not started never starts."""
        os.eventfd_write(self._refused, 1)

    def close(self) -> None:
        """After `answer` has returned."""
        self._listener.close()
        os.close(self._refused)


def _init_above(pid: int) -> int:
    """The first process of the pid namespace of a process."""
    for _ in range(_ROUNDS):
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
            if ":\t" in line
        )  # fmt: skip
        if status["NSpid"].split()[-1] == "1":
            return pid
        pid = int(status["PPid"])
    raise ProcessLookupError(pid)


_log = logging.getLogger(__name__)
_EACH_SECONDS = 0.2
_FILES_EACH_SECONDS = 1.0
_SHARE = 0.05
"""The largest share of one core that the checks use."""
_OOM_SCORE = "1000"


class Guard:
    """One thread per sandbox run."""

    def __init__(
        self,
        handshake: Handshake,
        folders: tuple[Path, ...],
        limits: SandboxLimits,
        serve: Callable[[socket.socket], None],
    ) -> None:
        self._handshake, self._folders, self._limits, self._serve = handshake, folders, limits, serve
        self._over, self._asked = threading.Event(), threading.Event()
        self._using = threading.Lock()
        self._tree: ProcessTree | None = None
        self.admitted = False
        """Whether the program was started."""
        self.reached = ""
        """The exceeded limit, as text."""
        self.disk_full = False
        """The program was ended because the disk was full, while it kept to its own limit."""
        self._thread = threading.Thread(target=self._watch, name="sandbox guard", daemon=True)
        self._thread.start()

    def interrupt(self) -> None:
        """Interrupt the program; one that has not started never starts."""
        self._asked.set()
        with self._using:
            if self._tree is not None:
                self._tree.interrupt()
            elif not self._over.is_set():
                self._handshake.lock()

    def end(self) -> bool:
        """End all processes; True once they are gone. Call it once."""
        self._over.set()
        self._handshake.lock()
        self._thread.join()
        with self._using:
            self._handshake.close()
            tree, self._tree = self._tree, None
            if tree is None:
                return True
            gone = tree.end()
            tree.forget()
            return gone

    def _watch(self) -> None:
        try:
            answered = self._handshake.answer()
        except OSError as problem:  # the launcher died meanwhile
            _log.warning("the program of a sandbox did not start: %s", problem)
            return
        if answered is None:
            return
        client, tree, listener = answered
        with suppress(OSError):
            Path(f"/proc/{tree.leader}/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
        if listener is not None:
            self._serve(listener)
        self._tree = tree
        with client:
            if self._over.is_set() or self._asked.is_set():
                return
            with suppress(OSError):
                self._handshake.admit(client)
        self.admitted = True
        self._check_limits(tree)

    def _check_limits(self, tree: ProcessTree) -> None:
        pause, files_at = _EACH_SECONDS, time.monotonic() + _FILES_EACH_SECONDS
        while not self._over.wait(pause) and not tree.gone(0):
            began = time.monotonic()
            reached = self._processes(tree)
            if not reached and disk_is_full(self._folders[0], self._limits):
                pids = family(tree.init, self._limits.processes)
                reached = look_at_all_files(self._folders, self._limits, pids)
                self.disk_full = not reached
            if not reached and began >= files_at:
                reached = look_at_files(self._folders, self._limits)
                took = time.monotonic() - began
                files_at = began + max(_FILES_EACH_SECONDS, took / _SHARE)
            if reached or self.disk_full:
                self.reached = reached
                tree.end()
                return
            pause = max(_EACH_SECONDS, min(1.0, (time.monotonic() - began) / _SHARE))

    def _processes(self, tree: ProcessTree) -> str:
        most = self._limits.processes
        pids = family(tree.init, most)
        if len(pids) > most:
            return f"more than {most} processes"
        if longest_cpu_seconds(pids) >= self._limits.cpu_seconds:
            return f"more than {self._limits.cpu_seconds:,} seconds of CPU time"
        scratch, files = scratch_use(pids)
        if files > self._limits.files:
            return f"more than {self._limits.files:,} files"
        if resident_bytes(pids) + scratch > self._limits.memory_bytes:
            return f"more than {self._limits.memory_bytes // 1_000_000:,} MB of memory"
        return ""
