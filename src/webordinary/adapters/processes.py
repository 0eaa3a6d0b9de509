"""Programs run to their end: own process group, bounded time and output, asked before they are killed.

Also the files of a Python or Node installation that they need: never the whole prefix, which may be a home folder.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from webordinary.model.claims import INTERRUPT_GRACE_SECONDS, CancelToken

WORKER_MARK = "WEBORDINARY_WORKER"
"""Set in every child, so that a takeover can end what a dead worker left running."""
JOB_MARK = "WEBORDINARY_JOB"
"""Set in every agent, so that a takeover can end what a hung worker runs for a key that it has lost."""
OUTPUT_BYTES = 4_000_000
_CHUNK = 65_536
_DRAIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended."""

    code: int
    out: bytes
    err: bytes
    timed_out: bool = False
    overflowed: bool = False


def run(
    args: Sequence[str],
    *,
    cwd: Path,
    stdin: bytes = b"",
    env: Mapping[str, str],
    seconds: float,
    output_bytes: int = OUTPUT_BYTES,
    memory_bytes: int = 0,
    token: CancelToken | None = None,
    grace: float = INTERRUPT_GRACE_SECONDS,
    interrupt: Callable[[], None] | None = None,
    hear: Callable[[str], None] | None = None,
) -> Finished:
    """Run one program; its whole process group is gone when this returns. `interrupt` asks it another way.

    `hear` gets each line of stderr as it comes.
    `memory_bytes` bounds the memory of each of its processes, where the system can; 0: no bound.
    """
    child = subprocess.Popen(
        list(args), cwd=cwd, env=dict(env), start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    if memory_bytes and hasattr(resource, "prlimit"):
        with suppress(OSError):  # it has ended
            resource.prlimit(child.pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    stopper = _Stopper(child, grace, interrupt or partial(_signal_group, child, signal.SIGINT))
    try:
        with token.on_stop(stopper.ask) if token else nullcontext():
            return _converse(child, stdin, time.monotonic() + seconds, output_bytes, hear)
    finally:
        stopper.end()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()


class _Stopper:
    """Ends a process group: asks once, and kills when the grace is over or the program has ended."""

    def __init__(self, child: subprocess.Popen[bytes], grace: float, interrupt: Callable[[], None]) -> None:
        self._child, self._grace, self._interrupt = child, grace, interrupt
        self._timer: threading.Timer | None = None

    def ask(self) -> None:
        """Called from another thread as soon as the job must end."""
        self._interrupt()
        self._timer = threading.Timer(self._grace, _signal_group, (self._child, signal.SIGKILL))
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Whatever is left of the group goes; its leader is reaped after, so the number is still ours."""
        if self._timer is not None:
            self._timer.cancel()
        _signal_group(self._child, signal.SIGKILL)
        self._child.wait()


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    if child.returncode is None:
        try:
            os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):
            return


def _converse(
    child: subprocess.Popen[bytes], stdin: bytes, deadline: float, limit: int, hear: Callable[[str], None] | None
) -> Finished:
    assert child.stdin
    assert child.stdout
    assert child.stderr
    pending = memoryview(stdin)
    heard: dict[IO[bytes], bytearray] = {child.stdout: bytearray(), child.stderr: bytearray()}
    timed_out, overflowed, told = False, False, 0
    with selectors.DefaultSelector() as selector:
        for pipe in heard:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
        if pending:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
        else:
            child.stdin.close()
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                timed_out = True
                break
            for key, _ in selector.select(min(left, 1.0)):
                if key.fileobj is child.stdin:
                    pending = _write(child.stdin, pending)
                    if not pending:
                        selector.unregister(child.stdin)
                        child.stdin.close()
                elif not _read(key.fileobj, heard):  # type: ignore[arg-type]
                    selector.unregister(key.fileobj)
            if hear:
                told = _tell_lines(heard[child.stderr], told, hear)
            if sum(map(len, heard.values())) > limit:
                overflowed = True
                break
            if child.stdin.closed and _ended_but_not_reaped(child.pid):
                deadline = min(deadline, time.monotonic() + _DRAIN_SECONDS)  # grandchildren may keep the pipes open
    code = _code(child, timed_out or overflowed, deadline)
    return Finished(code, bytes(heard[child.stdout]), bytes(heard[child.stderr]), timed_out and code != 0, overflowed)


def _tell_lines(heard: bytearray, told: int, hear: Callable[[str], None]) -> int:
    """Hand on the lines that are whole now; returns how far that is."""
    end = heard.rfind(b"\n", told) + 1
    for line in heard[told:end].decode(errors="replace").splitlines():
        hear(line)
    return max(told, end)


def _write(pipe: IO[bytes], pending: memoryview) -> memoryview:
    try:
        return pending[os.write(pipe.fileno(), pending[:_CHUNK]) :]
    except BlockingIOError:
        return pending
    except BrokenPipeError:
        return memoryview(b"")  # the program does not want to hear the rest


def _read(pipe: IO[bytes], heard: dict[IO[bytes], bytearray]) -> bool:
    try:
        chunk = os.read(pipe.fileno(), _CHUNK)
    except BlockingIOError:
        return True
    heard[pipe] += chunk
    return bool(chunk)


def _ended_but_not_reaped(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _code(child: subprocess.Popen[bytes], cut_short: bool, deadline: float) -> int:
    """The exit code, seen without reaping, so that the group can still be signalled safely."""
    if cut_short and not _ended_but_not_reaped(child.pid):
        return -signal.SIGKILL
    pause = 0.0005  # both pipes are closed: the end is a moment away
    while not _ended_but_not_reaped(child.pid):
        if time.monotonic() > deadline:
            return -signal.SIGKILL
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    seen = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    assert seen is not None
    return seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status


_PYTHON_PARTS = ("bin/python3*", "lib*/python3*", "lib*/libpython3*.so*")
_SETTINGS = "pyvenv.cfg"


def virtual_environment_of(program: Path) -> Path | None:
    """The virtual environment of a program in its `bin`."""
    return next((prefix for prefix in _prefixes(program) if (prefix / _SETTINGS).is_file()), None)


def node_prefix_of(program: Path) -> Path | None:
    """The prefix of the Node installation that has a program in its `bin` or global packages."""
    packages = (folder.parent.parent for folder in program.parents if folder.parts[-2:] == ("lib", "node_modules"))
    known = (*_prefixes(program), *packages)
    return next((prefix for prefix in known if (prefix / "lib/node_modules/npm").is_dir()), None)


def python_prefix_of(program: Path) -> Path | None:
    """The prefix of the Python installation that has a program in its `bin`."""
    return next((prefix for prefix in _prefixes(program) if any(prefix.glob("lib/python3*/os.py"))), None)


def _prefixes(program: Path) -> tuple[Path, ...]:
    return (program.parent.parent,) if program.parent.name == "bin" else ()


def virtual_environment_files(folder: Path) -> Iterator[Path]:
    """The environment itself, and the Python installation that it was made from."""
    yield folder
    for line in (folder / _SETTINGS).read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home" and Path(value.strip()).is_absolute():
            yield from python_files(Path(value.strip()).parent)


def node_files(prefix: Path) -> Iterator[Path]:
    """The interpreter and all global packages. `etc/npmrc`, which may hold a token, is not among them."""
    yield prefix / "lib/node_modules"
    if (prefix / "bin/node").exists():
        yield prefix / "bin/node"


def python_files(prefix: Path) -> Iterator[Path]:
    """The interpreter, its standard library and what was installed into it; nothing of the machine's own Python."""
    if not prefix.resolve().is_relative_to("/usr"):
        for part in _PYTHON_PARTS:
            yield from sorted(prefix.glob(part))
