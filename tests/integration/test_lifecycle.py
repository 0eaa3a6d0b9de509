"""Real processes and real signals: what Ctrl-C, SIGTERM and a dead parent do."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading
from webordinary.entrypoints.lifecycle import run_until_stopped

def say(word):
    os.write(1, f"{word}\\n".encode())  # one write: two threads speak

def work(stop):
    say("started")
    if sys.argv[1] == "fails":
        raise ValueError("broken")
    if sys.argv[1] == "ends":
        return
    stop.wait()
    say("asked")
    if sys.argv[1] == "stuck":
        threading.Event().wait()
    say("saved")

run_until_stopped(work, stop_seconds=float(sys.argv[2]), parent=0 if sys.argv[3] == "child" else None,
               on_stop=lambda: say("stopping"), on_kill=lambda: say("killing"))
say("done")
"""


def start(behaviour: str, patience: float = 60, kind: str = "alone") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, behaviour, str(patience), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "started\n"
    return process


def rest_of(process: subprocess.Popen[str]) -> str:
    """What it says until it ends. (communicate() would miss what readline() has buffered.)"""
    assert process.stdout
    assert process.stdin
    assert process.stderr
    out = process.stdout.read()
    process.wait(timeout=60)
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    return out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_the_work_save_and_end(number: signal.Signals) -> None:
    process = start("obeys")
    process.send_signal(number)
    out = rest_of(process)
    assert set(out.split()) == {"stopping", "asked", "saved", "done"}
    assert process.returncode == 0


def test_a_second_signal_ends_it_at_once() -> None:
    process = start("stuck")
    process.send_signal(signal.SIGINT)
    assert process.stdout
    assert {process.stdout.readline(), process.stdout.readline()} == {"stopping\n", "asked\n"}
    process.send_signal(signal.SIGINT)
    out = rest_of(process)
    assert (out, process.returncode) == ("killing\n", 130)


def test_work_that_does_not_end_is_cut_off_when_patience_is_over() -> None:
    process = start("stuck", patience=0.1)
    process.send_signal(signal.SIGTERM)
    out = rest_of(process)
    assert "killing" in out
    assert process.returncode == 1


def test_a_child_stops_when_its_parent_is_gone() -> None:
    process = start("obeys", kind="child")
    assert process.stdin
    process.stdin.close()  # the pipe that stands for the parent
    out = rest_of(process)
    assert "saved" in out
    assert process.returncode == 0


def test_a_process_started_by_hand_does_not_look_at_its_input() -> None:
    process = start("obeys")
    assert process.stdin
    process.stdin.close()
    process.terminate()
    out = rest_of(process)
    assert out.count("stopping") == 1
    assert process.returncode == 0


def test_work_that_ends_by_itself_ends_the_process() -> None:
    assert rest_of(start("ends")) == "done\n"


def test_a_failure_of_the_work_is_the_failure_of_the_process() -> None:
    process = start("fails")
    assert process.stderr
    assert "ValueError: broken" in process.stderr.read()
    rest_of(process)
    assert process.returncode == 1
