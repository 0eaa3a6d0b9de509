"""An emulator of AWS as a process of its own on loopback, for the tests that talk to it as to AWS."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import own_port
from webordinary.entrypoints.emulator import HOST, READY_SECONDS, running_emulator

REGION, ACCOUNT = "us-east-1", "000000000000"
_HOME = Path(__file__).parents[2] / ".venv-emulator" / "bin"


@dataclass(frozen=True, slots=True)
class RunningEmulator:
    """Where it answers."""

    endpoint: str


def find_ministack() -> str:
    """The program; a test without it is skipped."""
    return _find("ministack")


def _find(program: str) -> str:
    found = shutil.which(program, path=os.pathsep.join([str(_HOME), os.environ.get("PATH", "")]))
    if found:
        return found
    words = "the emulator of AWS is not installed: make test installs it"
    pytest.skip(words)


@contextmanager
def running_ministack(folder: Path) -> Iterator[RunningEmulator]:
    """Run one until the block ends, as `webordinary aws local` does."""
    program = find_ministack()
    with own_port() as port, running_emulator(program, folder, port) as kept:
        yield RunningEmulator(kept.endpoint)


@contextmanager
def running_moto(folder: Path) -> Iterator[RunningEmulator]:
    """The second emulator, for what the first does not do: tasks die when their heartbeats stay away."""
    program = _find("moto_server")
    with (
        own_port() as port,
        _running(
            [program, "--host", HOST, "--port", str(port)], RunningEmulator(f"http://{HOST}:{port}"), folder
        ) as emulator,
    ):
        settings = json.dumps({"stepfunctions": {"execute_state_machine": True}}).encode()
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(
            urllib.request.Request(f"{emulator.endpoint}/moto-api/config", settings, headers)
        ).close()
        yield emulator


@contextmanager
def _running(command: list[str], emulator: RunningEmulator, folder: Path) -> Iterator[RunningEmulator]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with (folder / "emulator.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        _wait_ready(emulator, process, folder / "emulator.log")
        yield emulator
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(emulator: RunningEmulator, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{emulator.endpoint}/moto-api/data.json", timeout=1):
                return
        except OSError:
            time.sleep(0.05)  # polling a port that nobody opened yet: there is nothing to wait on
    pytest.fail(f"the emulator did not come up:\n{log.read_text()[-2000:]}", pytrace=False)


def credentials() -> dict[str, str]:
    """What boto3 wants to find; nobody checks it."""
    return {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
