"""A worker that lives and does nothing is ended and started again; one that is only silent for a while is not."""

from __future__ import annotations

import os
import queue
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.events import EventRecorder
from webordinary.adapters.files.liveness import LockFiles
from webordinary.adapters.files.system import GAVE_UP
from webordinary.config import Config
from webordinary.entrypoints.supervisor import Child, Supervisor
from webordinary.services.upkeep import LOOK_SECONDS, HungWorkers, silence_allowed

SILENCE_SECONDS = 180.0
WORKER = """
import os, sys
from pathlib import Path
from webordinary.adapters.files.liveness import LockFiles
lock_files = LockFiles(Path(sys.argv[1]))
worker = f"container-{os.getpid()}"
lock_files.enter(worker)
lock_files.beat(worker)
with open(sys.argv[2], "w") as pipe:
    print(os.getpid(), file=pipe)
sys.stdin.read()
"""


def test_a_loop_that_waits_for_a_long_poll_does_not_count_as_hung_however_short_the_lease_is() -> None:
    assert silence_allowed(lease_seconds=8.0, interrupt_grace_seconds=1.0) > 2 * Config().aws_poll_seconds


class SupervisedWorker:
    """A supervised worker, seen through its lock file."""

    def __init__(self, folder: Path) -> None:
        os.mkfifo(folder / "starts")
        self._starts = (folder / "starts").open("rb+", buffering=0)
        self.said: queue.Queue[str] = queue.Queue()
        self.heard = EventRecorder()
        child = Child("worker 1", (sys.executable, "-c", WORKER, str(folder / "workers"), str(folder / "starts")))
        self.supervisor = Supervisor([child], os.environ, 20, self.said.put)
        self.lock_files = LockFiles(folder / "workers")
        self.hung = HungWorkers(self.lock_files, self.supervisor, SILENCE_SECONDS, self.heard, self.said.put)
        self.now = 1000.0

    def next_start(self) -> int:
        assert select.select([self._starts], [], [], 60)[0], "no worker started"
        return int(self._starts.readline())

    def close(self) -> None:
        self.supervisor.kill()
        self.supervisor.stop()
        self._starts.close()

    def look_for(self, seconds: float) -> None:
        for _ in range(int(seconds / LOOK_SECONDS)):
            self.now += LOOK_SECONDS
            self.hung.look(self.now)

    def beat(self, pid: int) -> None:
        path = self.lock_files._folder / f"container-{pid}"
        os.utime(path, (1, path.stat().st_mtime + 1))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[SupervisedWorker]:
    watched = SupervisedWorker(tmp_path)
    watched.supervisor.start()
    yield watched
    watched.close()


def test_a_worker_whose_loop_stands_still_is_ended_and_started_again(watched: SupervisedWorker) -> None:
    pid = watched.next_start()
    watched.look_for(SILENCE_SECONDS + 2 * LOOK_SECONDS)
    assert {watched.said.get(timeout=60) for _ in range(2)} == {  # two threads tell, each at its own pace
        f"worker 1 (process {pid}) hangs: its loop has not gone round for 180 s; ended",
        f"worker 1 (process {pid}) ended with code -9; starting it again in 0.2 s",
    }
    assert watched.next_start() != pid
    [event] = watched.heard
    assert (event.kind, event.worker) == ("WorkerHung", f"container-{pid}")


def test_a_worker_whose_loop_goes_round_is_left_alone(watched: SupervisedWorker) -> None:
    pid = watched.next_start()
    for _ in range(5):
        watched.look_for(SILENCE_SECONDS - 2 * LOOK_SECONDS)
        watched.beat(pid)
    assert watched.heard == []
    assert watched.supervisor.pids() == {"worker 1": pid}


def test_a_machine_that_slept_ends_nobody(watched: SupervisedWorker) -> None:
    pid = watched.next_start()
    watched.look_for(LOOK_SECONDS)
    watched.now += 8 * 3600.0
    watched.look_for(LOOK_SECONDS)
    assert watched.heard == []
    assert watched.supervisor.pids() == {"worker 1": pid}


def test_a_worker_whose_thread_dies_of_what_nobody_foresaw_ends_with_it() -> None:
    program = """
import sys
from webordinary.adapters.files.system import SystemThreadSpawner
def slot():
    raise RuntimeError("nobody foresaw this")
SystemThreadSpawner().spawn("slot amelia#scott", slot)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        code = worker.wait(timeout=60)
        assert worker.stderr
        said = worker.stderr.read()
    assert code == GAVE_UP
    assert "thread 'slot amelia#scott' ended with an unexpected error; the process ends" in said
    assert "RuntimeError: nobody foresaw this" in said
