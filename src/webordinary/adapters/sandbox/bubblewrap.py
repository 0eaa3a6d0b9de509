"""How bubblewrap is told what a program sees (nothing of the host but its programs, read-only) and may call.

The system call filter is a BPF program for x86_64 and aarch64. It refuses what reaches past the sandbox's namespaces
(vsock, keyrings, io_uring), what inspects other processes, and what a program without capabilities has no use for but a
bug in the kernel may. Calls of other ABIs (i386, x32) and calls newer than this list fail as unknown, so that programs
fall back to older ones.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from webordinary.adapters.processes import python_files
from webordinary.adapters.sandbox import inside
from webordinary.model.errors import Permanent

NEWEST_CALL = 462
"""mseal of Linux 6.10. Both architectures share all numbers from 424 on."""
_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06  # BPF_LD|W|ABS, JMP|JEQ, JGT, JSET, RET
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets into seccomp_data; low words of the arguments
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_SHARED = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442,
    "quotactl_fd": 443, "memfd_secret": 447,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CpuArchitecture:
    """How the kernel of one architecture counts; `refused` are calls that fail with EPERM."""

    architecture: int
    socket: int
    socketpair: int
    ioctl: int
    clone: int
    refused: dict[str, int]
    clone3: int = 435


MACHINES = {
    "x86_64": CpuArchitecture(
        0xC000003E, socket=41, socketpair=53, ioctl=16, clone=56,
        refused={
            **_SHARED, "keyctl": 250, "add_key": 248, "request_key": 249, "ptrace": 101, "process_vm_readv": 310,
            "process_vm_writev": 311, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "unshare": 272,
            "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "kexec_load": 246, "kexec_file_load": 320,
            "init_module": 175, "finit_module": 313, "delete_module": 176, "quotactl": 179, "swapon": 167,
            "swapoff": 168, "reboot": 169, "acct": 163, "syslog": 103, "open_by_handle_at": 304,
            "lookup_dcookie": 212, "kcmp": 312, "vhangup": 153, "fanotify_init": 300, "iopl": 172, "ioperm": 173,
            "modify_ldt": 154,
        },
    ),
    "aarch64": CpuArchitecture(
        0xC00000B7, socket=198, socketpair=199, ioctl=29, clone=220,
        refused={
            **_SHARED, "keyctl": 219, "add_key": 217, "request_key": 218, "ptrace": 117, "process_vm_readv": 270,
            "process_vm_writev": 271, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "unshare": 97,
            "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "kexec_load": 104, "kexec_file_load": 294,
            "init_module": 105, "finit_module": 273, "delete_module": 106, "quotactl": 60, "swapon": 224,
            "swapoff": 225, "reboot": 142, "acct": 89, "syslog": 116, "open_by_handle_at": 265, "lookup_dcookie": 18,
            "kcmp": 272, "vhangup": 58, "fanotify_init": 262,
        },
    ),
}  # fmt: skip


def system_call_filter(machine: str = "") -> bytes:
    """The filter for this machine, or for the one that is named as `uname -m` does. Raises Permanent for others."""
    name = machine or os.uname().machine
    if name not in MACHINES:
        raise Permanent(f"there is no system call filter for {name}, only for {' and '.join(MACHINES)}")
    return b"".join(_program(MACHINES[name]))


def _program(machine: CpuArchitecture) -> Iterator[bytes]:
    """Each check jumps over the one instruction behind it, or returns."""
    yield _step(_LOAD, _ARCHITECTURE)
    yield _step(_EQUAL, machine.architecture, then=1)
    yield _fail(errno.ENOSYS)
    yield _step(_LOAD, _NUMBER)
    yield from _fail_if(_GREATER, NEWEST_CALL, errno.ENOSYS)  # x32 too: its numbers have bit 30 set
    yield from _fail_if(_EQUAL, machine.clone3, errno.ENOSYS)  # its flags lie in memory; libc falls back to clone
    for number in sorted(machine.refused.values()):
        yield from _fail_if(_EQUAL, number, errno.EPERM)
    checks = b"".join(_fail_if(_ANY_BIT, _NEW_NAMESPACES, errno.EPERM))
    yield from _argument_checks(machine.clone, _FIRST, checks)
    terminal = b"".join(part for code in _TERMINAL_INPUT for part in _fail_if(_EQUAL, code, errno.EPERM))
    yield from _argument_checks(machine.ioctl, _SECOND, terminal)
    allowed = b"".join(_step(_EQUAL, family, then=len(_FAMILIES) - index) for index, family in enumerate(_FAMILIES))
    for number in (machine.socket, machine.socketpair):
        yield from _argument_checks(number, _FIRST, allowed + _fail(errno.EAFNOSUPPORT))
    yield _step(_RETURN, _ALLOW)


def _argument_checks(number: int, argument: int, checks: bytes) -> Iterator[bytes]:
    """Check an argument of one call, and allow what passes."""
    body = _step(_LOAD, argument) + checks + _step(_RETURN, _ALLOW)
    yield _step(_EQUAL, number, otherwise=len(body) // 8)
    yield body


def _fail_if(test: int, value: int, code: int) -> Iterator[bytes]:
    yield _step(test, value, otherwise=1)
    yield _fail(code)


def _fail(code: int) -> bytes:
    return _step(_RETURN, _ERRNO | code)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """One `struct sock_filter`; the jumps count instructions."""
    return struct.pack("=HBBI", code, then, otherwise, value)


MEGABYTE = 1_000_000
_CPU_GRACE_SECONDS = 5


class SandboxLimitExceeded(Permanent):
    """A program exceeded a limit of its sandbox. It was killed and its workspace emptied."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Wall clock and output are the caller's; these are the sandbox's."""

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
    """Below this the disk counts as full; a program within `disk_bytes` is not the cause."""

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
SCRATCH = ("/tmp", "/dev/shm", HOME)  # noqa: S108  inside the sandbox they are its own
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
    """The view that one sandbox has of the host. `rootfs` is a folder with our own `etc/` and perhaps `dev/`."""

    workspace: Path
    rootfs: Path
    handshake: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    port: int = 0
    """Where the program finds the proxy on its own 127.0.0.1; 0: nowhere."""


def command(bwrap: str, view: View, limits: SandboxLimits) -> list[str]:
    """The words before the program's own; the order matters, later mounts lie over earlier ones."""
    return [
        bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
        "--uid", str(USER), "--gid", str(USER), "--hostname", "site",
        *_machine(view.rootfs), *_scratch(limits.scratch_bytes), *_devices(view.rootfs / "dev"),
        *_given(view), *_closing(), "--clearenv", "--chdir", str(view.workspace), "--",
        python(), "-I", "-S", "-B", _LAUNCHER,
        ",".join(f"{name}={number}" for name, number in limits.rlimits().items()), str(view.port),
    ]  # fmt: skip


def python() -> str:
    """The interpreter itself, not the link to it in a virtual environment."""
    return os.path.realpath(sys.executable)


def _machine(rootfs: Path) -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _USR_NAMES:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for place in _MACHINE:
        yield from ("--ro-bind-try", place, place)
    for file in sorted((rootfs / "etc").iterdir()):
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
    yield from (
        "--ro-bind",
        str(Path(inside.__file__).resolve()),
        _LAUNCHER,
        "--ro-bind",
        str(view.handshake),
        inside.HANDSHAKE_SOCKET,
    )


def _outer_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: (len(path.parts), path))


def _closing() -> Iterator[str]:
    # Root outside is the owner of every sysctl, also as a nobody in here: /proc must not be writable.
    for place in ("/proc", "/dev", "/"):
        yield from ("--remount-ro", place)


_ROOTFS_ETC = {
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
    for name, text in _ROOTFS_ETC.items():
        (folder / "etc" / name).write_text(text, encoding="utf-8")
    if os.geteuid() == 0:
        _make_devices(folder / "dev")


def _make_devices(folder: Path) -> None:
    """Root owns the host's devices, and so would a sandbox of root: it could `chmod 0 /dev/null` for everybody."""
    folder.mkdir()
    for name, numbers in _DEVICES.items():
        node = folder / name
        os.mknod(node, stat.S_IFCHR | 0o600, os.makedev(*numbers))
        os.chown(node, _NOBODY, _NOBODY)
        node.chmod(0o666)
