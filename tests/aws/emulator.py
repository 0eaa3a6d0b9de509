"""An emulator of AWS as a process of its own on loopback, for the tests that talk to it as to AWS."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import IN_CI

REGION, ACCOUNT = "us-east-1", "000000000000"
_READY_SECONDS = 30.0
_HOME = Path(__file__).parents[2] / ".venv-emulator" / "bin"


@dataclass(frozen=True, slots=True)
class Emulator:
    """Where it answers."""

    endpoint: str
    pid: int


def find_ministack() -> str:
    """The program; a test without it is skipped, in CI it fails."""
    return _find("ministack")


def _find(program: str) -> str:
    found = shutil.which(program, path=os.pathsep.join([str(_HOME), os.environ.get("PATH", "")]))
    if found:
        return found
    words = "the emulator of AWS is not installed: make test-aws installs it"
    if IN_CI:
        pytest.fail(words, pytrace=False)
    pytest.skip(words)


@contextmanager
def running_ministack(folder: Path) -> Iterator[Emulator]:
    """Run one until the block ends."""
    program, port = find_ministack(), _free_port()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),  # where it unpacks the lambdas, and leaves them
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "STATE_DIR": str(folder),
        "S3_DATA_DIR": str(folder / "s3"),
    }
    with _running([program], env, f"http://127.0.0.1:{port}", "/_ministack/health", folder) as emulator:
        yield emulator


@contextmanager
def running_moto(folder: Path) -> Iterator[Emulator]:
    """The second emulator, for what the first does not do: tasks die when their heartbeats stay away."""
    program, port = _find("moto_server"), _free_port()
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [program, "--host", "127.0.0.1", "--port", str(port)]
    with _running(command, env, f"http://127.0.0.1:{port}", "/moto-api/data.json", folder) as emulator:
        settings = json.dumps({"stepfunctions": {"execute_state_machine": True}}).encode()
        headers = {"Content-Type": "application/json"}
        urllib.request.urlopen(
            urllib.request.Request(f"{emulator.endpoint}/moto-api/config", settings, headers)
        ).close()
        yield emulator


@contextmanager
def _running(command: list[str], env: dict[str, str], endpoint: str, health: str, folder: Path) -> Iterator[Emulator]:
    log = (folder / "emulator.log").open("wb")
    process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    try:
        _wait_ready(endpoint + health, process, folder / "emulator.log")
        yield Emulator(endpoint, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _wait_ready(health: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(health, timeout=1):
                return
        except OSError:
            time.sleep(0.05)  # polling a port that nobody opened yet: there is nothing to wait on
    pytest.fail(f"the emulator did not come up:\n{log.read_text()[-2000:]}", pytrace=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def credentials() -> dict[str, str]:
    """What boto3 wants to find; nobody checks it."""
    return {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
