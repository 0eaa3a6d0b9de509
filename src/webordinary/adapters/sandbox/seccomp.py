"""The system call filter of a jail, as a BPF program for x86_64 and aarch64.

Refuses what reaches past the jail's namespaces (vsock, keyrings, io_uring), what inspects other processes, and what a
program without capabilities has no use for but a bug in the kernel may. Calls of other ABIs (i386, x32) and calls
newer than this list fail as unknown, so that programs fall back to older ones.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

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
