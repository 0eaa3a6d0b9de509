"""BubblewrapSandbox, one run in it, its self test, and the check of its result. UnconfinedSandbox: no sandbox.

UnconfinedSandbox runs where none works and the operator allows that; keys still stay out of it.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from webordinary.adapters.dot_git import is_dot_git, remove_entry
from webordinary.adapters.durable import remove_tree
from webordinary.adapters.processes import JOB_MARK, OUTPUT_BYTES, WORKER_MARK, run
from webordinary.adapters.sandbox import bubblewrap
from webordinary.adapters.sandbox.bubblewrap import (
    SandboxLimitExceeded,
    SandboxLimits,
    make_rootfs,
    python,
    system_call_filter,
)
from webordinary.adapters.sandbox.guard import FileUsage, Guard, Handshake, entries
from webordinary.adapters.sandbox.proxy import Proxy
from webordinary.jobs.ports import Sandbox, ignore_progress
from webordinary.jobs.sandbox_policy import NO_ACCESS, Network, SandboxPolicy, private_part
from webordinary.model.claims import INTERRUPT_GRACE_SECONDS, CancelToken
from webordinary.model.errors import (
    KILLED_CODES,
    Cancelled,
    ClaimLost,
    Interrupted,
    JobTimedOut,
    MachineFault,
    Permanent,
    ProgramKilled,
    Transient,
    is_machine_fault,
    reason_of,
)

_CPU_LIMIT_CODES = (-signal.SIGXCPU, 128 + signal.SIGXCPU)


def has_own_git(workspace: Path) -> bool:
    """Whether a workspace has a `.git` before a program runs in it; the sandbox binds it read-only and keeps it."""
    return (workspace / ".git").exists() and not (workspace / ".git").is_symlink()


def check_result(folders: tuple[Path, ...], limits: SandboxLimits, reached: str, own_git: bool = False) -> None:
    """Check the files after all processes have ended. Empties the first folder, the workspace, if it raises."""
    try:
        planted: list[str] = []
        if reached := reached or _inspect(folders, limits, planted):
            # Not chained to the ProgramKilled of its driver: our guard killed it, not the machine.
            raise SandboxLimitExceeded(f"the program wanted {reached} and was ended; nothing was changed") from None
        _remove_planted(folders[0], planted, own_git)
    except OSError as problem:
        empty(folders[0])
        raise SandboxLimitExceeded(
            f"the program left a file that cannot be reached ({problem.strerror}); nothing was changed"
        ) from problem
    except Permanent:
        empty(folders[0])
        raise


def _inspect(folders: tuple[Path, ...], limits: SandboxLimits, planted: list[str]) -> str:
    """Remove special modes and return the exceeded limit, if any. Raises Permanent on a special file.

    Collects the entries that git would take for a repository.
    """
    usage = FileUsage(limits)
    for entry, depth in entries(folders, make_readable=True):
        if is_dot_git(entry.name):
            planted.append(entry.path)
        status = entry.stat(follow_symlinks=False)
        if reached := usage.add(status.st_size, depth):
            return reached
        kind = stat.S_IFMT(status.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            raise Permanent(f"{entry.name} is neither a file nor a folder: it cannot be published; nothing was changed")
        if kind == stat.S_IFREG and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            Path(entry.path).chmod(stat.S_IMODE(status.st_mode) & 0o777)  # root's sandbox could make root's programs
    return ""


def _remove_planted(workspace: Path, planted: list[str], own_git: bool) -> None:
    kept = str(workspace / ".git") if own_git else ""
    for path in planted:
        if path != kept and Path(path).is_relative_to(workspace):
            remove_entry(path)


def empty(workspace: Path) -> None:
    """Remove all files of a workspace; the next job checks it out again."""
    remove_tree(workspace)
    workspace.mkdir(exist_ok=True)


_LOOK = """
import os, _socket
status = open("/proc/self/status").read()
assert "CapEff:\\t0000000000000000" in status, "it has capabilities"
assert "NoNewPrivs:\\t1" in status, "it may gain privileges"
assert "Seccomp:\\t2" in status, "its system calls are not filtered"
assert os.getuid() != 0, "it runs as root"
assert not os.path.exists("/etc/shadow"), "it sees /etc"
try:
    open("/proc/sys/kernel/core_pattern", "r+")
except OSError:
    pass
else:
    raise AssertionError("it may set the kernel up")
probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
try:
    probe.connect(("192.0.2.1", 9))
except OSError:
    print("shut")
else:
    raise AssertionError("it has a way to the network")
"""
_PASSING = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN)
"""Without ENOSPC: the kernel also returns it at its limit of user namespaces."""
PROGRAM = (python(), "-I", "-S", "-c", _LOOK)


def self_test(tried: subprocess.CompletedProcess[bytes]) -> str:
    """Empty if the self test passed, else the reason. Raises MachineFault if the machine made it fail."""
    if tried.returncode == 0 and tried.stdout.strip() == b"shut":
        return ""
    if tried.returncode in KILLED_CODES:
        raise ProgramKilled("a trial of bwrap")
    words = tried.stderr.decode(errors="replace").strip().splitlines()
    problem_text = f"a trial of bwrap ended with {tried.returncode}: {words[-1][:300] if words else 'no words'}"
    if any(os.strerror(number) in problem_text for number in _PASSING):
        raise MachineFault(problem_text)
    return problem_text


PROXY_PORT = 3128
_TRIED_AGAIN_SECONDS = 60.0
_PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"
_BASIC_ENV = {
    "HOME": bubblewrap.HOME,
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "TMPDIR": "/tmp",  # noqa: S108  inside the sandbox it is its own
    "USER": "site",
}
_PROXY_ENV = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), _PROXY_URL) | dict.fromkeys(
    ("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"
)


class BubblewrapRun:
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
        """On the sandbox's own loopback."""
        return f"{_PROXY_URL}/{upstream}"

    def interrupt(self) -> None:
        """SIGINT to the program and its group."""
        self._guard.interrupt()


class BubblewrapSandbox:
    """The sandbox of one worker. `scratch` is its own folder; files of an earlier worker in it are removed.

    No run sees a folder that contains one of `private`, the home of this user, or keys.
    """

    def __init__(
        self,
        worker: str,
        scratch: Path,
        limits: SandboxLimits | None = None,
        readable: Sequence[Path] = (),
        private: Sequence[Path] = (),
    ) -> None:
        self._worker, self._limits = worker, limits or SandboxLimits()
        self._scratch = scratch / f"{worker}.{secrets.token_hex(4)}"
        self._readable, self._private = tuple(readable), tuple(private)
        self._bwrap = ""
        self._trying = threading.Lock()
        self._reason: str | None = None
        self._tried_at = 0.0

    def why_not(self) -> str:
        """Why no sandbox works here; empty if one does.

        Runs a self test, and repeats it after a while until it passes. Raises MachineFault if the test was killed or
        the machine had no resources for it; the next call repeats it.
        """
        with self._trying:
            if self._reason is None or (self._reason and time.monotonic() - self._tried_at >= _TRIED_AGAIN_SECONDS):
                self._reason, self._tried_at = self._try(), time.monotonic()
            return self._reason

    @contextmanager
    def open(
        self, workspace: Path, env: Mapping[str, str], policy: SandboxPolicy = NO_ACCESS
    ) -> Iterator[BubblewrapRun]:
        """See the port."""
        if reason := self.why_not():
            raise Permanent(
                f"outside programs run in a sandbox only, and none works here: {reason}. Make bubblewrap work (see "
                "docs/security.md), or allow what that means with allow_unjailed_agents = true"
            )
        with self._open(workspace, env, policy) as sandboxed:
            yield sandboxed

    @contextmanager
    def _open(self, workspace: Path, env: Mapping[str, str], policy: SandboxPolicy) -> Iterator[BubblewrapRun]:
        readable = self._shown((*self._readable, *policy.readable), workspace)
        writable = tuple(_real(path, workspace) for path in policy.writable)
        workspace = workspace.resolve()
        folders = (workspace, *(path for path in writable if path.is_dir()))
        own_git = has_own_git(workspace)
        with ExitStack() as closing:
            folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="cell-", dir=self._scratch)))
            proxy = Proxy(policy.network)
            closing.callback(proxy.close)
            handshake = Handshake(folder, self._inside(env, policy.network), system_call_filter())
            guard = Guard(handshake, folders, self._limits, policy.network.serve or proxy.serve)
            view = bubblewrap.View(
                workspace, self._scratch / "furniture", handshake.path, readable, writable,
                PROXY_PORT if policy.network else 0,
            )  # fmt: skip
            prefix = bubblewrap.command(self._bwrap, view, self._limits)
            must_end = False
            try:
                yield BubblewrapRun(folder, prefix, self._worker, guard)
            except (ClaimLost, Interrupted, Cancelled, JobTimedOut):
                must_end = True
                raise
            finally:  # also after an error of the driver: its files are saved next
                if not guard.end():
                    raise Transient("a sandboxed program does not die; is the disk stuck?")
                if guard.admitted:
                    check_result(folders, self._limits, guard.reached, own_git)
                if guard.disk_full and not must_end:
                    least = self._limits.free_bytes // bubblewrap.MEGABYTE
                    raise MachineFault(f"less than {least} MB of this worker's disk are free: make room")

    def _shown(self, readable: Sequence[Path], workspace: Path) -> tuple[Path, ...]:
        """The resolved readable paths, and their names as a program knows them."""
        real = {path: _real(path, workspace) for path in readable}
        for path in real.values():
            if private := private_part(path, self._private):
                raise Permanent(f"a sandbox does not show {path}, as {private} is in it: name less in jail_readable")
        shown = set(real.values())
        named = (path for path in real if path.is_absolute() and shown.isdisjoint(path.parents))
        return tuple(shown.union(named))

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
            make_rootfs(self._scratch / "furniture")
            with (
                tempfile.TemporaryDirectory(prefix="trial-", dir=self._scratch) as folder,
                self._open(Path(folder), {}, NO_ACCESS) as sandboxed,
            ):
                tried = subprocess.run(
                    sandboxed.argv(PROGRAM), env=dict(sandboxed.env), stdin=subprocess.DEVNULL, capture_output=True,
                    timeout=30, check=False,
                )  # fmt: skip
        except subprocess.TimeoutExpired as problem:
            raise MachineFault(f"a trial of the sandbox did not end: {problem}") from problem
        except (OSError, Permanent, Transient) as problem:
            if is_machine_fault(problem):
                raise MachineFault(f"the sandbox cannot be tried: {reason_of(problem)}") from problem
            return f"a trial failed: {reason_of(problem)}"
        return self_test(tried)


def _real(path: Path, workspace: Path) -> Path:
    """The resolved path. Links in the workspace are refused: an earlier program may have made them."""
    real = path.resolve()
    if path.is_relative_to(workspace) and real != workspace.resolve() / path.relative_to(workspace):
        raise Permanent(f"{path.relative_to(workspace)} is a link, and a sandbox does not follow links")
    return real


def write_program(path: Path, argv: list[str], env: Mapping[str, str] | None = None) -> Path:
    """Write an executable file that runs `argv` with its own arguments appended. `env` replaces the environment."""
    replaced = "os.environ" if env is None else json.dumps(dict(env))
    path.touch(stat.S_IRWXU)
    path.write_text(
        f"#!{bubblewrap.python()} -IS\nimport os, sys\n"
        f"os.execvpe({json.dumps(argv[0])}, {json.dumps(argv)} + sys.argv[1:], {replaced})\n",
        encoding="utf-8",
    )
    path.chmod(stat.S_IRWXU)
    return path


class SandboxedPrograms:
    """The ProgramRunner over a Sandbox."""

    def __init__(self, sandbox: Sandbox, grace_seconds: float = INTERRUPT_GRACE_SECONDS) -> None:
        self._sandbox, self._grace = sandbox, grace_seconds

    def run(
        self,
        args: Sequence[str],
        cwd: Path,
        stdin: bytes,
        env: Mapping[str, str],
        seconds: float,
        token: CancelToken,
        policy: SandboxPolicy = NO_ACCESS,
        hear: Callable[[str], None] = ignore_progress,
    ) -> tuple[int, bytes, bytes]:
        """Exit code, stdout and stderr; a cancelled token sends SIGINT, and SIGKILL after the grace period."""
        with self._sandbox.open(cwd, {**env, JOB_MARK: token.job_id}, policy) as sandboxed:
            finished = run(
                sandboxed.argv(args), cwd=cwd, stdin=stdin, env=sandboxed.env, seconds=seconds, token=token,
                grace=self._grace, interrupt=sandboxed.interrupt, hear=hear,
            )  # fmt: skip
            token.check()  # inside the block: a cancelled job is reported before a full disk
        if finished.timed_out:
            raise JobTimedOut(f"{args[0]} ran longer than {seconds:.0f} s and was ended")
        if finished.overflowed:
            raise Permanent(f"{args[0]} wrote more than {OUTPUT_BYTES} bytes and was ended")
        if finished.code in _CPU_LIMIT_CODES:
            raise SandboxLimitExceeded(f"{args[0]} used up its CPU time and was ended; nothing was changed")
        if finished.code in KILLED_CODES:  # not by the guard: its limits raise when the block above ends
            raise ProgramKilled(args[0])
        return finished.code, finished.out, finished.err


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
        """A port of this machine, under a name that cannot be guessed: every user of the machine could use it."""
        return f"http://127.0.0.1:{self._port}/{self._token}/{upstream}"

    def interrupt(self) -> None:
        """Send SIGINT to all processes of the run."""
        self.signal(signal.SIGINT)

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the run."""
        for pid in _marked(f"{_CELL_MARK}={self._token}".encode()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class UnconfinedSandbox:
    """See Sandbox: programs run without confinement, as the settings allow."""

    def __init__(self, worker: str, limits: SandboxLimits | None = None) -> None:
        self._worker, self._limits = worker, limits or SandboxLimits()

    @contextmanager
    def open(
        self, workspace: Path, env: Mapping[str, str], policy: SandboxPolicy = NO_ACCESS
    ) -> Iterator[UnconfinedRun]:
        """See the port; what the program touches is up to the program."""
        token = secrets.token_urlsafe(24)
        folders = (workspace, *(path for path in policy.writable if path.is_dir()))
        with ExitStack() as closing:
            closing.callback(check_result, folders, self._limits, "", has_own_git(workspace))
            folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="webordinary-")))
            proxy = Proxy(policy.network, f"/{token}")
            closing.callback(proxy.close)
            port = 0
            if policy.network.upstreams:
                listener = socket.create_server(("127.0.0.1", 0))
                port = listener.getsockname()[1]
                proxy.serve(listener)
            passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
            sandboxed = UnconfinedRun(
                folder, {"HOME": str(folder), **passed_on, **env, WORKER_MARK: self._worker}, token, port
            )
            closing.callback(sandboxed.signal, signal.SIGKILL)
            yield sandboxed


def _marked(mark: bytes) -> Iterator[int]:
    proc = Path("/proc")
    for entry in proc.iterdir() if proc.is_dir() else ():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
