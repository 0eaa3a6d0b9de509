"""How bubblewrap is told what a program sees: nothing of the host but its programs, read-only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.local.jail import inside
from webordinary.adapters.local.jail.limits import JailLimits

HOME = "/home/site"
SCRATCH = ("/tmp", "/dev/shm", HOME)  # noqa: S108  inside the jail they are its own
USER = 1000
_LAUNCHER = "/run/webordinary/inside.py"
_USR_NAMES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives", "ca-certificates", "crypto-policies", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "mime.types", "pki", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
_MACHINE = ("/nix/store", *(f"/etc/{name}" for name in _ETC))


@dataclass(frozen=True, slots=True)
class View:
    """What one cell shows of the host. `furniture` is a folder with our own `etc/` and perhaps `dev/`."""

    workspace: Path
    furniture: Path
    door: Path
    env: Mapping[str, str]
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    port: int = 0
    """Where the program finds the proxy on its own 127.0.0.1; 0: nowhere."""


def command(bwrap: str, view: View, limits: JailLimits) -> list[str]:
    """The words before the program's own; the order matters, later mounts lie over earlier ones."""
    return [
        bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
        "--uid", str(USER), "--gid", str(USER), "--hostname", "site",
        *_machine(view.furniture), *_scratch(limits.scratch_bytes), *_devices(view.furniture / "dev"),
        *_given(view), *_closing(), *_environment(view.env), "--chdir", str(view.workspace), "--",
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
    prefix = Path(sys.base_prefix).resolve()
    if not prefix.is_relative_to("/usr"):
        yield from ("--ro-bind", str(prefix), str(prefix))
    for path in _outer_first(view.readable):
        yield from ("--ro-bind", str(path), str(path))
    for path in _outer_first((view.workspace, *view.writable)):
        yield from ("--bind", str(path), str(path))
    git = view.workspace / ".git"
    if git.exists() and not git.is_symlink():
        yield from ("--ro-bind", str(git), str(git))
    yield from ("--ro-bind", str(Path(inside.__file__).resolve()), _LAUNCHER, "--ro-bind", str(view.door), inside.DOOR)


def _outer_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: len(path.parts))


def _closing() -> Iterator[str]:
    # Root outside is the owner of every sysctl, also as a nobody in here: /proc must not be writable.
    for place in ("/proc", "/dev", "/"):
        yield from ("--remount-ro", place)


def _environment(env: Mapping[str, str]) -> Iterator[str]:
    yield "--clearenv"
    for name, value in sorted(env.items()):
        yield from ("--setenv", name, value)
