"""No jail: what runs where none works and the operator allows that in so many words. Keys still stay out of it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from webordinary.adapters.processes import WORKER_MARK
from webordinary.adapters.sandbox.bubblewrap import SandboxLimits
from webordinary.adapters.sandbox.proxy import Proxy
from webordinary.adapters.sandbox.sandbox import check_result, has_own_git, write_program
from webordinary.jobs.sandbox_policy import NO_ACCESS, SandboxPolicy

_CELL_MARK = "WEBORDINARY_CELL"
_PASSED_ON = ("PATH", "LANG", "TZ", "TMPDIR")


class UnconfinedRun:
    """One run without walls. Its processes are known by a mark in their environment."""

    def __init__(self, folder: Path, env: Mapping[str, str], token: str, port: int) -> None:
        self._folder, self._token, self._port = folder, token, port
        self.env: Mapping[str, str] = {**env, _CELL_MARK: token}

    def argv(self, args: Sequence[str]) -> list[str]:
        """The program itself."""
        return list(args)

    def program(self, args: Sequence[str]) -> Path:
        """A file to execute."""
        return write_program(self._folder / "program", list(args), self.env)

    def url(self, upstream: str) -> str:
        """A port of this machine, under a name that nobody can guess: every user here could use it."""
        return f"http://127.0.0.1:{self._port}/{self._token}/{upstream}"

    def interrupt(self) -> None:
        """SIGINT to all that carry the mark."""
        self.signal(signal.SIGINT)

    def signal(self, number: int) -> None:
        """A signal to all that carry the mark."""
        for pid in _marked(f"{_CELL_MARK}={self._token}".encode()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class UnconfinedSandbox:
    """The site room's Jail without walls."""

    def __init__(self, worker: str, limits: SandboxLimits | None = None) -> None:
        self._worker, self._limits = worker, limits or SandboxLimits()

    @contextmanager
    def cell(
        self, workspace: Path, env: Mapping[str, str], reach: SandboxPolicy = NO_ACCESS
    ) -> Iterator[UnconfinedRun]:
        """See the port; what the program touches is up to the program."""
        token = secrets.token_urlsafe(24)
        folders = (workspace, *(path for path in reach.writable if path.is_dir()))
        with ExitStack() as closing:
            closing.callback(check_result, folders, self._limits, "", has_own_git(workspace))
            folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="webordinary-")))
            proxy = Proxy(reach.network, f"/{token}")
            closing.callback(proxy.close)
            port = 0
            if reach.network.upstreams:
                listener = socket.create_server(("127.0.0.1", 0))
                port = listener.getsockname()[1]
                proxy.serve(listener)
            passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            cell = UnconfinedRun(
                folder, {"HOME": str(folder), **passed_on, **env, WORKER_MARK: self._worker}, token, port
            )
            closing.callback(cell.signal, signal.SIGKILL)
            yield cell


def _marked(mark: bytes) -> Iterator[int]:
    proc = Path("/proc")
    for entry in proc.iterdir() if proc.is_dir() else ():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
