"""Any program as an agent: real processes, asked to stop and ended with all their children."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.fakes.cancel_token import FakeCancelToken
from webordinary.adapters import processes
from webordinary.adapters.agents.command import CommandAgent
from webordinary.adapters.processes import WORKER_MARK
from webordinary.adapters.sandbox.sandbox import SandboxedPrograms, UnconfinedSandbox
from webordinary.jobs.ports import AgentLimits, AgentResult, AgentTask, Changed
from webordinary.model.errors import Interrupted, JobTimedOut, Permanent

DEADLINE = 60.0


def run(
    program: str, folder: Path, *, token: FakeCancelToken | None = None, grace: float = 60.0, seconds: float = 120.0
) -> AgentResult:
    agent = CommandAgent(
        [sys.executable, "-c", program], SandboxedPrograms(UnconfinedSandbox("w-1"), grace), {"CHOSEN": "yes"}
    )
    task = AgentTask("make it so", folder, limits=AgentLimits(seconds=seconds), subject="The kiln")
    return agent.run(task, token or FakeCancelToken())


def ended(pid: int) -> bool:
    """Gone, or a zombie that only waits for its parent."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        os.sched_yield()
    return False


class InterruptWhenReady(threading.Thread):
    """Ends the hold once the program says, by a file, that it runs."""

    def __init__(self, ready: Path, token: FakeCancelToken) -> None:
        super().__init__()
        self._ready, self._hold = ready, token

    def run(self) -> None:
        deadline = time.monotonic() + DEADLINE
        while not self._ready.exists() and time.monotonic() < deadline:
            os.sched_yield()
        self._hold.end(Interrupted("a newer mail"))


def test_a_program_reads_the_instruction_and_works_in_the_workspace(tmp_path: Path) -> None:
    program = "import sys; open('a.html', 'w').write(sys.stdin.read()); print('Wrote it.')"
    assert run(program, tmp_path) == Changed("Wrote it.")
    assert (tmp_path / "a.html").read_text() == "make it so"


def test_what_a_program_writes_to_its_error_output_is_told_while_it_works(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "sys.stderr.write('looking at \\xff the pages\\nhalf a line'); sys.stderr.flush()\n"
        "while not os.path.exists('heard'): os.sched_yield()\n"
        "print('Done.')\n"
    )
    said: list[str] = []

    def tell(words: str) -> None:
        said.append(words)
        (tmp_path / "heard").touch()

    agent = CommandAgent([sys.executable, "-c", program], SandboxedPrograms(UnconfinedSandbox("w-1"), 60.0))
    task = AgentTask("make it so", tmp_path, limits=AgentLimits(seconds=120.0), tell=tell)
    assert agent.run(task, FakeCancelToken()) == Changed("Done.")
    assert len(said) == 1
    assert said[0].startswith("looking at")


def test_a_program_sees_only_chosen_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hush")
    result = run("import os; print(sorted(os.environ))", tmp_path)
    assert isinstance(result, Changed)
    assert "SECRET_KEY" not in result.summary
    assert "CHOSEN" in result.summary
    assert WORKER_MARK in result.summary


def test_a_program_is_told_the_subject_above_the_wish(tmp_path: Path) -> None:
    assert run("import os; print(os.environ['WEBORDINARY_SUBJECT'])", tmp_path) == Changed("The kiln")


def test_a_program_that_fails_gives_the_job_up_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="no kiln today"):
        run("import sys; sys.exit('no kiln today')", tmp_path)


def test_an_interrupt_is_sigint_first(tmp_path: Path) -> None:
    program = """
import pathlib, signal, sys, time
def stop(*_):
    pathlib.Path("asked").touch(); sys.exit(0)
signal.signal(signal.SIGINT, stop)
pathlib.Path("ready").touch()
while True:
    time.sleep(0.01)  # a signal that comes just before a sleep is heard after it
"""
    token = FakeCancelToken()
    interrupter = InterruptWhenReady(tmp_path / "ready", token)
    interrupter.start()
    with pytest.raises(Interrupted):
        run(program, tmp_path, token=token)
    interrupter.join()
    assert (tmp_path / "asked").exists()


def test_a_program_that_does_not_listen_is_killed_with_its_children(tmp_path: Path) -> None:
    program = """
import os, pathlib, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.signal(2, signal.SIG_IGN); signal.pause()"])
pathlib.Path("pids").write_text(f"{os.getpid()} {child.pid}")
pathlib.Path("ready").touch()
signal.pause()
"""
    token = FakeCancelToken()
    interrupter = InterruptWhenReady(tmp_path / "ready", token)
    interrupter.start()
    with pytest.raises(Interrupted):
        run(program, tmp_path, token=token, grace=0.2)
    interrupter.join()
    assert all(ended(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_a_child_left_behind_is_ended_with_its_parent(tmp_path: Path) -> None:
    program = """
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
pathlib.Path("pid").write_text(str(child.pid))
print("Done.")
"""
    assert run(program, tmp_path) == Changed("Done.")
    assert ended(int((tmp_path / "pid").read_text()))


def test_a_program_may_not_run_for_ever(tmp_path: Path) -> None:
    with pytest.raises(JobTimedOut):
        run("import signal; signal.pause()", tmp_path, seconds=0.3)


def test_a_program_may_not_write_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Permanent, match="wrote more"):
        run("while True: print('x' * 100_000)", tmp_path)


def test_a_long_instruction_does_not_block(tmp_path: Path) -> None:
    text = "x" * 1_000_000
    finished = processes.run(
        [sys.executable, "-c", "import sys; print('y' * 1_000_000); print(len(sys.stdin.read()))"],
        cwd=tmp_path, stdin=text.encode(), env={}, seconds=60,
    )  # fmt: skip
    assert finished.out.endswith(b"\n1000000\n")


def test_a_program_that_does_not_read_its_instruction_is_no_failure(tmp_path: Path) -> None:
    finished = processes.run(["true"], cwd=tmp_path, stdin=b"x" * 1_000_000, env=dict(os.environ), seconds=60)
    assert finished.code == 0
