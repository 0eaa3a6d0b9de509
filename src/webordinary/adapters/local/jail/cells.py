"""BubblewrapJail: the site room's Jail where bubblewrap works, and BubblewrapCell, one run in it."""

from __future__ import annotations

import json
import secrets
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from webordinary.adapters.local.jail import bubblewrap
from webordinary.adapters.local.jail.door import Door
from webordinary.adapters.local.jail.furniture import furnish
from webordinary.adapters.local.jail.guard import Guard
from webordinary.adapters.local.jail.limits import JailLimits
from webordinary.adapters.local.jail.proxy import Proxy
from webordinary.adapters.local.jail.result import judge, remove
from webordinary.adapters.local.jail.trial import PROGRAM, no_reason
from webordinary.adapters.local.processes import WORKER_MARK
from webordinary.model.errors import (
    Cancelled,
    ClaimLost,
    Interrupted,
    JobTimedOut,
    MustWait,
    Permanent,
    Transient,
    reason_of,
)
from webordinary.site.reach import NOTHING_ELSE, Network, Reach

PROXY_PORT = 3128
_FULL_SECONDS = 60.0
_TRIED_AGAIN_SECONDS = 60.0
_PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"
_BASIC_ENV = {
    "HOME": bubblewrap.HOME,
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "TMPDIR": "/tmp",  # noqa: S108  inside the jail it is its own
    "USER": "site",
}
_PROXY_ENV = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), _PROXY_URL) | dict.fromkeys(
    ("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"
)


class BubblewrapCell:
    """One run; see the port."""

    def __init__(self, folder: Path, prefix: list[str], worker: str, guard: Guard) -> None:
        # A library that starts the program adds its own environment; here it ends, whatever it holds.
        self._prefix = ["/usr/bin/env", "-i", f"{WORKER_MARK}={worker}", *prefix]
        self._folder, self._guard = folder, guard
        self.env: Mapping[str, str] = {WORKER_MARK: worker}

    def argv(self, args: Sequence[str]) -> list[str]:
        """Bubblewrap, our launcher, the program."""
        return [*self._prefix, *args]

    def program(self, args: Sequence[str]) -> Path:
        """An executable file that becomes bubblewrap."""
        return write_program(self._folder / "program", self.argv(args))

    def url(self, upstream: str) -> str:
        """On the jail's own loopback."""
        return f"{_PROXY_URL}/{upstream}"

    def interrupt(self) -> None:
        """SIGINT to the program and its group."""
        self._guard.interrupt()


class BubblewrapJail:
    """For one worker. `scratch` is a folder that no other worker uses; what an earlier one left there goes."""

    def __init__(
        self, worker: str, scratch: Path, limits: JailLimits | None = None, readable: Sequence[Path] = ()
    ) -> None:
        self._worker, self._limits = worker, limits or JailLimits()
        self._scratch = scratch / f"{worker}.{secrets.token_hex(4)}"
        self._readable = tuple(readable)
        self._bwrap = ""
        self._trying = threading.Lock()
        self._reason: str | None = None
        self._tried_at = 0.0

    def why_not(self) -> str:
        """Why no jail works here; empty when one does.

        Tried for real, and now and then again until it works: a full disk or a very busy machine is no reason for ever.
        """
        with self._trying:
            if self._reason is None or (self._reason and time.monotonic() - self._tried_at >= _TRIED_AGAIN_SECONDS):
                self._reason, self._tried_at = self._try(), time.monotonic()
            return self._reason

    @contextmanager
    def cell(self, workspace: Path, env: Mapping[str, str], reach: Reach = NOTHING_ELSE) -> Iterator[BubblewrapCell]:
        """See the port."""
        if reason := self.why_not():
            raise Permanent(
                f"outside programs run in a jail only, and none works here: {reason}. Make bubblewrap work (see "
                "docs/security.md), or allow what that means with allow_unjailed_agents = true"
            )
        with self._cell(workspace, env, reach) as cell:
            yield cell

    @contextmanager
    def _cell(self, workspace: Path, env: Mapping[str, str], reach: Reach) -> Iterator[BubblewrapCell]:
        given = [_real(path, workspace) for path in (*reach.readable, *reach.writable)]
        readable, writable = given[: len(reach.readable)], tuple(given[len(reach.readable) :])
        workspace = workspace.resolve()
        folders = (workspace, *(path for path in writable if path.is_dir()))
        own_git = (workspace / ".git").exists() and not (workspace / ".git").is_symlink()
        with ExitStack() as closing:
            folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="cell-", dir=self._scratch)))
            proxy = Proxy(reach.network)
            closing.callback(proxy.close)
            door = Door(folder)
            guard = Guard(door, folders, self._limits, proxy.serve)
            view = bubblewrap.View(
                workspace, self._scratch / "furniture", door.path, self._inside(env, reach.network),
                (*self._readable, *readable), writable, PROXY_PORT if reach.network else 0,
            )  # fmt: skip
            prefix = bubblewrap.command(self._bwrap, view, self._limits)
            must_end = False
            try:
                yield BubblewrapCell(folder, prefix, self._worker, guard)
            except (ClaimLost, Interrupted, Cancelled, JobTimedOut):
                must_end = True
                raise
            finally:  # also when its driver gave up: what it left is about to be saved
                if not guard.end():
                    raise Transient("a jailed program does not die; is the disk stuck?")
                if guard.admitted:
                    if not own_git:
                        remove(workspace / ".git")  # planted: ours lies elsewhere, and git never cleans this name
                    judge(folders, self._limits, guard.reached)
                if guard.disk_full and not must_end:
                    raise MustWait("the disk of this worker is full: make room, nothing else is needed", _FULL_SECONDS)

    def _inside(self, env: Mapping[str, str], network: Network) -> dict[str, str]:
        proxy = _PROXY_ENV if network.hosts else {}
        return {**_BASIC_ENV, **proxy, **env, WORKER_MARK: self._worker}

    def _try(self) -> str:
        self._bwrap = shutil.which("bwrap") or ""
        if not self._bwrap:
            return "bubblewrap (bwrap) is not installed"
        shutil.rmtree(self._scratch, ignore_errors=True)
        try:
            self._scratch.mkdir(mode=0o700, parents=True)
            for left in self._scratch.parent.iterdir():
                if not left.name.startswith(f"{self._worker}."):
                    shutil.rmtree(left, ignore_errors=True)
            furnish(self._scratch / "furniture")
            with (
                tempfile.TemporaryDirectory(prefix="trial-", dir=self._scratch) as folder,
                self._cell(Path(folder), {}, NOTHING_ELSE) as cell,
            ):
                tried = subprocess.run(
                    cell.argv(PROGRAM), env=dict(cell.env), stdin=subprocess.DEVNULL, capture_output=True, timeout=30,
                    check=False,
                )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired, Permanent, Transient) as problem:
            return f"a trial failed: {reason_of(problem)}"
        return no_reason(tried)


def _real(path: Path, workspace: Path) -> Path:
    """Where it really is. An earlier program may have put links into the workspace: none of them is followed."""
    real = path.resolve()
    if path.is_relative_to(workspace) and real != workspace.resolve() / path.relative_to(workspace):
        raise Permanent(f"{path.relative_to(workspace)} is a link, and a jail does not follow links")
    return real


def write_program(path: Path, argv: list[str]) -> Path:
    """A file to execute: what is added to it becomes further arguments."""
    path.write_text(
        f"#!{bubblewrap.python()} -IS\nimport os, sys\n"
        f"os.execvp({json.dumps(argv[0])}, {json.dumps(argv)} + sys.argv[1:])\n",
        encoding="utf-8",
    )
    path.chmod(stat.S_IRWXU)
    return path
