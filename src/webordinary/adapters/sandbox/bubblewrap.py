"""How bubblewrap is told what a program sees: nothing of the host but its programs, read-only."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.installations import python_files
from webordinary.adapters.sandbox import inside
from webordinary.model.errors import Permanent

MEGABYTE = 1_000_000
_CPU_GRACE_SECONDS = 5


class SandboxLimitExceeded(Permanent):
    """A program in a jail used up what it may have; it was ended and its workspace emptied."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Wall clock and output are the caller's; these are the jail's."""

    processes: int = 512
    memory_bytes: int = 4_000 * MEGABYTE
    """Of all processes together."""
    mapped_bytes: int = 0
    """Private memory that one process may map; 0: `memory_bytes`. Browsers reserve far more than they use."""
    disk_bytes: int = 5_000 * MEGABYTE
    """The workspace and what else is writable, with what was there before."""
    files: int = 300_000
    depth: int = 100
    file_bytes: int = 1_000 * MEGABYTE
    open_files: int = 4096
    cpu_seconds: int = 7200
    """Of one process. The guard ends the program then; the kernel's limit is a little higher."""
    scratch_bytes: int = 512 * MEGABYTE
    """Each of /tmp, /dev/shm and the home folder; they are memory."""
    free_bytes: int = 200 * MEGABYTE
    """Below this the disk counts as full; nobody is blamed for that who kept to `disk_bytes`."""

    def rlimits(self) -> dict[str, int]:
        """What the kernel enforces per process, by the names of `resource`."""
        return {
            "NPROC": self.processes,  # the kernel exempts root; the watchdog does not
            "DATA": self.mapped_bytes or self.memory_bytes,
            "FSIZE": self.file_bytes,
            "NOFILE": self.open_files,
            "CPU": self.cpu_seconds + _CPU_GRACE_SECONDS,
            "CORE": 0,
        }


HOME = "/home/site"
SCRATCH = ("/tmp", "/dev/shm", HOME)  # noqa: S108  inside the jail they are its own
USER = 1000
_LAUNCHER = "/run/webordinary/inside.py"
_USR_NAMES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "mime.types", "pki/ca-trust/extracted", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf",
    "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
_MACHINE = ("/nix/store", *(f"/etc/{name}" for name in _ETC))


@dataclass(frozen=True, slots=True)
class View:
    """What one cell shows of the host. `furniture` is a folder with our own `etc/` and perhaps `dev/`."""

    workspace: Path
    furniture: Path
    door: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    port: int = 0
    """Where the program finds the proxy on its own 127.0.0.1; 0: nowhere."""


def command(bwrap: str, view: View, limits: SandboxLimits) -> list[str]:
    """The words before the program's own; the order matters, later mounts lie over earlier ones."""
    return [
        bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
        "--uid", str(USER), "--gid", str(USER), "--hostname", "site",
        *_machine(view.furniture), *_scratch(limits.scratch_bytes), *_devices(view.furniture / "dev"),
        *_given(view), *_closing(), "--clearenv", "--chdir", str(view.workspace), "--",
        python(), "-I", "-S", "-B", _LAUNCHER,
        ",".join(f"{name}={number}" for name, number in limits.rlimits().items()), str(view.port),
    ]  # fmt: skip


def python() -> str:
    """The interpreter itself, not the link to it in a virtual environment."""
    return os.path.realpath(sys.executable)


def _machine(furniture: Path) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _USR_NAMES:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for place in _MACHINE:
        yield from ("--ro-bind-try", place, place)
    for file in sorted((furniture / "etc").iterdir()):
        yield from ("--ro-bind", str(file), f"/etc/{file.name}")


def _scratch(size: int) -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    for place in SCRATCH:
        yield from ("--size", str(size), "--perms", "0700", "--tmpfs", place)


def _devices(nodes: Path) -> Iterator[str]:
    if nodes.is_dir():
        for node in sorted(nodes.iterdir()):
            yield from ("--dev-bind", str(node), f"/dev/{node.name}")


def _given(view: View) -> Iterator[str]:
    for path in _outer_first({*view.readable, *python_files(Path(sys.base_prefix).resolve())}):
        yield from ("--ro-bind", str(path), str(path))
    for path in _outer_first((view.workspace, *view.writable)):
        yield from ("--bind", str(path), str(path))
    git = view.workspace / ".git"
    if git.exists() and not git.is_symlink():
        yield from ("--ro-bind", str(git), str(git))
    yield from ("--ro-bind", str(Path(inside.__file__).resolve()), _LAUNCHER, "--ro-bind", str(view.door), inside.DOOR)


def _outer_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: (len(path.parts), path))


def _closing() -> Iterator[str]:
    # Root outside is the owner of every sysctl, also as a nobody in here: /proc must not be writable.
    for place in ("/proc", "/dev", "/"):
        yield from ("--remount-ro", place)


_FURNITURE_ETC = {
    "passwd": f"site:x:{USER}:{USER}:site:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": f"site:x:{USER}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost site\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_NOBODY = 65534


def make_rootfs(folder: Path) -> None:
    """Write it all into an empty folder."""
    (folder / "etc").mkdir(parents=True)
    for name, text in _FURNITURE_ETC.items():
        (folder / "etc" / name).write_text(text, encoding="utf-8")
    if os.geteuid() == 0:
        _make_devices(folder / "dev")


def _make_devices(folder: Path) -> None:
    """Root owns the host's devices, and so would a jail of root: it could `chmod 0 /dev/null` for everybody."""
    folder.mkdir()
    for name, numbers in _DEVICES.items():
        node = folder / name
        os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(*numbers))
        os.chown(node, _NOBODY, _NOBODY)
        node.chmod(0o666)
