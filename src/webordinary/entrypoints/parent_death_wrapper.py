"""Runs a foreign program while another process holds the other end of our standard input; then ends it.

It runs as a process of its own, so that the program ends whatever became of who wanted it: `kill -9` closes a pipe too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

GRACE_SECONDS = 30.0


def command(program: str) -> list[str]:
    """How to have a program kept: the caller gives it a pipe for its standard input, and keeps the other end."""
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), program]  # needs nothing but Python


def keep(program: Sequence[str]) -> int:
    """Run it to its end; SIGTERM ends it and all that it started at once."""
    child: subprocess.Popen[bytes] | None = None
    unwanted = False

    def end(*_: object) -> None:
        nonlocal unwanted
        unwanted = True
        if child:
            _kill(child)

    signal.signal(signal.SIGTERM, end)
    child = subprocess.Popen(program, stdin=subprocess.DEVNULL, start_new_session=True)
    if unwanted:  # said so while it was being started
        _kill(child)
    threading.Thread(target=_end_with_the_pipe, args=(child,), name="pipe", daemon=True).start()
    code = child.wait()
    _kill(child)  # what it started, and left behind
    return code


def _end_with_the_pipe(child: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(GRACE_SECONDS)
        return
    _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(abs(keep(sys.argv[1:])))
