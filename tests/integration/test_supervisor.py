from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import wait_gone
from webordinary.entrypoints.supervisor import Child, Supervisor

OBEDIENT = "import os, sys; print(os.getpid(), file=open(sys.argv[1], 'a'), flush=True); sys.stdin.read()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + OBEDIENT
ASKED_TWICE = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print(os.getpid(), file=open(sys.argv[1], "a"), flush=True)
signal.sigwait([signal.SIGTERM])
print(os.getpid(), file=open(sys.argv[1], "a"), flush=True)
again = signal.sigtimedwait([signal.SIGTERM], 2)
open(sys.argv[1] + ".asked", "w").write("twice" if again else "once")
"""
NextStart = Callable[[], int]


@pytest.fixture
def said() -> queue.Queue[str]:
    return queue.Queue()


@pytest.fixture
def supervise(tmp_path: Path, said: queue.Queue[str]) -> Iterator[Callable[..., Supervisor]]:
    made: list[Supervisor] = []

    def make(program: str, grace_seconds: float = 60) -> Supervisor:
        child = Child("worker 1", (sys.executable, "-c", program, str(tmp_path / "starts")))
        supervisor = Supervisor([child], os.environ, grace_seconds, said.put)
        made.append(supervisor)
        supervisor.start()
        return supervisor

    yield make
    for supervisor in made:
        supervisor.kill()
        supervisor.stop()


@pytest.fixture
def next_start(tmp_path: Path) -> Iterator[NextStart]:
    """Each child writes its process id into a pipe when it runs."""
    os.mkfifo(tmp_path / "starts")
    with (tmp_path / "starts").open("rb+", buffering=0) as pipe:

        def read() -> int:
            assert select.select([pipe], [], [], 60)[0], "no child started"
            return int(pipe.readline())

        yield read


def test_a_killed_child_is_started_again_and_its_death_is_told(
    supervise: Callable[..., Supervisor], next_start: NextStart, said: queue.Queue[str]
) -> None:
    supervise(OBEDIENT)
    first = next_start()
    os.kill(first, signal.SIGKILL)
    assert next_start() != first
    assert f"worker 1 (process {first}) ended with code -9; starting it again in 0.2 s" in said.get(timeout=60)


def test_a_child_that_dies_young_is_started_later_each_time(
    supervise: Callable[..., Supervisor], said: queue.Queue[str]
) -> None:
    supervise("raise SystemExit(7)")
    told = [said.get(timeout=60) for _ in range(3)]
    assert ["ended with code 7" in line for line in told] == [True] * 3
    assert [line.rpartition(" in ")[2] for line in told] == ["0.2 s", "0.4 s", "0.8 s"]


def test_stopping_asks_first_and_starts_nothing_again(
    supervise: Callable[..., Supervisor], next_start: NextStart, said: queue.Queue[str]
) -> None:
    supervisor = supervise(OBEDIENT)
    pid = next_start()
    supervisor.stop()
    wait_gone(pid)
    assert supervisor.pids() == {}
    assert said.empty()


def test_who_was_asked_is_not_asked_again_by_the_stop(
    supervise: Callable[..., Supervisor], next_start: NextStart, tmp_path: Path
) -> None:
    supervisor = supervise(ASKED_TWICE)
    next_start()
    supervisor.ask()
    next_start()  # it says so again when it has heard
    supervisor.stop()
    assert (tmp_path / "starts.asked").read_text() == "once"


def test_a_child_that_does_not_listen_is_killed_after_the_grace(
    supervise: Callable[..., Supervisor], next_start: NextStart
) -> None:
    supervisor = supervise(STUBBORN, grace_seconds=0.1)
    pid = next_start()
    supervisor.stop()
    wait_gone(pid)


def test_a_program_that_is_not_there_is_told_and_tried_again(said: queue.Queue[str]) -> None:
    supervisor = Supervisor([Child("worker 1", ("/nowhere/at/all",))], {}, 1, said.put)
    supervisor.start()
    assert "cannot be started" in said.get(timeout=60)
    assert "cannot be started" in said.get(timeout=60)
    supervisor.stop()


def test_children_end_when_their_supervisor_is_killed(tmp_path: Path, next_start: NextStart) -> None:
    program = f"""
import os, sys, threading
from webordinary.entrypoints.supervisor import Child, Supervisor
child = Child("worker 1", (sys.executable, "-c", {OBEDIENT!r}, sys.argv[1]))
Supervisor([child], os.environ, 1, print).start()
threading.Event().wait()
"""
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "starts")])
    child = next_start()
    parent.kill()
    parent.wait()
    wait_gone(child)
