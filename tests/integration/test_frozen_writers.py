"""Who is stopped in the middle of a write does not stop everybody else for good."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.processes import wait_stopped
from webordinary.adapters.local.frozen_writers import FrozenWriters
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
    frozen = FrozenWriters(database.path, patience=60, monotonic=lambda: now[0])
    assert frozen.look() is None, "it only writes"
    writer.send_signal(signal.SIGSTOP)
    wait_stopped(writer.pid)
    assert frozen.look() is None, "it may go on in a moment"
    with closing(sqlite3.connect(database.path, timeout=0)) as other, pytest.raises(sqlite3.OperationalError):
        other.execute("BEGIN IMMEDIATE")
    now[0] = 60.0
    assert frozen.look() == writer.pid
    assert writer.wait(30) == -signal.SIGKILL
    with database.write() as conn:
        conn.execute("DELETE FROM hints")


def test_who_goes_on_in_time_is_left_alone(database: Database, writer: subprocess.Popen[str]) -> None:
    now = [0.0]
    frozen = FrozenWriters(database.path, patience=60, monotonic=lambda: now[0])
    writer.send_signal(signal.SIGSTOP)
    wait_stopped(writer.pid)
    frozen.look()
    writer.send_signal(signal.SIGCONT)
    wait_stopped(writer.pid, stopped=False)
    now[0] = 59.0
    assert frozen.look() is None
    writer.send_signal(signal.SIGSTOP)
    wait_stopped(writer.pid)
    now[0] = 61.0
    assert frozen.look() is None, "it stands still for the second time, not for 61 seconds"
    writer.send_signal(signal.SIGCONT)
