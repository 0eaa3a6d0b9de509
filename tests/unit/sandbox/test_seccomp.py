"""The system call filter, run by a small BPF machine for both architectures."""

from __future__ import annotations

import errno
import struct

import pytest

from webordinary.adapters.sandbox.bubblewrap import MACHINES, NEWEST_CALL, CpuArchitecture, system_call_filter
from webordinary.model.errors import Permanent

ALLOWED = 0
I386, X32 = 0x40000003, 0x40000000
NEW_USER, THREAD = 0x10000000, 0x003D0F00
"""CLONE_NEWUSER, and the flags by which C libraries start a thread."""


@pytest.fixture(params=sorted(MACHINES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def machine(name: str) -> CpuArchitecture:
    return MACHINES[name]


def verdict(name: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """The error that a call fails with; 0 if it is allowed."""
    program = system_call_filter(name)
    words = [*arguments, *([0] * (6 - len(arguments)))]
    own = MACHINES[name].architecture if architecture is None else architecture
    data = struct.pack("=IIQ6Q", number, own, 0, *words)
    at = accumulator = 0
    while True:
        code, then, otherwise, value = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        if code == 0x06:
            assert value >> 16 in (0x7FFF, 0x0005)
            return 0 if value >> 16 == 0x7FFF else value & 0xFFFF
        if code == 0x20:
            [accumulator] = struct.unpack_from("=I", data, value)
        else:
            met = {0x15: accumulator == value, 0x25: accumulator > value, 0x45: bool(accumulator & value)}[code]
            at += then if met else otherwise


REACHES_OUT = {
    "io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key", "ptrace", "bpf",
    "process_vm_readv", "process_vm_writev", "pidfd_getfd", "perf_event_open", "userfaultfd", "unshare", "setns",
    "mount", "umount2", "pivot_root", "fsopen", "fsmount", "move_mount", "open_tree", "mount_setattr", "syslog",
    "open_by_handle_at", "kexec_load", "init_module", "finit_module", "reboot", "memfd_secret", "kcmp", "acct",
}  # fmt: skip


def test_calls_that_reach_past_the_jail_are_refused(name: str, machine: CpuArchitecture) -> None:
    assert machine.refused.keys() >= REACHES_OUT
    for number in machine.refused.values():
        assert verdict(name, number) == errno.EPERM


def test_every_other_call_that_is_known_is_allowed(name: str, machine: CpuArchitecture) -> None:
    checked = {machine.socket, machine.socketpair, machine.clone3}
    others = set(range(NEWEST_CALL + 1)) - set(machine.refused.values()) - checked
    assert {verdict(name, number) for number in others} == {ALLOWED}


@pytest.mark.parametrize(("family", "error"), [(1, 0), (2, 0), (10, 0), (16, 0), (40, errno.EAFNOSUPPORT), (17, 97)])
def test_only_unix_internet_and_netlink_sockets_exist(
    name: str, machine: CpuArchitecture, family: int, error: int
) -> None:
    assert verdict(name, machine.socket, family, 1, 0) == error
    assert verdict(name, machine.socketpair, family, 1, 0) == error
    assert verdict(name, machine.socket, 1 << 32 | family, 1, 0) == error, "the kernel reads the low half only"


def test_threads_start_but_no_namespaces(name: str, machine: CpuArchitecture) -> None:
    assert verdict(name, machine.clone, THREAD) == ALLOWED
    assert verdict(name, machine.clone, NEW_USER | 17) == errno.EPERM
    assert verdict(name, machine.clone3) == errno.ENOSYS


def test_nothing_is_typed_into_a_terminal(name: str, machine: CpuArchitecture) -> None:
    assert verdict(name, machine.ioctl, 0, 0x5412) == errno.EPERM
    assert verdict(name, machine.ioctl, 0, 1 << 32 | 0x5412) == errno.EPERM
    assert verdict(name, machine.ioctl, 0, 0x5401) == ALLOWED


def test_calls_of_other_abis_and_of_later_kernels_are_unknown(name: str, machine: CpuArchitecture) -> None:
    assert verdict(name, 20, architecture=I386) == errno.ENOSYS
    assert verdict(name, X32 | machine.socket, 2) == errno.ENOSYS
    assert verdict(name, NEWEST_CALL + 1) == errno.ENOSYS


def test_a_machine_without_a_filter_is_named() -> None:
    with pytest.raises(Permanent, match="riscv64"):
        system_call_filter("riscv64")
