"""Keeps child processes alive: a dead one is started again, a little later each time it dies young."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from webordinary.model.errors import reason_of

FIRST_DELAY_SECONDS = 0.2
MAX_DELAY_SECONDS = 30.0
GROWN_UP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Child:
    """A program to keep running. It ends by itself when its standard input does: then we are gone."""

    name: str
    argv: tuple[str, ...]


class Supervisor:
    """Starts, restarts and stops its children, each watched by a thread of its own."""

    def __init__(
        self,
        children: Sequence[Child],
        env: Mapping[str, str],
        grace_seconds: float,
        say: Callable[[str], None],
    ) -> None:
        self._env, self._grace_seconds, self.say = dict(env), grace_seconds, say
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._threads = [
            threading.Thread(target=self._keep, args=(child,), name=f"keeper of {child.name}", daemon=True)
            for child in children
        ]

    def start(self) -> None:
        """Start every child."""
        for thread in self._threads:
            thread.start()

    def ask(self) -> None:
        """Ask every child to end, once, and start none again: a second signal would make a child end at once."""
        with self._guard:
            if self._stopping.is_set():
                return
            self._stopping.set()
            for process in self._running.values():
                process.terminate()

    def stop(self) -> None:
        """End every child: ask, wait the grace, kill."""
        self.ask()
        deadline = time.monotonic() + self._grace_seconds
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(max(0.0, deadline - time.monotonic()))
        self.kill()
        for thread in started:
            thread.join()

    def kill(self) -> None:
        """End every child, and what it started in its own process group, at once."""
        with self._guard:
            self._stopping.set()
            for process in self._running.values():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def kill_child(self, name: str, pid: int) -> bool:
        """End this child at once, so that it is started again; False if it is another by now, or all is stopping."""
        with self._guard:
            process = self._running.get(name)
            if process is None or process.pid != pid or self._stopping.is_set():
                return False
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            return True

    def pids(self) -> dict[str, int]:
        """The children that run now."""
        with self._guard:
            return {name: process.pid for name, process in self._running.items()}

    def _keep(self, child: Child) -> None:
        delay = FIRST_DELAY_SECONDS
        while True:
            started = time.monotonic()
            ending = self._run(child)
            if self._stopping.is_set():
                return
            if time.monotonic() - started > GROWN_UP_SECONDS:
                delay = FIRST_DELAY_SECONDS
            self.say(f"{child.name} {ending}; starting it again in {delay:g} s")
            self._stopping.wait(delay)
            delay = min(delay * 2, MAX_DELAY_SECONDS)

    def _run(self, child: Child) -> str:
        """Run the child to its end and say how it ended."""
        with self._guard:
            if self._stopping.is_set():
                return "was not started"
            try:
                process = subprocess.Popen(child.argv, stdin=subprocess.PIPE, env=self._env, start_new_session=True)
            except OSError as problem:
                return f"cannot be started ({reason_of(problem)})"
            self._running[child.name] = process
        code = process.wait()
        with self._guard:
            del self._running[child.name]
        if process.stdin:
            process.stdin.close()
        return f"(process {process.pid}) ended with code {code}"
