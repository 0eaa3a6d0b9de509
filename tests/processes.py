"""Other processes, as a test sees them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from webordinary.entrypoints.running import bound_anywhere

SECONDS = 60.0


@contextlib.contextmanager
def own_port() -> Iterator[int]:
    """A port of loopback that nobody else gets who asks for a free one, until a server of this block listens there."""
    with bound_anywhere("127.0.0.1") as held:
        yield held.getsockname()[1]


def wait_gone(pid: int) -> None:
    """Until it has ended."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([watch], [], [], SECONDS)[0], f"process {pid} still runs"
    os.close(watch)


def children_of(pid: int) -> list[int]:
    """The processes that it started and that live yet."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")  # a child belongs to the thread that started it
    return [int(child) for task in tasks for child in _text(task).split()]


def stands_still(pid: int) -> bool:
    """Every thread of it is stopped: one that is inside the kernel yet would still take the lock that it asks for."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return all("T (stopped)" in _text(task / "status") for task in tasks)


def _text(path: Path) -> str:
    """Nothing, of a thread that has ended meanwhile."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_stopped(pid: int, *, stopped: bool = True) -> None:
    """Until a SIGSTOP, or the SIGCONT after it, has reached it."""
    deadline = time.monotonic() + SECONDS
    while stands_still(pid) is not stopped:
        assert time.monotonic() < deadline, f"process {pid} {'does not stop' if stopped else 'does not go on'}"


def stop_between_writes(pid: int, database: Path) -> None:
    """SIGSTOP, at a moment when it does not hold the lock that all others need."""
    for _ in range(100):
        os.kill(pid, signal.SIGSTOP)
        wait_stopped(pid)
        trial = sqlite3.connect(database, timeout=0.5)  # who stands still in a write for a lease is ended
        with contextlib.closing(trial) as conn, contextlib.suppress(sqlite3.OperationalError):
            conn.execute("BEGIN IMMEDIATE")
            return
        os.kill(pid, signal.SIGCONT)
    raise AssertionError(f"process {pid} writes all the time")
