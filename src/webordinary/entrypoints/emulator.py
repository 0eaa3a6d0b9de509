"""An emulator of AWS on this machine: a process of its own on loopback, with its state in a folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from webordinary.model.errors import Transient

HOST, HEALTH = "127.0.0.1", "/_ministack/health"
READY_SECONDS, STOP_SECONDS = 30.0, 30.0
LOG, SCRATCH = "emulator.log", "scratch"
_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Emulator:
    """Where it answers."""

    endpoint: str
    process: subprocess.Popen[bytes]


@contextmanager
def running_emulator(program: str, folder: Path, port: int = 0) -> Iterator[Emulator]:
    """Run it until the block ends. What it holds is written to `folder` when it ends in good order, and read again."""
    shutil.rmtree(folder / SCRATCH, ignore_errors=True)
    (folder / SCRATCH).mkdir(parents=True)
    port = port or _free_port()
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            [program],
            env=_environment(folder, port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,  # Ctrl-C is for us: it ends after who uses it
        )
        try:
            emulator = Emulator(f"http://{HOST}:{port}", process)
            _wait_ready(emulator, folder / LOG)
            yield emulator
        finally:
            _stop(process)


def _environment(folder: Path, port: int) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "TMPDIR": str(folder / SCRATCH),
        "BIND_HOST": HOST,  # it would listen for everybody otherwise
        "MINISTACK_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "STATE_DIR": str(folder / "state"),
        "PERSIST_STATE": "1",
        "S3_DATA_DIR": str(folder / "s3"),
        "S3_PERSIST": "1",
        "LOG_LEVEL": "ERROR",
    }


def _wait_ready(emulator: Emulator, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and emulator.process.poll() is None:
        try:
            with urllib.request.urlopen(emulator.endpoint + HEALTH, timeout=1):  # noqa: S310  our own loopback address
                return
        except OSError:
            time.sleep(0.05)  # nobody tells when a port is opened
    words = log.read_text(encoding="utf-8", errors="replace")[-_SHOWN_CHARACTERS:]
    raise Transient(f"the emulator of AWS did not come up: {words or 'it says nothing'}; its log is {log}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the lambdas that it ran


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
