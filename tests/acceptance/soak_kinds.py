"""The kinds of faults of `make soak`: each has a system of its own, its faults, and the means that it needs.

Processes get their faults from outside: signals, limits of resources, a disk that fills or forgets, a clock that a
preloaded library sets.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.acceptance import forgetful_disk
from tests.acceptance.chaos import SETTINGS, Act, Trouble
from tests.acceptance.forgetful_disk import ForgetfulDisk
from tests.acceptance.killing import descendants, kill_tree
from tests.harness.chaos import ChaosHarness, Hand, agents

DISK_MB = 512
HOUR, DAY = 3600.0, 24 * 3600.0
FURNISH = Callable[[Path], ChaosHarness]
TROUBLE = Callable[[ChaosHarness, random.Random], Trouble]


class MeansMissing(Exception):
    """This machine lacks what a kind of faults needs."""


class Kills(Trouble):
    """SIGKILL to workers, agents, git, the server, and everything at once."""

    def acts(self) -> Sequence[tuple[Act, int]]:
        return [(self.kill, 4), (self.kill_agent, 6), (self.kill_git, 6), (self.kill_server, 1), (self.kill_all, 1)]

    def kill_agent(self, hand: Hand, over: threading.Event) -> None:
        self._kill_one(list(agents(self.harness)))

    def kill_git(self, hand: Hand, over: threading.Event) -> None:
        self._kill_one([pid for pid in self._programs() if _name(pid).startswith("git")])

    def kill_all(self, hand: Hand, over: threading.Event) -> None:
        for one in self.harness.hands:
            kill_tree(one.pid)
            one.process.wait(timeout=60)
        self.kill_server(hand, over)

    def _programs(self) -> list[int]:
        return [pid for hand in self.harness.hands for pid in descendants(hand.pid)]

    def _kill_one(self, pids: Sequence[int]) -> None:
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(pids), signal.SIGKILL)


class Freezes(Trouble):
    """SIGSTOP to workers and the server, some for longer than a lease."""

    def acts(self) -> Sequence[tuple[Act, int]]:
        return [(self.freeze, 8), (self.kill_frozen, 1), (self.freeze_server, 2)]

    def freeze_server(self, hand: Hand, over: threading.Event) -> None:
        assert self.harness.up
        self.freeze(Hand("server", self.harness.up.process), over)  # type: ignore[arg-type]  # its output is text


class DiskFills(Trouble):
    """The disk is full for a while, of what others wrote."""

    ends_workers = False

    def acts(self) -> Sequence[tuple[Act, int]]:
        return [(self.fill, 1)]

    def fill(self, hand: Hand, over: threading.Event) -> None:
        ballast = self.harness.data.parent / "ballast"
        try:
            with ballast.open("wb") as file:
                take_all_space(file.fileno())
            over.wait(self.rng.uniform(0.5, 6.0))
        finally:
            ballast.unlink()


class ClockJumps(Trouble):
    """The time of day of all processes jumps ahead and back."""

    def acts(self) -> Sequence[tuple[Act, int]]:
        return [(self.jump, 4), (self.set_right, 2), (self.kill, 2)]

    def jump(self, hand: Hand, over: threading.Event) -> None:
        self._set(self.rng.choice((1, -1)) * self.rng.choice((HOUR, DAY, 40 * DAY)), over)

    def set_right(self, hand: Hand, over: threading.Event) -> None:
        self._set(0.0, over)

    def _set(self, seconds: float, over: threading.Event) -> None:
        with Path(self.harness.env[_CLOCK_FILE]).open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
            shared[:8] = struct.pack("q", int(seconds))
        over.wait(self.rng.uniform(0.5, 5.0))


class PowerCuts(Trouble):
    """The disk forgets what was not synced, and every process ends."""

    disk: ForgetfulDisk

    def acts(self) -> Sequence[tuple[Act, int]]:
        return [(self.cut, 1)]

    def cut(self, hand: Hand, over: threading.Event) -> None:
        over.wait(self.rng.uniform(2.0, 8.0))
        self.disk.cut_power(self._end_all)
        self.harness.open()

    def _end_all(self) -> None:
        for one in self.harness.hands:
            kill_tree(one.pid)
            one.process.wait(timeout=60)
        self.harness.kill_server()


class _Limits(Kills):
    """A process gets a limit that it has reached already, and gets it raised again."""

    ends_workers = False

    def limit(self, pid: int, what: int, least: int, over: threading.Event) -> None:
        with contextlib.suppress(ProcessLookupError, OSError):
            before = resource.prlimit(pid, what)
            resource.prlimit(pid, what, (least, before[1]))
            over.wait(self.rng.uniform(0.5, 5.0))
            resource.prlimit(pid, what, before)

    def pids(self) -> list[int]:
        assert self.harness.up
        return [self.harness.up.process.pid, *(hand.pid for hand in self.harness.hands)]


class Memory(_Limits):
    """A process gets no more memory; the kernel's memory killer ends agents."""

    def acts(self) -> Sequence[tuple[Act, int]]:
        return [(self.starve, 3), (self.kill_agent, 2)]

    def starve(self, hand: Hand, over: threading.Event) -> None:
        pid = self.rng.choice(self.pids())
        with contextlib.suppress(OSError):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
            least = pages * resource.getpagesize() + self.rng.choice((0, 1 << 20, 16 << 20))
            self.limit(pid, resource.RLIMIT_AS, least, over)

    def mend(self) -> None:
        """Python may wait for ever for a thread that had no memory to start; `up` ends its workers that hang."""
        for hand in self.harness.hands:
            if hand.process.poll() is None:
                hand.kill()


class Descriptors(_Limits):
    """A process gets no more file descriptors."""

    def acts(self) -> Sequence[tuple[Act, int]]:
        return [(self.starve, 1)]

    def starve(self, hand: Hand, over: threading.Event) -> None:
        pid = self.rng.choice(self.pids())
        with contextlib.suppress(OSError):
            opened = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            self.limit(pid, resource.RLIMIT_NOFILE, opened + self.rng.choice((0, 1, 3)), over)


@dataclass(frozen=True)
class Prepared:
    """What a run of a kind begins with."""

    furnish: FURNISH
    trouble_of: TROUBLE
    impatient: bool = False
    """A step that a fault repeats for long lets later mails of the conversation go first: that is not judged then."""


@contextmanager
def prepared(kind: str, folder: Path) -> Iterator[Prepared]:
    """Everything that this kind needs below `folder`; raises MeansMissing."""
    match kind:
        case "disk" | "power":
            with _own_disk(folder) as disk:
                prefix = _rebooted(disk, folder / "house" / "bin") if kind == "power" else tuple
                furnish = partial(ChaosHarness, settings=SETTINGS, disk=disk.path, prefix=prefix)
                yield Prepared(furnish, partial(_on_disk, disk, PowerCuts if kind == "power" else DiskFills))
        case "clock":
            settings = SETTINGS | {"retention_days": 3650}  # mails of now are old for a clock that is far ahead
            yield Prepared(partial(ChaosHarness, settings=settings, env=_settable_clock(folder)), ClockJumps)
        case _:
            yield Prepared(
                partial(ChaosHarness, settings=SETTINGS), _PLAIN[kind], impatient=kind in ("kills", "freezes")
            )


_PLAIN: Mapping[str, type[Trouble]] = {
    "kills": Kills, "freezes": Freezes, "memory": Memory, "descriptors": Descriptors,
}  # fmt: skip
KINDS = ("kills", "freezes", "disk", "clock", "power", "memory", "descriptors")


def _on_disk(disk: ForgetfulDisk, kind: type[Trouble], harness: ChaosHarness, rng: random.Random) -> Trouble:
    trouble = kind(harness, rng)
    if isinstance(trouble, PowerCuts):
        trouble.disk = disk
    return trouble


def _rebooted(disk: ForgetfulDisk, path: Path) -> Callable[[], tuple[str, ...]]:
    """The start of a command line that sees a new boot after each power cut; `path` is what its programs find."""
    env, ours = shutil.which("env") or "/usr/bin/env", os.environ.get("PATH", os.defpath)
    return lambda: (env, f"PATH={ours}", *disk.as_booted(), env, f"PATH={path}")


@contextmanager
def _own_disk(folder: Path) -> Iterator[ForgetfulDisk]:
    missing = [program for program in forgetful_disk.PROGRAMS if shutil.which(program) is None]
    if missing:
        raise MeansMissing(f"there is no {', '.join(missing)}")
    disk = ForgetfulDisk(folder / "disk.img", folder / "disk")
    disk.path.mkdir(parents=True)
    with disk.image.open("wb") as file:
        file.truncate(DISK_MB << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(disk.image)], check=True, capture_output=True)
    try:
        disk.mount()
    except subprocess.CalledProcessError as failed:
        raise MeansMissing(f"no file system can be mounted: {failed.stderr.decode().strip()}") from failed
    try:
        yield disk
    finally:
        disk.unmount()


_CLOCK_FILE = "SOAK_CLOCK"
_CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *ahead;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SOAK_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (found != MAP_FAILED) ahead = found;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, clock, at);
    if (!failed && ahead && clock == CLOCK_REALTIME) at->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return (time_t)-1;
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def _settable_clock(folder: Path) -> Mapping[str, str]:
    """The environment in which the time of day is what a file says."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise MeansMissing("there is no C compiler (gcc) to make the settable clock")
    folder.mkdir(parents=True, exist_ok=True)
    library, file = folder / "clock.so", folder / "clock"
    command = [compiler, "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=_CLOCK.encode(), check=True, capture_output=True)
    file.write_bytes(struct.pack("q", 0))
    env = {"LD_PRELOAD": str(library), _CLOCK_FILE: str(file)}
    probe = ["python3", "-c", "import time; print(int(time.time()))"]
    file.write_bytes(struct.pack("q", int(-40 * DAY)))
    told = subprocess.run(probe, env=os.environ | env, check=True, capture_output=True, text=True).stdout
    file.write_bytes(struct.pack("q", 0))
    real = subprocess.run(probe, env=os.environ | env, check=True, capture_output=True, text=True).stdout
    if not 39 * DAY < int(real) - int(told) < 41 * DAY:
        raise MeansMissing("a preloaded library does not set the clock here")
    return env


def take_all_space(file: int) -> None:
    free = os.fstatvfs(file)
    piece, at = free.f_bfree * free.f_frsize, 0
    while piece >= free.f_frsize:
        try:
            os.posix_fallocate(file, at, piece)
            at += piece
        except OSError:
            piece //= 2


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
