"""An emulator of AWS on this machine: a process of its own on loopback, with its state in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from webordinary.compose.backends import FileLock
from webordinary.entrypoints import parent_death_wrapper
from webordinary.entrypoints.running import free_port, is_free
from webordinary.model.errors import Permanent, Transient

HOST, HEALTH = "127.0.0.1", "/_ministack/health"
_DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # our own loopback address
PORT = 4566
"""Where emulators of AWS answer by custom; always the same, so that an address in a shell's history stays true."""
READY_SECONDS, STOP_SECONDS, FREE_SECONDS = 120.0, parent_death_wrapper.GRACE_SECONDS + 10.0, 30.0
LOG, SCRATCH, LOCK, USER = "emulator.log", "scratch", "lock", "user"
_SHOWN_CHARACTERS = 2000


class InUse(Permanent):
    """Another process uses the folder or the port."""


@dataclass(frozen=True, slots=True)
class Emulator:
    """Where it answers, who keeps it, and the pipe that keeps it alive as long as a process has it open."""

    endpoint: str
    process: subprocess.Popen[bytes]
    lifeline: int


@contextmanager
def running_emulator(
    program: str, folder: Path, port: int, go_on: Callable[[], None] = lambda: None
) -> Iterator[Emulator]:
    """Run it until the block ends. What it holds is written to `folder` when it ends in good order, and read again.

    `go_on` raises when the caller no longer waits. Killed, we let go of it as well: it ends then with the
    last process that holds its lifeline.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        lock, log = FileLock(folder / LOCK), held.enter_context((folder / LOG).open("ab"))
        _be_alone(lock, folder)
        held.callback(lock.release)
        port_lock = held.enter_context(sole_on(port))
        log.truncate(0)
        shutil.rmtree(folder / SCRATCH, ignore_errors=True)
        (folder / SCRATCH).mkdir()
        process = subprocess.Popen(
            parent_death_wrapper.command(program),
            env=_environment(folder, port),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            pass_fds=[lock.fileno(), port_lock.fileno()],  # its keeper holds both for as long as it runs
            start_new_session=True,  # Ctrl-C is for us: it ends after who uses it
        )
        assert process.stdin
        try:
            emulator = Emulator(f"http://{HOST}:{port}", process, process.stdin.fileno())
            _wait_ready(emulator, folder / LOG, go_on)
            yield emulator
        finally:
            _stop(process)


@contextmanager
def sole_user(folder: Path) -> Iterator[None]:
    """Lock the folder for one emulator until the block or this process ends; raises InUse."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / USER)
    if not lock.acquire():
        pid = lock.path.read_text(errors="replace")[:20].strip() or "unknown"
        raise InUse(f"{folder.parent} is in use by another `webordinary aws local` (process {pid})")
    try:
        lock.path.write_text(f"{os.getpid()}\n")
        yield
    finally:
        lock.release()


def _be_alone(lock: FileLock, folder: Path) -> None:
    """Two emulators would write over each other's state; one whose user was killed needs a moment to end."""
    deadline = time.monotonic() + FREE_SECONDS
    while not lock.acquire():
        if time.monotonic() > deadline:
            raise InUse(f"another emulator works in {folder}")
        time.sleep(0.1)  # flock has no notification


@contextmanager
def sole_on(port: int) -> Iterator[FileLock]:
    """Be the only emulator of this user that starts on a port; raises InUse.

    Of two that start at once on a free port, the slower one would take the faster one's answer for its own.
    """
    lock = FileLock(Path(tempfile.gettempdir(), f"webordinary-{os.getuid()}-emulator-{port}.lock"))
    if not lock.acquire():
        raise InUse(f"port {port} is in use by another emulator of yours")
    try:
        yield lock
    finally:
        lock.release()


def port_for(requested: int | None) -> int:
    """The port to use: the one that is wanted, any for 0; for None the usual one, or any where that is taken."""
    if requested is None:
        return PORT if is_free(HOST, PORT) else free_port(HOST)
    if requested and not is_free(HOST, requested):
        raise InUse(f"port {requested} is in use")
    return requested or free_port(HOST)


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


def _wait_ready(emulator: Emulator, log: Path, go_on: Callable[[], None]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and emulator.process.poll() is None:
        try:
            with _DIRECTLY.open(emulator.endpoint + HEALTH, timeout=1):
                return
        except OSError:
            go_on()
            time.sleep(0.05)  # an opened port has no notification
    words = log.read_text(encoding="utf-8", errors="replace")[-_SHOWN_CHARACTERS:]
    raise Transient(f"the emulator of AWS did not come up: {words or 'it says nothing'}; its log is {log}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()  # at once, then
        process.wait()
