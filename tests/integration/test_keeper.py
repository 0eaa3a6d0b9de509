from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import wait_gone
from webordinary.entrypoints import emulator, parent_death_wrapper
from webordinary.entrypoints.running import free_port

PROGRAM = """#!{python}
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""

SIGNALLED_EARLY = """
import os, signal, subprocess, sys
start = subprocess.Popen
class Signalled(start):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, stdout=subprocess.PIPE, **kwargs)
        os.write(1, self.stdout.readline())
        os.kill(os.getpid(), signal.SIGTERM)
subprocess.Popen = Signalled
sys.argv[:] = sys.argv[1:]
exec(open(sys.argv[0]).read())
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    """It starts a child of its own, as an emulator starts lambdas."""
    path = tmp_path / "program"
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o700)
    return str(path)


def started(command: list[str]) -> tuple[subprocess.Popen[bytes], list[int]]:
    kept = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert kept.stdout
    return kept, [int(word) for word in kept.stdout.readline().split()]


def test_a_kept_program_and_its_children_end_when_the_pipe_does(program: str) -> None:
    kept, pids = started(parent_death_wrapper.command(program))
    kept.communicate(timeout=60)
    for pid in pids:
        wait_gone(pid)


def test_a_kept_program_ends_though_its_user_was_killed(program: str) -> None:
    user = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE).wait()"
    killed, pids = started([sys.executable, "-c", user, *parent_death_wrapper.command(program)])
    killed.send_signal(signal.SIGKILL)
    for pid in pids:
        wait_gone(pid)
    killed.communicate()


def test_told_to_end_at_once_it_does(program: str) -> None:
    kept, pids = started(parent_death_wrapper.command(program))
    kept.terminate()
    kept.wait(60)
    for pid in pids:
        wait_gone(pid)
    kept.communicate()


def test_told_to_end_while_it_starts_the_program_it_leaves_nothing_running(program: str) -> None:
    kept, pids = started([sys.executable, "-c", SIGNALLED_EARLY, *parent_death_wrapper.command(program)[3:]])
    kept.wait(60)
    for pid in pids:
        wait_gone(pid)
    kept.communicate()


def test_the_emulator_takes_its_usual_port_or_another_where_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port("127.0.0.1")
    with socket.create_server(("127.0.0.1", port)):
        monkeypatch.setattr(emulator, "PORT", port)
        assert emulator.port_for(None) not in (0, port)
        with pytest.raises(emulator.InUse, match=f"port {port} is in use"):
            emulator.port_for(port)
    assert emulator.port_for(None) == port
    assert emulator.port_for(0) != 0


def test_a_second_user_of_a_folder_is_told_who_has_it(tmp_path: Path) -> None:
    folder = tmp_path / "data-aws" / "emulator"
    told = rf"data-aws is in use by .*\(process {os.getpid()}\)"
    with emulator.sole_user(folder), pytest.raises(emulator.InUse, match=told), emulator.sole_user(folder):
        pass
    with emulator.sole_user(folder):
        pass


def test_of_two_emulators_that_start_at_once_on_a_port_the_second_is_refused(tmp_path: Path, program: str) -> None:
    """The port is still free while the first one starts: the second would take the first one's answer for its own."""
    port = emulator.port_for(0)
    told, folder = f"port {port} is in use by another emulator", tmp_path / "emulator"
    with (
        emulator.sole_on(port),
        pytest.raises(emulator.InUse, match=told),
        emulator.running_emulator(program, folder, port),
    ):
        pass
