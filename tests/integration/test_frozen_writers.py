"""A process that is stopped with a lock in hand holds up the others for a lease, and not for good."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.processes import wait_stopped
from webordinary.adapters.files.liveness import FrozenWriters
from webordinary.adapters.sqlite.database import Database

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who holds a lock")

WRITER = """
import sqlite3, sys
conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("BEGIN IMMEDIATE")
print("writing", flush=True)
sys.stdin.read()
conn.execute("ROLLBACK")
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "webordinary.db")
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def writer(database: Database) -> Iterator[subprocess.Popen[str]]:
    """Another process, in the middle of a write."""
    command = [sys.executable, "-c", WRITER, str(database.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def test_a_process_that_stays_stopped_in_the_middle_of_a_write_is_ended(
    database: Database, writer: subprocess.Popen[str]
) -> None:
    now = [0.0]
    frozen = FrozenWriters(database.path, stall_seconds=60, monotonic=lambda: now[0])
    assert frozen.look() == [], "it only writes"
    writer.send_signal(signal.SIGSTOP)
    wait_stopped(writer.pid)
    assert frozen.look() == [], "it may go on in a moment"
    with closing(sqlite3.connect(database.path, timeout=0)) as other, pytest.raises(sqlite3.OperationalError):
        other.execute("BEGIN IMMEDIATE")
    now[0] = 60.0
    assert frozen.look() == [writer.pid]
    assert writer.wait(30) == -signal.SIGKILL
    with database.write() as conn:
        conn.execute("DELETE FROM hints")


LOCK_HOLDER = """
import sys
from pathlib import Path
from webordinary.adapters.git.mirrors import Mirrors
print("waiting", flush=True)
with Mirrors(Path(sys.argv[1]), "worker").locked("amelia"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def locking(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LOCK_HOLDER, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_process_that_stays_stopped_with_the_lock_of_a_mirror_is_ended(database: Database, tmp_path: Path) -> None:
    now, mirrors = [0.0], tmp_path / "mirrors"
    frozen = FrozenWriters(database.path, stall_seconds=60, monotonic=lambda: now[0], lock_folder=mirrors)
    with ExitStack() as running:
        holder = running.enter_context(locking(mirrors))
        assert holder.stdout
        assert [holder.stdout.readline(), holder.stdout.readline()] == ["waiting\n", "locked\n"]
        waiting = running.enter_context(locking(mirrors))  # later, or it might take the lock first
        assert waiting.stdout
        assert waiting.stdout.readline() == "waiting\n"
        for process in (holder, waiting):
            process.send_signal(signal.SIGSTOP)
            wait_stopped(process.pid)
        assert frozen.look() == []
        now[0] = 60.0
        assert frozen.look() == [holder.pid], "the other one only waits for the lock"
        assert holder.wait(30) == -signal.SIGKILL
        waiting.send_signal(signal.SIGCONT)
        assert waiting.stdout.readline() == "locked\n"
        waiting.kill()


def test_a_stopped_process_that_locks_another_file_is_left_alone(database: Database, tmp_path: Path) -> None:
    now = [0.0]
    frozen = FrozenWriters(database.path, stall_seconds=60, monotonic=lambda: now[0], lock_folder=tmp_path / "mirrors")
    with locking(tmp_path / "elsewhere") as holder:
        assert holder.stdout
        assert [holder.stdout.readline(), holder.stdout.readline()] == ["waiting\n", "locked\n"]
        holder.send_signal(signal.SIGSTOP)
        wait_stopped(holder.pid)
        frozen.look()
        now[0] = 60.0
        assert frozen.look() == []
        holder.kill()


def test_who_goes_on_in_time_is_left_alone(database: Database, writer: subprocess.Popen[str]) -> None:
    now = [0.0]
    frozen = FrozenWriters(database.path, stall_seconds=60, monotonic=lambda: now[0])
    writer.send_signal(signal.SIGSTOP)
    wait_stopped(writer.pid)
    frozen.look()
    writer.send_signal(signal.SIGCONT)
    wait_stopped(writer.pid, stopped=False)
    now[0] = 59.0
    assert frozen.look() == []
    writer.send_signal(signal.SIGSTOP)
    wait_stopped(writer.pid)
    now[0] = 61.0
    assert frozen.look() == [], "it stands still for the second time, not for 61 seconds"
    writer.send_signal(signal.SIGCONT)
